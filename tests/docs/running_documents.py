"""Runs the shell blocks of a document, one after the other, in one session.

The script has every command on the line that it has in the document, so that the shell itself says
which line failed. Documents are tested in shares, each a file, so that several processes run them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.docs.markdown_text import REPOSITORY, Document, Fence, project_files, run_documents
from tests.end_to_end.commands import environment as without_settings
from tests.kit.hub.server import running_hub
from tests.kit.processes import await_answer, free_port, running
from tests.kit.warm.warm_python import shared_server

NEEDS = frozenset({"data", "hub", "store", "server", "tree"})
"""What a document may say that it is run with."""
PORTS = ("7860", "9100")
"""Ports that documents name; each run has free ones instead of them."""
NOWHERE = "http://127.0.0.1:9"
LIMIT_S = 900.0
SHOWN_LINES = 80
"""Of the output, where something fails."""
QUICK = "docs/security.md"
"""The one in the default tier."""
SHARES = {
    "authors": (
        "start", "submit-a-metric", "submit-a-model", "built-in-metrics", "use-a-metric", "export",
    ),
    "operators": (
        "run-your-own", "operations", "containers", "space", "gpu-and-cluster", "upgrading",
    ),
}  # fmt: skip
SESSION = 'source ../helpers.sh; source ../document.sh; test -n "${_reached_the_end:-}"'

HELPERS = r"""
set -Eeuo pipefail
_failed() {
  _failures+=("line $2: exit code $1: $3")
  [ "$_expected" != 0 ] || printf '\n!!! line %s: exit code %s: %s\n' "$2" "$1" "$3"
}
_begin() {
  _expected=$2 _failures=()
  printf '\n### line %s, after %s s\n' "$1" "$SECONDS"
  if [ "$2" != 0 ]; then set +e; fi
}
_end() {
  if [ "$2" != "$_expected" ] || { [ "$_expected" != 0 ] && [ "${#_failures[@]}" != 1 ]; }; then
    printf '\n!!! line %s: exit code %s where %s is said\n' "$1" "$2" "$_expected"
    printf '!!! %s\n' "${_failures[@]}"
    exit 97
  fi
  _expected=0
  set -e
}
_until() {
  while ! curl --silent --fail --output /dev/null --max-time 5 "$2"; do
    if ! kill -0 "$3" 2>/dev/null; then
      printf '\n!!! line %s: it ended before %s answered\n' "$1" "$2"
      exit 97
    fi
    sleep 0.3
  done
}
_expected=0
_failures=()
trap '_failed $? $LINENO "$BASH_COMMAND"' ERR
"""


@dataclass(frozen=True)
class Supplies:
    """What is made once for all documents: public data, and the demo's finished store."""

    data: Path
    store: Callable[[], Path]


def commands_of(share: str) -> Callable[..., None]:
    """The test that every command of the documents of a share works, in the document's order."""
    named = {f"docs/{name}.md": key for key, names in SHARES.items() for name in names}
    documents = [
        document
        for document in run_documents()
        if named.get(document.name, "others") == share and document.has_commands
    ]
    cases = [
        pytest.param(document, marks=() if document.name == QUICK else pytest.mark.slow)
        for document in documents
    ]

    @pytest.mark.timeout(LIMIT_S + 300)
    @pytest.mark.parametrize("document", cases, ids=lambda document: document.name)
    def test(document: Document, tmp_path: Path, supplies: Supplies) -> None:
        code, output = run_document(document, tmp_path, supplies)
        lines = output.splitlines()
        failed = [line for line in lines if line.startswith("!!! ")]
        told = "; ".join(failed) or f"ended with {code}"
        assert code == 0, "\n".join([f"{document.name}: {told}", *lines[-SHOWN_LINES:]])

    return test


def run_document(document: Document, home: Path, supplies: Supplies) -> tuple[int, str]:
    """Set up in an empty folder what a document says it needs, and run its commands."""
    ports = {port: str(free_port()) for port in PORTS}
    with ExitStack() as around:
        folder, environment = _set_up(document, home, supplies)
        environment["PORT"] = ports["7860"]
        if "hub" in document.needs:
            environment |= around.enter_context(running_hub()).environment()
        if "server" in document.needs:
            around.enter_context(_site(folder, environment, home / "site.log"))
        python = around.enter_context(shared_server().python(folder, environment))
        environment["PATH"] = f"{python.folder}{os.pathsep}{environment['PATH']}"
        script = re.sub(rf"\b({'|'.join(PORTS)})\b", lambda m: ports[m[0]], _script_of(document))
        return _run(script, folder, environment)


