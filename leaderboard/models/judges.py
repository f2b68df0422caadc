"""Judges by skill: metrics that the boards of metrics qualify to judge models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.schema import Card
from benchmarks.statistics.joint_tests import LEVEL
from leaderboard.ledger.judge_pins import Pins
from leaderboard.models.board_types import Evidence, Judge
from leaderboard.models.reading import BoardCache
from leaderboard.publication.measure_names import nearest, skill_title
from leaderboard.publication.reader import BoardIndex, View, headline_cells
from leaderboard.publication.skill_names import Part, common_key
from leaderboard.ranking.cells import Cell, beats_chance, chance_of, is_at_or_below_chance, too_few
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS

FOR, AGAINST, UNDECIDED = "for", "against", "undecided"


def parts_for(view: View, card: Card, skill: str | None) -> tuple[Part, ...]:
    """The boards of metrics that count for a skill of a prompt set; the headline's key is empty.

    A skill of another family counts where both go by one common name. Over all prompts the boards
    of the prompt set's family count, or all boards where the family has none that orders metrics.
    Simulated ratings say nothing of the metrics that judge real models, nor the reverse.
    """
    boards = {
        name: board
        for name, board in view.boards.items()
        if not board.empty and board.card.simulated == card.simulated
    }
    if skill is None:
        able = [name for name, board in boards.items() if headline_cells(board)]
        # A board that cannot order metrics keeps no other from being asked.
        ordering = [name for name in able if not _too_few(boards[name])]
        own = [name for name in ordering if boards[name].card.family == card.family]
        return tuple(Part(name, "") for name in own or ordering or able)
    return tuple(
        Part(name, key)
        for name, board in boards.items()
        for key in board.skills()
        if _same(card, skill, board.card, key)
    )


def claims_of(view: View, card: Card) -> int:
    """In how many cells a metric could qualify by luck: over metrics, boards and skills of a prompt set."""
    return sum(
        sum(cell.rank is not None for cell in cells_of(view, part))
        for skill in (None, *card.skills)
        for part in parts_for(view, card, skill)
    )


def cells_of(view: View, part: Part) -> tuple[Cell, ...]:
    """The cells of a board by which metrics qualify for a skill."""
    board = view.boards[part.benchmark]
    if not part.key:
        return headline_cells(board)
    nearest_to = nearest(board.card.headline, board.selectors(part.key), board.card)
    return tuple(board.cells(nearest_to, part.key))


def evidence_of(view: View, part: Part, claims: int) -> Mapping[str, tuple[Evidence, str]]:
    """Entry id to what a board says of it, and why it is kept from ranking there (else empty).

    `claims`: see `claims_of`.
    """
    card, cells = view.boards[part.benchmark].card, cells_of(view, part)
    if all(cell.tier is None for cell in cells) and any(cell.rank is not None for cell in cells):
        cells = view.orders.ranked(card, [cells]).cells
    n_ranked = sum(cell.rank is not None for cell in cells)
    return {
        cell.entry_id: (_evidence(card, cell, n_ranked, claims), cell.distrust) for cell in cells
    }


def least_clusters(n_metrics: int) -> int:
    """Clusters from which the smallest p-value of n signs, 2/2ⁿ, is below 5 % shared among all pairs."""
    pairs = n_metrics * (n_metrics - 1) // 2
    return max(MIN_CLUSTERS, 1 + math.ceil(math.log2(max(pairs, 1) / LEVEL)))


def _same(card: Card, skill: str, other: Card, key: str) -> bool:
    if card.family == other.family and skill == key:
        return True
    common = common_key(card, skill)
    return common is not None and common == common_key(other, key)


def _too_few(board: BoardIndex) -> str:
    return too_few(headline_cells(board), board.card.cluster)


def _evidence(card: Card, cell: Cell, n_ranked: int, claims: int) -> Evidence:
    chance = chance_of(card, cell.measure)
    least = least_clusters(n_ranked)
    return Evidence(
        benchmark=card.name,
        skill=cell.skill,
        measure=cell.measure,
        value=cell.value,
        ci_low=cell.ci_low,
        ci_high=cell.ci_high,
        tier=cell.tier if _ordered(cell, least) else None,
        chance=chance,
        speaks=_speaks(cell, chance, least, claims, rises=card.higher_is_better(cell.measure)),
        too_few=too_few([cell], card.cluster, least),
    )


def _speaks(cell: Cell, chance: float | None, least: int, claims: int, *, rises: bool) -> str:
    if chance is None or cell.n_clusters < least:
        return UNDECIDED
    ends = cell.ci_low, cell.ci_high
    if is_at_or_below_chance(*ends, chance, higher_is_better=rises):
        return AGAINST
    above = beats_chance(*ends, chance, higher_is_better=rises, value=cell.value, among=claims)
    if above and cell.tier == 1 and _ordered(cell, least):
        return FOR
    return UNDECIDED


def _ordered(cell: Cell, least: int) -> bool:
    return cell.rank is not None and cell.n_clusters >= least


RULE = (
    "A metric judges a skill if, on the boards of metrics that have enough prompts (or whatever they "
    f"resample; at least {MIN_CLUSTERS}, and more where many metrics are ranked) to order metrics by "
    "that skill, it stands in the first tier with an interval above chance on at least one, which "
    "holds at 95% for all metrics, boards and skills of the prompt set together, and with its 95% "
    "interval wholly at or below chance on none; all "
    "prompts are judged likewise by the headlines of the boards of the prompt set’s family, or of "
    "all boards where it has none; simulated ratings count for simulated models only. A metric that "
    "gives all models the same scores judges none, nor does an unchanged template, nor one that "
    "compares images, nor one whose score is blind to the prompt."
)
"""The sentence that pages show."""
BLIND = "Its score is blind to the prompt: it does not tell an image's right prompt from others."
COMPARES = "It compares two images of a prompt, and gives an image no score."
NO_BOARD = "No board of metrics tests this skill."
_OfBoard = Mapping[str, tuple[Evidence, str]]
_Found = Mapping[Part, _OfBoard]


@dataclass(frozen=True)
class Judging:
    """Finds who judges the models of a prompt set."""

    view: View  # the boards of metrics
    card: Card  # the prompt set
    pins: Pins  # what an operator decided
    memory: BoardCache  # keeps what boards say for the next look

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
        claims = kept.further.of(
            f"claims {self.card.name}", lambda: max(claims_of(self.view, self.card), 1)
        )
        key = f"{part.name} {claims}"
        return kept.evidence.of(key, lambda: evidence_of(self.view, part, claims))

    def _judge(self, skill: str | None, entry_id: str, found: _Found, above: str) -> Judge:
        entry = self.view.entries[entry_id]
        own = {part: of[entry_id] for part, of in found.items() if entry_id in of}
        trusted, why = _verdict(self.view, own) if found else (False, NO_BOARD)
        why = f"{above}{why}"
        pin = self.pins.of(self.card.name, skill, entry_id)
        never = ""
        if entry.template:
            never = f"Its code is that of the {entry.template} template, unchanged."
        elif entry.orders:
            never = COMPARES
        elif entry.blind and (trusted or pin is not None) and self.card.kind == "alignment":
            never = BLIND
        if never:  # An operator's trust does not change it.
            trusted, why = False, never
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
