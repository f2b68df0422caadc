"""Pages of the models: the place with its views, its tables, and one model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.families.rating import RatingAnswers
from benchmarks.rethinking.measures import MetricScores, stability
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.api.source import Source
from leaderboard.api.tables.models import ModelsParameters, models
from leaderboard.models.board_types import (
    BoardQuery,
    Judge,
    Mean,
    ModelBoard,
    ModelSummary,
    PairMatrix,
    PairTest,
    SkillBoard,
)
from leaderboard.models.people import PeopleBoard, people_boards
from leaderboard.models.reading import ModelReader
from leaderboard.records import ModelCard
from leaderboard.store.interface import Store
from leaderboard.views.models import PER_PAGE, VIEWS, ModelQuery, ModelsQuery, PlaceQuery
from leaderboard.votes.results import VoteResults
from leaderboard.votes.revisions import revision_folder
from leaderboard.web.components import HeatCell
from leaderboard.web.model_detail import command, model_html
from leaderboard.web.model_parts import (
    MOST_MODELS,
    MOST_PAIRED,
    HeatTable,
    Ranks,
    bump_of,
    dominance,
    fine_percent,
    model_matrix,
    p_value,
    parameters,
    people_table,
    skill_table,
    stability_tag,
    tags_of,
    taken,
    whole_percent,
)
from leaderboard.web.model_place import DECIDING, place_html
from leaderboard.web.page import Context, all_pages
from leaderboard.web.page_metadata import PageMetadata, metadata_of
from tests.kit.boards import keep
from tests.kit.html import Node, named, parse
from tests.kit.store import memory_store
from tests.leaderboard.golden.samples import VOTE_RESULTS
from tests.leaderboard.models import made_up_ratings
from tests.leaderboard.views import model_track as track
from tests.leaderboard.web.skills_fixture import NASTY, fill

MEANS = {"low": 2.0, "middle": 3.0, "high": 4.0}


@pytest.fixture(scope="module")
def context() -> Context:
    return track.context_of(track.filled())


def html(context: Context, **params: str) -> str:
    query = PlaceQuery.from_params(params)
    return place_html(query, context.model_reader, context.reader.view())[0]


def shown(context: Context, **params: str) -> Node:
    found = html(context, **params)
    page = parse(found)
    named(page)
    assert len(page.all("h1")) == 1
    return page


def described(path: str, params: dict[str, str], source: Source) -> PageMetadata:
    return metadata_of(next(page for page in all_pages() if page.path == path), params, source)


# All views.


@pytest.mark.first_quick
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_its_tab_its_controls_and_the_verdict_of_a_chosen_metric(
    context: Context, view: str
) -> None:
    for judge in ("", track.JUDGES[2]):
        page = shown(context, view=view, judge=judge)
        # Votes are people's, whichever metric is chosen.
        assert ("not qualified" in page.one("h1").text) is (bool(judge) and view != "votes")
        tabs = page.all(".as-tabs a")
        assert [tab["aria-selected"] for tab in tabs].index("true") == VIEWS.index(view)
        links = [parse_qs(urlsplit(tab["href"]).query) for tab in tabs]
        assert [link.get("view", ["skills"])[0] for link in links] == [*VIEWS]
        assert page.all("form[data-go]") and page.all("select[name=set]")


def test_the_title_and_the_exact_state_name_what_is_shown(context: Context) -> None:
    assert context.models is not None
    view = context.reader.view()

    def state(**params: str) -> tuple[str, str]:
        asked = PlaceQuery.from_params(params)
        _, exact, title = place_html(asked, context.models, view)  # type: ignore[arg-type]
        return exact.query, title

    assert state() == ("", "Models on Made-up prompts")
    assert state(view="seeds")[1].startswith("Seeds: ")
    assert state(set=NASTY, page="7", sort="-count")[0] == f"?set={track.SET}&sort=-count"
    assert state(view="two", a=NASTY)[0] == f"?view=two&a={track.IDS[0]}&b={track.IDS[1]}"
    titles = {state(view=one)[1] for one in VIEWS}
    assert len(titles) == len(VIEWS)


@pytest.mark.parametrize("view", VIEWS)
def test_without_models_or_prompts_each_view_leads_to_what_there_is(
    context: Context, view: str
) -> None:
    page = shown(context, set=track.EMPTY, view=view)
    assert page.all(".as-empty") and not page.all("#board")
    if view in ("skills", "gallery", "seeds", "two"):
        assert f"--benchmark {track.EMPTY}" in page and "./submit" in page.links()
    nothing = shown(context, view=view, words="nothing like it")
    bare = f"./models?set={track.SET}" + (f"&view={view}" if view != "skills" else "")
    assert any(link.startswith(bare) and "words" not in link for link in nothing.links())


def test_unscored_models_and_an_installation_without_sets_are_said() -> None:
    unscored = track.entry(0, "New").model_copy(update={"judges": {}})
    site = track.context_of(track.keep_models(fill(memory_store()), unscored))
    assert "./submit" in shown(site).links()
    assert "no prompt sets" in shown(replace(site, models=None))
    assert "One model only" in shown(track.context_of(track.filled(1)), view="two")


# Skills.


def test_the_skills_view_has_every_part_with_models_in_order_leading_to_their_images(
    context: Context,
) -> None:
    page = shown(context)
    for part in ("board", "disagreements", "facts", "as-published", "cite"):
        assert page.all(f"#{part}"), part
    rows = [link for row in page.one("#board").all("tbody tr") for link in row.links("./model?id=")]
    assert list(dict.fromkeys(re.findall(r"drawn-\d+", " ".join(rows)))) == list(track.IDS)
    assert any(f"id={track.IDS[0]}&skill=count&judge={track.JUDGES[0]}" in link for link in rows)
    (link,) = shown(context, words="cup", seed="1").one("#disagreements").links("./models?set")
    assert f"a={track.IDS[0]}&b={track.IDS[1]}" in link and "skill=count&words=cup" in link
    assert f"./v1/models/{track.SET}?format=csv" in page.links()


def test_the_judge_of_the_sets_authors_stands_beside_its_revision_and_licence(
    context: Context,
) -> None:
    about = shown(context).one("#cite").text
    assert f"judge {track.OWN_JUDGE.title}. Built-in metrics: bvqa. {track.OWN_JUDGE.note}" in about


def test_a_filter_keeps_the_chosen_models_is_a_chip_and_goes_into_the_address_of_the_data(
    context: Context,
) -> None:
    models = ",".join(track.IDS[:3])
    page = shown(context, words="box", split="real", seed="2", judge=track.JUDGES[2], models=models)
    assert len(page.texts(".as-fchip")) == 5
    assert "Easel Turbo" not in page.one("#board").one("table")
    data = next(one for one in page.one("#board").links("./v1/") if "words=box" in one)
    asked = parse_qs(urlsplit(data).query)
    assert [asked[name] for name in ("split", "seed", "judge", "models", "among")] == [
        ["real"], ["2"], [track.JUDGES[2]], [models], ["all"],
    ]  # fmt: skip


def test_a_skill_opens_to_its_sub_skills_and_back(context: Context) -> None:
    assert any(link.endswith("skill=count") for link in shown(context).links("./models?"))
    inside = shown(context, skill="count")
    assert any("few" in head for head in inside.texts("#board thead th"))
    assert f"./models?set={track.SET}" in inside.links()


def test_tests_inside_a_choice_are_asked_for_and_marked_as_chosen_after_seeing_the_data(
    context: Context,
) -> None:
    chosen = shown(context, models=",".join(track.IDS[:3]))
    assert "Ranks, tiers and tests are of all 5 models." in chosen
    assert "Chosen after seeing the data." not in chosen
    (link,) = [one for one in chosen.links() if "alone=1" in one]
    alone = shown(context, **{k: v[0] for k, v in parse_qs(urlsplit(link).query).items()})
    assert "Chosen after seeing the data." in alone
    assert "Chosen after seeing the data." in shown(context, words="box")
    agreed = shown(
        context, models=f"{track.IDS[0]},{track.IDS[3]}", alone="1"
    )  # On these metrics agree.
    assert not agreed.one("#disagreements").links()


@pytest.mark.slow
def test_models_of_an_earlier_revision_are_named_apart_and_very_many_are_cut() -> None:
    old = track.entry(3, "Old one")
    old = old.model_copy(update={"images": old.images.model_copy(update={"revision": "2023"})})
    page = shown(
        track.context_of(
            track.keep_models(track.filled(2), track.entry(0, "Aurora"), track.entry(1, "B"), old)
        )
    )
    assert "Left out" in page and "Old one" in page
    many = shown(track.context_of(track.fill_models(fill(memory_store()), 50)), words="box")
    assert len(many.one("#board").names) >= 50


# People's ratings, apart from metrics, with their sources.


@pytest.fixture
def rated(monkeypatch: pytest.MonkeyPatch, context: Context) -> Context:
    """Real ratings of one set, submitted models of another, and a set whose ratings are absent."""
    missing = SubmitterError("data_missing", "absent needs its ratings.", "Fetch them.")
    people = made_up_ratings.RatedBenchmark(
        made_up_ratings.rated_answers({**MEANS, "<img src=x>": 1.5})
    )
    made_up_ratings.rating(monkeypatch, people, made_up_ratings.RatedBenchmark(missing, "absent"))
    sets = {**track.prompt_sets(), made_up_ratings.RATED: made_up_ratings.rated_set(), "missing": made_up_ratings.rated_set("absent", "missing"),
            "simulated": made_up_ratings.rated_set("", "simulated", simulated=True)}  # fmt: skip
    assert context.models is not None
    return replace(context, models=ModelReader(context.store, sets, None))


def test_people_rate_apart_from_metrics_with_tests_source_and_licence(rated: Context) -> None:
    part = shown(rated, set=made_up_ratings.RATED).one("#people")
    assert "CC BY 4.0" in part and "VQAScore" not in part
    assert "https://arxiv.org/abs/2406.13743" in part.links()
    for kind in ("", "/pairs"):
        assert f"./v1/models/{made_up_ratings.RATED}/ratings{kind}?format=csv" in part.links()
    assert len(part.one("details").rows) == 4 * 3 / 2  # Each two are tested.
    missing = shown(rated, set="missing").one("#people")  # Not at hand: the reason, what to do.
    assert "absent needs" in missing and "Fetch" in missing and not missing.all("table")
    assert not shown(rated, set=track.SET).all("#people")
    assert "simulated" in shown(rated, set="simulated").one("[role=note]")


# Gallery.


def test_the_gallery_has_a_prompt_for_each_skill_and_leads_to_all_its_images(
    context: Context,
) -> None:
    page = shown(context, view="gallery")
    cases = page.all("#gallery article")
    assert [case.all("img") != [] for case in cases] == [True] * 4
    for case in cases:
        assert len(case.all(".as-tile")) == 5 and case.links("./models?view=prompt&prompt=")
        assert {image["loading"] for image in case.all("img")} == {"lazy"}
        assert "Image not available" in case  # Three of the five published none.
    nothing = shown(context, view="gallery", models=",".join(track.IDS[2:]))
    assert "No images to show." in nothing and not nothing.all(".as-tile")
    paged = shown(context, view="gallery", skill="count")
    assert any("page=2" in link for link in paged.links())


# Two models, one prompt, seeds, judges.


def test_two_models_that_metrics_order_in_opposite_ways_get_both_verdicts(context: Context) -> None:
    page = shown(context, view="two", skill="count", a=track.IDS[0], b=track.IDS[1])
    said = page.one(".as-two-said").text
    assert "By BLIP2-ITM 1.1 Aurora XL 0.1 is significantly better" in said
    assert "by VQAScore 1.0 Brush 3 is" in said
    assert len(page.one("#deciding").all("article")) > DECIDING
    assert page.all("#matrix td a") and page.all("#tests table")
    assert "No metric is qualified" in shown(context, view="two", skill="lang").one("h1")


def test_a_prompt_is_text_beside_the_images_of_all_models_best_first(context: Context) -> None:
    page = shown(context, view="prompt", prompt=track.HOSTILE_ID)
    assert "a cup <img" in page and "(Counting)" in page.one("[aria-label=Elements]")
    quoted = "v1/models/made_up_prompts/prompts/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D?"
    assert any(quoted in link for link in page.links())
    assert "not among" in shown(context, view="prompt", prompt="p001", skill="count")
    part = shown(context, view="prompt", prompt="p001", judge=track.JUDGES[1]).one("#images")
    assert len(part.all("article")) == 5 and "VQAScore 1.0" in part
    assert len(part.all(".as-tile")) == 2 * 3  # Of the two that published their images.
    means = [float(one) for one in re.findall(r"mean (0\.\d+)", part.text)]
    assert len(means) == 5 and means == sorted(means, reverse=True)


def test_every_metric_has_its_verdict_and_every_model_varies_over_its_seeds(
    context: Context,
) -> None:
    page = shown(context, view="seeds")
    table = page.one("#stability").one("table")
    assert len(table.rows) == 3 and "stable" in table and "0 of 10" in table
    assert len(page.all("#ranks svg path")) == 5
    assert len(page.all("#variation .as-seed-mean")) == 4 * 3 + 2
    few = shown(context, view="seeds", judge=track.JUDGES[2], skill="spatial")
    assert "not stable" in few.one("#ranks")
    assert "not known" in shown(track.context_of(track.filled(1)), view="seeds")


# What others show of the place.


def test_a_link_to_the_place_is_described_by_its_verdict_its_two_models_or_its_prompt() -> None:
    source = track.source_of(track.filled())
    assert "significantly better" in described("models", {}, source).description
    two = described("models", {"view": "two", "a": track.IDS[0], "b": track.IDS[1]}, source)
    assert "Aurora XL" in two.title and "Brush 3" in two.title
    assert "red cups" in described("models", {"view": "prompt", "prompt": "p001"}, source).title
    empty = described("models", {"set": track.EMPTY}, source)
    assert "Unused prompts" in empty.title and not empty.lines


def model(context: Context, submission_id: str = track.IDS[0], **params: str) -> Node:
    query = ModelQuery.from_params({"id": submission_id, **params})
    assert context.models is not None
    html, _, _ = model_html(query, context.models, context.reader.view())
    page = parse(html)
    named(page)
    assert len(page.all("h1")) == 1
    return page


@pytest.mark.parametrize("submission_id", track.IDS)
def test_every_model_has_every_part(context: Context, submission_id: str) -> None:
    page = model(context, submission_id)
    for part in ("card", "means", "seeds", "images", "runs", "again"):
        assert page.all(f"#{part}"), part


def test_a_model_has_means_with_intervals_by_each_judge_its_runs_and_shared_images(
    context: Context,
) -> None:
    page = model(context)
    assert "Rank 1 of 5 models" in page and "better than 4" in page
    table = page.one("#means").one("table")
    assert table.texts("span.as-good") == ["judges"] * 6
    assert any(cell.text.startswith("0.785 [0.") for cell in table.all("td"))
    assert len(page.one("#seeds").all(".as-seed-mean")) == 3
    for words in ("own network namespace", "3.0 GiB", "0.0021", "unreadable_image: 1", "failed"):
        assert words in page.one("#runs"), words
    shared = model(context, track.IDS[3])
    assert "17 images" in shared and "p001 seed 40" in shared


def test_images_are_paged_ordered_and_filtered(context: Context) -> None:
    def prompts(**params: str) -> list[str]:
        return model(context, **params).one("#images").texts("code.as-ident")

    assert len(prompts()) == PER_PAGE
    assert f"Page 1 of {track.N_PROMPTS // PER_PAGE}" in model(context)
    orders = [prompts(order=order) for order in ("", "best", "set")]
    assert orders[0] != orders[1] and orders[2][:2] == ["p000", "p001"]
    assert prompts(order="set", page="99")[-1] == track.HOSTILE_ID
    last = model(context, order="set", page="99")
    address = "./v1/generations/drawn-00000/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D/40?w=320"
    assert address in [image["src"] for image in last.all("img")]
    some = model(context, skill="count", words="8 red", judge=track.JUDGES[1])
    assert 0 < len(some.all("#images article")) < PER_PAGE
    assert not prompts(words="nothing like it")
    assert "Images not available" in model(context, track.IDS[4])


@pytest.mark.parametrize("submission_id", ["", "nobody", NASTY, "x" * 500])
def test_a_model_that_is_not_there_leads_to_those_that_are(
    context: Context, submission_id: str
) -> None:
    page = model(context, submission_id)
    assert len(page.links("./model?id=drawn-")) == len(track.IDS)
    assert ("no model" in page) is bool(submission_id)


def test_a_model_of_another_revision_or_set_stands_on_no_board_and_says_so() -> None:
    own = track.entry(0, "Old one")
    for update in ({"revision": "2023"}, {"prompt_set": "elsewhere"}):
        changed = own.model_copy(update={"images": own.images.model_copy(update=update)})
        page = model(track.context_of(track.keep_models(track.filled(1), changed)))
        assert "Old one" in page and not page.all("#means")
        assert "no board" in page or "not known" in page
        assert track.EMPTY not in page


def test_a_metric_that_was_taken_off_the_boards_is_named_nowhere() -> None:
    own = track.entry(0, "Aurora")
    gone = next(iter(own.judges.values())).model_copy(update={"metric": "gone-metric"})
    judges = {**own.judges, "gone-0001/gone-metric": gone}
    store = track.keep_models(track.filled(), own.model_copy(update={"judges": judges}))
    page = model(track.context_of(store))
    assert page.all("#runs") and "gone-metric" not in page
    head = described("model", {"id": track.IDS[0]}, track.source_of(store))
    assert "3 metrics" in head.description
    (row,) = models(track.source_of(store), ModelsParameters()).rows
    assert row["n_judges"] == 3


NAN = math.nan
JUDGE = Judge("m/One", "One 1.0", trusted=True)
OTHER = Judge(f"m/{NASTY}", NASTY, trusted=False)


def standing(place: int, **more: Any) -> ModelSummary:
    mean = Mean(0.8 - 0.1 * place, 0.7, 0.9, n_prompts=40, n_missing=place)
    better = frozenset({f"drawn-{place + 1:05d}"})
    given = more or {"rank_low": place + 1, "rank_high": place + 2, "tier": place + 1}
    return ModelSummary(f"drawn-{place:05d}", {JUDGE.entry_id: mean}, better, **given)


def skill(key: str | None, n: int = 3, **more: Any) -> SkillBoard:
    standings = {f"drawn-{k:05d}": standing(k) for k in range(n)}
    made = SkillBoard(key, f"Of {key}", 40, (JUDGE, OTHER), JUDGE.entry_id, standings)
    return replace(made, **more)


def board(*skills: SkillBoard, n: int = 3) -> ModelBoard:
    entries = {f"drawn-{k:05d}": track.entry(k, f"Model {k}") for k in range(n)}
    return ModelBoard(
        BoardQuery(track.SET), entries, {one.skill: one for one in skills}, "The rule."
    )


def cells(made: ModelBoard, **params: Any) -> list[list[HeatCell]]:
    table = skill_table(made, **params)
    return [list(row.cells) for _, rows in table.groups for row in rows]


# Skills.


def test_a_cell_has_the_mean_its_rank_range_and_all_that_it_rests_on() -> None:
    same = {
        f"drawn-{k:05d}": replace(standing(0), submission_id=f"drawn-{k:05d}") for k in range(3)
    }
    found = cells(board(skill(None), skill("count", standings=same)))
    assert [(round(row[0].value or 0, 3), row[0].small) for row in found] == [
        (0.8, "1–2"), (0.7, "2–3"), (0.6, "3–4"),
    ]  # fmt: skip
    assert [row[0].share for row in found] == pytest.approx([1, 0.5, 0])
    assert {row[1].share for row in found} == {0.5}  # Equal means, one colour.
    assert [row[0].best for row in found] == [True, False, False]
    for words in ("One 1.0: 0.700 [0.700, 0.900]", "n 40", "1 without a score", "better than 1"):
        assert words in found[1][0].hint
    assert "id=drawn-00001&skill=count&judge=m/One" in found[1][1].href


def test_rows_stand_in_tiers_until_a_column_sorts_them_and_a_choice_keeps_its_ranks() -> None:
    made = board(skill(None), skill("count"))
    in_tiers = skill_table(made)
    assert [tier.label for tier, _ in in_tiers.groups if tier] == ["Tier 1", "Tier 2", "Tier 3"]
    lowest = skill_table(made, "count")
    ((tier, rows),) = lowest.groups
    assert tier is None and [row.name[:7] for row in rows] == ["Model 2", "Model 1", "Model 0"]
    assert [one.sorted for one in lowest.columns] == ["", "", "ascending"]
    assert [one.sorted for one in skill_table(made, "-count").columns][2] == "descending"
    assert skill_table(made, "-nothing").groups == in_tiers.groups
    ((tier, (row,)),) = skill_table(made, "", ["drawn-00002"]).groups
    assert tier is not None and tier.label == "Tier 3" and row.cells[0].small == "3–4"


def test_no_order_is_hatched_and_who_lacks_a_rank_or_a_judge_has_the_reason() -> None:
    flat = {
        f"drawn-{k:05d}": replace(standing(k), better_than=frozenset(), worse_than=frozenset())
        for k in range(3)
    }
    unranked = {"drawn-00000": standing(0), "drawn-00001": standing(1, unranked=f"60 lack {NASTY}")}
    made = board(skill(None, standings=unranked), skill("lang", standings=flat))
    (first, second), (third, fourth), _ = cells(made)
    assert not first.unordered and "No two models" in second.unordered
    assert "60 lack" in third.unordered and "No two models" in fourth.unordered
    labels = [tier.label for tier, _ in skill_table(made).groups if tier]
    assert labels == ["Tier 1", "No rank"]
    nobody = board(skill("lang", lead=None, judges=(OTHER,), note="Nobody."))
    table = skill_table(nobody)
    assert "no qualified metric" in table.columns[1].note and table.columns[1].hint == "Nobody."
    assert {row[0].value for row in cells(nobody)} == {None}


def test_more_models_than_can_be_read_are_cut_and_counted() -> None:
    n = MOST_MODELS + 7
    table = skill_table(board(skill(None, n), n=n))
    assert sum(len(rows) for _, rows in table.groups) == MOST_MODELS and table.left == 7


def test_what_a_reader_must_know_of_the_images_is_a_tag() -> None:
    copied = track.entry(0, "Copy").model_copy(update={"same_content_as": ("drawn-00007",)})
    assert tags_of(track.entry(0, "Plain")) == ()
    for one, labels in ((track.entry(1, "Best"), ["best of 4"]), (track.entry(2, "Withheld"), ["2 withheld"]),
                        (track.entry(3, "Lacking"), ["shared images", "60 missing"]),
                        (copied, ["same content"])):  # fmt: skip
        assert [tag.label for tag in tags_of(one)] == labels
    best = taken(ModelCard(selection="best_of", best_of=4, selected_by=NASTY))
    assert best.startswith("best of 4 by <img") and "\u202e" not in best


@pytest.mark.parametrize(
    ("written", "values", "texts"),
    [
        (p_value, (0.04, 1e-9, 1.0, math.nan), [".040", "<.001", "1.000", "—"]),
        (whole_percent, (1.0, 0.305, None, math.nan), ["100%", "30%", "—", "—"]),
        (fine_percent, (0.123, 0.0123, 12.0), ["12%", "1.2%", "1200%"]),
        (parameters, (7, 860_000_000, 2_600_000_000, 12 * 10**12),
         ["7", "860\u00a0M", "2.6\u00a0B", "12\u00a0T"]),
    ],
)  # fmt: skip
def test_figures_of_models_are_short_and_hide_no_size(
    written: Callable[[Any], str], values: tuple[Any, ...], texts: list[str]
) -> None:
    assert [written(value) for value in values] == texts


def test_who_is_better_on_how_many_prompts_is_told_where_it_is_known() -> None:
    test = PairTest(
        track.JUDGES[0], None, 40, 1, 0.1, 0.05, 0.15, 3.0, 0.001, 0.01, 12.0, 0.002, 0.7, 0.2
    )
    assert dominance(test, "A", "B") == "A is better on 70%, B on 20%, equal on 10%"
    assert dominance(replace(test, dominance=NAN), "A", "B") == ""


# People's ratings.


def test_rated_models_stand_in_tiers_unless_people_see_no_difference_or_prompts_are_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of(answers: RatingAnswers) -> tuple[PeopleBoard, HeatTable]:
        made_up_ratings.rating(monkeypatch, made_up_ratings.RatedBenchmark(answers))
        (made,) = people_boards(made_up_ratings.rated_set(), None)
        return made, people_table(made)

    made, table = of(made_up_ratings.rated_answers({**MEANS, "<img src=x>": 1.5}))
    assert [(tier.label, [row.name for row in rows]) for tier, rows in table.groups if tier] == [
        ("Tier 1", ["high"]), ("Tier 2", ["middle"]), ("Tier 3", ["low"]), ("Tier 4", ["<img src=x>"])
    ]  # fmt: skip
    for (_, (row,)), mean in zip(table.groups, made.overall.means.values(), strict=True):
        assert row.cells[0].value == mean.value and len(row.cells) == len(made.skills)
    answers = made_up_ratings.rated_answers({"one": 3.0, "two": 3.0})
    _, table = of(made_up_ratings.rated_again(answers, np.full((240, 3), 3.0)))
    assert all(cell.unordered for _, rows in table.groups for row in rows for cell in row.cells)
    _, table = of(made_up_ratings.rated_answers({"a": 2.0, "b": 4.0}, counting=5))
    orders = [column.note.endswith("no order") for column in table.columns[1:]]
    assert orders == [False, False, True]


# Two models.


def matrix(n: int, **query: Any) -> Any:
    shares = np.full((n, n), 0.6)
    shares[np.tril_indices(n)] = 0.3
    p = np.full((n, n), 0.001)
    p[0, n - 1] = p[n - 1, 0] = np.nan
    np.fill_diagonal(p, np.nan)
    ids = tuple(f"drawn-{k:05d}" for k in range(n))
    made = PairMatrix(track.JUDGES[0], None, ids, shares, np.full((n, n), 0.1), p, p)
    entries = {ident: track.entry(k, NASTY) for k, ident in enumerate(ids)}
    return model_matrix(made, entries, PlaceQuery(ModelsQuery(track.SET, **query)))


def test_the_matrix_has_shares_above_and_p_values_below_the_diagonal_and_is_cut() -> None:
    found = matrix(3, skill="count")
    shown = [[cell.shown for cell in row] for row in found["cells"]]
    assert [row[k + 1 :] for k, row in enumerate(shown)] == [["60%*", "60%"], ["60%*"], []]
    assert [row[:k] for k, row in enumerate(shown)] == [[], [".001*"], [p_value(NAN), ".001*"]]
    assert found["cells"][0][1].state == "is-sig" and found["cells"][0][2].state == "is-ns"
    assert "view=two&skill=count&a=drawn-00000&b=drawn-00001" in found["cells"][0][1].href
    assert matrix(1) is None
    large = matrix(MOST_PAIRED + 5)
    assert len(large["cells"]) == MOST_PAIRED and large["left"] == 5


# Seeds.


RANKS: Ranks = {
    "a": [(1, 0.9), (2, 0.7)], "b": [(2, 0.8), (1, 0.8)], "c": [(None, NAN), (3, 0.1)],
    "d": [(None, NAN), (None, NAN)],
}  # fmt: skip
TWO = ("Seed no. 1", "Seed no. 2")


def test_lines_cross_where_ranks_change() -> None:
    chart = bump_of(RANKS, {"a": NASTY}, TWO, "One")
    assert chart is not None and "2 models" in chart.summary
    assert [tuple(line.values) for line in chart.lines] == [(1, 2), (2, 1), (None, 3)]
    assert (chart.scale.low, chart.scale.high) == (1, 3) and chart.lines[0].name == NASTY
    assert bump_of({"a": [(1, 0.9)]}, {}, TWO[:1], "One") is None
    assert bump_of({"d": RANKS["d"]}, {}, TWO, "One") is None
    many: Ranks = {f"m{k}": [(k + 1, 0.5)] * 2 for k in range(MOST_PAIRED + 9)}
    chart = bump_of(many, {}, TWO, "One")
    assert chart is not None and len(chart.lines) == MOST_PAIRED


@pytest.mark.parametrize(
    ("means", "said"),
    [([[0.5, 0.5], [0.4, 0.4]], "no order"), ([[0.5, 0.4], [0.5, 0.4]], "stable"),
     ([[0.5, 0.4], [0.4, 0.5]], "not stable")],
)  # fmt: skip
def test_an_order_is_called_stable_only_where_models_differ_and_keep_it(
    means: list[list[float]], said: str
) -> None:
    scores = np.array(means)[:, :, None].repeat(9, axis=2)
    prompts = tuple(f"p{i}" for i in range(9))
    table = MetricScores("m", ("a", "b"), ("1", "2"), prompts, scores, scores)
    found = stability(table, ResamplingPlan(prompts, seed=7, n_resamples=50))
    assert stability_tag(found).label == said and stability_tag(None).label == "not known"


# Images and commands.


def test_a_command_generates_the_images_again_and_a_shell_can_take_nothing_amiss() -> None:
    card = track.prompt_sets()[track.SET].card
    known = command(track.entry(0, "Aurora"), card)
    for words in ("--model someone/model", "--seeds 40,41,42", f"--revision {'0' * 40}"):
        assert words in known
    for name in ("a/b; rm -rf ~", "--help/x", "a/b\nrm", "$(x)/y", "`x`/y", NASTY, "a/b c"):
        hostile = track.entry(0, "A").model_copy(
            update={"card": ModelCard(model=name, revision=name)}
        )
        assert command(hostile, card) == f"python -m benchmarks prompts {track.SET}"


def keep_votes(store: Store, prompt_set: str, *updates: Mapping[str, object]) -> None:
    """Publish a revision of votes with a model for each of these updates."""
    results = VoteResults.model_validate(VOTE_RESULTS)
    models = tuple(results.models[0].model_copy(update=update) for update in updates)
    results = results.model_copy(update={"prompt_set": prompt_set, "models": models})
    path = f"{revision_folder(prompt_set, 1)}board.json"
    keep(store, {path: results.model_dump_json().encode()})


@pytest.mark.slow
def test_votes_stand_beside_the_ranks_by_metrics_once_a_revision_is_published() -> None:
    store = track.filled()
    assert "No votes" in html(track.context_of(store), set=track.SET, view="votes")
    keep_votes(
        store, track.SET, *({"submission_id": i, "title": f"{NASTY} {i}"} for i in track.IDS[:2])
    )
    page = shown(track.context_of(store), set=track.SET, view="votes")
    rows = page.texts("#votes tbody tr")
    assert len(rows) == 2
    assert all("0.50 [0.25, 0.75]" in row and "1–2" in row for row in rows)
    left_out = page.one("#votes dl").text
    for words in ("1 careless rater with 9 votes", "1 banned rater with 5 votes",
                  "2 votes on models"):  # fmt: skip
        assert words in left_out


@pytest.mark.parametrize(
    ("ranks", "groups", "words"),
    [
        ([(1, 3), (1, 3), (1, 3)], (0, 0, 0), "no two of 3 models differ"),
        ([(1, 1), (2, 3), (2, 3)], (0, 0, 0), "significantly more than every other model"),
        ([(1, 2), (1, 3), (2, 3)], (0, 0, 0), "1 of the 2 others not significantly less"),
        ([(1, 1), (2, 2), (1, 1)], (0, 0, 1), "no common order"),
    ],
)
def test_the_tab_begins_with_a_set_that_has_votes_and_its_verdict_says_what_the_tests_say(
    ranks: list[tuple[int, int]], groups: tuple[int, ...], words: str
) -> None:
    store = track.filled()
    keep_votes(store, track.EMPTY, *(
        {"submission_id": f"m-{i}", "rank": i + 1, "rank_low": low, "rank_high": high, "group": group}
        for i, ((low, high), group) in enumerate(zip(ranks, groups, strict=True))
    ))  # fmt: skip
    assert words in shown(track.context_of(store), view="votes").one("h1").text
    metadata = described("models", {"view": "votes"}, track.source_of(store))
    assert words in metadata.description
    assert metadata.title.endswith(track.prompt_sets()[track.EMPTY].card.title)
