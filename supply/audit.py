"""`python -m supply.audit`: do the locked packages have known defects?

Exits with 1 where one is found that no exception accepts, and with 3 where `--complete` asks for
an answer about every package and there is none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from evaluator.environments.advisories import (
    ADVISORIES,
    AdvisoryError,
    Finding,
    Kept,
    known_findings,
    read_advisories,
)
from evaluator.environments.lock import Pin
from supply.locks import LOCKS, LockError, read_lock
from supply.service import Answer, ask

ROOT = Path(__file__).resolve().parent.parent
FOUND, BROKEN = 1, 3
Ask = Callable[[Path, tuple[Pin, ...], Kept, date], Answer]


@dataclass(frozen=True, slots=True)
class Audited:
    """What is known of one lock.

    Attributes:
        name: of the file.
        pins: how many packages it holds.
        findings: defects, excepted ones too.
        answer: of the service; None where it was not asked.
    """

    name: str
    pins: int
    findings: tuple[Finding, ...]
    answer: Answer | None

    @property
    def bad(self) -> tuple[Finding, ...]:
        """Defects that nobody accepted."""
        return tuple(each for each in self.findings if each.exception is None)

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"{self.name}: {self.pins} packages, {len(self.bad)} with a known defect"
        for each in self.findings:
            what = f"  {each.pin.name} {each.pin.version}: {' '.join(each.ids)} {each.about}"
            if each.exception is None:
                yield what
            else:
                yield f"{what} Accepted until {each.exception.until}: {each.exception.reason}"
        if self.answer is None:
            yield "  UNKNOWN beyond our own list: the advisory service was not asked (make audit)."
        elif self.answer.fault:
            yield f"  UNKNOWN beyond our own list: no answer from the service: {self.answer.fault}"
        elif self.answer.unknown:
            names = ", ".join(self.answer.unknown)
            yield f"  UNKNOWN of {len(self.answer.unknown)} packages: {names}"


def audit(
    root: Path, names: Iterable[str], kept: Kept, today: date, asking: Ask | None
) -> tuple[Audited, ...]:
    """Look at lock files.

    Args:
        root: the folder they are in.
        names: of them.
        kept: the list of known defects.
        today: exceptions that ended before do not hold.
        asking: the service; None: it is not asked.

    Raises:
        LockError: a lock is malformed.
    """
    return tuple(_audited(root / name, name, kept, today, asking) for name in names)


def _audited(path: Path, name: str, kept: Kept, today: date, asking: Ask | None) -> Audited:
    pins = read_lock(path)
    answer = asking(path, pins, kept, today) if asking else None
    findings = known_findings(pins, kept, today)
    ours = {(each.pin.name, one) for each in findings for one in each.ids}
    told = answer.findings if answer else ()
    new = (each for each in told if not any((each.pin.name, one) in ours for one in each.ids))
    return Audited(name, len(pins), (*findings, *new), answer)


def main(
    offline: Annotated[bool, typer.Option(help="Look at our own list alone.")] = False,
    complete: Annotated[
        bool, typer.Option(help="Exit with 3 where any package was not answered for.")
    ] = False,
    service: Annotated[str, typer.Option(help="Address that answers as OSV does.")] = "",
    root: Annotated[Path, typer.Option(help="Folder with the lock files.")] = ROOT,
    advisories: Annotated[Path, typer.Option(help="The list of known defects.")] = ADVISORIES,
) -> None:
    """Look for known defects in everything that is locked.

    Example: python -m supply.audit --offline
    """

    def asked(lock: Path, pins: tuple[Pin, ...], kept: Kept, today: date) -> Answer:
        return ask(lock, pins, kept, today, service)

    try:
        kept = read_advisories(advisories)
        today = datetime.now(UTC).date()
        found = audit(root, LOCKS, kept, today, None if offline else asked)
    except (AdvisoryError, LockError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(BROKEN) from error
    sys.stdout.writelines(f"{line}\n" for each in found for line in each.lines())
    if any(each.bad for each in found):
        raise typer.Exit(FOUND)
    if complete and not all(each.answer and each.answer.complete for each in found):
        sys.stderr.write("error: not every package was answered for, and --complete asks for it.\n")
        raise typer.Exit(BROKEN)


if __name__ == "__main__":
    typer.run(main)
