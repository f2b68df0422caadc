"""Store by its name: a folder of this machine, or repositories of the Hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import SubmitterError
from leaderboard.store.folder import folder_store
from leaderboard.store.hub.layout import HubName, Part
from leaderboard.store.interface import Store

HUB = "hub:"
_MISTYPED = re.compile(r"\s*|[A-Za-z][\w+-]*:.*", re.DOTALL)
"""Nothing, or a place that is not ours; a folder with a colon is written ./a:b."""
_ON_HUB = re.compile(r"hub:[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,79}")


@dataclass(frozen=True)
class StoreName:
    """A store as people name it: a folder, or `hub:OWNER/NAME`."""

    text: str  # as it was given

    @classmethod
    def parse(cls, given: str | StoreName) -> StoreName:
        """The store that is meant."""
        found = given if isinstance(given, StoreName) else cls(str(given))
        if found.on_hub and not _ON_HUB.fullmatch(found.text):
            raise SubmitterError(
                "bad_store",
                f"{found.text[:120]!r} is no store of the Hub.",
                "Write hub:OWNER/NAME, for example hub:my-org/assay.",
            )
        if not found.on_hub and _MISTYPED.fullmatch(found.text):
            raise SubmitterError(
                "bad_store",
                f"{found.text[:120]!r} names no store.",
                "Write a folder, or hub:OWNER/NAME; ./a:b where a folder has a colon.",
            )
        return found

    @property
    def on_hub(self) -> bool:
        """Whether it is kept in repositories of the Hub."""
        return self.text.startswith(HUB)

    @property
    def hub_name(self) -> str:
        """`OWNER/NAME` of a store on the Hub."""
        return self.text.removeprefix(HUB)

    @property
    def folder(self) -> Path:
        """Where this machine keeps what belongs to the store and may be lost: caches, scratch.

        Of a folder store it is the store itself.
        """
        if not self.on_hub:
            return Path(self.text)
        return Path(".assay") / "hub" / self.text.removeprefix(HUB).replace("/", "--")

    @property
    def repositories(self) -> tuple[str, ...]:
        """The dataset repositories of a store on the Hub, `OWNER/NAME`; a folder has none."""
        return tuple(HubName(self.hub_name).of(part) for part in Part) if self.on_hub else ()

    def why_read_only(self) -> str:
        """Why this process can write nothing there, and what to do; empty where it may try."""
        if not self.on_hub:
            return ""
        # Only here: the command line and the app start without the Hub's client.
        from huggingface_hub import get_token  # noqa: PLC0415

        if get_token():
            return ""
        return (
            "This installation shows the boards and takes nothing: it has no token to write to "
            f"{self.text} with. Its operator can give it one (HF_TOKEN, on a Space a secret)."
        )

    def absolute(self) -> StoreName:
        """The same store, named so that it is found from any folder."""
        return self if self.on_hub else StoreName(str(self.folder.resolve()))

    def open(self) -> Store:
        """The store itself."""
        if self.on_hub:
            # Only here: the command line and the app start without the Hub's client.
            from leaderboard.store.hub.hub_store import hub_store  # noqa: PLC0415

            return hub_store(self.hub_name, self.folder)
        return folder_store(self.folder)

    def existing(self) -> Store:
        """The store itself, where somebody has made it: a mistyped name makes none."""
        nothing = not self.folder.exists() or self.folder.is_dir()
        if not self.on_hub and nothing and not (self.folder / "public").is_dir():
            raise SubmitterError(
                "no_store",
                f"There is no store in {self.folder}.",
                "Name another with --store or ASSAY_STORE; submit, worker and demo make one.",
            )
        return self.open()

    def __str__(self) -> str:
        return self.text
