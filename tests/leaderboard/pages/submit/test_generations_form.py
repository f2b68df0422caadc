"""The submit page takes the images of a model: a file, or a dataset of the Hub."""

from __future__ import annotations

import pytest

from leaderboard.desk import Examination, Problem, SaidOfImages
from leaderboard.governance.bans import Ban, bans_file
from leaderboard.models.model_card import ImagesSeen
from leaderboard.pages.submit.answers import examined
from leaderboard.pages.submit.images import ImagesForm, check_images, send_images
from tests.leaderboard.pages.mine.own_submissions import ADA
from tests.leaderboard.pages.sites import site_of
from tests.leaderboard.pages.synthetic import NASTY, NOW, StubDesk


def test_a_file_is_checked_with_what_the_form_says_of_parquet() -> None:
    desk = StubDesk()
    form = ImagesForm("/tmp/images.parquet", None, " painter ", "", "demo_prompts")
    html = check_images(site_of(desk), ADA, form)
    assert desk.taken == ["examined images.parquet"]
    assert desk.sent == [{"said": SaidOfImages("painter", "", "demo_prompts")}]
    assert "Nothing is wrong with" in html


@pytest.mark.parametrize("named", ["ada/images@main", "datasets/ada/images@main"])
def test_a_repository_is_one_of_datasets(named: str) -> None:
    desk = StubDesk()
    check_images(site_of(desk), ADA, ImagesForm(None, named))
    assert desk.taken == ["examined datasets/ada/images@main"]


def test_it_is_sent_signed_and_private() -> None:
    desk = StubDesk()
    form = ImagesForm("/tmp/a.zip", submitter=" A group ", private=True)
    assert "is in." in send_images(site_of(desk), ADA, form)
    assert desk.sent == [{"account": ADA, "submitter": "A group", "said": SaidOfImages()}]


@pytest.mark.slow
@pytest.mark.parametrize("act", [check_images, send_images])
def test_guests_and_empty_forms_are_told_what_is_missing(act: object) -> None:
    assert callable(act)
    desk = StubDesk()
    assert "not_signed_in" in act(site_of(desk), None, ImagesForm("/tmp/a.zip"))
    assert "<code>no_file</code>" in act(site_of(desk), ADA, ImagesForm(None))
    assert "<code>two_sources</code>" in act(site_of(desk), ADA, ImagesForm("/tmp/a.zip", "a/b"))
    assert desk.taken == []


def test_nothing_is_looked_at_for_the_banned() -> None:
    desk = StubDesk()
    site = site_of(desk)
    ban = Ban(account=ADA.key, reason="Copied others.", by="hub:root", at=NOW)
    public = site.store.public
    public.commit(bans_file({ADA.key: ban}), parent=public.head(), message="ban")
    assert "<code>banned</code>" in check_images(site, ADA, ImagesForm("/tmp/a.zip"))
    assert desk.taken == []


def test_problems_are_counted_by_kind_and_a_hint_is_told_once() -> None:
    missing = (Problem("missing", NASTY, "Draw it.", file=f"{NASTY}{n}") for n in range(3))
    problems = (*missing, Problem("blank", "It is of one colour.", "Draw it again.", file="x.png"))
    html = examined(Examination(problems, counts={"missing": 500, "blank": 1}))
    assert "501 problems" in html
    assert "500 missing, 1 blank" in html
    assert html.count("Draw it.") == 1
    assert "and 497 more" in html
    assert "<img" not in html


def test_what_was_found_in_the_images_is_told() -> None:
    images = ImagesSeen(
        prompt_set="demo_prompts", revision="1", seeds=(1, 2), wanted=10, present=8,
        withheld={"nsfw": 2}, n_bytes=5000, sizes={"512x512": 8},
    )  # fmt: skip
    html = examined(
        Examination((), "painter", "1", ("demo_prompts",), 8, 5000, "0" * 64, {}, images)
    )
    for words in ("8 of 10 images", "2 seeds", "2 nsfw", "8 of 512x512", "5.0 kB"):
        assert words in html
