"""Reader of TS2: the released files, and what is said where they are not as released."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.ts2.load import split_of
from benchmarks.ts2.protocol import CARD, Ts2
from tests.benchmarks.cards import trial_card
from tests.benchmarks.checks import refused

N_GRAPHS, N_IMAGES = CARD.counts["graphs"], CARD.counts["images"]


def benchmark() -> Ts2:
    """Without the pinned hash, which no made-up table has."""
    return Ts2(trial_card(CARD, **CARD.counts))


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


def write(folder: Path, table: pd.DataFrame | bytes) -> Path:
    (folder / "ts2").mkdir()
    content = table if isinstance(table, bytes) else table.to_csv(index=False).encode()
    (folder / "ts2" / "metadata.csv").write_bytes(content)
    return folder


def test_a_released_table_becomes_graphs_with_nodes_levels_and_splits(tmp_path: Path) -> None:
    answers = benchmark().answers(write(tmp_path, metadata()))
    assert answers.clusters == tuple(str(g) for g in range(165))
    assert answers.not_in_paper == {"164"}
    assert answers.pair_ids[:2] == ("000-0000", "000-0001")
    assert answers.nodes["label"].tolist()[:4] == ["0", "1a", "1b", "12c"]
    assert answers.nodes["level"].tolist()[:4] == [0, 1, 1, 12]
    assert set(answers.nodes["skill"]) == {""}
    assert tuple(answers.nodes["pair_id"]) == answers.pair_ids
    splits = [split_of(graph) for graph in (0, 110, 111, 135, 136, 164)]
    assert splits == ["synth", "synth", "nat", "nat", "real", "real"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns=["rank", "id"]), "id, rank"),
        (lambda t: t.iloc[:-1], "expected 2840"),
        (lambda t: t.assign(id=t["id"].replace("164", "163")), "164 graphs"),
        (lambda t: t.assign(id=t["id"].replace("164", "x")), "from 0 on"),
        (lambda t: t.assign(rank=t["rank"].replace("12c", "c12")), "'c12' (data row 4)"),
        (lambda t: t.assign(file_name="images/000-00.jpg"), "once"),
        (lambda t: b"", " read"),
        (lambda t: b"\xff\xfe\x00", " read"),
        (lambda t: b'a,b\n"1,2\n3,4\n', " read"),
    ],
)
def test_a_table_that_is_not_the_released_one_is_refused(
    tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame | bytes], says: str
) -> None:
    with refused("data_malformed", "metadata.csv", says):
        benchmark().answers(write(tmp_path, change(metadata())))


def test_an_absent_file_and_another_release_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with refused("data_missing", "ts2/metadata.csv") as caught:
        benchmark().questions(None)
    assert "--data" in caught.value.hint
    assert "ASSAY_DATA" in caught.value.hint
    with refused("data_missing", str(tmp_path / "ts2" / "metadata.csv")):
        benchmark().questions(tmp_path)
    with refused("data_malformed", "sha256") as caught:
        Ts2().answers(write(tmp_path, metadata()))
    assert "93ebf89" in caught.value.hint


def test_only_a_number_after_one_stray_quote_in_llmscore_over_is_mended() -> None:
    assert Ts2().repair_cell("llmscore_over", '"3') == 3.0
    for cell in ("3", '3"', '"3"', '""3', '"', '" 3', '"x', '"-3', "'3", '"3\n'):
        assert Ts2().repair_cell("llmscore_over", cell) is None
    assert Ts2().repair_cell("llmscore_ec", '"3') is None


def test_the_registry_finds_ts2_with_rank_over_all_graphs_as_headline() -> None:
    card = load_registry()["ts2"].card
    headline = card.headline
    assert (headline.measure, headline.split, headline.variant) == ("rank", "all", "paper")
    assert set(card.measures) == {"rank", "sep", "delta", "rank_midrank"}


def test_every_image_is_asked_about_with_the_prompt_of_its_graph(tmp_path: Path) -> None:
    folder = write(tmp_path, metadata())
    assert not Ts2().has_questions(folder)
    with refused("images_missing"):
        benchmark().questions(folder)
    (folder / "ts2" / "images").mkdir()
    with refused("images_missing", "2840 of the 2840"):
        benchmark().questions(folder)
    for name in metadata()["file_name"]:
        (folder / "ts2" / name).write_bytes(name.encode())
    questions = benchmark().questions(folder)
    assert [pair.pair_id for pair in questions.pairs] == list(benchmark().answers(folder).pair_ids)
    first = questions.pairs[0]
    assert questions.images[first.image_id]() == metadata()["file_name"].iloc[0].encode()
    assert questions.texts[first.text_id] == metadata()["target_prompt"].iloc[0]


def test_the_released_table_has_the_pinned_hash(assay_data: Path) -> None:
    assert Ts2().answers(assay_data).sources == {"ts2/metadata.csv": CARD.files[0].sha256}
