"""Exception tree of the project.

    AssayError
    ├── SubmitterError   your input: what is wrong, where, what to do (exit code 1)
    ├── TransientError   the world outside: will be retried (exit code 3)
    └── PlatformError    ours: a defect or a broken installation (exit code 3)

Command-line exit codes and the texts on the page derive from `code`, `message` and `hint`.
"""

from __future__ import annotations

from typing import ClassVar


class AssayError(Exception):
    """An error with a stable code, one sentence that says what and where, and a remedy.

    Args:
        code: stable identifier in snake_case, for programs (`unknown_pairs`).
        message: what is wrong and where, in one sentence.
        hint: what to do about it, in one sentence; may be empty.
    """

    exit_code: ClassVar[int] = 3
    fault: ClassVar[str] = "platform"

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[type[AssayError], tuple[str, str, str]]:
        return type(self), (self.code, self.message, self.hint)  # so that it travels whole


class SubmitterError(AssayError):
    """The input cannot be used as it is; the person who made it can mend it."""

    exit_code = 1
    fault = "submitter"


class TransientError(AssayError):
    """Something outside failed for now; the operation is safe to repeat."""

    fault = "world"


class PlatformError(AssayError):
    """Our own fault; a submitter loses nothing by it."""
