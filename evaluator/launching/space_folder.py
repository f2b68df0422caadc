"""The folder that is pushed to a Space: the site with what it imports, and no more.

A Space installs the `requirements.txt` at its root, which in this project is that of the workers,
with torch. Here it is that of the site. It has no hashes: a Space installs further packages with
the same command, and pip refuses those as soon as one requirement has a hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from benchmarks.errors import PlatformError, SubmitterError
from leaderboard.store.opening import StoreName

TREE = Path(__file__).resolve().parents[2]
"""Of this project."""
FOLDERS = ("benchmarks", "docs", "evaluator", "leaderboard")
FILES = ("LICENSE", "app.py", "pyproject.toml")
LOCK = "requirements-app.txt"
VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "ASSAY_STORE": "the store, hub:OWNER/NAME",
        "ASSAY_OPERATORS": "who may hide, rerun and ban, such as hub:ada,hub:grace; or leave it out",
    }
)
"""What everybody may read of the settings of a Space."""
SECRETS: Mapping[str, str] = MappingProxyType(
    {
        "HF_TOKEN": "reads and writes all three repositories of the store; without it the site only "
        "shows the boards",
        "ASSAY_LIVE_SECRET": "shared with workers that name this Space in ASSAY_LIVE; or leave it out",
        "ASSAY_WEBHOOK_SECRET": "as given to the Hub's webhook to /webhook; or leave it out",
    }
)
"""What nobody may read."""

_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_PIN = re.compile(r"^[a-z0-9][a-z0-9.-]*(\[[a-z,]+\])?==[^ \\;]+( ; [^\\]+?)?(?=\s*(\\|$))", re.M)
_LEFT_OUT = frozenset({"__pycache__"})
_BODY = """\
# {title}

{about}

This Space is the site of Assay, written by
`python -m evaluator space`. It shows the boards of a store on the Hub and takes submissions; workers
elsewhere score them. Do not edit it here: change the project and write the folder anew.

Its settings, under *Variables and secrets*:

| | name | what it is |
|---|---|---|
{settings}
"""


@dataclass(frozen=True, slots=True)
class SpaceFolder:
    """A Space of one store."""

    # the boards of which are shown; None: whichever ASSAY_STORE names
    store: StoreName | None = None
    title: str | None = None  # of the Space; None: as in this project
    tree: Path = field(default=TREE)  # the project's folder

    def files(self) -> Iterator[tuple[str, bytes]]:
        """All files by their path, in order: the same for the same tree."""
        if self.store is not None and not self.store.on_hub:
            raise SubmitterError(
                "store_out_of_reach",
                f"A Space cannot reach the store {str(self.store)!r}.",
                "Give one on the Hub: --store hub:OWNER/NAME.",
            )
        copied = {name: self._read(name) for name in FILES}
        copied["requirements.txt"] = pins(self._read(LOCK).decode()).encode()
        copied["README.md"] = self.readme().encode()
        for folder in FOLDERS:
            copied |= {str(p.relative_to(self.tree)): p.read_bytes() for p in self._of(folder)}
        yield from sorted(copied.items())

    def write(self, out: Path) -> int:
        """Write them into an empty folder."""
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise SubmitterError(
                "not_empty",
                f"{out} is not an empty folder.",
                "Name another, or remove it: what was written before would be pushed as well.",
            )
        written = 0
        try:
            for path, content in self.files():
                place = out / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
                place.chmod(0o644)
                written += len(content)
        except OSError as error:
            raise SubmitterError(
                "not_writable",
                f"{out} cannot be written: {error.strerror}.",
                "Name another folder.",
            ) from error
        return written

    def readme(self) -> str:
        """The card of the Space: this project's front matter, and what the Space is."""
        found = _FRONT.match(self._read("README.md").decode())
        if found is None:
            raise PlatformError("no_tree", f"{self.tree / 'README.md'} has no front matter.")
        front: dict[str, Any] = yaml.safe_load(found[1])
        if self.title is not None:
            front["title"] = self.title
        if self.store is not None:
            # Those that everybody may read.
            front["datasets"] = [
                n for n in self.store.repositories if not n.endswith("-submissions")
            ]
        head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000)
        rows = [f"| variable | `{name}` | {told} |" for name, told in VARIABLES.items()]
        rows += [f"| secret | `{name}` | {told} |" for name, told in SECRETS.items()]
        body = _BODY.format(
            title=front["title"], about=front["short_description"] + ".", settings="\n".join(rows)
        )
        return f"---\n{head}---\n\n{body}"

    def _of(self, package: str) -> Iterator[Path]:
        for path in sorted((self.tree / package).rglob("*")):
            parts = path.relative_to(self.tree).parts
            hidden = any(part.startswith(".") or part in _LEFT_OUT for part in parts)
            if path.is_file() and not hidden and path.suffix not in {".pyc", ".orig"}:
                yield path

    def _read(self, name: str) -> bytes:
        try:
            return (self.tree / name).read_bytes()
        except FileNotFoundError as error:
            raise PlatformError(
                "no_tree",
                f"{self.tree} has no {name}: it is no checkout of the project.",
                "Run this from a clone, not from an image.",
            ) from error


def pins(lock: str) -> str:
    """The pins of a lock file, one a line, without their hashes and remarks."""
    lines = [found[0].strip() for found in _PIN.finditer(lock)]
    note = f"# The pins of {LOCK}. Written by `python -m evaluator space`.\n"
    return note + "".join(f"{line}\n" for line in lines)
