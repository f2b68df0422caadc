"""People's ratings on the models page and on the first page: apart from metrics, with sources."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.models.people import people_boards
from leaderboard.models.reading import ModelReader
from leaderboard.pages.models.models_page import answer
from leaderboard.pages.models.people import people_section
from leaderboard.pages.models.query import ModelsQuery
from leaderboard.pages.overview.people import people_section as first_page_section
from leaderboard.pages.page import Context
from tests.leaderboard.models.made_up_ratings import (
    RATED,
    RatedBenchmark,
    rated_answers,
    rated_set,
    rating,
)
from tests.leaderboard.pages.models.made_up import SET, context_of, filled, prompt_sets

MEANS = {"low": 2.0, "middle": 3.0, "high": 4.0}
NASTY = "<img src=x>"


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    """Real ratings of one set, submitted models of another, and a set whose ratings are absent."""
    missing = SubmitterError("data_missing", "absent needs its ratings.", "Fetch them.")
    rating(
        monkeypatch,
        RatedBenchmark(rated_answers({**MEANS, NASTY: 1.5})),
        RatedBenchmark(missing, "absent"),
    )
    store = filled()
    sets = {**prompt_sets(), RATED: rated_set(), "missing": rated_set("absent", "missing"),
            "simulated": rated_set("", "simulated", simulated=True)}  # fmt: skip
    return replace(context_of(store), models=ModelReader(store, sets, None))


def shown(context: Context, **params: str) -> str:
    return answer(context, ModelsQuery.from_params(params))


def part(page: str) -> str:
    """The section on people's ratings; empty where there is none."""
    found = re.search(r'<section[^>]*id="people".*?</section>', page, re.DOTALL)
    return found.group() if found else ""


def rows(html: str) -> list[list[str]]:
    """Name and cells of each row of the first table's body, without tags."""
    [body, *_] = re.findall(r"<tbody>(.*?)</tbody>", html, re.DOTALL)
    return [
        [" ".join(re.sub(r"<[^>]+>", " ", cell).split())
         for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    ]  # fmt: skip


@pytest.mark.slow
def test_models_stand_in_tiers_with_mean_interval_and_rank_range(context: Context) -> None:
    found = rows(part(shown(context, set=RATED)))
    assert [row[0] for row in found[::2]] == ["Tier 1", "Tier 2", "Tier 3", "Tier 4"]
    assert [row[0] for row in found[1::2]] == ["high", "middle", "low", "&lt;img src=x&gt;"]
    assert context.models is not None
    [board] = people_boards(context.models.prompt_sets[RATED], None)
    for row, (place, mean) in zip(
        found[1::2], enumerate(board.overall.means.values(), 1), strict=True
    ):
        assert row[1] == f"{mean.value:.2f} [{mean.ci_low:.2f}, {mean.ci_high:.2f}] {place}"
        assert len(row) == 1 + len(board.skills)


def test_source_and_licence_stand_with_the_ratings_and_no_metric_does(context: Context) -> None:
    html = part(shown(context, set=RATED))
    assert "Rated images" in html and "CC BY 4.0" in html and "arxiv.org/abs/2406.13743" in html
    assert "VQAScore" not in html
    assert f"./v1/models/{RATED}/ratings?format=csv" in html
    assert f"./v1/models/{RATED}/ratings/pairs?format=csv" in html


def test_each_two_models_are_tested(context: Context) -> None:
    html = part(shown(context, set=RATED))
    assert len(rows(html[html.index("<details") :])) == 4 * 3 / 2


def test_where_no_two_models_differ_nothing_is_coloured_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = rated_answers({"one": 3.0, "two": 3.0})
    answers.ratings[:] = 3.0
    rating(monkeypatch, RatedBenchmark(answers))
    html = people_section(people_boards(rated_set(), None))
    assert "--t:0%" in html and not re.search(r"--t:[1-9]", html)
    assert html.count(">n.s.<") == 3  # the overall column and both skills
    assert "no other is significantly below it" in html


def test_too_few_prompts_are_told_in_the_head_of_the_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rating(monkeypatch, RatedBenchmark(rated_answers(MEANS, counting=5)))
    html = people_section(people_boards(rated_set(), None))
    assert html.count(">no order<") == 1
    assert [row[-1].split()[-1] for row in rows(html)[1::2]] == ["–"] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prompt_set", "there"), [(RATED, True), ("missing", True), (SET, False), ("simulated", False)]
)
def test_a_set_has_the_section_only_where_people_rated(
    context: Context, prompt_set: str, *, there: bool
) -> None:
    assert bool(part(shown(context, set=prompt_set))) is there


def test_ratings_that_are_not_at_hand_leave_the_reason(context: Context) -> None:
    html = part(shown(context, set="missing"))
    assert "absent needs its ratings." in html and "Fetch them." in html and "<table" not in html


@pytest.mark.slow
def test_the_page_opens_with_a_real_set_and_simulated_ones_are_a_group_of_the_chooser(
    context: Context,
) -> None:
    page = shown(context)
    options = re.search(r'<select name="set".*?</select>', page, re.DOTALL)
    assert options is not None
    real, simulated = options.group().split("<optgroup")
    assert re.findall(r'value="([^"]+)"', real)[:2] == [SET, RATED]
    assert "Try it yourself (simulated)" in simulated
    assert re.findall(r'value="([^"]+)"', simulated) == ["simulated"]
    assert re.findall(r'value="([^"]+)" selected', real) == [SET]


@pytest.mark.slow
def test_the_first_page_shows_the_first_rated_set_and_leads_to_its_models(
    context: Context,
) -> None:
    html = first_page_section(context.models)
    assert [row[0] for row in rows(html)[1::2]][:3] == ["high", "middle", "low"]
    assert f'href="./models?set={RATED}#people"' in html


@pytest.mark.slow
def test_without_ratings_the_first_page_has_no_such_section() -> None:
    store = filled(1)
    assert first_page_section(None) == ""
    assert first_page_section(ModelReader(store, prompt_sets(), None)) == ""
