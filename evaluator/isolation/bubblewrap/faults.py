"""Errors of bubblewrap, with remedies for an operator."""

from __future__ import annotations

from benchmarks.errors import PlatformError

_NAMESPACES = (
    "this system does not let bubblewrap make namespaces",
    "Set sysctl user.max_user_namespaces above 0 and, on Debian, "
    "kernel.unprivileged_userns_clone=1; in a container also allow the calls unshare, mount "
    "and pivot_root.",
)
_READING = (
    "the user that a box runs as cannot read the Python installation",
    "Install Python and the virtual environment where others may read them, or let them: "
    "chmod -R o+rX on their folders.",
)
_REMEDIES: tuple[tuple[str, str, str], ...] = (
    (
        "setting up uid map",
        "this system does not let bubblewrap use user namespaces",
        "On Ubuntu 23.10 or later install an AppArmor profile for bubblewrap that holds `userns,`, "
        "or set sysctl kernel.apparmor_restrict_unprivileged_userns=0.",
    ),
    (
        "mount proc on",
        "the worker runs in a container that hides parts of /proc",
        "Run the worker outside a container, or start its container with unmasked paths "
        "(--security-opt systempaths=unconfined).",
    ),
    ("creating new namespace failed", *_NAMESPACES),
    ("no permissions to create", *_NAMESPACES),
    ("unknown option", "bubblewrap is older than 0.8", "Install bubblewrap 0.8 or later."),
    ("can't find source path", *_READING),
    ("execvp", *_READING),
    (
        "seccomp",
        "this kernel does not take the system-call filter",
        "Use a kernel that was built with CONFIG_SECCOMP_FILTER.",
    ),
)


def diagnose(printed: str) -> tuple[str, str]:
    """Reason and remedy for what bubblewrap printed when it failed."""
    said = printed.lower()
    for sign, reason, remedy in _REMEDIES:
        if sign in said:
            return f"{reason.capitalize()} ({printed}).", remedy
    told = printed or "it printed nothing"
    return f"Bubblewrap could not start a box ({told}).", "Run bubblewrap by hand to see why."


def not_started(printed: str) -> PlatformError:
    """The error for what bubblewrap printed."""
    reason, remedy = diagnose(printed)
    return PlatformError("box_not_started", reason, remedy)
