"""The dataset cards of a store, tried with the `datasets` library itself."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
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
from leaderboard.publication import pairs_file, snapshot
from leaderboard.publication.publisher import table_schemas
from leaderboard.store.hub import cards
from leaderboard.store.hub.cards import card_of
from leaderboard.store.hub.configurations import (
    Tables,
    configurations,
    tables_in,
    tables_of,
    with_tables,
)
from leaderboard.store.hub.layout import Part
from leaderboard.store.hub.maintenance import write_cards
from leaderboard.store.interface import transact
from tests.kit.governed import ADA, BOB, CARDS, House, NoisyHouse
from tests.kit.hub.repositories import StoredFile
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, created, store_of


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
    assert list(cards.OF_PAIRS) == pairs_file.SCHEMA.names
    assert list(cards.OF_CASES) == cases.SCHEMA.names
    assert list(cards.OF_SUBMISSIONS) == queue.names


def test_words_of_a_benchmark_stay_in_their_cell() -> None:
    odd = CARDS["open"].model_copy(update={"title": "a | b\n# c", "licence": ""})
    text = card(Part.RESULTS, {"open": odd})
    assert "| a \\| b # c |" in text
    assert "| not stated |" in text


# Loaded by the library, in a process of its own as a visitor has

LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
wanted, how = json.loads(sys.argv[1]), sys.argv[2]
datasets = {}
for path, names in wanted.items():
    tables = datasets[path] = {"configs": get_dataset_config_names(path)}
    for name in names:
        rows = load_dataset(path, name, split="train", streaming=how == "streaming")
        none = how == "streaming" and not list(rows)
        records = "[]" if none else rows.to_pandas().to_json(orient="records")
        tables[name] = {"columns": list(rows.features), "rows": json.loads(records)}
print(json.dumps(datasets))
"""


