"""How a command line of this project ends: one message for what went wrong, and an exit code."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from benchmarks.errors import AssayError, PlatformError


def errors() -> Console:
    """Where errors and progress go, apart from what programs read."""
    return Console(stderr=True, soft_wrap=True)


def run(app: Callable[[], object]) -> int:
    """Run a command line; every AssayError becomes one message and its exit code.

    Anything else is a defect of ours: its traceback is shown and the code is 3.

    Returns:
        0, 1 (their input) or 3 (ours). Wrong usage ends with 2 before this returns.
    """
    try:
        app()
    except AssayError as error:
        errors().print(f"[bold red]error[/] \\[{error.code}]", highlight=False, end=": ")
        errors().print(str(error), markup=False, highlight=False)
        return error.exit_code
    except Exception:  # noqa: BLE001 (the last resort: whatever it is, it is ours)
        errors().print_exception()
        return PlatformError.exit_code
    return 0
