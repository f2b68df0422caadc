"""Reading the released TS2 files, and what is said where they are not as released."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.schema import Questions
from benchmarks.ts2.answers import Ts2Answers
from benchmarks.ts2.benchmark import CARD, Ts2
from benchmarks.ts2.load import split_of
from tests.benchmarks.cards import trial_card

N_GRAPHS, N_IMAGES = CARD.counts["graphs"], CARD.counts["images"]


def load_answers(data: Path | None) -> Ts2Answers:
    """Loaded without the pinned hash, which no made-up table has."""
    return Ts2(trial_card(CARD, **CARD.counts)).answers(data)


def load_questions(data: Path) -> Questions:
    return Ts2(trial_card(CARD, **CARD.counts)).questions(data)


def metadata() -> pd.DataFrame:
    """A made-up table of the released size: 165 graphs with 17 or 18 images each."""
    graph = [k * N_GRAPHS // N_IMAGES for k in range(N_IMAGES)]
    return pd.DataFrame(
        {
            "id": [str(g) for g in graph],
            "target_prompt": "a prompt, with a comma",
            "file_name": [f"images/{g:03d}-{k:04d}.jpg" for k, g in enumerate(graph)],
            "image_source": "made up",
            "rank": [("0", "1a", "1b", "12c")[k % 4] for k in range(N_IMAGES)],
        }
    )


def write(folder: Path, table: pd.DataFrame) -> Path:
    (folder / "ts2").mkdir()
    table.to_csv(folder / "ts2" / "metadata.csv", index=False)
    return folder


def test_a_released_table_becomes_graphs_with_nodes_levels_and_splits(tmp_path: Path) -> None:
    answers = load_answers(write(tmp_path, metadata()))
    assert answers.clusters == tuple(str(g) for g in range(165))
    assert answers.not_in_paper == {"164"}
    assert answers.pair_ids[:2] == ("000-0000", "000-0001")
    assert answers.nodes["label"].tolist()[:4] == ["0", "1a", "1b", "12c"]
    assert answers.nodes["level"].tolist()[:4] == [0, 1, 1, 12]
    assert set(answers.nodes["skill"]) == {""}
    assert tuple(answers.nodes["pair_id"]) == answers.pair_ids


def test_splits_go_by_the_number_of_the_graph() -> None:
    splits = [split_of(graph) for graph in (0, 110, 111, 135, 136, 164)]
    assert splits == ["synth", "synth", "nat", "nat", "real", "real"]


def test_without_a_data_folder_the_error_names_the_file_and_how_to_give_it() -> None:
    with pytest.raises(SubmitterError, match=r"ts2/metadata\.csv") as caught:
        load_answers(None)
    assert caught.value.code == "data_missing"
    assert "--data" in caught.value.hint
    assert "ASSAY_DATA" in caught.value.hint


def test_a_folder_without_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError) as caught:
        load_answers(tmp_path)
    assert caught.value.code == "data_missing"
    assert str(tmp_path / "ts2" / "metadata.csv") in caught.value.message


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns=["rank", "id"]), "no column id, rank"),
        (lambda t: t.iloc[:-1], "2839 images; expected 2840"),
        (lambda t: t.assign(id=t["id"].replace("164", "163")), "164 graphs"),
        (lambda t: t.assign(id=t["id"].replace("164", "x")), "numbers from 0 on"),
        (lambda t: t.assign(rank=t["rank"].replace("12c", "c12")), "'c12' (data row 4)"),
        (lambda t: t.assign(file_name="images/000-00.jpg"), "more than once"),
    ],
)
def test_a_table_that_is_not_the_released_one_is_refused(
    tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], says: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        load_answers(write(tmp_path, change(metadata())))
    assert caught.value.code == "data_malformed"
    assert "metadata.csv" in caught.value.message
    assert says in caught.value.message


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b'a,b\n"1,2\n3,4\n'])
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = write(tmp_path, metadata())
    (folder / "ts2" / "metadata.csv").write_bytes(content)
    with pytest.raises(SubmitterError) as caught:
        load_answers(folder)
    assert caught.value.code == "data_malformed"


def test_only_a_number_after_one_stray_quote_in_llmscore_over_is_mended() -> None:
    benchmark = Ts2()
    assert benchmark.repair_cell("llmscore_over", '"3') == 3.0
    for cell in ("3", '3"', '"3"', '""3', '"', '" 3', '"x', '"-3', "'3", '"3\n'):
        assert benchmark.repair_cell("llmscore_over", cell) is None
    assert benchmark.repair_cell("llmscore_ec", '"3') is None


def test_the_registry_finds_ts2_with_rank_over_all_graphs_as_headline() -> None:
    card = load_registry()["ts2"].card
    assert (card.headline.measure, card.headline.split, card.headline.variant) == (
        "rank",
        "all",
        "paper",
    )
    assert set(card.measures) == {"rank", "sep", "delta", "rank_midrank"}


def test_a_table_of_another_release_is_refused_by_its_hash(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError, match="sha256") as caught:
        Ts2().answers(write(tmp_path, metadata()))
    assert caught.value.code == "data_malformed"
    assert "93ebf89" in caught.value.hint


def test_without_images_no_code_can_be_run(tmp_path: Path) -> None:
    folder = write(tmp_path, metadata())
    assert not Ts2().has_questions(folder)
    with pytest.raises(SubmitterError) as caught:
        load_questions(folder)
    assert caught.value.code == "images_missing"


def test_every_image_is_asked_about_with_the_prompt_of_its_graph(tmp_path: Path) -> None:
    folder = write(tmp_path, metadata())
    (folder / "ts2" / "images").mkdir()
    for name in metadata()["file_name"]:
        (folder / "ts2" / name).write_bytes(name.encode())
    questions = load_questions(folder)
    assert [pair.pair_id for pair in questions.pairs] == list(load_answers(folder).pair_ids)
    first = questions.pairs[0]
    assert questions.images[first.image_id]() == metadata()["file_name"].iloc[0].encode()
    assert questions.texts[first.text_id] == "a prompt, with a comma"


def test_a_short_set_of_images_says_how_many_are_missing(tmp_path: Path) -> None:
    folder = write(tmp_path, metadata())
    (folder / "ts2" / "images").mkdir()
    with pytest.raises(SubmitterError, match="lacks 2840 of the 2840 images") as caught:
        load_questions(folder)
    assert caught.value.code == "images_missing"


def test_the_released_table_has_the_pinned_hash(assay_data: Path) -> None:
    assert Ts2().answers(assay_data).sources == {"ts2/metadata.csv": CARD.files[0].sha256}
