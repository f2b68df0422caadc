"""The settings file: TOML, read once, with an error that names the line of whatever is wrong."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import SubmitterError
from benchmarks.settings.fields import Field, by_file_key, by_key, meant
from benchmarks.settings.homes import at_home
from benchmarks.toml_lines import Key, key_lines, line_of

USUAL = Path(".assay") / "settings.toml"
"""Where it is looked for when nobody names one."""
MOST_BYTES = 1 << 20
_EXAMPLE = "See what can be set: python -m evaluator settings --example"


@dataclass(frozen=True)
class Given:
    """One value of the file.

    Attributes:
        field: the setting.
        text: the value, or the path of the file that holds it, as its variable has it.
        in_file: whether it is such a path.
    """

    field: Field
    text: str
    in_file: bool = False

    @property
    def variable(self) -> str:
        """Where it is adopted."""
        about = self.field.about
        return about.file_variable if self.in_file else about.variable


def read_settings(path: Path, *, found: bool = False) -> tuple[Given, ...]:
    """What a settings file says.

    Args:
        path: of the file.
        found: whether it was found where nobody named it; it is trusted less then.

    Raises:
        SubmitterError: `no_settings`, `settings_open` (others can write it, or read its secrets),
            `bad_settings` (no TOML, or an unknown key), `bad_setting` (a value).
    """
    content, status = _read(path)
    if found and status.st_uid not in {0, os.getuid()}:
        raise SubmitterError(
            "settings_open",
            f"{path} belongs to somebody else, and nobody named it.",
            "Name it with ASSAY_SETTINGS if it is meant, or work in another folder.",
        )
    if status.st_mode & stat.S_IWOTH:
        raise _open(path, "everybody on this machine can change it")
    given = tuple(_given(path, content))
    secret = next((one for one in given if one.field.about.secret and not one.in_file), None)
    if secret is not None and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise _open(path, f"it holds {secret.field.about.key}, and others can read it")
    leading = next((one for one in given if one.field.about.leads), None)
    if found and leading is not None:
        raise SubmitterError(
            "bad_setting",
            f"{path} sets {leading.field.about.key}, which says where secrets are sent; a file "
            "that nobody named may not.",
            f"Name the file: ASSAY_SETTINGS={path}",
        )
    return given


def _read(path: Path) -> tuple[str, os.stat_result]:
    try:
        # Not to wait for ever where the name is that of a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SubmitterError(
            "no_settings",
            f"The settings file {path} cannot be read ({error.strerror}).",
            "Mend its name in ASSAY_SETTINGS, or let this user read it.",
        ) from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        os.close(handle)
        raise SubmitterError("no_settings", f"{path} is no settings file.", _EXAMPLE)
    with os.fdopen(handle, "rb") as file:
        content = file.read()
    try:
        return content.decode("utf-8-sig"), status
    except UnicodeDecodeError as error:
        raise SubmitterError("bad_settings", f"{path} is not UTF-8: {error}.", _EXAMPLE) from error


def _given(path: Path, text: str) -> Iterator[Given]:
    try:
        found = tuple(_flat(tomllib.loads(text)))
    except ValueError as error:  # No TOML, or a number of thousands of digits.
        raise SubmitterError("bad_settings", f"{path} is no TOML: {error}.", _EXAMPLE) from None
    except RecursionError:
        raise SubmitterError("bad_settings", f"{path} is nested too deep.", _EXAMPLE) from None
    lines = key_lines(text)
    for key, value in found:
        where = f"{path}:{line_of(lines, key) or 1}"
        yield _one(where, key, value)


def _one(where: str, key: Key, value: object) -> Given:
    name = ".".join(key)
    if name in by_file_key():
        field = by_file_key()[name]
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise _bad(where, name, "the path of a file is needed")
        return Given(field, _at_home(where, name, value), in_file=True)
    if name not in by_key():
        known = {*by_key(), *by_file_key()}
        raise SubmitterError(
            "bad_settings", f"{where}: there is no setting {name!r}.{meant(name, known)}", _EXAMPLE
        )
    field = by_key()[name]
    if isinstance(value, str) and not value.strip():
        raise _bad(where, name, "it is empty; leave the line out")
    try:
        checked = field.checked(value)
    except ValueError as error:
        raise _bad(where, name, str(error)) from None
    # A store is a folder or not; ./a:b is one, and must stay as it is written.
    if field.about.path or (field.name == "store" and str(checked).startswith("~")):
        checked = _at_home(where, name, str(checked))
    return Given(field, field.as_text(checked))


def _at_home(where: str, name: str, given: str) -> str:
    try:
        return str(at_home(given))
    except ValueError as error:
        raise _bad(where, name, str(error)) from None


def _flat(table: Mapping[str, Any], above: Key = ()) -> Iterator[tuple[Key, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, (*above, name))
        else:
            yield (*above, name), value


def _bad(where: str, name: str, why: str) -> SubmitterError:
    return SubmitterError("bad_setting", f"{where}: {name}: {why}.", _EXAMPLE)


def _open(path: Path, why: str) -> SubmitterError:
    return SubmitterError(
        "settings_open",
        f"The settings file {path} is not used: {why}.",
        f"chmod 600 {path}, or keep secrets in files of their own (hub.token_file and the like).",
    )
