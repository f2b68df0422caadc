"""Bans of accounts by the operator, and their file."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import AwareDatetime, BaseModel, ConfigDict

from leaderboard.store.interface import NotFoundError, Repository

PATH = "bans.json"


class Ban(BaseModel):
    """An account that may not submit until the ban is lifted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    account: str
    """Its key, as `leaderboard.accounts` has it."""
    reason: str
    by: str
    """Key of the operator's account."""
    at: AwareDatetime

    @property
    def record(self) -> bytes:
        """What the chronicle holds the hash of."""
        return self.model_dump_json().encode()


def read_bans(public: Repository) -> dict[str, Ban]:
    """The bans in force, by account key."""
    try:
        found = json.loads(public.read(PATH))
    except NotFoundError:
        return {}
    return {key: Ban.model_validate(ban) for key, ban in found.items()}


def bans_file(bans: Mapping[str, Ban]) -> dict[str, bytes]:
    """The file that says which bans are in force."""
    content = {key: ban.model_dump(mode="json") for key, ban in sorted(bans.items())}
    return {PATH: json.dumps(content, indent=1, ensure_ascii=False).encode()}
