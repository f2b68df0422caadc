"""Claimed jobs of a worker, until the store has their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from evaluator.worker.claims.tasks import Task


class Hand:
    """The submissions that are this worker's, by id.

    Args:
        tell: is told the ids of all of them whenever they change.
        clear: removes what is left of one that is over.
    """

    def __init__(
        self, tell: Callable[[Iterable[str]], None], clear: Callable[[Task], None]
    ) -> None:
        self._tell = tell
        self._clear = clear
        self._to_do: dict[str, Task] = {}
        self._finished: dict[str, Task] = {}

    @property
    def to_do(self) -> tuple[Task, ...]:
        """What is not finished, in the order in which it is to be done."""
        return tuple(self._to_do.values())

    @property
    def empty(self) -> bool:
        """Whether nothing at all is held."""
        return not self._to_do and not self._finished

    def holds(self, submission_id: str) -> bool:
        """Whether it is one of them."""
        return submission_id in self._to_do or submission_id in self._finished

    def take(self, tasks: Iterable[Task]) -> None:
        """These were claimed."""
        self._to_do |= {task.submission_id: task for task in tasks}
        self._told()

    def postpone(self, task: Task) -> None:
        """The others are done before it: what it needs cannot be had now."""
        if self._to_do.pop(task.submission_id, None) is not None:
            self._to_do[task.submission_id] = task

    def finish(self, task: Task) -> None:
        """It waits for nothing but the store."""
        self._to_do.pop(task.submission_id, None)
        self._finished[task.submission_id] = task
        self._told()

    def let_go(self, task: Task) -> None:
        """It is over, or another's; what is left of it is removed."""
        self._to_do.pop(task.submission_id, None)
        self._finished.pop(task.submission_id, None)
        self._told()
        self._clear(task)

    def drop_to_do(self) -> None:
        """All that is not finished was handed back."""
        self._to_do.clear()
        self._told()

    def _told(self) -> None:
        self._tell((*self._to_do, *self._finished))
