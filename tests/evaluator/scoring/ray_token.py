"""The token of Rays that tests start."""

from __future__ import annotations

import os
import secrets


def keep_token_out_of_home() -> None:
    """Have Ray take a token from the environment, where it would keep one in the home folder.

    It stays there: Ray reads it once per process, and a second Ray of this process needs the same.
    """
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
