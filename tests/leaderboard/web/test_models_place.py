"""The place of models as it is read: verdict, views, filters, sources, and words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.models.reading import ModelReader
from leaderboard.store.memory import memory_store
from leaderboard.views.model_place import DECIDING
from leaderboard.views.models import VIEWS, PlaceQuery
from leaderboard.web.heads.of_models import models_head
from leaderboard.web.middleware import redirected
from leaderboard.web.model_place import place_html
from leaderboard.web.page import Context
from tests.leaderboard.models.made_up_ratings import (
    RATED,
    RatedBenchmark,
    rated_answers,
    rated_set,
    rating,
)
from tests.leaderboard.views.model_track import (
    EMPTY,
    HOSTILE_ID,
    IDS,
    JUDGES,
    N_PROMPTS,
    SET,
    context_of,
    entry,
    fill_models,
    filled,
    keep_models,
    prompt_sets,
    source_of,
)
from tests.leaderboard.web.parsed import Node, harmless, named, read
from tests.leaderboard.web.skills_fixture import NASTY, fill

OLD_WORDS = re.compile(
    r"earned|told apart|a guess|drawn by|\bdrew\b|for the curious|whoever|stranger|\d %|nobody trusted"
    r"|What is known|duplicate pair_id"
)
MEANS = {"low": 2.0, "middle": 3.0, "high": 4.0}
Show = Callable[..., Node]


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def html(context: Context, **params: str) -> str:
    reader = context.models or ModelReader(context.store, {}, None)
    return place_html(PlaceQuery.from_params(params), reader, context.reader.view())[0]


def shown(context: Context, **params: str) -> Node:
    found = html(context, **params)
    harmless(found)
    page = read(found)
    named(page)
    assert len(page.all("h1")) == 1
    return page


# All views.


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("judge", ["", JUDGES[2]])
def test_every_view_has_the_verdict_the_views_and_the_words_of_the_field(
    context: Context, view: str, judge: str
) -> None:
    page = shown(context, view=view, judge=judge)
    said = page.one("h1").text
    assert "significantly better" in said and ("not qualified" in said) is bool(judge)
    tabs = page.all(".as-tabs a")
    assert [tab["aria-selected"] for tab in tabs].index("true") == VIEWS.index(view)
    assert all(tab["data-go"] and "data-push" in tab.attrs for tab in tabs)
    assert [parse_qs(urlsplit(tab["href"]).query).get("view", ["skills"])[0] for tab in tabs] == [
        *VIEWS
    ]
    assert page.all("form[data-go]") and page.all("select[name=set]")
    assert not OLD_WORDS.findall(page.told), OLD_WORDS.findall(page.told)


def test_the_title_and_the_exact_state_name_what_is_shown(context: Context) -> None:
    assert context.models is not None
    view = context.reader.view()

    def state(**params: str) -> tuple[str, str]:
        asked = PlaceQuery.from_params(params)
        _, exact, title = place_html(asked, context.models, view)  # type: ignore[arg-type]
        return exact.query, title

    assert state() == ("", "Models on Made-up prompts")
    assert state(view="seeds")[1].startswith("Seeds: ")
    assert state(set=NASTY, page="7", sort="-count")[0] == f"?set={SET}&sort=-count"
    assert state(view="two", a=NASTY)[0] == f"?view=two&a={IDS[0]}&b={IDS[1]}"
    titles = {state(view=one)[1] for one in VIEWS}
    assert len(titles) == len(VIEWS)


@pytest.mark.parametrize("view", VIEWS)
def test_without_models_scores_prompts_or_sets_it_says_what_there_is(
    context: Context, view: str
) -> None:
    page = shown(context, set=EMPTY, view=view)
    assert "No model has been submitted" in page.one("h1") and page.all(".as-empty")
    if view in ("skills", "gallery", "seeds", "two"):
        assert f"--benchmark {EMPTY}" in page and "./submit" in page.links()
    nothing = shown(context, view=view, words="nothing like it")
    assert "left by these filters" in nothing.one("h1")
    bare = f"./models?set={SET}" + (f"&view={view}" if view != "skills" else "")
    assert any(link.startswith(bare) and "words" not in link for link in nothing.links())


def test_unscored_models_and_an_installation_without_sets_are_said() -> None:
    unscored = entry(0, "New").model_copy(update={"judges": {}})
    store = keep_models(fill(memory_store()), unscored)
    page = shown(context_of(store))
    assert "scored" in page.one("h1") and "./submit" in page.links()
    assert "no prompt sets" in shown(replace(context_of(store), models=None))
    alone = shown(context_of(filled(1)), view="two")
    assert "One model only" in alone


# Skills.


def test_the_skills_view_has_every_part_with_models_in_order_leading_to_their_images(
    context: Context,
) -> None:
    page = shown(context)
    for part in ("board", "disagreements", "facts", "as-published", "cite"):
        assert page.all(f"#{part}"), part
    assert any("gnp.exe" in name for name in page.names)
    rows = [link for row in page.one("#board").all("tbody tr") for link in row.links("./model?id=")]
    assert list(dict.fromkeys(re.findall(r"drawn-\d+", " ".join(rows)))) == list(IDS)
    assert any(f"id={IDS[0]}&skill=count&judge={JUDGES[0]}" in link for link in rows)
    assert f"./v1/models/{SET}?format=csv" in page.links()
    assert SET in page.one("#cite").one("pre")  # A way to cite the board.


def test_a_skill_opens_to_its_sub_skills_and_back(context: Context) -> None:
    assert f"./models?set={SET}&skill=count" in [
        link.replace("./models?skill", f"./models?set={SET}&skill")
        for link in shown(context).links()
    ]
    inside = shown(context, skill="count")
    heads = inside.texts("#board thead th")
    assert any("few" in head for head in heads) and any("+1" in head for head in heads)
    assert f"./models?set={SET}" in inside.links()
    alone = shown(context, skill="count", judge=JUDGES[2]).texts("#board thead th")
    assert not any("+1" in head for head in alone)


def test_filters_are_told_and_each_can_be_taken_back(context: Context) -> None:
    models = ",".join(IDS[:3])
    page = shown(context, words="box", split="real", seed="2", judge=JUDGES[2], models=models)
    chips = page.texts(".as-fchip")
    for said in ("split: Real", "words: box", "only CLIPScore 1.4", "seed no. 2", "3 of 5 models"):
        assert any(said in chip for chip in chips), said
    assert "Easel Turbo" not in page.one("#board").one("table")
    assert any(one.startswith(f"./v1/models/{SET}?split=real&words=box&judge=")
               for one in page.links("./v1/"))  # fmt: skip


def test_tests_inside_a_choice_are_asked_for_and_marked_as_chosen_after_seeing_the_data(
    context: Context,
) -> None:
    chosen = shown(context, models=",".join(IDS[:3]))
    assert "Ranks, tiers and tests are of all 5 models." in chosen
    assert "Chosen after seeing the data." not in chosen
    (link,) = [one for one in chosen.links() if "alone=1" in one]
    alone = shown(context, **{k: v[0] for k, v in parse_qs(urlsplit(link).query).items()})
    assert "Chosen after seeing the data." in alone
    assert "Chosen after seeing the data." in shown(context, words="box")


def test_disagreements_are_named_with_both_sides_and_lead_to_the_two(context: Context) -> None:
    part = shown(context, words="cup", seed="1").one("#disagreements")
    (link,) = part.links("./models?set")
    assert f"a={IDS[0]}&b={IDS[1]}" in link and "skill=count&words=cup&seed=1" in link
    assert "BLIP2-ITM 1.1" in part and "VQAScore 1.0" in part


@pytest.mark.slow
def test_models_of_an_earlier_revision_are_left_out_by_name() -> None:
    old = entry(3, "Old one")
    old = old.model_copy(update={"images": old.images.model_copy(update={"revision": "2023"})})
    page = shown(context_of(keep_models(filled(2), entry(0, "Aurora"), entry(1, "B"), old)))
    assert "Left out" in page and "Old one" in page


@pytest.mark.slow
def test_fifty_models_are_shown() -> None:
    page = shown(context_of(fill_models(fill(memory_store()), 50)), words="box")
    assert len(page.one("#board").names) >= 50


# People's ratings, apart from metrics, with their sources.


@pytest.fixture
def rated(monkeypatch: pytest.MonkeyPatch, context: Context) -> Context:
    """Real ratings of one set, submitted models of another, and a set whose ratings are absent."""
    missing = SubmitterError("data_missing", "absent needs its ratings.", "Fetch them.")
    people = RatedBenchmark(rated_answers({**MEANS, "<img src=x>": 1.5}))
    rating(monkeypatch, people, RatedBenchmark(missing, "absent"))
    sets = {**prompt_sets(), RATED: rated_set(), "missing": rated_set("absent", "missing"),
            "simulated": rated_set("", "simulated", simulated=True)}  # fmt: skip
    assert context.models is not None
    return replace(context, models=ModelReader(context.store, sets, None))


def test_people_rate_apart_from_metrics_with_tests_source_and_licence(rated: Context) -> None:
    page = shown(rated, set=RATED)
    assert "Rated by people" in page.one("h1") and "high" in page.one("h1")
    part = page.one("#people")
    for words in ("Rated images", "CC BY 4.0"):
        assert words in part
    assert "https://arxiv.org/abs/2406.13743" in part.links() and "VQAScore" not in part
    for kind in ("", "/pairs"):
        assert f"./v1/models/{RATED}/ratings{kind}?format=csv" in part.links()
    assert len(part.one("details").rows) == 4 * 3 / 2  # Each two are tested.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "there"), [(RATED, True), ("missing", True), (SET, False), ("simulated", False)]
)
def test_a_set_has_the_section_only_where_people_rated(
    rated: Context, name: str, *, there: bool
) -> None:
    parts = shown(rated, set=name).all("#people")
    assert bool(parts) is there
    if name == "missing":  # Not at hand: the reason, and what to do.
        assert "absent needs" in parts[0] and "Fetch" in parts[0] and not parts[0].all("table")


@pytest.mark.slow
def test_simulated_sets_are_a_group_of_the_chooser_and_the_first_page_leads_to_the_rated(
    rated: Context,
) -> None:
    chooser = shown(rated).one("select[name=set]")
    assert [one["value"] for one in chooser.one("optgroup").all("option")] == ["simulated"]
    assert [one["value"] for one in chooser.all("option")][:2] == [SET, RATED]
    assert [one["value"] for one in chooser.all("option[selected]")] == [SET]


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
    nothing = shown(context, view="gallery", models=",".join(IDS[2:]))
    assert "No images to show." in nothing and not nothing.all(".as-tile")
    paged = shown(context, view="gallery", skill="count")
    assert any("page=2" in link for link in paged.links())


# Two models, one prompt, seeds, judges.


def test_two_models_that_metrics_order_in_opposite_ways_get_both_verdicts(
    context: Context,
) -> None:
    page = shown(context, view="two", skill="count", a=IDS[0], b=IDS[1])
    said = page.one(".as-two-said").text
    assert "By BLIP2-ITM 1.1 Aurora XL 0.1 is significantly better" in said
    assert "by VQAScore 1.0 Brush 3 is" in said
    part = page.one("#deciding")
    assert len(part.all("article")) > DECIDING
    assert any("view=prompt&skill=count&prompt=" in link for link in part.links())
    assert page.all("#matrix td a") and page.all("#tests table")


def test_swapping_turns_the_signs(context: Context) -> None:
    there, back = (
        shown(context, view="two", a=a, b=b) for a, b in (IDS[:2], IDS[1::-1])
    )  # fmt: skip
    signs = [page.texts("td.as-difference b")[0] for page in (there, back)]
    assert signs[0][0] == "+" and signs[1] == signs[0].replace("+", "−")
    assert any(f"a={IDS[1]}&b={IDS[0]}" in link for link in there.links())
    links = shown(context, view="two", models=",".join(IDS[:3]), alone="1").links("./v1/models/")
    assert any("/pairs?" in link and f"models={','.join(IDS[:3])}" in link for link in links)
    assert {one["value"] for one in there.all("option[selected]")} >= set(IDS[:2])


def test_without_a_qualified_metric_two_models_get_no_verdict(context: Context) -> None:
    page = shown(context, view="two", skill="lang")
    assert "No metric is qualified" in page.one("h1")
    assert "No qualified metric has scored both" in page.one(".as-two-said")


@pytest.mark.slow
def test_a_prompt_shows_all_models_and_seeds_with_the_scores_of_one_metric(
    context: Context,
) -> None:
    page = shown(context, view="prompt", prompt="p001", judge=JUDGES[1])
    part = page.one("#images")
    assert len(part.all("article")) == 5 and "VQAScore 1.0" in part
    assert len(part.all(".as-tile")) == 2 * 3  # Of the two that published their images.
    means = [float(one) for one in re.findall(r"mean (0\.\d+)", part.text)]
    assert len(means) == 5 and means == sorted(means, reverse=True)
    assert f"Prompt 2 of {N_PROMPTS}" in page
    links = " ".join(page.links())
    assert all(one in links for one in ("prompts/p001?judge=", "prompt=p000", "prompt=p002"))
    assert "not among" in shown(context, view="prompt", prompt="p001", skill="count")


def test_a_hostile_prompt_and_its_elements_are_shown_as_they_are(context: Context) -> None:
    page = shown(context, view="prompt", prompt=HOSTILE_ID)
    assert "a cup <img" in page and "(Counting)" in page.one("[aria-label=Elements]")
    quoted = "v1/models/made_up_prompts/prompts/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D?"
    assert any(quoted in link for link in page.links())


def test_every_metric_has_its_verdict_and_every_model_varies_over_its_seeds(
    context: Context,
) -> None:
    page = shown(context, view="seeds")
    table = page.one("#stability").one("table")
    assert len(table.rows) == 3 and "stable" in table and "0 of 10" in table
    assert "2 seeds" in page and len(page.all("#ranks svg path")) == 5
    assert len(page.all("#variation .as-seed-mean")) == 4 * 3 + 2
    swapped = shown(context, view="seeds", judge=JUDGES[2]).one("#ranks")
    assert "not stable" in swapped and "1 seed" in swapped
    alone = shown(context_of(filled(1)), view="seeds")
    assert "not known" in alone and "Fewer than two" in alone


def test_judges_come_with_their_evidence_and_what_they_rest_on(context: Context) -> None:
    page = shown(context, view="judges")
    for part in ("judges", "one-pixel", "orderings"):
        assert page.all(f"#{part}"), part
    rows = page.one("#judges table").rows
    assert any(row["Judges"].text == "judges" for row in rows)
    assert page.one("#judges").links("./?tab=benchmark:")
    for words in ("tier 1", "chance", "speaks for it", "No qualified metric"):
        assert words in page.one("#judges"), words
    assert any(f"judge={JUDGES[2]}" in link for link in page.one("#judges").links("./models"))


# What others show of the place.


@pytest.mark.parametrize(
    ("path", "query", "to"),
    [("model-pair", "set=s&a=x&b=y&skill=count", {"set": "s", "view": "two", "a": "x", "b": "y", "skill": "count"}),
     ("seeds", "set=s&judge=m/x", {"set": "s", "view": "seeds", "judge": "m/x"}),
     ("prompt", "set=s&id=p%2F1&words=box", {"set": "s", "view": "prompt", "prompt": "p/1", "words": "box"}),
     ("seeds", "", {"view": "seeds"})],
)  # fmt: skip
def test_addresses_of_before_lead_to_their_view_with_their_state(
    path: str, query: str, to: dict[str, str]
) -> None:
    address = redirected(f"/{path}", query)
    assert address is not None and address.startswith("./models?")
    params = {name: value[0] for name, value in parse_qs(urlsplit(address).query).items()}
    assert params == to and PlaceQuery.from_params(params).view == to["view"]


def test_a_link_to_the_place_is_described_by_its_verdict_its_two_models_or_its_prompt() -> None:
    source = source_of(filled())
    board = models_head({}, source)
    assert board is not None and "significantly better" in board.description
    two = models_head({"view": "two", "a": IDS[0], "b": IDS[1]}, source)
    assert two is not None and "Aurora XL" in two.title and "Brush 3" in two.title
    prompt = models_head({"view": "prompt", "prompt": "p001"}, source)
    assert prompt is not None and "red cups" in prompt.title
    empty = models_head({"set": EMPTY}, source)
    assert empty is not None and "Unused prompts" in empty.title and not empty.lines
    for found in (board, two, prompt):
        assert not OLD_WORDS.findall(f"{found.title} {found.description}")