def _set_up(document: Document, home: Path, supplies: Supplies) -> tuple[Path, dict[str, str]]:
    folder, at_home = home / "assay", home / "home"
    at_home.mkdir()
    folder.mkdir()
    environment = plain_environment(at_home)
    if "tree" in document.needs:
        copy_of_project(folder)
    else:
        environment["PYTHONPATH"] = str(REPOSITORY)
    if "data" in document.needs:
        environment["ASSAY_DATA"] = str(supplies.data)
        (at_home / "assay-data").symlink_to(supplies.data)
    if {"store", "server"} & document.needs:
        shutil.copytree(supplies.store(), folder / ".assay" / "store")
    return folder, environment


def plain_environment(home: Path) -> dict[str, str]:
    """Of a person who has made the environment and entered it; nothing outside can be reached."""
    inherited = {name: value for name, value in without_settings().items() if "proxy" not in name}
    inherited = {name: value for name, value in inherited.items() if "PROXY" not in name}
    for name in ("HF_TOKEN", "HF_HOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "MAKEFLAGS"):
        inherited.pop(name, None)
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), NOWHERE)
    return {
        **inherited,
        **proxies,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "HF_ENDPOINT": NOWHERE,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "TERM": "dumb",
    }


def copy_of_project(folder: Path) -> None:
    """The project's files in a folder, with the environment of these tests as its `.venv`."""
    for name in project_files():
        source, target = REPOSITORY / name, folder / name
        if not source.is_file():
            continue  # Somebody removed it since this run began.
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
        if name.endswith(".py"):
            # With what Python has compiled of it, which stays valid: else each command does it anew.
            compiled, place = (Path(cache_from_source(str(path))) for path in (source, target))
            if compiled.is_file():
                place.parent.mkdir(exist_ok=True)
                shutil.copy2(compiled, place)
    (folder / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if not part.name.startswith(".installed"):
            (folder / ".venv" / part.name).symlink_to(part)
    # `make` finds an environment that is newer than every list of what it holds.
    for listed in folder.glob("requirements*"):
        os.utime(listed, (0, 0))
    for mark in (".installed", ".installed-dev"):
        (folder / ".venv" / mark).touch()


@contextmanager
def _site(folder: Path, environment: dict[str, str], log: Path) -> Iterator[None]:
    command = [sys.executable, REPOSITORY / "app.py"]
    with (
        log.open("wb") as output,
        running(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        await_answer(f"http://127.0.0.1:{environment['PORT']}/health", process, log)
        yield


def _script_of(document: Document) -> str:
    """The shell script of a document."""
    lines = [""] * (len(document.text.splitlines()) + 1)
    for fence in document.fences:
        if fence.language == "sh" and "by" not in fence.settings:
            _write(fence, lines)
    return "\n".join([*lines, "_reached_the_end=yes"]) + "\n"


def _write(fence: Fence, lines: list[str]) -> None:
    if "before" in fence.settings:
        first = fence.setting_lines["before"] - 1
        for n, line in enumerate(fence.settings["before"].splitlines()):
            lines[first + n] = line
    in_background = "until" in fence.settings
    begin = f"_begin {fence.line} {fence.settings.get('exits', '0')}"
    lines[fence.line - 1] = f"{begin}; (" if in_background else begin
    content = fence.content.splitlines()
    lines[fence.line : fence.line + len(content)] = content
    waiting = f") & _until {fence.line} {fence.settings.get('until')} $!"
    lines[fence.end - 1] = waiting if in_background else f"_end {fence.end} $?"


def _run(script: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and output of a script in a folder; whatever it started is ended."""
    beside = folder.parent
    (beside / "helpers.sh").write_text(HELPERS, encoding="utf-8")
    (beside / "document.sh").write_text(script, encoding="utf-8")
    output = beside / "output.txt"
    command = ["bash", "--noprofile", "--norc", "-c", SESSION]
    with (
        output.open("wb") as written,
        running(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=written,
            stderr=subprocess.STDOUT,
        ) as process,
    ):  # fmt: skip
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            code = 124
    told = re.sub(r"\x1b\[[0-9;]*m", "", output.read_text("utf-8", errors="replace"))
    return code, f"{told}\n!!! not finished after {LIMIT_S:.0f} s" if code == 124 else told
