"""Requests to a language model: which prompt pairs are to be written about what.

The paper crosses every property with every subject, and draws ten subjects and ten pairs of subjects
for each entity. The authors' code draws otherwise (`released`): nine subjects and the node above them
all, and ten other subjects once for each subject, shared by its entities. Its random numbers are not
known, so the draws of `released` are like those of the code and not the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count, permutations
from typing import Literal, get_args

from benchmarks.croc_syn.load import NOT_IN_PAPER, SEPARATOR
from benchmarks.errors import SubmitterError
from evaluator.croc.taxonomy import RELEASED, Entity, Taxonomy, Term, key_of

Mode = Literal["subject_property", "entity_variation", "entity_placement"]
MODES: tuple[Mode, ...] = get_args(Mode)
Draws = Literal["paper", "released"]
DRAWN = 10
"""Subjects, or pairs of subjects, for each entity; all where there are fewer."""
_FEW = 100
"""Subjects of which all pairs are put in an order; of more, pairs are drawn one by one."""
RELEASED_SEED = 42
_LONGEST_ID = 200
"""Bytes; a file name has 255, and some are needed for the number of the image."""


@dataclass(frozen=True, slots=True)
class PairRequest:
    """What one prompt pair is about; a language model writes several completions of it."""

    mode: Mode
    subject: Term
    varied: Term | None = None  # the property, of property variation
    alt_subject: Term | None = None  # of entity placement: where the contrast prompt puts it
    entity: Entity | None = None  # of entity variation and placement

    @property
    def prompt_id(self) -> str:
        """As the layout of CROC_syn has it."""
        named = (self.subject, self.varied, self.alt_subject, self.entity)
        names = [self.mode, *(key_of(one.name) for one in named if one is not None)]
        return SEPARATOR.join(names)


def properties_of(taxonomy: Taxonomy, draws: Draws) -> tuple[Term, ...]:
    """The properties that are varied: of the released taxonomy the paper's 64, or the code's 78."""
    if draws == "released" or taxonomy.root != RELEASED:
        return taxonomy.properties
    return tuple(one for one in taxonomy.properties if one.name not in NOT_IN_PAPER)


def draw_requests(
    taxonomy: Taxonomy, modes: Sequence[Mode], draws: Draws = "paper", seed: int = 0
) -> tuple[PairRequest, ...]:
    """All requests of these kinds, each prompt id once.

    `seed`: of the draws by the paper, which depend on the entity alone; the code's are seeded with 42.

    Raises:
        SubmitterError: `bad_taxonomy`: names are too long for files, or two requests would share them.
    """
    makers = {
        "subject_property": lambda: _varied_properties(taxonomy, draws),
        "entity_variation": lambda: _varied_entities(taxonomy, draws, seed),
        "entity_placement": lambda: _placed_entities(taxonomy, draws, seed),
    }
    found = tuple(one for mode in MODES if mode in modes for one in makers[mode]())
    counts = Counter(one.prompt_id.casefold() for one in found)
    if twice := [name for name, n in counts.items() if n > 1]:
        raise SubmitterError(
            "bad_taxonomy",
            f"{len(twice)} prompt ids stand for several requests each, the first is {twice[0]!r}.",
            "Give what they name other names.",
        )
    for one in found:
        if len(one.prompt_id.encode()) > _LONGEST_ID:
            raise SubmitterError(
                "bad_taxonomy",
                f"The names of {one.prompt_id[:80]!r}... are too long together: images are named by "
                "them.",
                f"All names of a request take {_LONGEST_ID} bytes at most.",
            )
    return found


def _varied_properties(taxonomy: Taxonomy, draws: Draws) -> Iterator[PairRequest]:
    for subject in taxonomy.subjects:
        for one in properties_of(taxonomy, draws):
            yield PairRequest("subject_property", subject, varied=one)


def _varied_entities(taxonomy: Taxonomy, draws: Draws, seed: int) -> Iterator[PairRequest]:
    alone = [(one,) for one in taxonomy.subjects]
    for entity in taxonomy.entities:
        about = f"entity_variation/{entity.owner}/{entity.name}"
        if draws == "paper":
            drawn = _sample(alone, DRAWN, f"{seed}/{about}")
        else:
            nine = _sample(alone, DRAWN - 1, f"{RELEASED_SEED}/{about}")
            drawn = [*nine, (taxonomy.above_subjects,)]
        for (subject,) in drawn:
            yield PairRequest("entity_variation", subject, entity=entity)


def _placed_entities(taxonomy: Taxonomy, draws: Draws, seed: int) -> Iterator[PairRequest]:
    for entity in taxonomy.entities:
        if draws == "paper":
            about = f"{seed}/entity_placement/{entity.owner}/{entity.name}"
            pairs = _pairs(taxonomy.subjects, about)
        else:
            owner = next(one for one in taxonomy.subjects if one.name == entity.owner)
            others = [(owner, one) for one in taxonomy.subjects if one != owner]
            pairs = _sample(others, DRAWN, f"{RELEASED_SEED}/entity_placement/{owner.name}")
        for subject, other in pairs:
            yield PairRequest("entity_placement", subject, alt_subject=other, entity=entity)


def _pairs(subjects: Sequence[Term], seed: str) -> list[tuple[Term, ...]]:
    """So many different pairs as are drawn; which of both has the original prompt is drawn too."""
    if len(subjects) <= _FEW:
        pairs = _sample([*combinations(subjects, 2)], DRAWN, seed)
        return [_sample([*permutations(pair)], 1, seed)[0] for pair in pairs]
    found: dict[frozenset[int], tuple[Term, ...]] = {}
    for number in count():
        digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
        first, second = (
            int.from_bytes(part) % len(subjects) for part in (digest[:16], digest[16:])
        )
        if first != second:
            found.setdefault(frozenset((first, second)), (subjects[first], subjects[second]))
        if len(found) == DRAWN:
            break
    return [*found.values()]


def _sample(of: Sequence[tuple[Term, ...]], most: int, seed: str) -> list[tuple[Term, ...]]:
    """So many without replacement: those of the smallest hash, the same on every machine."""

    def digest(drawn: tuple[Term, ...]) -> bytes:
        return hashlib.sha256("/".join([seed, *(one.name for one in drawn)]).encode()).digest()

    return sorted(of, key=digest)[:most]
