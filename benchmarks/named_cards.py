"""Cards that an operator names: in a folder, in folders within it, or in a repository of the Hub.

They are data of strangers. Code beside them is refused, never run; files beside them are read where
they do not lead out of their folder; a repository is pinned by its whole commit, and what came from it
is kept, so that it is asked once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from huggingface_hub import constants

from benchmarks.errors import SubmitterError
from benchmarks.families import load_any_card
from benchmarks.problems import Problem, ProblemsError, problems_of
from benchmarks.schema import Benchmark
from benchmarks.sources.remote import Hub, safe_name

CARD, CARDS = "card.toml", "card*.toml"
_ON_HUB = re.compile(r"hub:(?P<repo>[\w.-]+/[\w.-]+)@(?P<commit>[0-9a-f]{40})(?:/(?P<folder>.+))?")
_HOW = "Name a folder with a card.toml, or hub:OWNER/NAME@COMMIT with the 40 digits of the commit."
_LARGEST_FILE = 256 << 20
"""Bytes of a file beside a card on the Hub."""
_MOST = 1000
"""Folders with cards in one folder."""


def named_benchmarks(places: Sequence[str], hub: Hub | None = None) -> Iterator[Benchmark]:
    """The benchmarks of all cards at these places, in order.

    Raises:
        ProblemsError: `invalid_benchmark`: every problem of all of them.
        TransientError: a repository is asked for the first time, and cannot be reached.
    """
    found: list[Benchmark] = []
    problems: list[Problem] = []
    for place in places:
        try:
            found += [load_named(card, place) for card in _cards_at(place, hub)]
        except SubmitterError as error:
            problems += problems_of(error)
    if problems:
        said = (f"{one.place}: {one.message}" if one.place else one.message for one in problems)
        hints = dict.fromkeys(one.hint for one in problems if one.hint)
        raise ProblemsError("invalid_benchmark", "\n".join(said), " ".join(hints), tuple(problems))
    yield from found


def card_at(place: str, hub: Hub | None = None) -> Path:
    """The only card at a place.

    Raises:
        SubmitterError: `no_card`: there is none, or there are several.
    """
    cards = list(_cards_at(place, hub))
    if len(cards) > 1:
        raise SubmitterError(
            "no_card", f"{place} holds {len(cards)} cards.", f"Name one: {cards[0]}"
        )
    return cards[0]


def load_named(card: Path, place: str = "") -> Benchmark:
    """The benchmark of a card of somebody else's.

    Raises:
        SubmitterError: `invalid_benchmark`.
    """
    if (card.parent / "protocol.py").exists():
        raise SubmitterError(
            "invalid_benchmark",
            f"{place or card.parent}: protocol.py lies beside the card.",
            "Code of a benchmark is run from benchmarks/ alone; a card of a family needs none.",
        )
    return load_any_card(card)


def _cards_at(place: str, hub: Hub | None) -> Iterator[Path]:
    if place.startswith("hub:"):
        yield _from_hub(place, hub or Hub())
        return
    path = Path(place)
    if path.is_file():
        yield path
        return
    inside = sorted(path.glob(CARDS)) or sorted(path.glob(f"*/{CARDS}"))
    if not inside or len(inside) > _MOST:
        said = f"holds {len(inside):,} cards" if inside else "holds no card.toml"
        raise SubmitterError("no_card", f"{place} {said}.", _HOW)
    yield from inside


def _from_hub(place: str, hub: Hub) -> Path:
    """A card of a repository, and the files that it says lie beside it, on this machine."""
    match = _ON_HUB.fullmatch(place)
    if match is None:
        raise SubmitterError("no_card", f"{place} names no card on the Hub.", _HOW)
    repo, commit = match["repo"], match["commit"]
    inside = PurePosixPath(safe_name(match["folder"], place) if match["folder"] else "")
    kept = Path(constants.HF_HOME) / "assay-cards" / repo.replace("/", "--") / commit
    card = hub.keep(repo, str(inside / CARD), commit, kept, _LARGEST_FILE)
    for file in load_any_card(card).card.files:
        if file.beside:
            name = str(inside / PurePosixPath(file.path).name)
            hub.keep(repo, name, commit, kept, _LARGEST_FILE)
    return card
