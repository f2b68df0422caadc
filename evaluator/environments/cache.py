"""Environments of this machine: built once for each lock, lent to boxes, given up when too many."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.settings.model import value_of
from evaluator.environments.building import GIB, BuildLimits, PackageSource, build
from evaluator.environments.lock import Lock
from evaluator.environments.naming import OWN, NamedLock
from evaluator.folder_cache import cached_folders, note_use, sweep, taken_away, using, while_alone


@dataclass(frozen=True)
class EnvironmentCache:
    """Built environments, each in a folder named by its lock, this Python and this machine."""

    folder: Path  # where they are
    source: PackageSource = field(default_factory=PackageSource)
    limits: BuildLimits = field(default_factory=BuildLimits)  # of one
    most_bytes: int = 100 * GIB  # of all together

    @classmethod
    def of_settings(cls, environment: Mapping[str, str]) -> Self:
        """As the settings say."""
        wheels = value_of("wheels", environment)
        return cls(
            folder=Path(value_of("environments", environment)).absolute(),
            source=PackageSource(
                None if wheels is None else Path(wheels), value_of("package_index", environment)
            ),
            limits=BuildLimits(
                seconds=value_of("environment_build_s", environment),
                n_bytes=round(value_of("environment_gib", environment) * GIB),
            ),
            most_bytes=round(value_of("environments_gib", environment) * GIB),
        )

    @contextmanager
    def lent(self, wanted: NamedLock) -> Iterator[Path]:
        """An environment, built if need be; it is not taken away before this is left.

        Raises:
            SubmitterError, TransientError, PlatformError: see `build`.
        """
        place = self.folder / key_of(wanted.lock)
        with using(place):
            if not place.is_dir():
                with while_alone(place):
                    if not place.is_dir():
                        self._build(wanted, place)
                self._make_room()
            note_use(place)
            yield place

    def _build(self, wanted: NamedLock, place: Path) -> None:
        try:
            build(wanted.lock, place, self.source, self.limits)
        except SubmitterError as error:
            if wanted.name == OWN:
                raise
            message = f"The environment {wanted.name} cannot be built. {error.message}"
            raise PlatformError(error.code, message, "An operator has to mend it.") from error

    def _make_room(self) -> None:
        """Give up what was used longest ago, until all are within their bound."""
        sweep(self.folder)
        kept = cached_folders(self.folder)
        n_bytes = sum(one.n_bytes for one in kept)
        for one in kept:
            if n_bytes <= self.most_bytes:
                return
            if not one.in_use:
                n_bytes -= taken_away(one)


def key_of(lock: Lock) -> str:
    """What an environment depends on, as 64 hex digits."""
    version = f"{sys.implementation.cache_tag} {sysconfig.get_platform()}"
    return hashlib.sha256(f"{version}\n{lock.text}".encode()).hexdigest()
