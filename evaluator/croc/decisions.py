"""Decisions of raters, in a file to which lines are added and none is ever changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from benchmarks.schema import Frozen
from benchmarks.sources.line_log import LineLog

LONGEST_NAME = 60


def rater_name(text: str) -> str:
    """The name of a rater, without blanks around it.

    Raises:
        ValueError: it is empty, too long, or holds characters that are not seen.
    """
    name = " ".join(text.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(f"a name has 1 to {LONGEST_NAME} characters, all of which are seen")
    return name


class Decision(Frozen):
    """One line: what a rater said of the images of a row, or that it is taken back."""

    rater: Annotated[str, AfterValidator(rater_name)]
    pair: str  # its key
    keep: dict[str, bool | None] = Field(min_length=1)
    """Path of an image to whether it stays; null: the rater takes it back."""
    seen: dict[str, str] = Field(default_factory=dict)
    """Path of an image to a hash of what the rater saw of it; of earlier versions there is none."""
    repeat: bool = False
    """Whether the row was shown again, to see whether the rater says the same."""
    at: datetime

    @property
    def images(self) -> tuple[ShownImage, ...]:
        """What it is about."""
        return tuple((self.pair, path, self.repeat) for path in self.keep)


ShownImage = tuple[str, str, bool]
"""Key of a pair, path of an image, and whether the rater sees it again."""


@dataclass
class RaterDecisions:
    """What stands of one rater's decisions."""

    stays: dict[ShownImage, bool] = field(default_factory=dict)
    seen: dict[ShownImage, str] = field(default_factory=dict)  # hashes, where there are some
    rows: dict[tuple[ShownImage, ...], None] = field(default_factory=dict)  # in the order decided

    def take(self, line: Decision) -> None:
        """Let a line count: the last one about an image does."""
        self.rows.pop(line.images, None)
        for shown, stays in zip(line.images, line.keep.values(), strict=True):
            self.stays.pop(shown, None)
            self.seen.pop(shown, None)
            if stays is not None:
                self.stays[shown] = stays
                self.rows[line.images] = None
                if hashed := line.seen.get(shown[1]):
                    self.seen[shown] = hashed

    def only(self, counts: Callable[[ShownImage, str | None], bool]) -> RaterDecisions:
        """Those about images that count, given the hash of what the rater saw of each."""
        stays = {one: s for one, s in self.stays.items() if counts(one, self.seen.get(one))}
        rows = {row: None for row in self.rows if any(one in stays for one in row)}
        return RaterDecisions(stays, {k: v for k, v in self.seen.items() if k in stays}, rows)

    def of(self, *, repeat: bool) -> dict[tuple[str, str], bool]:
        """Pair and path of each image that was decided, and whether it stays."""
        return {(pair, path): s for (pair, path, again), s in self.stays.items() if again is repeat}


class DecisionLog(LineLog[Decision]):
    """The file of all raters' decisions; several servers may add to it at once."""

    def __init__(self, path: Path) -> None:
        self.raters: defaultdict[str, RaterDecisions] = defaultdict(RaterDecisions)
        super().__init__(path, Decision)

    def take(self, line: Decision) -> None:
        """Let a decision count."""
        self.raters[line.rater].take(line)

    def clear(self) -> None:
        """Forget every decision."""
        self.raters.clear()


def decided(
    rater: str,
    pair: str,
    keep: Mapping[str, bool | None],
    seen: Mapping[str, str] | None = None,
    *,
    repeat: bool,
) -> Decision:
    """A decision that is made now."""
    now = datetime.now(UTC)
    return Decision(
        rater=rater, pair=pair, keep=dict(keep), seen=dict(seen or {}), repeat=repeat, at=now
    )
