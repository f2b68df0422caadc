"""Pins of the payload repositories' commits to a version: a control file of the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints, ValidationError

from benchmarks.errors import PlatformError
from leaderboard.store.hub.layout import Part

PINS = ".commits/pins.json"
Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""Of a commit. The name of a branch in its place would be another version every day."""


class Pins(BaseModel):
    """The content of that file.

    Attributes:
        pins: part to the commit its files are read at.
        nonce: of the commit that wrote it.
        frozen_until: by the Hub's clock; until then a squash is at work, and nothing is committed.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    pins: Mapping[Part, Sha]
    nonce: str = ""
    frozen_until: AwareDatetime | None = None

    def __getitem__(self, part: Part) -> str:
        return self.pins[part]

    def moved(self, new: Mapping[Part, str]) -> Pins:
        """With other commits for some parts."""
        return self.model_copy(update={"pins": {**self.pins, **new}})

    def note(self, nonce: str) -> dict[str, bytes]:
        """The control file for a commit of this nonce."""
        text = self.model_copy(update={"nonce": nonce}).model_dump_json(exclude_none=True)
        return {PINS: text.encode()}


def read_pins(content: bytes, repo: str) -> Pins:
    """The pins.

    Args:
        content: of the control file.
        repo: where it lies, for messages.

    Raises:
        PlatformError: `pins_broken`.
    """
    try:
        return Pins.model_validate_json(content)
    except ValidationError as error:
        raise PlatformError(
            "pins_broken",
            f"{PINS} in {repo} cannot be read ({error.error_count()} faults).",
            "Put back an earlier version of that file from the repository's history.",
        ) from error
