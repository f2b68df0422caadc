"""The settings file and the files with secrets, adopted: put where all of Assay looks for settings.

Option, then variable, then file, then default: a value of a file becomes a variable where none was
given, and everything that reads variables (options of commands, libraries, processes that are
started) sees it. It is read once, by the first process; those that it starts have the same values.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.settings.fields import fields, known_variables, meant, unknown_variables
from benchmarks.settings.file import USUAL, read_settings
from benchmarks.settings.homes import at_home
from benchmarks.settings.secret_files import read_secret
from benchmarks.settings.taken import SETTINGS, Taken

_READS_AT_IMPORT = "huggingface_hub"


@dataclass(frozen=True)
class Adopted:
    """What was adopted.

    Attributes:
        file: the settings file; None where there is none.
        changed: variables that got a value.
        warnings: sentences for whoever started this.
    """

    file: Path | None
    changed: frozenset[str]
    warnings: tuple[str, ...]


def begin() -> tuple[str, ...]:
    """Adopt the settings of this process; the first thing a command line or the app does.

    Where a library has read a variable already that a file now gives, this process begins anew.

    Returns:
        Warnings, in sentences.

    Raises:
        SubmitterError: as of `adopt`.
    """
    adopted = adopt(os.environ, Path())
    late = {field.about.variable for field in fields() if field.about.at_import}
    if adopted.changed & late and _READS_AT_IMPORT in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], dict(os.environ))  # noqa: S606 (itself)
    return adopted.warnings


def adopt(environment: MutableMapping[str, str], folder: Path) -> Adopted:
    """Put what files say into an environment, where it says nothing itself.

    Args:
        environment: of the process; is changed.
        folder: where the usual settings file is looked for.

    Raises:
        SubmitterError: what `read_settings` or `read_secret` raise, or `two_secrets`: a secret is
            given by value and by file.
    """
    before = dict(environment)
    warnings = tuple(
        f"{name} is no setting of Assay and changes nothing.{meant(name, known_variables())}"
        for name in unknown_variables(environment)
    )
    file = None
    if Taken.told(environment) is None:
        taken = Taken()
        file = _file(environment, folder)
        if file is not None:
            _take_file(environment, taken, file, found=settings_file(before) is None)
        _take_secrets(environment, taken)
    changed = {name for name, value in environment.items() if before.get(name) != value}
    return Adopted(file, frozenset(changed), warnings)


def settings_file(environment: Mapping[str, str]) -> Path | None:
    """The settings file that was adopted."""
    named = environment.get(SETTINGS, "").strip()
    return Path(named) if named else None


def _file(environment: Mapping[str, str], folder: Path) -> Path | None:
    named = settings_file(environment)
    if named is not None:
        return (folder / _at_home(SETTINGS, str(named))).absolute()
    usual = (folder / USUAL).absolute()
    try:
        usual.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SubmitterError(
            "no_settings",
            f"Whether there are settings in {usual} cannot be seen ({error.strerror}).",
            "Work in another folder, or let this user read it.",
        ) from error
    return usual  # Also a link that leads nowhere: whoever made it meant a file.


def _at_home(variable: str, given: str) -> Path:
    try:
        return at_home(given)
    except ValueError as error:
        raise SubmitterError(
            "bad_setting", f"{variable}: {error}.", "Write the whole path."
        ) from None


def _take_file(
    environment: MutableMapping[str, str], taken: Taken, file: Path, *, found: bool
) -> None:
    given = read_settings(file, found=found)
    # As it was, so that what the file says of a secret does not hide what it says next.
    said = {name for name, value in environment.items() if value.strip()}
    for one in given:
        about = one.field.about
        if not said & {about.variable, about.file_variable}:
            key = about.file_key if one.in_file else about.key
            taken.note(environment, one.variable, one.text, str(file), key)
    if found:
        taken.note(environment, SETTINGS, str(file), str(file), "")
    else:
        environment[SETTINGS] = str(file)  # Children may run in another folder.
        taken.tell(environment)


def _take_secrets(environment: MutableMapping[str, str], taken: Taken) -> None:
    for field in fields():
        variable, named_by = field.about.variable, field.about.file_variable
        named = environment.get(named_by, "").strip() if named_by else ""
        if not named:
            continue
        if environment.get(variable, "").strip():
            raise SubmitterError(
                "two_secrets",
                f"{variable} and {named_by} are both given.",
                f"Leave one of them out; {named_by} can be changed without a restart.",
            )
        path = _at_home(named_by, named).absolute()
        environment[named_by] = str(path)  # Children may run in another folder.
        secret = read_secret(path, named_by, may_be_empty=field.about.may_be_empty)
        taken.note(environment, variable, secret, str(path), "")
