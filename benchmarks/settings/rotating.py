"""A secret that a server takes, and during a rotation the one before it as well."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, MutableMapping

from benchmarks.errors import SubmitterError
from benchmarks.settings.renewing import renewed

EVERY_S = 5.0
"""Between two looks at files."""
Secrets = Callable[[], tuple[str, ...]]
"""Those that are good now."""

log = logging.getLogger(__name__)


class Rotating:
    """Good values of one secret; those in files are looked at again every few seconds.

    Args:
        variable: of the secret; the one before it has `_OLD` after its name.
        environment: of the process.
        check: judges a value, and returns it.
        every_s: between two looks at files.
        steady: seconds that only go forward.

    Raises:
        SubmitterError: what `check` raises of a value that is given now.
    """

    def __init__(
        self,
        variable: str,
        environment: MutableMapping[str, str],
        check: Callable[[str], str],
        *,
        every_s: float = EVERY_S,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._variables = variable, f"{variable}_OLD"
        self._environment = environment
        self._check = check
        self._every_s = every_s
        self._steady = steady
        self._lock = threading.Lock()
        self._good = self._read()
        self._looked = steady()

    def __call__(self) -> tuple[str, ...]:
        """The values that are good now, the newest first; none where none was ever given."""
        with self._lock:
            if self._steady() - self._looked >= self._every_s:
                self._looked = self._steady()
                self._look()
            return self._good

    def _look(self) -> None:
        changed = [renewed(variable, self._environment) for variable in self._variables]
        if not any(changed):
            return
        try:
            self._good = self._read()
        except SubmitterError as error:
            log.warning("The secret is not changed: %s", error)

    def _read(self) -> tuple[str, ...]:
        given = (self._environment.get(variable, "").strip() for variable in self._variables)
        return tuple(self._check(secret) for secret in given if secret)


def always(secret: str) -> Secrets:
    """One secret that never changes; none where it is empty."""
    good = (secret,) if secret else ()
    return lambda: good
