"""Local account of the person at the terminal, of which the operating system knows the name."""

from __future__ import annotations

import os
import pwd

from leaderboard.accounts import Account, Origin
from leaderboard.governance.authentication import local_name


def this_person(*, operator: bool = False) -> Account:
    """The account of whoever runs this command; the same as of the page on this machine.

    `ASSAY_USER` names another: it keeps people apart who share a machine, and keeps nobody out,
    since whoever can write to the store's folder can do everything there.
    """
    name = local_name(os.environ, os_user())
    return Account(origin=Origin.LOCAL, name=name, operator=operator)


def os_user() -> str:
    """Name of the user this process runs as, whatever the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # A container may run as a user its system has no name for.
        return f"uid-{os.getuid()}"
