"""Queue of batches: the next one for an actor, and those whose actor died."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from benchmarks.errors import PlatformError
from evaluator.scoring.engines import Batch

MOST_DEATHS = 3


class BatchQueue:
    """Draws batches as they are asked for.

    An actor holds several batches when it dies, and any of them may be why. Each of them is then
    given to an actor that holds nothing else, so that a second death tells which it was.

    Args:
        batches: drawn one by one.
        most_deaths: of actors that held the same batch; then it is given up.
    """

    def __init__(self, batches: Iterable[Batch], most_deaths: int = MOST_DEATHS) -> None:
        self._batches = iter(batches)
        self._most_deaths = most_deaths
        self._drawn: deque[Batch] = deque()
        self._suspects: deque[Batch] = deque()
        self._deaths: Counter[int] = Counter()
        self._exhausted = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing left to take, as far as was drawn."""
        return self._exhausted and not self._drawn and not self._suspects

    def draw_ahead(self, most: int) -> int:
        """Draw so many batches, and say how many there are."""
        while len(self._drawn) < most and (batch := self._next()) is not None:
            self._drawn.append(batch)
        return len(self._drawn)

    def take(self, held: Sequence[Batch]) -> Batch | None:
        """The next batch for an actor that holds these already; None: nothing for it now."""
        if any(self._deaths[batch.number] for batch in held):
            return None
        if self._suspects:
            return None if held else self._suspects.popleft()
        return self._drawn.popleft() if self._drawn else self._next()

    def answered(self, batch: Batch) -> None:
        """It is done."""
        del self._deaths[batch.number]

    def put_back(self, held: Iterable[Batch]) -> None:
        """Their actor died.

        Raises:
            PlatformError: `worker_killed_by_batch`, too many actors died with one of them.
        """
        for batch in held:
            self._deaths[batch.number] += 1
            if self._deaths[batch.number] >= self._most_deaths:
                raise _killed_by(batch, self._deaths[batch.number])
            self._suspects.append(batch)

    def _next(self) -> Batch | None:
        batch = next(self._batches, None)
        self._exhausted = batch is None
        return batch


def _killed_by(batch: Batch, deaths: int) -> PlatformError:
    names = [item.image_id for item in batch.items]
    shown = ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if names[8:] else "")
    return PlatformError(
        "worker_killed_by_batch",
        f"{deaths} worker processes died, one after the other, while they were asked about batch "
        f"{batch.number}: images {shown}.",
        "If they ran out of memory, ask for less at once; what was scored before is kept.",
    )
