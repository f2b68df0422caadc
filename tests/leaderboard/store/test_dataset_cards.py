"""The dataset cards of a store, tried with the `datasets` library itself."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

from benchmarks import cases
from benchmarks.schema import ScoreTable
from benchmarks.stored_scores import SCHEMA as SCORES_SCHEMA
from benchmarks.stored_scores import write_stored
from leaderboard.ledger.queue_file import Queue, queue_bytes
from leaderboard.publication import snapshot
from leaderboard.ranking import pairs
from leaderboard.store.hub import cards
from leaderboard.store.hub.cards import card_files, configs_of
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import Part
from leaderboard.store.hub.maintenance import create, write_cards
from leaderboard.store.interface import transact
from leaderboard.store.memory import memory_store
from tests.hub.server import running_hub
from tests.leaderboard.house import BOB, CARDS, House
from tests.leaderboard.publication.counting import noisy_house

pytestmark = pytest.mark.slow

NAME = "lab/board"
_LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
path, *names = sys.argv[1:]
found = {"configs": get_dataset_config_names(path)}
for name in names:
    rows = load_dataset(path, name, split="train")
    told = rows.to_pandas().to_json(orient="records")
    found[name] = {"columns": rows.column_names, "rows": json.loads(told)}
print(json.dumps(found))
"""


def loaded(path: str, *names: str, home: Path, **environment: str) -> dict[str, Any]:
    """What a visitor's `load_dataset` makes of a dataset, in a process of its own."""
    known = {**os.environ, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, path, *names],
        env={**known, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


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


def names(part: Part) -> list[str]:
    return [config["config_name"] for config in configs_of(part, CARDS)]


def test_each_repository_has_a_card_whose_front_matter_names_its_tables() -> None:
    found = card_files(NAME, CARDS)
    assert set(found) == {part.value for part in Part}
    assert found == card_files(NAME, dict(reversed(CARDS.items())))
    for part in Part:
        text = found[part.value].decode()
        front = DatasetCard(text).data.to_dict()
        assert (front["license"], front.get("configs", [])) == ("other", configs_of(part, CARDS))
        assert NAME in front["pretty_name"]
        assert f"# {NAME}-{part.value}\n" in text


def test_scores_and_cases_of_private_answers_are_promised_to_nobody() -> None:
    assert names(Part.RESULTS) == ["boards", "pairs", "scores", "cases_open", "open"]
    assert b"private" in card_files(NAME, CARDS)["results"]


def test_a_benchmark_with_the_name_of_a_table_takes_it_from_nobody() -> None:
    odd = {name: CARDS["open"].model_copy(update={"name": name}) for name in ("boards", "scores")}
    found = [config["config_name"] for config in configs_of(Part.RESULTS, odd)]
    assert found == ["boards", "pairs", "scores", "cases_boards", "cases_scores"]


def test_cards_tell_of_every_column_there_is() -> None:
    queue = pq.read_schema(io.BytesIO(queue_bytes(Queue())))
    assert list(cards.OF_SCORES) == SCORES_SCHEMA.names
    assert list(cards.OF_CELLS) == snapshot.SCHEMA.names
    assert list(cards.OF_PAIRS) == pairs.SCHEMA.names
    assert list(cards.OF_CASES) == cases.SCHEMA.names
    assert list(cards.OF_SUBMISSIONS) == queue.names


def test_words_of_a_benchmark_stay_in_their_cell() -> None:
    odd = CARDS["open"].model_copy(update={"title": "a | b\n# c", "licence": ""})
    text = card_files(NAME, {"open": odd})["results"].decode()
    assert "| a \\| b # c |" in text
    assert "| not stated |" in text


WANTED = {
    Part.REQUESTS: ["submissions"],
    Part.RESULTS: ["boards", "pairs", "scores", "open"],
}


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
    assert results["configs"] == names(Part.RESULTS)


def test_scores_are_loaded_though_the_first_has_none(house: House, tmp_path: Path) -> None:
    cards = {"a_first_one": CARDS["open"].model_copy(update={"name": "a_first_one"}), **CARDS}
    folder = tmp_path / "results"
    files = {
        **scores_of(house),
        "snapshot.parquet": house.store.public.read("snapshot.parquet"),
        "README.md": card_files(NAME, cards)["results"],
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    home = tmp_path / "home"
    found = loaded(str(folder), "open", "scores", home=home, HF_HUB_OFFLINE="1")
    assert found["open"]["rows"] == found["scores"]["rows"]
    assert len(found["open"]["rows"]) == 5


def test_datasets_reads_each_table_from_the_hub(tmp_path: Path) -> None:
    with running_hub() as hub:
        parts = HubParts(NAME, tmp_path / "mine", endpoint=hub.endpoint, token=hub.token)
        list(create(parts))
        store = replace(memory_store(), public=parts.public, private=parts.private)
        with noisy_house(store=store) as house:
            house.done(name="one")
            house.done(BOB, "two")
            scores = scores_of(house)
            kept = {path.replace("/open.", "/at/old/open."): c for path, c in scores.items()}
            transact(house.store.public, lambda: {**scores, **kept}, "scores")
            cards = {Part(part): card for part, card in card_files(NAME, CARDS).items()}
            first, again = (list(write_cards(parts, cards)) for _ in range(2))
            assert all("is written" in line for line in first)
            assert all("already" in line for line in again)
            home, known = tmp_path / "home", hub.environment()
            found = {
                part: loaded(f"{NAME}-{part.value}", *wanted, home=home, **known)
                for part, wanted in WANTED.items()
            }
            check(house, found)
