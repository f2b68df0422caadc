"""A secret read anew from the file it came from: a token is changed without a restart."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.settings.fields import by_variable
from benchmarks.settings.file import read_settings
from benchmarks.settings.secret_files import read_secret
from benchmarks.settings.taken import SETTINGS, Taken

log = logging.getLogger(__name__)


def renewed(variable: str, environment: MutableMapping[str, str]) -> bool:
    """Read a secret again, and put it into the environment where it is another one now.

    A file that cannot be read changes nothing: it may be about to be written.

    Args:
        variable: of the secret.
        environment: of the process; is changed.

    Returns:
        Whether there is a new value.
    """
    taken = Taken.told(environment)
    source = taken.source(environment, variable) if taken is not None else None
    if taken is None or source is None:
        return False
    try:
        found = taken.source(environment, SETTINGS) is not None
        text = _read(variable, Path(source.where), in_settings=bool(source.key), found=found)
    except SubmitterError as error:
        log.warning("%s cannot be read again: %s", variable, error)
        return False
    if text is None or text == environment.get(variable):
        return False
    taken.note(environment, variable, text, source.where, source.key)
    log.info("%s was read again from %s: it is another one now.", variable, source.where)
    return True


class SecretsOfNow(Mapping[str, str]):
    """Secrets under names for somebody else, each read again when it is asked for.

    Args:
        names: there, to the variables here.
        environment: of the process; is changed where a file has another value now.
    """

    def __init__(self, names: Mapping[str, str], environment: MutableMapping[str, str]) -> None:
        self._names = dict(names)
        self._environment = environment

    def __getitem__(self, name: str) -> str:
        variable = self._names[name]
        renewed(variable, self._environment)
        return self._environment.get(variable, "").strip()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def how_to_renew(variable: str, environment: Mapping[str, str]) -> str:
    """What an operator does to give a new value, in a sentence."""
    taken = Taken.told(environment)
    source = taken.source(environment, variable) if taken is not None else None
    if source is not None:
        return f"Write a new one into {source.where}; it is read again by itself."
    if not environment.get(variable, "").strip():
        return f"Sign in again (`hf auth login`), or set {variable} and start again."
    named_by = by_variable()[variable].about.file_variable
    return (
        f"Set {variable} to a new one and start again; with {named_by} it could be changed without "
        "a restart."
    )


def _read(variable: str, path: Path, *, in_settings: bool, found: bool) -> str | None:
    about = by_variable()[variable].about
    if not in_settings:
        return read_secret(path, about.file_variable, may_be_empty=about.may_be_empty)
    given = read_settings(path, found=found)  # What nobody named is trusted no more than before.
    return next((one.text for one in given if one.variable == variable), None)
