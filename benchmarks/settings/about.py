"""What is known of a setting beside its type: where it is given, who reads it, whether it is secret."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

FILE_SUFFIX = "_FILE"
"""Of the variable that names a file with a secret, as containers are given theirs."""


class Who(StrEnum):
    """Who reads a setting."""

    APP = "app"
    WORKER = "worker"
    COMMANDS = "commands"
    LAUNCHER = "worker --launcher jobs"


@dataclass(frozen=True)
class About:
    """One setting.

    Attributes:
        variable: of the environment.
        key: in the settings file, `table.key`; empty where it cannot be given there.
        who: reads it.
        secret: it is never shown, and may be given as a file (`variable` and `_FILE`).
        path: it names a file or folder; `~` in the settings file is one's home.
        leads: it says where something secret is sent, so that it is taken only from a file that
            somebody named.
        at_import: libraries read it when they are imported.
    """

    variable: str
    key: str = ""
    who: tuple[Who, ...] = (Who.APP, Who.WORKER, Who.COMMANDS)
    secret: bool = False
    path: bool = False
    leads: bool = False
    at_import: bool = False

    @property
    def file_variable(self) -> str:
        """The variable that names a file with the value; empty where there is none."""
        return f"{self.variable}{FILE_SUFFIX}" if self.secret and self.key else ""

    @property
    def may_be_empty(self) -> bool:
        """Whether its file may be empty: nothing is before a secret that was never changed."""
        return self.variable.endswith("_OLD")

    @property
    def file_key(self) -> str:
        """The same, in the settings file."""
        return f"{self.key}_file" if self.file_variable else ""
