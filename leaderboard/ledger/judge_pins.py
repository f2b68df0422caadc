"""Pinned judges: the metrics that an operator lets judge models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from leaderboard.store.interface import NotFoundError, Repository

PATH = "model_judges.json"
ANY = "*"
OVERALL = "overall"  # Names all prompts where a pin says which skill it is for
Verdict = Literal["trust", "distrust"]


class Pin(BaseModel):
    """One decision."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt_set: str = Field(default=ANY, min_length=1, max_length=200)
    """Its name; `*`: every one."""
    skill: str = Field(default=ANY, min_length=1, max_length=200)
    """Key of the prompt set, `overall` for all prompts; `*`: every one."""
    metric: str = Field(min_length=1, max_length=300)
    """Entry id (`<submission>/<metric>`), or a metric's name for all entries of that name."""
    verdict: Verdict
    reason: str = Field(min_length=1, max_length=2000)
    by: str = ""
    at: AwareDatetime | None = None

    @property
    def about(self) -> tuple[str, str, str]:
        """What it decides; a later pin about the same takes its place."""
        return self.prompt_set, self.skill, self.metric


class Pins(BaseModel):
    """All decisions that hold, oldest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    pins: tuple[Pin, ...] = ()

    def of(self, prompt_set: str, skill: str | None, entry_id: str) -> Pin | None:
        """The decision about a metric on a skill; None where the rule decides.

        The one that names most holds: an entry before a name, then a prompt set before any, then a
        skill before any; of equal ones the latest.
        """
        key = OVERALL if skill is None else skill
        names = (entry_id, entry_id.rpartition("/")[2])
        found = [
            ((pin.metric == entry_id, pin.prompt_set != ANY, pin.skill != ANY, place), pin)
            for place, pin in enumerate(self.pins)
            if pin.prompt_set in (ANY, prompt_set)
            and pin.skill in (ANY, key)
            and pin.metric in names
        ]
        return max(found, key=lambda one: one[0])[1] if found else None

    def with_pin(self, pin: Pin) -> Pins:
        """With one more, in the place of an earlier one about the same."""
        return Pins(pins=(*self._without([pin.about]), pin))

    def without(self, about: Iterable[tuple[str, str, str]]) -> Pins:
        """Without the pins about these."""
        return Pins(pins=self._without(about))

    def _without(self, about: Iterable[tuple[str, str, str]]) -> tuple[Pin, ...]:
        gone = set(about)
        return tuple(pin for pin in self.pins if pin.about not in gone)


def read_pins(public: Repository) -> Pins:
    """The decisions of a store; none where there is no such file."""
    try:
        return Pins.model_validate_json(public.read(PATH))
    except NotFoundError:
        return Pins()
