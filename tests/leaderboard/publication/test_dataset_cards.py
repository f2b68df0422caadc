"""The dataset cards of a store, tried with the `datasets` library itself."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

from benchmarks import cases
from benchmarks.parquet import SCHEMA as SCORES_SCHEMA
from benchmarks.parquet import write_stored
from benchmarks.schema import Card, ScoreTable
from leaderboard.ledger.queue_file import Queue, queue_bytes
from leaderboard.publication import snapshot
from leaderboard.publication.publisher import table_schemas
from leaderboard.ranking import pairs
from leaderboard.store.hub import cards
from leaderboard.store.hub.cards import card_of
from leaderboard.store.hub.configurations import (
    Tables,
    configurations,
    tables_in,
    tables_of,
    with_tables,
)
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import Part
from leaderboard.store.hub.maintenance import create, write_cards
from leaderboard.store.interface import transact
from tests.kit.governed import ADA, BOB, CARDS, House
from tests.kit.hub.repositories import StoredFile
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.store import memory_store
from tests.leaderboard.publication.counting import noisy_house
from tests.leaderboard.publication.loading import loaded

NAME = "lab/board"


def scores_of(house: House) -> dict[str, bytes]:
    """Scores of pairs of all that is on the boards; one of the files has none at all."""
    files, pairs_ = {}, pd.Index(["a", "b"], name="pair_id")
    told = {"benchmark": "open", "revision": CARDS["open"].revision}
    for place, status in enumerate(house.ledger.statuses()):
        own = status.submission
        given = [0.25 if place else None, None]
        overall = pd.DataFrame({own.name: given}, index=pairs_, dtype="float64")
        elements = pd.DataFrame({"pair_id": ["a"], "element_id": ["e1"], "score": [0.5]})
        table = ScoreTable(overall, elements={own.name: elements} if place else {})
        stored = write_stored(table, submission_id=own.submission_id, **told)
        files[f"results/{own.submission_id}/open.scores.parquet"] = stored
    return files


@pytest.fixture
def house() -> Iterator[House]:
    with noisy_house(store=memory_store()) as one:
        one.done(name="one")
        one.done(BOB, "two")
        yield one


TABLES = {
    Part.REQUESTS: {"submissions": "queue*.parquet"},
    Part.RESULTS: {
        "boards": "snapshot*.parquet",
        "pairs": "boards/*.pairs.parquet",
        "scores": "results/*/*.scores.parquet",
        "open": "results/*/open.scores.parquet",
    },
    Part.SUBMISSIONS: {},
}
"""Those that have rows once two metrics are published."""


def card(part: Part, known: Mapping[str, Card] = CARDS, tables: Tables | None = None) -> str:
    return card_of(part, NAME, known, TABLES[part] if tables is None else tables).decode()


def test_each_repository_has_a_card_whose_front_matter_names_its_tables() -> None:
    for part in Part:
        text = card(part)
        assert text == card(part, dict(reversed(CARDS.items())))
        front = DatasetCard(text).data.to_dict()
        assert (front["license"], front.get("configs", [])) == (
            "other",
            configurations(TABLES[part]),
        )
        assert NAME in front["pretty_name"]
        assert f"# {NAME}-{part.value}\n" in text
        assert tables_in(text.encode()) == TABLES[part]
    assert "private" in card(Part.RESULTS)


def test_a_file_belongs_to_the_tables_of_its_place() -> None:
    assert tables_of("cases/open/r1.parquet") == {"cases_open": "cases/open/*.parquet"}
    own = {"open": "results/*/open.scores.parquet"}
    assert tables_of("results/s/open.scores.parquet") == own
    assert tables_of("results/s/boards.scores.parquet") == {}, "a name that is taken"
    for path in ("results/s/at/old/open.scores.parquet", "results/s/open.clusters.parquet", "a/b"):
        assert tables_of(path) == {}


def test_a_table_is_added_to_a_card_that_stays_as_it_was() -> None:
    text = "---\nlicense: other\n---\n# By hand\n\n- a\n"
    changed = with_tables(text.encode(), {"boards": "snapshot*.parquet"})
    assert tables_in(changed) == {"boards": "snapshot*.parquet"}
    assert changed.decode().endswith("\n# By hand\n\n- a\n")
    assert tables_in(b"---\n[broken\n---\n") is None


def test_cards_tell_of_every_column_there_is() -> None:
    queue = pq.read_schema(io.BytesIO(queue_bytes(Queue())))
    assert list(cards.OF_SCORES) == SCORES_SCHEMA.names
    assert list(cards.OF_CELLS) == snapshot.SCHEMA.names
    assert list(cards.OF_PAIRS) == pairs.SCHEMA.names
    assert list(cards.OF_CASES) == cases.SCHEMA.names
    assert list(cards.OF_SUBMISSIONS) == queue.names


def test_words_of_a_benchmark_stay_in_their_cell() -> None:
    odd = CARDS["open"].model_copy(update={"title": "a | b\n# c", "licence": ""})
    text = card(Part.RESULTS, {"open": odd})
    assert "| a \\| b # c |" in text
    assert "| not stated |" in text


WANTED = {part: list(TABLES[part]) for part in (Part.REQUESTS, Part.RESULTS)}


def check(house: House, found: dict[Part, dict[str, Any]]) -> None:
    """What was loaded is what was published."""
    ids = {status.submission.submission_id for status in house.ledger.statuses()}
    results = found[Part.RESULTS]
    scores = results["open"]
    assert results["scores"]["rows"] == scores["rows"]
    for table in (found[Part.REQUESTS]["submissions"], results["boards"]):
        assert {row["submission_id"] for row in table["rows"]} == ids
    assert scores["columns"] == SCORES_SCHEMA.names
    assert [row["score"] for row in scores["rows"]].count(0.25) == 1
    assert len(scores["rows"]) == 5, "both files, the one without a score included"
    assert results["boards"]["columns"] == snapshot.SCHEMA.names
    assert {row["rank"] for row in results["boards"]["rows"]} == {1, 2}
    assert sorted(row["benchmark"] for row in results["pairs"]["rows"]) == ["closed", "open"]
    assert results["configs"] == WANTED[Part.RESULTS]


@pytest.mark.slow
def test_scores_are_loaded_though_the_first_has_none(house: House, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    files = {
        **scores_of(house),
        "snapshot.parquet": house.store.public.read("snapshot.parquet"),
        "README.md": card(Part.RESULTS).encode(),
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    home = tmp_path / "home"
    found = loaded(str(folder), "open", "scores", home=home, HF_HUB_OFFLINE="1")
    assert found["open"]["rows"] == found["scores"]["rows"]
    assert len(found["open"]["rows"]) == 5


def configs(hub: HubServer, part: Part) -> list[str]:
    """What the card of a repository names, as it is on the branch."""
    repository = hub.repositories[f"{NAME}-{part.value}"]
    return list(tables_in(repository.files(repository.branches["main"])["README.md"].content) or ())


@pytest.fixture
def made(tmp_path: Path) -> Iterator[tuple[HubServer, HubParts, House]]:
    """A store as `store create` leaves it, and who publishes to it."""
    with running_hub() as hub:
        parts = HubParts(NAME, tmp_path / "mine", endpoint=hub.endpoint, token=hub.token)
        list(create(parts))
        list(write_cards(parts, CARDS, table_schemas()))
        store = replace(memory_store(), public=parts.public, private=parts.private)
        with noisy_house(store=store) as house:
            yield hub, parts, house


@pytest.mark.slow
def test_every_table_loads_from_a_new_store_as_soon_as_it_has_rows(
    made: tuple[HubServer, HubParts, House], tmp_path: Path
) -> None:
    hub, parts, house = made
    known = {**hub.environment(), "HF_TOKEN": ""}

    def tables(part: Part, home: str, without: str = "") -> dict[str, Any]:
        wanted = [name for name in configs(hub, part) if name != without]
        found = loaded(f"{NAME}-{part.value}", *wanted, home=tmp_path / home, **known)
        assert found.pop("configs") == configs(hub, part)
        return found

    house.done(name="one")
    scores = scores_of(house)
    transact(house.store.public, lambda: scores, "scores")
    one = tables(Part.RESULTS, "one", without="pairs")  # one entry is compared with none
    assert list(one) == ["boards", "scores", "open"]
    assert {row["metric"] for row in one["boards"]["rows"]} == {"one"}
    assert len(tables(Part.REQUESTS, "one")["submissions"]["rows"]) == 1
    house.done(BOB, "two")
    scores = scores_of(house)
    kept = {path.replace("/open.", "/at/old/open."): c for path, c in scores.items()}
    transact(house.store.public, lambda: {**scores, **kept}, "scores")
    assert all("already" in line for line in write_cards(parts, CARDS, table_schemas()))
    check(house, {part: {"configs": configs(hub, part), **tables(part, "two")} for part in WANTED})


def columns_loaded(hub: HubServer, home: Path) -> dict[str, list[str]]:
    """Name of each table that has no rows, to its columns; all of them have to load."""
    known = {**hub.environment(), "HF_TOKEN": ""}
    empty: dict[str, list[str]] = {}
    for part in WANTED:
        names, where = configs(hub, part), f"{NAME}-{part.value}"
        found = loaded(where, *names, home=home, how="streaming", **known)
        assert found.pop("configs") == names
        empty |= {name: table["columns"] for name, table in found.items() if not table["rows"]}
    return empty


WITHOUT_ROWS = {
    "submissions": list(cards.OF_SUBMISSIONS),
    "boards": list(cards.OF_CELLS),
    "pairs": list(cards.OF_PAIRS),
    "scores": list(cards.OF_SCORES),
}


@pytest.mark.slow
def test_every_table_of_a_store_that_nobody_has_touched_loads_with_its_columns(
    made: tuple[HubServer, HubParts, House], tmp_path: Path
) -> None:
    hub, _, _ = made
    assert columns_loaded(hub, tmp_path) == WITHOUT_ROWS


@pytest.mark.slow
def test_every_table_loads_after_a_withdrawal_that_empties_the_boards(
    made: tuple[HubServer, HubParts, House], tmp_path: Path
) -> None:
    hub, parts, house = made
    submission_id = house.done(name="one")
    scores = scores_of(house)
    transact(house.store.public, lambda: scores, "scores")
    house.acts.withdraw(submission_id, ADA)
    transact(house.store.public, lambda: dict.fromkeys(scores), "scores")
    assert all("already" in line for line in write_cards(parts, CARDS, table_schemas()))
    gone = {name: found for name, found in WITHOUT_ROWS.items() if name != "submissions"}
    assert columns_loaded(hub, tmp_path) == {**gone, "open": list(cards.OF_SCORES)}


@pytest.mark.parametrize("broken", [b"# By hand\n", b"---\n[broken\n---\n", None])
def test_a_card_that_somebody_wrote_keeps_nobody_from_publishing(
    made: tuple[HubServer, HubParts, House], broken: bytes | None
) -> None:
    hub, _, house = made
    results = hub.repositories[f"{NAME}-results"]
    results.change({"README.md": StoredFile(broken, lfs=False) if broken else None})
    house.done(name="one")
    scores = scores_of(house)
    transact(house.store.public, lambda: scores, "scores")
    files = results.files(results.branches["main"])
    if broken == b"# By hand\n":
        assert configs(hub, Part.RESULTS) == ["open"]
        assert files["README.md"].content.endswith(broken)
    else:
        assert (files["README.md"].content if broken else None) == broken


def test_naming_a_table_costs_no_commit_and_is_done_once(
    made: tuple[HubServer, HubParts, House],
) -> None:
    hub, _, house = made
    hub.tally.reset()
    for name in ("one", "two", "three"):
        house.done(name=name)
        scores = scores_of(house)
        hub.served.clear()
        transact(house.store.public, partial(dict, scores), "scores")
    assert hub.tally.commits(f"{NAME}-results") == 2 * 3
    assert hub.asked("README.md", "GET") == []
