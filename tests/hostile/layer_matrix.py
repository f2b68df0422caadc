"""What each layer of a box stops, found out by turning it off: `python -m tests.hostile.layer_matrix`.

Every attempt, and every way to use up memory or processes, is made once with all layers, where it
must fail, and once without each. What succeeds only then is stopped by that layer alone; what
still fails is stopped twice, or by a layer that cannot be turned off.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.errors import SubmitterError
from evaluator.isolation.backend import Backend, Layer
from evaluator.isolation.bubblewrap import SWITCHABLE, Bubblewrap
from evaluator.isolation.job import Job
from tests.evaluator.isolation.boxes import png
from tests.hostile.attempts import ATTEMPTS, scorer_of
from tests.hostile.case import QUICK, Case
from tests.hostile.corpus.exhaustion import MEMORY, PROCESSES
from tests.hostile.decoys import PLACE, Decoys, decoys

IN_PAIRS = (
    frozenset({Layer.MEMORY_CGROUP, Layer.MEMORY_WATCHDOG}),
    frozenset({Layer.NETWORK, Layer.SYSTEM_CALLS}),
    frozenset({Layer.IPC, Layer.SYSTEM_CALLS}),
    frozenset({Layer.USER_NAMESPACES, Layer.SYSTEM_CALLS}),
    frozenset({Layer.CAPABILITIES, Layer.SYSTEM_CALLS}),
    frozenset({Layer.KERNEL_SETTINGS, Layer.KERNEL_UID}),
    frozenset({Layer.FILESYSTEM, Layer.KERNEL_UID}),
)
"""Layers that stand behind one another, and are turned off together to see that both hold."""

BOUNDS = frozenset(
    {
        Layer.PROCESS_LIMIT, Layer.MEMORY_CGROUP, Layer.MEMORY_WATCHDOG, Layer.MEMORY_FOLDERS,
        Layer.SYSTEM_CALLS, Layer.KERNEL_UID,
    }
)  # fmt: skip
"""Layers that have to do with how much is used; without the others nothing is used up anew."""

_WHOLE = "(a whole box)"


@dataclass(frozen=True)
class Row:
    """What succeeded without some layers.

    Attributes:
        without: the layers that were off; none: a whole box.
        succeeded: names of what was not stopped.
    """

    without: frozenset[Layer]
    succeeded: frozenset[str]

    @property
    def title(self) -> str:
        """The layers in words."""
        return " and ".join(sorted(self.without)) or _WHOLE


def turned_off_in_turn() -> Iterator[frozenset[Layer]]:
    """No layer, each layer, and some of them in pairs."""
    yield frozenset()
    yield from (frozenset({layer}) for layer in sorted(SWITCHABLE))
    yield from IN_PAIRS


def tried(
    without: frozenset[Layer],
    laid: Decoys,
    folder: Path,
    resources: Sequence[Case],
    bounds: frozenset[Layer] = BOUNDS,
) -> Row:
    """Make every attempt in boxes without some layers.

    Args:
        without: the layers that are off.
        laid: what is attempted.
        folder: for the submissions.
        resources: cases that use something up, each in a box of its own.
        bounds: layers that these are made without.
    """
    backend = Bubblewrap(without=without)
    found = set(attempted(backend, laid, folder))
    if not without or without & bounds:
        found |= {case.name for case in resources if _answers(backend, case, folder)}
    return Row(without, frozenset(found))


def attempted(backend: Backend, laid: Decoys, folder: Path) -> Iterator[str]:
    """Names of the attempts that succeed in a box of this kind."""
    job = Job(_written(folder, laid.fill(scorer_of(ATTEMPTS))), limits=QUICK)
    with backend.start(job) as session:
        session.score([png()], [(0, "a cat")])
    yield from (
        line.removeprefix("GOT ") for line in session.log.splitlines() if line.startswith("GOT ")
    )


def _answers(backend: Backend, case: Case, folder: Path) -> bool:
    job = Job(_written(folder, case.source), limits=replace(case.limits, start_s=60.0))
    try:
        with backend.start(job) as session:
            session.score([png()], [(0, "a cat")])
    except SubmitterError:
        return False
    return True


def _written(folder: Path, source: str) -> Path:
    place = Path(tempfile.mkdtemp(dir=folder))
    place.chmod(0o755)
    (place / "scorer.py").write_text(source)
    return place


def matrix(
    turned_off: Iterable[frozenset[Layer]],
    resources: Sequence[Case] = (*PROCESSES, *MEMORY),
    bounds: frozenset[Layer] = BOUNDS,
) -> list[Row]:
    """A row for each set of layers that is turned off.

    Args:
        turned_off: the sets.
        resources: cases that use something up.
        bounds: layers that these are made without.
    """
    with tempfile.TemporaryDirectory(prefix="assay-matrix-", dir=PLACE) as name:
        folder = Path(name)
        folder.chmod(0o755)
        with decoys(folder / "decoys") as laid:
            return [tried(without, laid, folder, resources, bounds) for without in turned_off]


def alone(rows: Iterable[Row]) -> Mapping[str, tuple[str, ...]]:
    """Layers turned off to what succeeded because of that, and not without any smaller set."""
    rows = list(rows)
    return {
        row.title: tuple(
            sorted(
                row.succeeded.difference(
                    *(other.succeeded for other in rows if other.without < row.without)
                )
            )
        )
        for row in rows
    }


def main() -> int:
    """Print what each layer alone stops."""
    table = Table("without", "succeeds", title="What each layer alone stops", show_lines=True)
    for title, names in alone(matrix(turned_off_in_turn())).items():
        nothing = "nothing" if title == _WHOLE else "nothing more: another layer stops it as well"
        table.add_row(title, "\n".join(names) or nothing)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
