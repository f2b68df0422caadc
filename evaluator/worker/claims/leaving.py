"""Release of claims: finished jobs are sent, the others handed back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from benchmarks.errors import AssayError, TransientError
from evaluator.worker.claims.hand import Hand
from evaluator.worker.ending.concluding import Endings
from evaluator.worker.ending.outgoing import Outgoing
from evaluator.worker.ending.upload_shelf import UploadShelf

WITHIN_S = 30.0
"""A store that does not answer for so long keeps no worker from ending."""
_PAUSES_S = (0.0, 1.0, 3.0)
REASON = "The worker was stopped; what was finished is kept."

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Leaving:
    """Entered while a worker works, so that it leaves in good order however that ends.

    What the store cannot take stays where it is: in the outbox, and claimed by a worker that beats
    no more, so that others find it.

    Attributes:
        outgoing: what is finished.
        endings: hands back.
        hand: what is held.
        uploads: of what is to be handed back; they are removed.
        sleep: how to wait; passed in by tests.
    """

    outgoing: Outgoing
    endings: Endings
    hand: Hand
    uploads: UploadShelf
    sleep: Callable[[float], None] = time.sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After anything but an error or an order to stop, this process may be in any state.
        if kind is None or issubclass(kind, Exception | KeyboardInterrupt):
            self.leave()

    def leave(self) -> None:
        """Do it now, in bounded time."""
        if self.hand.empty:
            return
        thread = threading.Thread(target=self._in_order, name="leaving", daemon=True)
        thread.start()
        thread.join(WITHIN_S)
        if thread.is_alive():
            log.warning("The store does not answer; the worker ends without it.")

    def _in_order(self) -> None:
        self._persistently(self.outgoing.send)
        for task in self.hand.to_do:
            self.uploads.drop(task.submission_id)
        if self._persistently(self._hand_back):
            self.hand.drop_to_do()

    def _hand_back(self) -> None:
        self.endings.hand_back(self.hand.to_do, REASON)

    def _persistently(self, action: Callable[[], object]) -> bool:
        for pause in _PAUSES_S:
            self.sleep(pause)
            try:
                action()
            except TransientError as error:
                log.warning("On leaving: %s", error)
            except AssayError:
                log.exception("Not done on leaving.")
                return False
            else:
                return True
        return False
