"""Validation age: which models are newer than what their judges were tested on."""

from __future__ import annotations

from datetime import date

import pytest

from benchmarks.schema import Card, Kind
from leaderboard.models.board_types import BoardQuery, Evidence, Judge, ModelBoard, SkillBoard
from leaderboard.models.judges import FOR
from leaderboard.publication.reader import View
from leaderboard.records import ModelCard
from leaderboard.views.validation_age import (
    ValidationAge,
    age_note,
    release_date,
    validation_age,
)
from tests.leaderboard.views import drift_fixture, model_track
from tests.leaderboard.web.skills_fixture import skills_view_of

VIEW = drift_fixture.view()
LEVEL, FALLS = drift_fixture.IDS["Level"], drift_fixture.IDS["Falls"]
REAL = drift_fixture.cards()["many"]
SIMULATED = drift_fixture.cards()["demo"]


def board(released: list[str], trusted: tuple[str, ...] = (LEVEL,), judge: str = "") -> ModelBoard:
    entries = {}
    for place, day in enumerate(released):
        one = model_track.entry(place, f"Model {place}")
        given = {"submission_id": f"model-{place}", "card": ModelCard(released=day)}
        entries[f"model-{place}"] = one.model_copy(update=given)
    judges = tuple(Judge(who, who, who in trusted) for who in (LEVEL, FALLS))
    of = SkillBoard(None, "All prompts", 10, judges, None, {})
    return ModelBoard(BoardQuery("set", judge=judge), entries, {None: of}, "")


@pytest.mark.parametrize(
    ("released", "newer"),
    [
        pytest.param(["2024-11-30", "2024-12-31"], [], id="as old as the newest generator"),
        pytest.param(
            ["2025-01-01", "2026-03-05"], ["model-1", "model-0"], id="newer, newest first"
        ),
    ],
)
def test_a_model_of_a_later_month_than_every_generator_is_newer(
    released: list[str], newer: list[str]
) -> None:
    found = validation_age(board(released), REAL, VIEW)
    assert [one.entry.submission_id for one in found.newer] == newer
    assert all([judge.entry_id for judge in one.judges] == [LEVEL] for one in found.newer)
    assert found.n_undated == 0
    assert "Dec 2024" in age_note(found)


def test_models_without_a_date_are_counted() -> None:
    found = validation_age(board(["", "2025-01-01"]), REAL, VIEW)
    assert (found.n_undated, len(found.newer)) == (1, 1)
    assert "1 model" in age_note(found)


@pytest.mark.parametrize(("card", "n_newer"), [(REAL, 1), (SIMULATED, 0)])
def test_simulated_models_count_by_simulated_benchmarks(card: Card, n_newer: int) -> None:
    assert len(validation_age(board(["2025-05-01"]), card, VIEW).newer) == n_newer


@pytest.mark.parametrize(
    ("kind", "qualified_by", "newest"),
    [
        pytest.param("alignment", "many", "NOVA", id="by boards of its kind"),
        pytest.param("preference", "many", "NOVA", id="whatever the prompt set"),
        pytest.param("alignment", "", "NOVA", id="by nothing: as the prompt set is"),
        pytest.param("preference", "", None, id="by nothing, and no board of the kind"),
    ],
)
def test_a_judge_is_tested_by_boards_of_the_kind_that_qualifies_it(
    kind: Kind, qualified_by: str, newest: str | None
) -> None:
    plain = board(["2026-01-01"])
    why = Evidence(qualified_by, None, "srcc", 0.5, 0.4, 0.6, 1, 0.0, FOR)
    judges = (Judge(LEVEL, LEVEL, True, evidence=(why,) if qualified_by else ()),)
    of = SkillBoard(None, "All prompts", 10, judges, None, {})
    whole = ModelBoard(plain.query, plain.entries, {None: of}, "")
    (found,) = validation_age(whole, REAL.model_copy(update={"kind": kind}), VIEW).judges
    assert (found.newest and found.newest.name) == newest


def test_the_chosen_judge_counts_whether_or_not_it_is_qualified() -> None:
    found = validation_age(board(["2026-01-01"], judge=FALLS), REAL, VIEW)
    assert [one.entry_id for one in found.judges] == [FALLS]


def test_of_a_judge_whose_benchmarks_name_no_generator_nothing_is_said() -> None:
    old: View = skills_view_of()
    who = next(iter(old.entries))
    unknown = board(["2026-01-01"])
    judges = (Judge(who, who, trusted=True),)
    of = SkillBoard(None, "All prompts", 10, judges, None, {})
    found = validation_age(ModelBoard(unknown.query, unknown.entries, {None: of}, ""), REAL, old)
    assert (found.newer, found.n_unknown) == ((), 1)
    assert "1 qualified metric" in age_note(found)
    assert validation_age(None, REAL, VIEW) == ValidationAge((), (), 0)
    assert age_note(ValidationAge((), (), 0)) == ""


@pytest.mark.parametrize(
    ("name", "version", "card", "released"),
    [
        pytest.param("x", "", ModelCard(released="2026-02-03"), date(2026, 2, 3), id="declared"),
        pytest.param("SDXL 1.0", "", ModelCard(), date(2023, 7, 1), id="a generator by its name"),
        pytest.param("Imagen", "4", ModelCard(), date(2025, 5, 1), id="by name and version"),
        pytest.param("Imagen", "9", ModelCard(), None, id="a version that is not known"),
        pytest.param("x", "", ModelCard(model="org/Kolors"), date(2024, 7, 1), id="by its Hub id"),
        pytest.param("x", "", ModelCard(released="2026-02-31"), None, id="no day"),
        pytest.param("x", "", ModelCard(), None, id="not known"),
    ],
)
def test_a_release_date_is_declared_or_that_of_a_known_generator(
    name: str, version: str, card: ModelCard, released: date | None
) -> None:
    given = {"card": card, "version": version}
    entry = model_track.entry(0, name).model_copy(update=given)
    assert release_date(entry) == released
