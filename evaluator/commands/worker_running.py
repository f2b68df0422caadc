"""Surroundings of a running worker: its log, its disk, its health, its wake-ups."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.commands.worker_options import poll_of
from evaluator.worker.running.secrets_kept import SecretsKept
from evaluator.worker.upkeep.log_files import LOGS, limits_of
from evaluator.worker.upkeep.structured_logs import Doing, LogFormat, Logged, logging_to
from evaluator.worker.worker import Worker
from leaderboard.store.interface import Store
from leaderboard.store.opening import StoreName

if TYPE_CHECKING:
    from leaderboard.service.webhooks import Webhook


@dataclass(frozen=True)
class Surroundings:
    """What an operator chose beside what the worker does.

    Attributes:
        store: its name.
        scratch: folder for what may be lost.
        log_format: of the error output.
        health_port: where health is answered; None: nowhere.
        health_host: address for that.
        poll_s: seconds between two looks at the store; None: as fits it.
    """

    store: StoreName
    scratch: Path
    log_format: LogFormat = LogFormat.TEXT
    health_port: int | None = None
    health_host: str = "127.0.0.1"
    poll_s: float | None = None

    @contextmanager
    def around(self, own: str, opened: Store, wake: threading.Event) -> Iterator[float]:
        """Everything that is to go on while the worker works.

        Args:
            own: name of the worker, if it beats all the time: where it does not, it is down.
            opened: the store.
            wake: what it waits on.

        Yields:
            Seconds between two looks at the store.

        Raises:
            SubmitterError: `port_unavailable`, `weak_secret`.
        """
        with ExitStack() as around:
            hook = None
            if self.health_port is not None:
                hook = self._webhook(os.environ, opened, wake)
                self._serve(around, own, opened, hook)
            yield poll_of(self.poll_s, self.store, woken=hook is not None)

    @contextmanager
    def logging(
        self, name: str, clock: Callable[[], datetime]
    ) -> Iterator[Callable[[Worker], None]]:
        """Log as was chosen while this is entered.

        Args:
            name: of the worker.
            clock: the time lines have; asks nobody.

        Yields:
            To be called with the worker once it is made: lines then say what it is at.
        """
        made: list[Worker] = []

        def doing() -> Doing:
            if not made:
                return Doing()
            pulse = made[0].heart.pulse
            return Doing(pulse.submission_id, pulse.attempt)

        logged = Logged(name, clock, doing, SecretsKept.of(os.environ))
        with logging_to(self.log_format, logged, self.scratch / LOGS, limits_of(os.environ)):
            yield made.append

    def _serve(self, around: ExitStack, own: str, opened: Store, hook: Webhook | None) -> None:
        # Only where it is wanted: the command line starts without it.
        from evaluator.worker.upkeep.health_server import HealthServer  # noqa: PLC0415
        from leaderboard.service.looking import HealthWatch  # noqa: PLC0415

        watch = HealthWatch(opened, self.scratch, own=own)
        server = HealthServer(watch, hook, host=self.health_host, port=self.health_port or 0)
        around.enter_context(server.serving())

    def _webhook(
        self, environment: MutableMapping[str, str], opened: Store, wake: threading.Event
    ) -> Webhook | None:
        from leaderboard.service.webhooks import webhook_from  # noqa: PLC0415

        def woken() -> None:
            opened.look_anew()
            wake.set()

        return webhook_from(environment, self.store.repositories, woken)
