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
from leaderboard.publication import cell_columns
from leaderboard.ranking import pairs
from leaderboard.store.hub import card_texts
from leaderboard.store.hub.cards import card_files, configs_of
from leaderboard.store.hub.creating import create, write_cards
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import Part, part_of
from leaderboard.store.interface import transact
from leaderboard.store.memory import memory_store
from tests.hub.server import HubServer, running_hub
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
    files = {}
    for place, status in enumerate(house.ledger.statuses()):
        own = status.submission
        given = [None, None] if place == 0 else [0.25, None]
        overall = pd.DataFrame(
            {own.name: given}, index=pd.Index(["a", "b"], name="pair_id"), dtype="float64"
        )
        elements = pd.DataFrame({"pair_id": ["a"], "element_id": ["e1"], "score": [0.5]})
        table = ScoreTable(overall, elements={own.name: elements} if place else {})
        files[f"results/{own.submission_id}/open.scores.parquet"] = write_stored(
            table,
            submission_id=own.submission_id,
            benchmark="open",
            revision=CARDS["open"].revision,
        )
    return files


@pytest.fixture
def house() -> Iterator[House]:
    with noisy_house(store=memory_store()) as one:
        one.done(name="one")
        one.done(BOB, "two")
        yield one


def front_matter(card: bytes) -> dict[str, Any]:
    found: dict[str, Any] = DatasetCard(card.decode()).data.to_dict()
    return found


def test_each_repository_has_a_card_whose_front_matter_names_its_tables() -> None:
    found = card_files(NAME, CARDS)
    assert set(found) == {"requests", "scores", "results", "submissions"}
    assert found == card_files(NAME, dict(reversed(CARDS.items())))
    for part in Part:
        front = front_matter(found[part.value])
        assert front["license"] == "other"
        assert NAME in front["pretty_name"]
        assert front.get("configs", []) == configs_of(part, CARDS)
        assert f"# {NAME}-{part.value}\n" in found[part.value].decode()


def test_scores_of_private_answers_are_promised_to_nobody() -> None:
    names = [config["config_name"] for config in configs_of(Part.SCORES, CARDS)]
    assert names == ["all", "open"]
    assert "private, as its answers are" in card_files(NAME, CARDS)["scores"].decode()


def test_cards_tell_of_every_column_there_is() -> None:
    queue = pq.read_schema(io.BytesIO(queue_bytes(Queue())))
    assert list(card_texts.OF_SCORES) == SCORES_SCHEMA.names
    assert list(card_texts.OF_CELLS) == cell_columns.SCHEMA.names
    assert list(card_texts.OF_PAIRS) == pairs.SCHEMA.names
    assert list(card_texts.OF_CASES) == cases.SCHEMA.names
    assert list(card_texts.OF_SUBMISSIONS) == queue.names


def test_cases_of_private_answers_are_promised_to_nobody() -> None:
    names = [config["config_name"] for config in configs_of(Part.RESULTS, CARDS)]
    assert names == ["boards", "pairs", "cases_open"]


def test_words_of_a_benchmark_stay_in_their_cell() -> None:
    odd = replace_card(title="a | b\n# c", licence="")
    text = card_files(NAME, {"open": odd})["results"].decode()
    assert "| a \\| b # c |" in text
    assert "| not stated |" in text


def replace_card(**more: object) -> Any:
    return CARDS["open"].model_copy(update=more)


def told_rows(house: House) -> set[str]:
    return {status.submission.submission_id for status in house.ledger.statuses()}


def check(house: House, found: dict[Part, dict[str, Any]]) -> None:
    """What was loaded is what was published."""
    ids = told_rows(house)
    submissions = found[Part.REQUESTS]["submissions"]
    assert {row["submission_id"] for row in submissions["rows"]} == ids
    scores = found[Part.SCORES]["open"]
    assert scores["columns"] == SCORES_SCHEMA.names
    assert [row["score"] for row in scores["rows"]].count(0.25) == 1
    assert len(scores["rows"]) == 5, "both files, the one without a score included"
    boards = found[Part.RESULTS]["boards"]
    assert boards["columns"] == cell_columns.SCHEMA.names
    assert {row["submission_id"] for row in boards["rows"]} == ids
    assert {row["rank"] for row in boards["rows"]} == {1, 2}
    tested = found[Part.RESULTS]["pairs"]
    assert {row["benchmark"] for row in tested["rows"]} == {"open", "closed"}
    assert len(tested["rows"]) == 2
    assert found[Part.RESULTS]["configs"] == ["boards", "pairs", "cases_open"]


_WANTED = {
    Part.REQUESTS: ["submissions"],
    Part.SCORES: ["open"],
    Part.RESULTS: ["boards", "pairs"],
}


def test_datasets_reads_each_table_by_the_configurations_of_the_cards(
    house: House, tmp_path: Path
) -> None:
    scores = scores_of(house)
    kept = {
        f"results/{path.split('/')[1]}/at/old/open.scores.parquet": c for path, c in scores.items()
    }
    transact(house.store.public, lambda: {**scores, **kept}, "scores")
    for path in house.store.public.list():
        file = tmp_path / part_of(path).value / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(house.store.public.read(path))
    for part, card in card_files(NAME, CARDS).items():
        (tmp_path / part).mkdir(exist_ok=True)
        (tmp_path / part / "README.md").write_bytes(card)
    offline = {"HF_HUB_OFFLINE": "1"}
    found = {
        part: loaded(str(tmp_path / part.value), *names, home=tmp_path / "home", **offline)
        for part, names in _WANTED.items()
    }
    check(house, found)


def test_scores_can_be_loaded_though_the_first_benchmark_has_none(
    house: House, tmp_path: Path
) -> None:
    cards = {"a_first_one": CARDS["open"].model_copy(update={"name": "a_first_one"}), **CARDS}
    for path, content in scores_of(house).items():
        file = tmp_path / "scores" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (tmp_path / "scores" / "README.md").write_bytes(card_files(NAME, cards)["scores"])
    found = loaded(
        str(tmp_path / "scores"), "open", "all", home=tmp_path / "home", HF_HUB_OFFLINE="1"
    )
    assert found["open"]["rows"] == found["all"]["rows"]
    assert len(found["open"]["rows"]) == 5


def test_datasets_reads_each_table_from_the_hub(tmp_path: Path) -> None:
    with running_hub() as hub, noisy_house(store=hub_store_of(hub, tmp_path)) as house:
        house.done(name="one")
        house.done(BOB, "two")
        transact(house.store.public, lambda: scores_of(house), "scores")
        parts = parts_of(hub, tmp_path)
        cards = {Part(part): card for part, card in card_files(NAME, CARDS).items()}
        told = list(write_cards(parts, cards))
        assert all("is written" in line for line in told)
        assert all("was there already" in line for line in write_cards(parts, cards))
        found = {
            part: loaded(
                f"{NAME}-{part.value}", *names, home=tmp_path / "home", **hub.environment()
            )
            for part, names in _WANTED.items()
        }
        check(house, found)


def parts_of(hub: HubServer, folder: Path) -> HubParts:
    return HubParts(NAME, folder / "mine", endpoint=hub.endpoint, token=hub.token)


def hub_store_of(hub: HubServer, folder: Path) -> Any:
    parts = parts_of(hub, folder)
    list(create(parts))
    return replace(memory_store(), public=parts.public, private=parts.private)
