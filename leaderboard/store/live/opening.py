"""Choice of a store's live channel: files of this machine, or the app as a relay."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path

from benchmarks.settings.rotation import refresh
from leaderboard.store.live.interface import FolderLive, Live

LIVE = "ASSAY_LIVE"
SECRET = "ASSAY_LIVE_SECRET"  # noqa: S105 (the name of a variable)


def is_relayed(environment: Mapping[str, str]) -> bool:
    """Whether workers of other machines see the heartbeats of this one by way of the app."""
    return all(environment.get(name, "").strip() for name in (LIVE, SECRET))


def live_of(folder: Path, environment: MutableMapping[str, str]) -> Live:
    """The pulses of a store whose medium has no place for them."""
    address = environment.get(LIVE, "").strip()
    if not address:
        return FolderLive(folder / "live")
    # Only here, since most stores need no client.
    from leaderboard.store.live.relay import RelayLive  # noqa: PLC0415

    def renew() -> str:
        refresh(SECRET, environment)
        return environment.get(SECRET, "").strip()

    given = environment.get(SECRET, "").strip()
    return RelayLive(address, given, renew=renew if given else None)
