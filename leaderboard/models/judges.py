"""Judges by skill: metrics that the boards of metrics qualify to judge models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.schema import Card
from leaderboard.ledger.judge_pins import Pins
from leaderboard.models.board_memory import BoardMemory
from leaderboard.models.board_types import Evidence, Judge
from leaderboard.models.judges_evidence import AGAINST, FOR, evidence_of, parts_for
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.reader import View
from leaderboard.publication.skill_names import Part
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS

RULE = (
    "A metric judges a skill if, on the boards of metrics that have enough prompts (or whatever they "
    f"resample; at least {MIN_CLUSTERS}) to order metrics by that skill, it stands in the first tier "
    "with its 95% interval above chance on at least one, and wholly at or below chance on none; all "
    "prompts are judged likewise by the headlines of the boards of the prompt set’s family, or of "
    "all boards where it has none; simulated ratings count for simulated models only. A metric that "
    "gives all models the same scores judges none, nor does an unchanged template."
)
"""The sentence that pages show."""
NO_BOARD = "No board of metrics tests this skill."
_OfBoard = Mapping[str, tuple[Evidence, str]]
_Found = Mapping[Part, _OfBoard]


@dataclass(frozen=True)
class Judging:
    """Finds who judges the models of a prompt set."""

    view: View  # the boards of metrics
    card: Card  # the prompt set
    pins: Pins  # what an operator decided
    memory: BoardMemory  # keeps what boards say for the next look

    def of(self, skill: str | None, entry_ids: Iterable[str]) -> tuple[Judge, ...]:
        """Metrics in their role on a skill: trusted ones first, then by what speaks for them."""
        there = [one for one in dict.fromkeys(entry_ids) if one in self.view.entries]
        found, above = self._evidence(skill)
        return tuple(sorted((self._judge(skill, one, found, above) for one in there), key=_order))

    def _evidence(self, skill: str | None) -> tuple[_Found, str]:
        """What the boards for a skill say; of a sub-skill that none can order, those of its skill."""
        found = {part: self._of_part(part) for part in parts_for(self.view, self.card, skill)}
        ordered = any(one.tier for of in found.values() for one, _ in of.values())
        if ordered or skill is None or ":" not in skill:
            return found, ""
        above = skill.rpartition(":")[0]
        of_above, further = self._evidence(above)
        return of_above, further or self._instead(found, above)

    def _instead(self, found: _Found, above: str) -> str:
        """That the skill above is taken, and the boards that have too few clusters for this one."""
        title = skill_title(self.card, above)
        few = _few(self.view, {part: [one for one, _ in of.values()] for part, of in found.items()})
        return f"{few}, so as for {title}: " if few else f"As for {title}: "

    def _of_part(self, part: Part) -> _OfBoard:
        kept = self.memory.of_view(self.view)
        return kept.evidence(part.name, lambda: evidence_of(self.view, part))

    def _judge(self, skill: str | None, entry_id: str, found: _Found, above: str) -> Judge:
        entry = self.view.entries[entry_id]
        own = {part: of[entry_id] for part, of in found.items() if entry_id in of}
        trusted, why = _verdict(self.view, own) if found else (False, NO_BOARD)
        why = f"{above}{why}"
        pin = self.pins.of(self.card.name, skill, entry_id)
        if entry.template:
            trusted, why = False, f"Its code is that of the {entry.template} template, unchanged."
            pin = pin if pin is not None and pin.verdict == "distrust" else None
        if pin is not None:
            trusted, why = pin.verdict == "trust", f"An operator decided: {pin.reason}"
        costs = [one for one in entry.cost.values() if one.images]
        seconds = sum(one.seconds for one in costs)
        return Judge(
            entry_id=entry_id,
            title=f"{entry.metric} {entry.version}".strip(),
            trusted=trusted,
            pinned=pin is not None,
            why=why,
            evidence=tuple(evidence for evidence, _ in own.values()),
            seconds_per_image=seconds / sum(one.images for one in costs) if costs else None,
        )


def strength(judge: Judge) -> tuple[float, float]:
    """How much speaks for a metric: boards, then how far above chance it is on them on average."""
    ahead = [
        abs(one.value - one.chance)
        for one in judge.evidence
        if one.speaks == FOR and one.value is not None and one.chance is not None
    ]
    return float(len(ahead)), sum(ahead) / len(ahead) if ahead else 0.0


def why_unheard(judges: Iterable[Judge]) -> str:
    """Why no board can speak for any of these metrics, in a sentence; empty where one can."""
    whys = {one.why if _is_unheard(one) else "" for one in judges}
    return whys.pop() if len(whys) == 1 else ""


def _is_unheard(judge: Judge) -> bool:
    return judge.why == NO_BOARD or (
        bool(judge.evidence) and all(one.too_few for one in judge.evidence)
    )


def _verdict(view: View, own: Mapping[Part, tuple[Evidence, str]]) -> tuple[bool, str]:
    """Whether a metric judges by the rule, and why, in one sentence."""
    kept = [f"{_titles(view, [part])}: {reason}" for part, (_, reason) in own.items() if reason]
    against = [part for part, (one, _) in own.items() if one.speaks == AGAINST]
    speaking = [part for part, (one, _) in own.items() if one.speaks == FOR]
    first = [part for part, (one, _) in own.items() if one.tier == 1]
    if kept:
        why = f"It is kept from ranking on {kept[0]}."
    elif against:
        why = f"At or below chance on {_titles(view, against)}."
    elif speaking:
        return True, f"In the first tier and above chance on {_titles(view, speaking)}."
    elif first:
        why = f"In the first tier on {_titles(view, first)}, but not clear of chance."
    elif own and all(one.too_few for one, _ in own.values()):
        why = f"{_few(view, {part: [one] for part, (one, _) in own.items()})}."
    elif own:
        why = "In the first tier of no board for this skill."
    else:
        why = "It is on no board of metrics for this skill."
    return False, why


def _few(view: View, found: Mapping[Part, Sequence[Evidence]]) -> str:
    """The boards with too few clusters to order metrics, and how many; empty where none has."""
    few = {
        part: of[0].too_few for part, of in found.items() if of and all(one.too_few for one in of)
    }
    return "; ".join(f"{_titles(view, [part])}: {said}" for part, said in few.items())


def _titles(view: View, parts: Sequence[Part]) -> str:
    return ", ".join(dict.fromkeys(view.boards[part.benchmark].card.title for part in parts))


def _order(judge: Judge) -> tuple[bool, float, float, str, str]:
    boards, ahead = strength(judge)
    return not judge.trusted, -boards, -ahead, judge.title.casefold(), judge.entry_id
