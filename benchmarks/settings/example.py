"""An example of the settings file: every key, explained, and none of them in force."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from benchmarks.settings.fields import Field, fields

_WIDTH = 96
_BEGIN = """\
# Settings of Assay. Remove the # before what you set. Kept as .assay/settings.toml it is found by
# itself; elsewhere, name it: ASSAY_SETTINGS=FILE. An option of a command and a variable of the
# environment (in brackets) come before what stands here.
#
# Secrets are best kept in files of their own, which can be changed without a restart:
# `secret_file = "/run/secrets/..."` instead of `secret = "..."`. Where this file holds one itself,
# nobody else may read it: chmod 600.
"""
_SAMPLES = {
    "data": "/srv/assay/data",
    "scratch": "/srv/assay/scratch",
    "user": "ada",
    "operators": ["hub:ada", "hub:grace"],
    "host": "127.0.0.1",
    "live": "https://my-org-assay.hf.space",
    "token_path": "~/.cache/huggingface/token",
    "endpoint": "https://huggingface.co",
    "home": "~/.cache/huggingface",
    "job_image": "hf.co/spaces/my-org/assay",
    "job_questions": "my-org/assay-questions",
    "docker_host": "unix:///run/user/1000/docker.sock",
}


def example() -> str:
    """The content of the file, ending with a line end."""
    parts, table = [_BEGIN], ""
    # A table holds all that follows it, so the keys of none come first.
    for field in sorted((f for f in fields() if f.about.key), key=lambda f: "." in f.about.key):
        within, _, name = field.about.key.rpartition(".")
        if within != table:
            table = within
            parts.append(f"[{table}]\n")
        parts.append("\n".join(_lines(field, name)) + "\n")
    return "\n".join(parts)


def _lines(field: Field, name: str) -> Iterator[str]:
    who = ", ".join(field.about.who)
    text = f"{field.text} [{field.about.variable}; read by: {who}]"
    yield from textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    if field.about.leads:
        yield "# Taken only from a file that ASSAY_SETTINGS names."
    if field.about.secret:
        yield f'# {name}_file = "/run/secrets/{field.about.key.replace(".", "_")}"'
        return
    yield f"# {name} = {_toml(_SAMPLES.get(field.name, field.default))}"


def _toml(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)
