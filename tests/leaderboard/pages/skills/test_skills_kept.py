"""The prepared skills stay within their bytes, counted as what they take."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace

import pytest

from leaderboard.pages.reading import View, view_of
from leaderboard.pages.skills import found
from leaderboard.pages.skills.base import skills_base
from leaderboard.pages.skills.found import Prepared
from leaderboard.pages.skills.names import Part
from leaderboard.pages.skills.query import SkillsQuery, resolve
from leaderboard.ranking.orders import Orders
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import cards, fill, snapshot

ASKED = ("counting", "spatial", "text", "colour", "counting,text", "spatial,text,colour")


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(snapshot(48), cards(), Orders(fill(memory_store(), 48)))


def parts_of(view: View, asked: str) -> tuple[Part, ...]:
    return resolve(SkillsQuery(skill=asked, ratings="simulated"), view.boards).parts


@pytest.mark.slow
def test_what_is_counted_is_about_what_is_taken(view: View) -> None:
    skills_base(view, parts_of(view, ASKED[-1]))  # Fills what the view itself keeps.
    gc.collect()
    tracemalloc.start()
    try:
        base = skills_base(view, parts_of(view, ASKED[-1]))
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.6 * taken < base.nbytes < 2 * taken


def test_bases_without_joint_resamples_count_too(view: View) -> None:
    base = skills_base(view, parts_of(view, ASKED[0]))
    assert base.comparison is not None
    assert replace(base, draws={}).nbytes >= base.comparison.nbytes > 0


def test_what_was_looked_at_first_makes_way_and_the_last_always_stays(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = skills_base(view, parts_of(view, ASKED[0])).nbytes
    monkeypatch.setattr(found, "_KEPT_BYTES", int(2.5 * one))
    prepared = Prepared()
    for asked in ASKED:
        base = prepared.of(view, parts_of(view, asked))
        assert prepared.of(view, parts_of(view, asked)) is base
        assert base.nbytes <= prepared.nbytes <= max(int(2.5 * one), base.nbytes)
    monkeypatch.setattr(found, "_KEPT_BYTES", 1)
    assert prepared.of(view, parts_of(view, ASKED[0])).nbytes == prepared.nbytes == one
