"""`python -m supply.release_check v1.2.3`: may this tree be released under this tag?

Without a tag it asks whether it may be released at all. Exits with 1 where it may not, and says
all that stands in the way at once.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import yaml

from evaluator.environments.advisories import AdvisoryError, known_findings, read_advisories
from supply.locks import LOCKS, LockError, read_lock

_TAG = re.compile(r"v(\d+\.\d+\.\d+(?:rc\d+)?)")
_PINNED = re.compile(r"^BASE_DIGEST=@sha256:[0-9a-f]{64}$", re.MULTILINE)


def problems(root: Path, tag: str | None, today: date) -> Iterator[str]:
    """What stands in the way of a release, each in a sentence.

    Args:
        root: folder of the project.
        tag: it is to be released under; None: that of `pyproject.toml`.
        today: exceptions for defects that ended before do not hold.
    """
    checks: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _tag(root, tag),
        lambda: _changes(root),
        lambda: _citation(root),
        lambda: _base(root),
        lambda: _defects(root, today),
    )
    for check in checks:
        try:
            yield from check()
        except (AdvisoryError, LockError, OSError, ValueError, KeyError, yaml.YAMLError) as error:
            yield f"{type(error).__name__}: {error}"


def version_of(root: Path) -> str:
    """As `pyproject.toml` says."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def changes_of(root: Path, version: str) -> str:
    """What `CHANGELOG.md` says of a version; empty where it has no such part."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## \[?{re.escape(version)}\]?(?![\w.]).*\n"
    found = re.search(heading + r"((?:(?!## ).*\n?)*)", text, re.MULTILINE)
    return found[1].strip() if found else ""


def _tag(root: Path, tag: str | None) -> Iterator[str]:
    if tag is None:
        return
    named, version = _TAG.fullmatch(tag), version_of(root)
    if named is None:
        yield f"The tag {tag!r} is no version; tags are v1.2.3 or v1.2.3rc1."
    elif named[1] != version:
        yield f"The tag {tag} is not the version {version} of pyproject.toml."


def _changes(root: Path) -> Iterator[str]:
    version = version_of(root)
    if not changes_of(root, version):
        yield f"CHANGELOG.md says nothing of version {version}."


def _citation(root: Path) -> Iterator[str]:
    version = version_of(root)
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    if str(cited) != version:
        yield f"CITATION.cff cites version {cited}, and pyproject.toml says {version}."


def _base(root: Path) -> Iterator[str]:
    if not _PINNED.search((root / "deploy/base.env").read_text(encoding="utf-8")):
        yield (
            "deploy/base.env pins no base image by its digest, so that two builds of this release "
            "may differ. It says how to fill it in."
        )


def _defects(root: Path, today: date) -> Iterator[str]:
    kept = read_advisories(root / "evaluator/environments/advisories.toml")
    for lock in LOCKS:
        for found in known_findings(read_lock(root / lock), kept, today):
            if found.exception is None:
                yield f"{lock}: {found.pin.name} {found.pin.version} has {found.ids[0]}."


def main() -> int:
    """Check the tree this is run from; returns the exit code."""
    given = sys.argv[1:]
    if len(given) > 1:
        sys.stderr.write("usage: python -m supply.release_check [vX.Y.Z]\n")
        return 2
    found = list(problems(Path.cwd(), given[0] if given else None, datetime.now(UTC).date()))
    sys.stderr.writelines(f"error: {each}\n" for each in found)
    if not found:
        sys.stdout.write(f"{given[0] if given else version_of(Path.cwd())} may be released.\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
