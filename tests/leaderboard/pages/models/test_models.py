"""The board of models: who stands where, by whom, where metrics disagree; people's ratings apart."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from benchmarks.errors import SubmitterError
from leaderboard.models.board_types import (
    BoardQuery,
    Disagreement,
    Evidence,
    Judge,
    Mean,
    ModelBoard,
    SkillBoard,
    Standing,
)
from leaderboard.models.people import people_boards
from leaderboard.models.reading import ModelReader
from leaderboard.pages.models.disagreements import MOST_OF_A_SKILL, disagreements_section
from leaderboard.pages.models.facts import parameters, selection
from leaderboard.pages.models.judges_view import judges_section
from leaderboard.pages.models.models_page import answer
from leaderboard.pages.models.names import badges
from leaderboard.pages.models.people import people_section
from leaderboard.pages.models.table import MOST_MODELS, models_table
from leaderboard.pages.page import Context
from leaderboard.records import ModelCard
from leaderboard.store.memory import memory_store
from leaderboard.views.models import MOST_NAMED, Choice, ModelsQuery, resolve, sets_in_order
from tests.leaderboard.models.made_up_ratings import (
    RATED,
    RatedBenchmark,
    rated_answers,
    rated_set,
    rating,
)
from tests.leaderboard.pages.models.made_up import (
    EMPTY,
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
)
from tests.leaderboard.pages.parsed import Node, harmless, named, read
from tests.leaderboard.pages.skills.skills_fixture import NASTY, cards, fill

EMPTY_HANDED = {"words": "nothing like it"}
MEANS = {"low": 2.0, "middle": 3.0, "high": 4.0}


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def shown(context: Context, **params: str) -> Node:
    html = answer(context, ModelsQuery.from_params(params))
    harmless(html)
    return read(html)


def choice_of(context: Context, **params: str) -> Choice:
    assert context.models is not None
    found = resolve(ModelsQuery.from_params(params), context.models, context.reader.view())
    assert found is not None
    return found


# The table, the disagreements and the judges of values that are made up.

JUDGE = Judge("m/One", "One 1.0", trusted=True, why="It leads.", seconds_per_image=0.25)
OTHER = Judge(f"m/{NASTY}", NASTY, trusted=False, why=NASTY, pinned=True)
BOTH = (JUDGE, replace(OTHER, trusted=True))


def standing(place: int, **more: Any) -> Standing:
    mean = Mean(0.8 - 0.1 * place, 0.7, 0.9, n_prompts=40, n_missing=place)
    ranks = {"rank_low": place + 1, "rank_high": place + 2, "tier": place + 1}
    given = more or ranks
    return Standing(f"drawn-{place:05d}", {JUDGE.entry_id: mean}, **given)


def skill_board(skill: str | None, n: int = 3, **more: Any) -> SkillBoard:
    standings = {f"drawn-{k:05d}": standing(k) for k in range(n)}
    made = SkillBoard(skill, f"Of {skill}", 40, (JUDGE, OTHER), JUDGE.entry_id, standings)
    return replace(made, **more)


def board(*skills: SkillBoard, n_models: int = 3) -> ModelBoard:
    entries = {f"drawn-{k:05d}": entry(k, f"Model {k}") for k in range(n_models)}
    return ModelBoard(BoardQuery(SET), entries, {one.skill: one for one in skills}, "The rule.")


def table_of(context: Context, *skills: SkillBoard, n_models: int = 3) -> Node:
    html = models_table(board(*skills, n_models=n_models), choice_of(context))
    harmless(html)
    return read(html)


def test_a_cell_has_the_mean_of_the_lead_metric_and_the_rank_range(context: Context) -> None:
    same = {
        f"drawn-{k:05d}": replace(standing(0), submission_id=f"drawn-{k:05d}") for k in range(3)
    }
    page = table_of(context, skill_board(None), skill_board("count", standings=same))
    named(page)
    cells = [row.all("td")[0] for row in page.all("tbody tr") if row.names]
    assert [(c.one("b").text, c.one(".as-range").text) for c in cells] == [
        ("0.800", "1–2"), ("0.700", "2–3"), ("0.600", "3–4"),
    ]  # fmt: skip
    assert [label for label in page.groups if "Tier" in label] == ["Tier 1", "Tier 2", "Tier 3"]
    assert "1 without a score" in page
    shades = re.findall(r"--t:(\d+)%", str([one["style"] for one in page.nodes]))
    assert shades == ["100", "50", "50", "50", "0", "50"]  # Of the column; equal means, one colour.


def test_who_has_no_rank_or_no_judge_has_a_reason_in_place_of_it(context: Context) -> None:
    none = {"drawn-00000": standing(0), "drawn-00001": standing(1, unranked=f"60 lack {NASTY}")}
    page = table_of(context, skill_board(None, standings=none))
    assert [names for names in page.groups.values() if names] == [["Model 0"], ["Model 1"]]
    assert "60 lack" in page.row("Model 1")
    untrusted = skill_board("lang", lead=None, judges=(OTHER,), note="Nobody.")
    page = table_of(context, untrusted)
    assert "nobody trusted" in page and not [b for b in page.texts("td b") if b[:2] == "0."]
    n = MOST_MODELS + 7
    many = table_of(context, skill_board(None, n), n_models=n)
    assert len(many.names) == MOST_MODELS and "7 more" in many


def test_disagreements_are_named_with_both_sides_and_no_more_than_can_be_read(
    context: Context,
) -> None:
    first = Disagreement(IDS[0], IDS[1], (JUDGE.entry_id,), (OTHER.entry_id, "gone/metric"))
    made = board(skill_board("count", judges=BOTH, disagreements=(first,) * 15))
    html = disagreements_section(made, choice_of(context, words="box", seed="1"))
    harmless(html)
    page = read(html)
    links = page.links("./model-pair")
    assert len(links) == MOST_OF_A_SKILL and "15 pairs" in page and "3 more" in page
    assert f"skill=count&words=box&seed=1&a={IDS[0]}&b={IDS[1]}" in links[0]
    assert "One 1.0" in page and "gone/metric" in page
    told = [
        read(
            disagreements_section(board(skill_board(None, judges=judges)), choice_of(context))
        ).text
        for judges in ((JUDGE, OTHER), (JUDGE, replace(JUDGE, entry_id="m/Two")))
    ]  # Whether there could be any.
    assert ["No skill has" in one for one in told] == [True, False] and "No two" in told[1]


def test_judges_come_with_their_evidence_and_links_to_the_boards_it_is_from(
    context: Context,
) -> None:
    known = Evidence("gecko", "count", "srcc", 0.61, 0.5, 0.7, 1, 0.0, "for")
    gone = Evidence("gone", "x", "rho", 0.1, None, None, None, None, "against")
    made = board(skill_board("count", judges=(replace(JUDGE, evidence=(known, gone)), OTHER)))
    html = judges_section(made, choice_of(context), cards())
    harmless(html)
    page = read(html)
    assert any("benchmark=gecko&skill=count" in one for one in page.links("./boards"))
    for words in ("The rule.", "0.610 [0.500, 0.700], tier 1, chance 0.000", "gone, x: rho 0.100",
                  "against it", "operator", "0.250 s"):  # fmt: skip
        assert words in page, words


def test_what_a_reader_must_know_of_the_images_is_a_flag() -> None:
    copied = entry(0, "Copy").model_copy(update={"same_content_as": ("drawn-00007",)})
    assert badges(entry(0, "Plain")) == ""
    for one, flags in ((entry(1, "Best"), ["best of 4"]), (entry(2, "Withheld"), ["2 withheld"]),
                       (entry(3, "Lacking"), ["shared images", "60 missing"]),
                       (copied, ["same content"])):  # fmt: skip
        assert all(flag in read(badges(one)) for flag in flags)
    assert selection(ModelCard()) == "first image"
    best = selection(ModelCard(selection="best_of", best_of=4, selected_by=NASTY))
    harmless(best)
    assert read(best).text.startswith("best of 4 by <img")
    numbers = (None, 7, 860_000_000, 2_600_000_000, 12 * 10**12)
    assert [parameters(n) for n in numbers] == [
        "—", "7", "860\u00a0M", "2.6\u00a0B", "12\u00a0T"
    ]  # fmt: skip


# What of the track is looked at.


@given(
    st.builds(
        ModelsQuery,
        *(st.text("ab c/?&=#é{}", max_size=8).map(str.strip) for _ in range(6)),
        st.lists(st.sampled_from(IDS), unique=True).map(tuple),
    )
)
def test_a_link_leads_back_to_its_view(query: ModelsQuery) -> None:
    params = parse_qs(urlsplit(query.to_link()).query)
    assert ModelsQuery.from_params({k: v[0] for k, v in params.items()}) == query


def test_a_form_may_name_each_model_by_itself_and_a_link_all_in_one() -> None:
    form = QueryParams([("models", IDS[0]), ("models", IDS[2]), ("models", "")])
    link = QueryParams({"models": f"{IDS[0]},{IDS[2]}"})
    assert ModelsQuery.from_params(form).models == ModelsQuery.from_params(link).models
    many = QueryParams({"models": ",".join(f"m{k}" for k in range(999))})
    assert len(ModelsQuery.from_params(many).models) == MOST_NAMED


def test_filters_keep_the_prompts_that_the_board_counts(context: Context) -> None:
    found = choice_of(context)
    assert (found.card.name, len(found.entries), len(found.places)) == (SET, 5, N_PROMPTS)
    assert list(found.judges) == list(JUDGES) and found.n_seeds == 3 and not found.remarks
    assert choice_of(context, set=EMPTY).entries == ()
    some = choice_of(context, skill="count", split="real", words="box")
    assert {some.prompts[k].split for k in some.places} == {"real"}
    assert 0 < len(some.places) < N_PROMPTS / 2
    assert some.wanted.skills == ("count", "count:few", "count:many")
    assert choice_of(context, **EMPTY_HANDED).places == ()
    assert choice_of(context, seed="2").wanted.seed == 1
    none = ModelReader(memory_store(), {}, None)
    assert resolve(ModelsQuery(), none, context.reader.view()) is None


@pytest.mark.parametrize(
    ("rated", "expected"),
    [((), ("real", "simulated", "empty", "further")),
     (("further",), ("real", "further", "simulated", "empty")),
     (("empty", "further"), ("empty", "real", "further", "simulated"))],
)  # fmt: skip
def test_sets_with_models_or_ratings_come_first_simulated_ones_last_of_these(
    rated: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    drawn = []
    for place, name in enumerate(("simulated", "real")):
        one = entry(place, "Drawn")
        images = one.images.model_copy(update={"prompt_set": name})
        drawn.append(one.model_copy(update={"images": images}))
    sets = {
        name: rated_set(name=name, simulated=name == "simulated")
        for name in ("empty", "simulated", "real", "further")
    }
    reader = ModelReader(keep_models(memory_store(), *drawn), sets, None)
    assert sets_in_order(reader, rated) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("set", NASTY), ("skill", "x" * 400), ("split", "night"), ("judge", "nobody/knows"),
     ("judge", "made-up-0003/ImageReward"), ("models", "nobody"), ("seed", "0"), ("seed", "99"),
     ("seed", "٣")],
)  # fmt: skip
def test_what_is_not_there_is_said_and_left_out(context: Context, name: str, value: str) -> None:
    found = choice_of(context, **{name: value})
    (remark,) = found.remarks
    kind = {"judge": "metric", "models": "model", "set": "prompt set"}.get(name, name)
    assert kind in remark and len(remark) < 160 and "\u202e" not in remark
    assert found.query == ModelsQuery(SET)
    assert remark in shown(context, **{name: value})


# The page.


def test_the_page_has_every_part_with_models_in_order_leading_to_their_images(
    context: Context,
) -> None:
    page = shown(context)
    for part in ("board", "disagreements", "judges", "facts", "one-pixel", "orderings",
                 "as-published"):  # fmt: skip
        assert page.all(f"#{part}"), part
    assert len(page.all("h1")) == 1 and any("gnp.exe" in name for name in page.names)
    rows = [link for row in page.one("#board").all("tbody tr") for link in row.links("./model?id=")]
    assert list(dict.fromkeys(re.findall(r"drawn-\d+", " ".join(rows)))) == list(IDS)
    assert any(f"id={IDS[0]}&skill=count&judge={JUDGES[0]}" in link for link in rows)


def test_a_skill_opens_to_its_sub_skills_and_back(context: Context) -> None:
    assert "./models?set=made_up_prompts&skill=count" in shown(context).links()
    inside = shown(context, skill="count")
    heads = [head.split(" (")[0] for head in inside.texts("#board thead th")]
    assert "Counting: few" in " ".join(heads) and "Remove skill: Counting" in inside
    assert "+1" in inside.one("#board thead")  # A metric beside the one that leads.
    assert "+1" not in shown(context, skill="count", judge=JUDGES[2]).one("#board thead")


def test_filters_are_told_and_each_can_be_taken_back(context: Context) -> None:
    models = ",".join(IDS[:3])
    page = shown(context, words="box", split="real", seed="2", judge=JUDGES[2], models=models)
    for said in ("split: Real", "words: box", "only CLIPScore 1.4", "seed no. 2", "3 of 5 models"):
        assert page.all(f"[aria-label=Remove {said}]"), said
    assert "Easel Turbo" not in page.one("#board").one("table")
    assert any(one.startswith(f"./v1/models/{SET}?split=real&words=box&judge=")
               for one in page.links("./v1/"))  # fmt: skip
    empty = shown(context, **EMPTY_HANDED)
    assert "./models?set=made_up_prompts" in empty.links() and not empty.names


def test_without_models_scores_or_sets_the_page_says_what_there_is(context: Context) -> None:
    page = shown(context, set=EMPTY)
    assert f"--benchmark {EMPTY}" in page and "./submit" in page.links()
    unscored = entry(0, "New").model_copy(update={"judges": {}})
    store = keep_models(fill(memory_store()), unscored)
    assert "Not scored" in shown(context_of(store))
    assert "no prompt sets" in shown(replace(context_of(store), models=None))


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


def test_models_stand_in_tiers_with_mean_interval_rank_and_source(rated: Context) -> None:
    part = shown(rated, set=RATED).one("#people")
    table = part.one("table")
    names = ["high", "middle", "low", "<img src=x>"]
    assert table.groups == {f"Tier {k}": [name] for k, name in enumerate(names, 1)}
    assert rated.models is not None
    (board,) = people_boards(rated.models.prompt_sets[RATED], None)
    for row, mean in zip(table.rows, board.overall.means.values(), strict=True):
        first, *rest = row.values()
        assert rest[0].text.startswith(f"{mean.value:.2f} [{mean.ci_low:.2f}, {mean.ci_high:.2f}]")
        assert len(rest) == len(board.skills) and first.text
    for words in ("Rated images", "CC BY 4.0"):
        assert words in part
    assert "https://arxiv.org/abs/2406.13743" in part.links() and "VQAScore" not in part
    for kind in ("", "/pairs"):
        assert f"./v1/models/{RATED}/ratings{kind}?format=csv" in part.links()
    assert len(part.one("details").rows) == 4 * 3 / 2  # Each two are tested.


def test_where_nobody_differs_or_too_few_prompts_order_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = rated_answers({"one": 3.0, "two": 3.0})
    answers.ratings[:] = 3.0
    rating(monkeypatch, RatedBenchmark(answers))
    html = people_section(people_boards(rated_set(), None))
    assert "--t:0%" in html and not re.search(r"--t:[1-9]", html)  # Nothing is coloured.
    assert html.count(">n.s.<") == 3  # the overall column and both skills
    rating(monkeypatch, RatedBenchmark(rated_answers(MEANS, counting=5)))
    page = read(people_section(people_boards(rated_set(), None)))
    assert sum("no order" in head for head in page.one("table").texts("th")) == 1
    assert [list(row.values())[-1].text[-1] for row in page.rows] == ["–"] * 3


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
