"""Who types: the operating system vouches for the name, as it does for access to the store."""

from __future__ import annotations

import getpass
import os

from leaderboard.accounts import Account, Origin
from leaderboard.signing_in import local_name


def this_person(*, operator: bool = False) -> Account:
    """The account of whoever runs this command; the same as of the page on this machine.

    Args:
        operator: whether it is a command of operators. Who can write to the store's folder can do
            all that an operator may; the commands of submitters do not make use of that.

    Raises:
        SubmitterError: `bad_user` where ASSAY_USER cannot name an account.
    """
    name = local_name(os.environ, getpass.getuser())
    return Account(origin=Origin.LOCAL, name=name, operator=operator)
