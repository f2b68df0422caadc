"""What is told of the base of a recipe: its content, and what it was trained on."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import Source
from evaluator.training.base import benchmarks_of, content_of

COMMIT = "0" * 40


@pytest.mark.parametrize(
    ("name", "trained_on"),
    [
        ("Salesforce/blip2-itm-vit-g-coco", ("coco",)),
        ("nllg/crocscore", ("croc", "croc_syn")),
        ("nobody/nothing", ()),
    ],
)
def test_a_repository_was_trained_on_what_the_metrics_that_read_it_say(
    name: str, trained_on: tuple[str, ...], tmp_path: Path
) -> None:
    source = Source(tmp_path, name, COMMIT)
    assert (benchmarks_of(source), content_of(source)) == (trained_on, COMMIT)


@pytest.mark.parametrize("place", ["submission", "submission/checkpoint"])
def test_a_folder_was_trained_on_what_its_manifest_says(place: str, tmp_path: Path) -> None:
    (tmp_path / "submission" / "checkpoint").mkdir(parents=True)
    source = Source(tmp_path / place, place, "")
    assert benchmarks_of(source) == ()
    manifest = tmp_path / "submission" / "assay.toml"
    manifest.write_text('name = "mine"\ntrained_on = ["croc_syn"]\n')
    assert benchmarks_of(source) == ("croc_syn",)
    manifest.write_text("name = 3\n")
    with pytest.raises(SubmitterError) as error:
        benchmarks_of(source)
    assert error.value.code == "bad_manifest"
