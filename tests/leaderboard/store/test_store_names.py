"""What names a store, and what is told of a slip in its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.store.opening import StoreName


@pytest.mark.parametrize(
    "text", ["", "  ", "hubb:lab/board", "Hub:lab/board", "hf:x", "https://hub/x"]
)
def test_a_slip_in_a_name_is_told_before_a_folder_of_that_name_is_made(text: str) -> None:
    with pytest.raises(SubmitterError) as caught:
        StoreName.parse(text)
    assert caught.value.code == "bad_store"
    assert "hub:OWNER/NAME" in caught.value.hint


@pytest.mark.parametrize("text", ["store", ".assay/store", "/srv/a:b", "./a:b", "../a b/c:d"])
def test_every_other_name_is_a_folder(text: str) -> None:
    assert not StoreName.parse(text).on_hub


def test_a_store_of_the_hub_has_an_owner_and_a_name() -> None:
    assert StoreName.parse("hub:lab/board").hub_name == "lab/board"
    with pytest.raises(SubmitterError):
        StoreName.parse("hub:board")


def test_a_folder_without_a_store_is_not_made_into_one_by_looking(tmp_path: Path) -> None:
    mistyped = StoreName(str(tmp_path / "sotre"))
    with pytest.raises(SubmitterError, match="no store in") as refused:
        mistyped.existing()
    assert (refused.value.code, list(tmp_path.iterdir())) == ("no_store", [])
    mistyped.open()
    assert mistyped.existing().public.list() == ()


def test_a_store_knows_the_repositories_it_is_kept_in() -> None:
    assert StoreName.parse("hub:lab/board").repositories == (
        "lab/board-requests",
        "lab/board-scores",
        "lab/board-results",
        "lab/board-submissions",
    )
    assert StoreName.parse("lab/board").repositories == ()
