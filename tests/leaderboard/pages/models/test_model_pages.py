"""The pages below the board of models: one model, two, one prompt, and what seeds change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.prompt_sets.prompt_set import SetPrompt
from benchmarks.rethinking.measures import MetricScores, stability
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.api.tables.models import ModelsParameters, models
from leaderboard.models.board_types import PairMatrix, PairTest, PromptDifference
from leaderboard.pages.heads.of_models import model_head
from leaderboard.pages.model import model_page
from leaderboard.pages.model.facts import again_section
from leaderboard.pages.model_pair import model_pair_page
from leaderboard.pages.model_pair.deciding import SHOWN, telling
from leaderboard.pages.model_pair.matrix import MOST_MODELS, model_matrix
from leaderboard.pages.model_pair.tests_table import dominance_bar, p_shown, signed, told_apart
from leaderboard.pages.models.tiles import MOST_SEEDS, tiles
from leaderboard.pages.page import Context
from leaderboard.pages.prompt import prompt_page
from leaderboard.pages.prompt.view import by_score
from leaderboard.pages.seeds import bump, seeds_page
from leaderboard.pages.seeds.verdicts import verdict
from leaderboard.records import ModelCard
from leaderboard.views.models import PER_PAGE, Drawn, ModelQuery, ModelsQuery, PairQuery
from tests.leaderboard.pages.models.made_up import (
    EMPTY,
    HOSTILE_ID,
    IDS,
    JUDGES,
    N_PROMPTS,
    SET,
    context_of,
    entry,
    filled,
    keep_models,
    prompt_sets,
    source_of,
)
from tests.leaderboard.pages.parsed import Node, harmless, named, read
from tests.leaderboard.pages.skills.skills_fixture import NASTY

NAN = math.nan
NOTHING = {"words": "nothing like it"}


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def parsed(html: str) -> Node:
    harmless(html)
    page = read(html)
    named(page)
    return page


def model(context: Context, submission_id: str = IDS[0], **params: str) -> Node:
    query = ModelQuery.from_params({"id": submission_id, **params})
    return parsed(model_page.answer(context, query))


def two(context: Context, a: str = IDS[0], b: str = IDS[1], **params: str) -> Node:
    query = PairQuery.from_params({"a": a, "b": b, **params})
    return parsed(model_pair_page.answer(context, query))


def prompt(context: Context, **params: str) -> Node:
    return parsed(prompt_page.answer(context, params))


def seeds(context: Context, **params: str) -> Node:
    return parsed(seeds_page.answer(context, ModelsQuery.from_params(params)))


# One model.


@pytest.mark.parametrize("submission_id", IDS)
def test_every_model_has_every_part(context: Context, submission_id: str) -> None:
    page = model(context, submission_id)
    for part in ("card", "means", "seeds", "images", "runs", "again"):
        assert page.all(f"#{part}"), part
    assert len(page.all("h1")) == 1


def test_means_stand_with_intervals_and_who_judges_and_seeds_with_a_verdict(
    context: Context,
) -> None:
    page = model(context)
    table = page.one("#means").one("table")
    for name in ("BLIP2-ITM 1.1", "VQAScore 1.0", "CLIPScore 1.4", "Counting", "All prompts"):
        assert name in table
    assert table.texts("span.as-good") == ["judges"] * 6
    assert any(cell.text.startswith("0.786[0.") or "0.786 [0." in cell.text
               for cell in table.all("td"))  # fmt: skip
    part = page.one("#seeds")
    assert "stable" in part and "seed no. 1" in part and len(part.all(".as-seed-mean")) == 3
    assert any(f"judge={JUDGES[0]}" in link for link in part.links())


def test_images_are_paged_ordered_and_filtered(context: Context) -> None:
    def drawn(**params: str) -> list[str]:
        return model(context, **params).one("#images").texts("h3 a")

    assert len(drawn()) == PER_PAGE
    assert f"Page 1 of {N_PROMPTS // PER_PAGE}" in model(context)
    orders = [drawn(order=order) for order in ("", "best", "set")]
    assert orders[0] != orders[1] and orders[2][:2] == ["p000", "p001"]
    assert drawn(order="set", page="99")[-1] == HOSTILE_ID
    last = model(context, order="set", page="99")
    address = "./v1/generations/drawn-00000/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D/40?w=320"
    assert address in [image["src"] for image in last.all("img")]
    some = model(context, skill="count", words="8 red", judge=JUDGES[1])
    assert 0 < len(some.all("#images h3")) < PER_PAGE
    assert not drawn(**NOTHING) and "not published" in model(context, IDS[4])


def test_runs_tell_cost_isolation_failures_the_one_pixel_change_and_shared_images(
    context: Context,
) -> None:
    part = model(context).one("#runs")
    for words in ("own network namespace", "3.0 GiB", "0.0021", "unreadable_image: 1", "failed",
                  "smallest gap"):  # fmt: skip
        assert words in part, words
    shared = model(context, IDS[3])
    assert "17 images" in shared and "p001 seed 40" in shared


def test_a_command_draws_the_prompts_again_and_a_shell_can_take_nothing_amiss() -> None:
    card = prompt_sets()[SET].card
    known = again_section(entry(0, "Aurora"), card)
    for words in ("--model someone/model", "--seeds 40,41,42", f"--revision {'0' * 40}"):
        assert words in known
    for name in ("a/b; rm -rf ~", "--help/x", "a/b\nrm", "$(x)/y", "`x`/y", NASTY, "a/b c"):
        hostile = entry(0, "A").model_copy(update={"card": ModelCard(model=name, revision=name)})
        command = read(again_section(hostile, card)).one("pre").text
        assert "rm" not in command.replace("from", "") and "generate" not in command
        assert f"python -m benchmarks prompts {SET}" in command


@pytest.mark.parametrize("submission_id", ["", "nobody", NASTY, "x" * 500])
def test_a_model_that_is_not_there_leads_to_those_that_are(
    context: Context, submission_id: str
) -> None:
    page = model(context, submission_id)
    assert len(page.links("./model?id=drawn-")) == len(IDS)
    assert ("no model" in page) is bool(submission_id)


def test_a_model_of_another_revision_or_set_stands_on_no_board_and_says_so() -> None:
    own = entry(0, "Old one")
    for update, means in (({"revision": "2023"}, False), ({"prompt_set": "elsewhere"}, False)):
        changed = own.model_copy(update={"images": own.images.model_copy(update=update)})
        page = model(context_of(keep_models(filled(1), changed)))
        assert "Old one" in page and bool(page.all("#means")) is means
        assert "no board" in page or "not known" in page
        assert EMPTY not in page


def test_a_metric_that_was_taken_off_the_boards_is_named_nowhere() -> None:
    own = entry(0, "Aurora")
    gone = next(iter(own.judges.values())).model_copy(update={"metric": "gone-metric"})
    judges = {**own.judges, "gone-0001/gone-metric": gone}
    store = keep_models(filled(), own.model_copy(update={"judges": judges}))
    page = model(context_of(store))
    assert page.all("#runs") and "gone-metric" not in page
    head = model_head({"id": IDS[0]}, source_of(store))
    assert head is not None and "3 metrics" in head.description
    (row,) = models(source_of(store), ModelsParameters()).rows
    assert row["n_judges"] == 3


# Two models.


def made_test(**more: float) -> PairTest:
    given = {"difference": 0.1, "ci_low": 0.05, "ci_high": 0.15, "t": 3.0, "t_p": 0.001,
             "t_p_holm": 0.01, "wilcoxon_w": 12.0, "wilcoxon_p": 0.002, "dominance": 0.7,
             "dominance_back": 0.2, **more}  # fmt: skip
    return PairTest(JUDGES[0], None, 40, 1, **given)


def test_shares_are_drawn_as_one_bar_and_figures_told_plainly() -> None:
    bar = parsed(dominance_bar(made_test(), "A", NASTY))
    parts = [(one["class"][9:], one["x"], one["width"]) for one in bar.all("rect")]
    assert parts == [
        ("a", "0.00%", "70.00%"), ("tie", "70.00%", "10.00%"), ("b", "80.00%", "20.00%")
    ]  # fmt: skip
    assert "A is better on 70 %" in bar and dominance_bar(made_test(dominance=NAN), "", "") == "—"
    signs = [signed(x) for x in (0.1, -0.1, 0.0, 1e-9)]
    assert signs == ["+0.100", "−0.100", "0.000", "0.000"]
    assert [p_shown(p) for p in (NAN, 0.04, 1e-9)] == ["—", ".040", "&lt;.001"]
    assert told_apart(made_test()) and not told_apart(made_test(t_p_holm=NAN))


def test_the_prompts_that_decide_are_those_with_the_greatest_differences() -> None:
    values = [(0.9, 0.1), (0.8, 0.2), (0.5, 0.5), (0.4, 0.5), (0.1, 0.9), (NAN, 0.9)]
    found = [PromptDifference(f"p{k}", a, b, 0.1) for k, (a, b) in enumerate(values)]
    assert [[one.prompt_id for one in side] for side in telling(found)] == [
        ["p0", "p1"], ["p4", "p3"]
    ]  # fmt: skip
    assert max(len(side) for side in telling(found[:1] * 9)) == SHOWN


def matrix(n: int, **query: Any) -> Node:
    dominance = np.full((n, n), 0.6)
    dominance[np.tril_indices(n)] = 0.3
    p = np.full((n, n), 0.001)
    p[0, n - 1] = p[n - 1, 0] = np.nan
    np.fill_diagonal(p, np.nan)
    ids = tuple(f"drawn-{k:05d}" for k in range(n))
    made = PairMatrix(JUDGES[0], None, ids, dominance, np.full((n, n), 0.1), p, p)
    entries = {ident: entry(k, NASTY) for k, ident in enumerate(ids)}
    return parsed(model_matrix(made, entries, ModelsQuery(SET, **query)))


def test_the_matrix_has_shares_above_and_p_values_below_the_diagonal_and_is_cut() -> None:
    drawn = matrix(3, skill="count")
    rows = [[cell.text for cell in row.all("td")] for row in drawn.all("tbody tr")]
    assert [[cell.replace("\u00a0", " ") for cell in row[k + 1 :]] for k, row in enumerate(rows)] == [
        ["60 %*", "60 %"], ["60 %*"], []
    ]  # fmt: skip
    assert [row[:k] for k, row in enumerate(rows)] == [[], [".001*"], ["—", ".001*"]]
    assert any("skill=count&a=drawn-00000&b=drawn-00001" in link for link in drawn.links())
    assert not list(matrix(1).nodes)
    large = matrix(MOST_MODELS + 5)
    assert len(large.all("tr")) == MOST_MODELS + 1 and "5 more" in large


def test_two_models_that_metrics_order_in_opposite_ways_get_both_verdicts(
    context: Context,
) -> None:
    page = two(context, skill="count")
    said = page.one(".as-verdict").text
    assert "By BLIP2-ITM 1.1 Aurora XL 0.1" in said and "By VQAScore 1.0 Brush 3" in said
    part = page.one("#deciding")
    cards = part.all("article")
    assert len(cards) > SHOWN and {len(card.all(".as-who-drew")) for card in cards} == {2}
    assert any("set=made_up_prompts&id=" in link for link in part.links("./prompt"))
    assert context.models is not None
    known = {one.prompt_id: one for one in context.models.prompts(SET) or ()}
    ids = part.texts("h4 a")
    assert ids and all("count" in known[ident].skills or known[ident].elements for ident in ids)


def test_the_first_two_or_another_take_the_place_of_who_cannot_be_compared(
    context: Context,
) -> None:
    def selected(page: Node) -> list[str]:
        return [one["value"] for one in page.all("option[selected]")]

    assert {IDS[0], IDS[1]} <= set(selected(two(context, "", "")))
    for a, b, words in ((IDS[1], IDS[1], "itself"), (NASTY, IDS[1], "“<img"),
                        (IDS[3], "gone", "“gone”")):  # fmt: skip
        page = two(context, a, b)
        assert words in page and page.all("#tests")


def test_swapping_turns_the_signs(context: Context) -> None:
    there, back = (two(context, *pair) for pair in (IDS[:2], IDS[1::-1]))
    signs = [page.texts("td[data-label=Difference] b")[0] for page in (there, back)]
    assert signs[0][0] == "+" and signs[1] == signs[0].replace("+", "−")
    assert any(f"a={IDS[1]}&b={IDS[0]}" in link for link in there.links())
    named_ = ",".join(IDS[:3])
    links = two(context, models=named_).links("./v1/models/")
    assert any("/pairs?" in link and f"models={named_}" in link for link in links)


@pytest.mark.parametrize(
    ("params", "words"),
    [({"set": EMPTY}, "No submitted"), (NOTHING, "Nothing left"), ({"skill": "lang"}, "No metric")],
)
def test_where_there_are_no_two_models_it_is_said(
    context: Context, params: dict[str, str], words: str
) -> None:
    page = two(context, **params)
    assert words in page
    if "set" in params:
        assert "One model" in two(context_of(filled(1)))


# One prompt.


def test_models_come_by_their_mean_score_and_those_without_one_last() -> None:
    scores = [(0.2, 0.4), (NAN, NAN), (0.9, NAN), (0.5, 0.5)]
    drawn = [Drawn(entry(k, f"M{k}"), (1, 2), of) for k, of in enumerate(scores)]
    assert [one.entry.model for one in by_score(drawn)] == ["M2", "M3", "M0", "M1"]


def test_images_have_alternative_texts_and_say_what_is_not_there() -> None:
    one = SetPrompt(HOSTILE_ID, NASTY)
    seen = parsed(tiles(Drawn(entry(0, NASTY), (7, 8), (0.5, NAN)), one))
    images = seen.all("img")
    assert [image["loading"] for image in images] == ["lazy"] * 2 and "no score" in seen
    assert "seed 7: <img" in images[0]["alt"]
    assert "not published" in tiles(Drawn(entry(4, "x"), (7,), (0.5,)), one)
    many = tiles(Drawn(entry(0, "x"), tuple(range(99)), (0.1,) * 99), one)
    assert f"{99 - MOST_SEEDS} more" in many


@pytest.mark.slow
def test_a_prompt_shows_all_models_and_seeds_with_the_scores_of_one_metric(
    context: Context,
) -> None:
    page = prompt(context, id="p001", judge=JUDGES[1])
    assert len(page.all(".as-tile")) == 4 * 3 + 2 and "VQAScore 1.0" in page
    words = page.text.split("mean ")[1:]
    means = [float(one.split()[0]) for one in words if one[:2] == "0."]
    assert len(means) == 5 and means == sorted(means, reverse=True)
    assert f"Prompt 2 of {N_PROMPTS}" in page
    links = " ".join(page.links())
    assert all(one in links for one in ("prompts/p001?judge=", "id=p000", "id=p002"))
    some = prompt(context, id="p001", models=",".join(IDS[:2]))
    assert len(some.all(".as-tile")) == 6


def test_the_neighbours_are_those_that_the_filters_keep(context: Context) -> None:
    links = " ".join(prompt(context, id="p004", skill="count", words="box").links())
    assert all(f"skill=count&words=box&id={one}" in links for one in ("p003", "p007"))
    assert "not among" in prompt(context, id="p001", skill="count")


def test_a_hostile_prompt_and_its_elements_are_shown_as_they_are(context: Context) -> None:
    page = prompt(context, id=HOSTILE_ID)
    assert "a cup <img" in page and "(Counting)" in page.one("[aria-label=Elements]")
    quoted = "v1/models/made_up_prompts/prompts/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D?"
    assert any(quoted in link for link in page.links())


@pytest.mark.parametrize("params", [{"id": NASTY}, {"id": "x" * 999}, {"set": NASTY}])
def test_what_is_not_there_is_said_and_the_first_prompt_shown(
    context: Context, params: dict[str, str]
) -> None:
    page = prompt(context, **params)
    assert "There is no" in page and "p000" in page
    assert "No prompt" in prompt(context, **NOTHING) and "No model" in prompt(context, set=EMPTY)


# Seeds.


RANKS: bump.Ranks = {
    "a": [(1, 0.9), (2, 0.7)], "b": [(2, 0.8), (1, 0.8)], "c": [(None, NAN), (3, 0.1)],
    "d": [(None, NAN), (None, NAN)],
}  # fmt: skip
TWO = ("Seed no. 1", "Seed no. 2")


def test_lines_cross_where_ranks_change_and_the_same_is_there_as_numbers() -> None:
    drawn = parsed(bump.bump_chart(RANKS, {"a": NASTY}, TWO, "Ranks"))
    heights = [[point.split(",")[1] for point in line["points"].split()]
               for line in drawn.all("polyline")]  # fmt: skip
    assert len(heights) == 3 and heights[0] == heights[1][::-1] and len(heights[2]) == 1
    assert drawn.all("svg[role=img]") and "rank 1, mean 0.900" in drawn
    table = read(bump.rank_table(RANKS, {}, TWO, "Ranks"))
    assert table.texts(".as-range") == ["1", "2", "2", "1", "—", "3", "—", "—"]
    assert bump.bump_chart({"a": [(1, 0.9)]}, {}, TWO[:1], "Ranks") == ""
    assert bump.bump_chart({"d": RANKS["d"]}, {}, ("1", "2"), "Ranks") == ""
    many: bump.Ranks = {f"m{k}": [(k + 1, 0.5)] * 2 for k in range(bump.MOST_MODELS + 9)}
    chart = read(bump.bump_chart(many, {}, ("1", "2"), "Ranks"))
    assert len(chart.all("polyline")) == bump.MOST_MODELS


def test_every_metric_has_its_verdict_and_every_model_varies_over_its_seeds(
    context: Context,
) -> None:
    page = seeds(context)
    table = page.one("#stability").one("table")
    assert len(table.rows) == 3 and "stable" in table and "0 of 10" in table
    assert "2 seeds" in page and len(page.all("#ranks polyline")) == 5
    assert len(page.all("#variation .as-seed-mean")) == 4 * 3 + 2
    swapped = seeds(context, judge=JUDGES[2]).one("#ranks")
    assert "not stable" in swapped and "1 seed" in swapped


def test_where_nothing_can_be_said_of_seeds_it_is_said(context: Context) -> None:
    assert "No submitted" in seeds(context, set=EMPTY)
    assert "Nothing left" in seeds(context, **NOTHING)
    alone = seeds(context_of(filled(1)))
    assert "cannot tell" in alone and "Fewer than two" in alone


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
    found = verdict(stability(table, ResamplingPlan(prompts, seed=7, n_resamples=50)))
    assert said in found and ("not" in found) is ("not" in said)
