"""Runs the shell blocks of a document, one after the other, in one session.

The script has every command on the line that it has in the document, so that the shell itself says
which line failed.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.docs.markdown_text import Document, Fence
from tests.processes import running

SHOWN_LINES = 80
"""Of the output, where something fails."""
SESSION = 'source ../helpers.sh; source ../document.sh; test -n "${_reached_the_end:-}"'

HELPERS = r"""
set -Eeuo pipefail
_failed() {
  _failures+=("line $2: exit code $1: $3")
  [ "$_expected" != 0 ] || printf '\n!!! line %s: exit code %s: %s\n' "$2" "$1" "$3"
}
_begin() {
  _expected=$2 _failures=()
  printf '\n### line %s\n' "$1"
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
class Ran:
    """What became of a document's commands."""

    code: int
    output: str

    def told(self, document: Document) -> str:
        """For the message of a failed test."""
        lines = self.output.splitlines()
        failed = [line for line in lines if line.startswith("!!! ")]
        shown = "\n".join(lines[-SHOWN_LINES:])
        return f"{document.name}: {'; '.join(failed) or f'ended with {self.code}'}\n{shown}"


def script_of(document: Document) -> str:
    """The shell script of a document, line by line below each other."""
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


def run(script: str, folder: Path, environment: dict[str, str], timeout_s: float) -> Ran:
    """Run a script in a folder.

    Args:
        script: as `script_of` makes it.
        folder: where it runs.
        environment: all of it.
        timeout_s: after which everything it started is ended.
    """
    beside = folder.parent
    (beside / "helpers.sh").write_text(HELPERS, encoding="utf-8")
    (beside / "document.sh").write_text(script, encoding="utf-8")
    output = beside / "output.txt"
    with (
        output.open("wb") as written,
        running(
            ["bash", "--noprofile", "--norc", "-c", SESSION],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = 124
    told = re.sub(r"\x1b\[[0-9;]*m", "", output.read_text("utf-8", errors="replace"))
    return Ran(code, f"{told}\n!!! not finished after {timeout_s:.0f} s" if code == 124 else told)
