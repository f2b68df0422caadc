"""The table of built-in metrics: every row of every family can be used and says what it is."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.scorers.registry import family_of, find_row, load_rows
from evaluator.scorers.row import ScorerRow

TABLE = load_rows()
WANTED = {
    "clipscore-hessel",
    "clipscore-tm",
    "clipscore-ts2",
    "clipscore-ts2-paper",
    "clipscore-cos",
    "clipscore-cos-b32",
    "alignscore",
    "alignscore-paper",
    "siglip-so400m",
    "siglip-so400m-logit",
    "siglip-so400m-cos",
    "siglip-ts2",
    "siglip-b16",
    "siglip-l16",
    "pickscore",
    "pickscore-cos",
    "hpsv2",
    "hpsv2.1",
    "blip2-itc",
    "eva02-l14-336",
    "coca-l14",
    "metaclip-l14",
    "openclip-h14-laion2b",
}


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_a_row_fits_its_family_and_says_what_it_is(row: ScorerRow) -> None:
    family = family_of(row)
    family.check(row)
    assert family.title
    for text in (row.title, row.summary, row.formula, row.source):
        assert text.strip()
    assert row.summary.endswith(".")
    assert row.notes
    assert all(note.endswith(".") for note in row.notes)
    assert len(set(row.granularity)) == len(row.granularity) > 0


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_a_rows_figures_can_be_true(row: ScorerRow) -> None:
    ends = [end for end in (row.low, row.high) if end is not None]
    assert all(math.isfinite(end) for end in ends)
    assert ends == sorted(set(ends))
    for figure in (row.parameters, row.flops_per_pair):
        assert figure is None or figure > 1e6
    for checkpoint in row.checkpoints.values():
        assert checkpoint.id.count("/") <= 1
        assert not checkpoint.revision or len(checkpoint.revision) == 40


def test_no_two_rows_compute_the_same_thing_with_the_same_checkpoint() -> None:
    same = Counter(
        (row.family, str(row.checkpoints), str(family_of(row).check(row)), row.dtype)
        for row in TABLE.values()
    )
    assert [each for each, count in same.items() if count > 1] == []


def test_open_clip_knows_every_architecture_and_tag_that_rows_name() -> None:
    import open_clip  # type: ignore[import-untyped]

    for row in TABLE.values():
        architecture = row.options.get("architecture")
        if not architecture:
            continue
        assert open_clip.get_model_config(architecture)
        tag = row.options.get("tag")
        if tag:
            published = open_clip.get_pretrained_cfg(architecture, tag)
            assert published["hf_hub"].strip("/") == row.checkpoints["model"].id


def test_every_dual_encoder_of_the_papers_is_there() -> None:
    assert set(TABLE) >= WANTED


def test_an_unknown_name_suggests_others() -> None:
    with pytest.raises(SubmitterError, match="clipscore-hessel") as refused:
        find_row("clipscore-hesel", TABLE)
    assert refused.value.code == "unknown_scorer"
    with pytest.raises(SubmitterError, match="scorers list"):
        find_row("???", TABLE)


def write(folder: Path, name: str, *names: str) -> None:
    text = 'family = "f"\ntitle = "t"\nsummary = "s"\nformula = "f"\nsource = "s"\n'
    rows = "".join(f'[[scorer]]\nname = "{each}"\n{text}' for each in names)
    (folder / name).write_text(rows)


def test_a_name_that_is_there_twice_is_a_defect(tmp_path: Path) -> None:
    write(tmp_path, "one.toml", "a", "b")
    write(tmp_path, "two.toml", "b")
    with pytest.raises(PlatformError, match=r"two\.toml: b is there twice"):
        load_rows(tmp_path)


def test_a_row_with_a_typo_is_a_defect(tmp_path: Path) -> None:
    write(tmp_path, "one.toml", "a")
    place = tmp_path / "one.toml"
    place.write_text(place.read_text() + "formulla = 1\n")
    with pytest.raises(PlatformError, match=r"one\.toml.*formulla"):
        load_rows(tmp_path)
    place.write_text("not toml")
    with pytest.raises(PlatformError, match=r"one\.toml"):
        load_rows(tmp_path)


def test_a_row_of_no_family_is_a_defect(tmp_path: Path) -> None:
    write(tmp_path, "one.toml", "a")
    with pytest.raises(PlatformError, match="no family 'f'"):
        family_of(load_rows(tmp_path)["a"])
