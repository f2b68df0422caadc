"""Who types: the operating system vouches for the name, as it does for access to the store."""

from __future__ import annotations

import getpass
import os

from leaderboard.accounts import Account, Origin
from leaderboard.signing_in import Way, read_sign_in


def this_person(*, operator: bool = False) -> Account:
    """The account of whoever runs this command.

    Args:
        operator: whether it is a command of operators. Who can write to the store's folder can do
            all that an operator may; the commands of submitters do not make use of that.

    Raises:
        SubmitterError: `bad_user` where ASSAY_USER cannot name an account.
    """
    named = {name: os.environ[name] for name in ("ASSAY_USER",) if name in os.environ}
    signed_in = read_sign_in(named, getpass.getuser())
    if signed_in.way is not Way.LOCAL:  # cannot be: nothing of a Space was passed on
        raise ValueError(signed_in.way)
    return Account(origin=Origin.LOCAL, name=signed_in.local, operator=operator)