def loaded(
    wanted: Mapping[str, list[str]], home: Path, how: str = "whole", **environment: str
) -> dict[str, Any]:
    """Tables of datasets as `load_dataset` gives them, by the path of the dataset.

    Empty tables it loads with `streaming` only: a whole table of no rows the library refuses.
    """
    known = {**os.environ, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(wanted), how],
        env={**known, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    datasets: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return datasets


@pytest.mark.slow
def test_scores_are_loaded_though_the_first_has_none(tmp_path: Path) -> None:
    house, folder = NoisyHouse(), tmp_path / "results"
    house.done(name="one")
    house.done(BOB, "two")
    files = {
        **scores_of(house),
        "snapshot.parquet": house.store.public.read("snapshot.parquet"),
        "README.md": card(Part.RESULTS).encode(),
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    wanted = {str(folder): ["open", "scores"]}
    (tables,) = loaded(wanted, tmp_path / "home", HF_HUB_OFFLINE="1").values()
    assert tables["open"]["rows"] == tables["scores"]["rows"]
    assert len(tables["open"]["rows"]) == 5


@dataclass
class Site:
    """A store as `store create` leaves it, and who publishes to it."""

    hub: HubServer
    folder: Path

    def __post_init__(self) -> None:
        self.parts = created(self.hub, self.folder / "mine")
        list(write_cards(self.parts, CARDS, table_schemas()))
        self.house: House = NoisyHouse(store_of(self.parts))

    def publish_scores(self, *, earlier: bool = False) -> dict[str, bytes]:
        """Commit scores of all that is on the boards, if asked to also of an earlier revision."""
        scores = scores_of(self.house)
        old = {path.replace("/open.", "/at/old/open."): c for path, c in scores.items()}
        files = {**scores, **(old if earlier else {})}
        transact(self.house.store.public, lambda: files, "scores")
        return scores

    def configs(self, part: Part) -> list[str]:
        """Tables that the card of a repository names, as it is on the branch."""
        repository = self.hub.repositories[f"{NAME}-{part.value}"]
        files = repository.files(repository.branches["main"])
        return list(tables_in(files["README.md"].content) or ())

    def tables(self, home: str, how: str = "whole", *, without: str = "") -> dict[Part, Any]:
        """All tables that the cards name, but one, as a visitor loads them."""
        names = {part: self.configs(part) for part in (Part.REQUESTS, Part.RESULTS)}
        wanted = {
            f"{NAME}-{part.value}": [name for name in every if name != without]
            for part, every in names.items()
        }
        visitor = {**self.hub.environment(), "HF_TOKEN": ""}
        datasets = loaded(wanted, self.folder / home, how, **visitor)
        assert [tables.pop("configs") for tables in datasets.values()] == list(names.values())
        return dict(zip(names, datasets.values(), strict=True))

    def columns_of_empty_tables(self) -> dict[str, list[str]]:
        """Name of each table that has no rows, to its columns; all tables have to load."""
        datasets = self.tables("streaming", "streaming").values()
        tables = {name: table for dataset in datasets for name, table in dataset.items()}
        return {name: table["columns"] for name, table in tables.items() if not table["rows"]}

    def assert_cards_are_whole(self) -> None:
        lines = list(write_cards(self.parts, CARDS, table_schemas()))
        assert all("already" in line for line in lines)


@pytest.fixture
def site(hub: HubServer, tmp_path: Path) -> Site:
    return Site(hub, tmp_path)


@pytest.mark.slow
def test_every_table_loads_from_a_new_store_as_soon_as_it_has_rows(site: Site) -> None:
    site.house.done(name="one")
    site.publish_scores()
    first = site.tables("one", without="pairs")  # one entry is compared with none
    assert list(first[Part.RESULTS]) == ["boards", "scores", "open"]
    assert {row["metric"] for row in first[Part.RESULTS]["boards"]["rows"]} == {"one"}
    assert len(first[Part.REQUESTS]["submissions"]["rows"]) == 1
    site.house.done(BOB, "two")
    site.publish_scores(earlier=True)
    site.assert_cards_are_whole()
    second = site.tables("two")
    results, queue = second[Part.RESULTS], second[Part.REQUESTS]["submissions"]
    ids = {status.submission.submission_id for status in site.house.ledger.statuses()}
    assert results["scores"]["rows"] == results["open"]["rows"]
    for table in (queue, results["boards"]):
        assert {row["submission_id"] for row in table["rows"]} == ids
    assert results["open"]["columns"] == SCORES_SCHEMA.names
    assert [row["score"] for row in results["open"]["rows"]].count(0.25) == 1
    assert len(results["open"]["rows"]) == 5, "both files, the one without a score included"
    assert results["boards"]["columns"] == snapshot.SCHEMA.names
    assert {row["rank"] for row in results["boards"]["rows"]} == {1, 2}
    assert sorted(row["benchmark"] for row in results["pairs"]["rows"]) == ["closed", "open"]
    assert list(results) == list(TABLES[Part.RESULTS])


WITHOUT_ROWS = {
    "submissions": list(cards.OF_SUBMISSIONS),
    "boards": list(cards.OF_CELLS),
    "pairs": list(cards.OF_PAIRS),
    "scores": list(cards.OF_SCORES),
}


@pytest.mark.slow
def test_every_table_of_a_store_that_nobody_has_touched_loads_with_its_columns(site: Site) -> None:
    assert site.columns_of_empty_tables() == WITHOUT_ROWS


@pytest.mark.slow
def test_every_table_loads_after_a_withdrawal_that_empties_the_boards(site: Site) -> None:
    submission_id = site.house.done(name="one")
    scores = site.publish_scores()
    site.house.acts.withdraw(submission_id, ADA)
    transact(site.house.store.public, lambda: dict.fromkeys(scores), "scores")
    site.assert_cards_are_whole()
    empty = {name: columns for name, columns in WITHOUT_ROWS.items() if name != "submissions"}
    assert site.columns_of_empty_tables() == {**empty, "open": list(cards.OF_SCORES)}


# Cards that others wrote, and what naming a table costs


@pytest.mark.parametrize("broken", [b"# By hand\n", b"---\n[broken\n---\n", None])
def test_a_card_that_somebody_wrote_keeps_nobody_from_publishing(
    site: Site, broken: bytes | None
) -> None:
    results = site.hub.repositories[f"{NAME}-results"]
    results.change({"README.md": StoredFile(broken, lfs=False) if broken else None})
    site.house.done(name="one")
    site.publish_scores()
    files = results.files(results.branches["main"])
    if broken == b"# By hand\n":
        assert site.configs(Part.RESULTS) == ["open"]
        assert files["README.md"].content.endswith(broken)
    else:
        assert (files["README.md"].content if broken else None) == broken


def test_naming_a_table_costs_no_commit_and_is_done_once(site: Site) -> None:
    site.hub.tally.reset()
    for name in ("one", "two"):
        site.house.done(name=name)
        scores = scores_of(site.house)
        site.hub.served.clear()
        transact(site.house.store.public, partial(dict, scores), "scores")
    assert site.hub.tally.commits(f"{NAME}-results") == 2 * 2
    assert site.hub.asked("README.md", "GET") == []
