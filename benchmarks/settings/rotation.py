"""Rotation of secrets: they are read again from their files while a process runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping

from benchmarks.errors import SubmitterError
from benchmarks.settings.model import (
    SETTINGS,
    SETTINGS_FILE,
    SettingsFile,
    file_origins,
    read_secret,
    settings_file,
    store_texts,
)

EVERY_S = 5.0
"""Between two readings of a file."""
Secrets = Callable[[], tuple[str, ...]]
"""Look-up of the values that are valid now, the newest first."""

log = logging.getLogger(__name__)


def refresh(variable: str, environment: MutableMapping[str, str]) -> bool:
    """Read a secret again from its file into the environment, and return whether it is a new one.

    A file that cannot be read changes nothing: it may be about to be written.
    """
    origins = file_origins(environment) or {}
    file = origins.get(variable)
    if file is None:
        return False
    try:
        if file == settings_file(environment):
            # A file that was only found is trusted no more than before.
            text = SettingsFile(file, named=SETTINGS_FILE not in origins).texts().get(variable)
        else:
            text = read_secret(file, SETTINGS[variable])
    except SubmitterError as error:
        log.warning("%s cannot be read again: %s", variable, error)
        return False
    if text is None or text == environment.get(variable):
        return False
    store_texts(environment, {variable: text}, file)
    log.info("%s was read again from %s: it is another one now.", variable, file)
    return True


def renewal_hint(variable: str, environment: Mapping[str, str]) -> str:
    """A sentence for the operator on how to replace a secret."""
    file = (file_origins(environment) or {}).get(variable)
    if file is not None:
        return f"Write a new one into {file}; it is read again by itself."
    if not environment.get(variable, "").strip():
        return f"Sign in again (`hf auth login`), or set {variable} and start again."
    return (
        f"Set {variable} to a new one and start again; with {SETTINGS[variable].file_variable} it "
        "could be changed without a restart."
    )


class CurrentSecrets(Mapping[str, str]):
    """Secrets under other names than their variables', read again from files at every look-up."""

    def __init__(self, names: Mapping[str, str], environment: MutableMapping[str, str]) -> None:
        self._names = dict(names)
        self._environment = environment

    def __getitem__(self, name: str) -> str:
        variable = self._names[name]
        refresh(variable, self._environment)
        return self._environment.get(variable, "").strip()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class SecretRotation:
    """Valid values of a secret, itself and the one before it (`_OLD`), from files read again."""

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
        self._valid = self._read()
        self._read_at = steady()

    def __call__(self) -> tuple[str, ...]:
        """The values that are valid now, the newest first; empty without any."""
        with self._lock:
            if self._steady() - self._read_at >= self._every_s:
                self._read_at = self._steady()
                if sum(refresh(variable, self._environment) for variable in self._variables):
                    try:
                        self._valid = self._read()
                    except SubmitterError as error:
                        log.warning("The secret is not changed: %s", error)
            return self._valid

    def _read(self) -> tuple[str, ...]:
        texts = (self._environment.get(variable, "").strip() for variable in self._variables)
        return tuple(self._check(text) for text in texts if text)


def fixed(secret: str) -> Secrets:
    """A secret that never changes; none where it is empty."""
    return lambda: (secret,) if secret else ()
