"""The page of one model: card, means, seeds, images, runs, and how to make it again."""

from __future__ import annotations

import re
from html import unescape

import pytest
from starlette.datastructures import QueryParams

from leaderboard.api.operations import Asked
from leaderboard.api.tables.models import models
from leaderboard.models.entries import PATH, ModelTrack, track_bytes
from leaderboard.models.model_card import ModelCard
from leaderboard.pages.heads.of_models import model_head
from leaderboard.pages.model.facts import again_section
from leaderboard.pages.model.model_page import answer
from leaderboard.pages.model.query import PER_PAGE, ModelQuery
from leaderboard.pages.page import Context
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
    prompt_sets,
    source_of,
)
from tests.leaderboard.pages.models.test_models_page import UNESCAPED
from tests.leaderboard.pages.skills.skills_fixture import NASTY


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def shown(context: Context, submission_id: str = IDS[0], **params: str) -> str:
    return answer(context, ModelQuery.from_params({"id": submission_id, **params}))


def drawn_prompts(page: str) -> list[str]:
    found = re.findall(r'<h3><a href="\./prompt\?[^"]*">([^<]+)</a>', page)
    return [unescape(one) for one in found]


@pytest.mark.parametrize("submission_id", IDS)
def test_every_model_has_every_part_and_is_shown_as_it_was_typed(
    context: Context, submission_id: str
) -> None:
    page = shown(context, submission_id)
    for part in ("card", "means", "seeds", "images", "runs", "again"):
        assert f'id="{part}"' in page, part
    assert page.count("<h1") == 1 and not any(one in page for one in UNESCAPED)


def test_means_of_every_metric_stand_with_intervals_and_who_judges(context: Context) -> None:
    page = shown(context)
    table = page.split('id="means"')[1].split("</table>")[0]
    for name in ("BLIP2-ITM 1.1", "VQAScore 1.0", "CLIPScore 1.4", "Counting", "All prompts"):
        assert name in table
    assert table.count('as-good">judges</span>') == 6
    assert re.search(r"<b>0\.786</b><small>\[0\.\d+, 0\.\d+\]</small>", table)


def test_seeds_have_means_and_ranks_and_a_verdict(context: Context) -> None:
    part = shown(context).split('id="seeds"')[1].split("</section>")[0]
    assert "stable" in part and part.count("as-seed-mean") == 3
    assert "seed no. 1" in part and f"judge={JUDGES[0]}" in part


def test_images_are_paged_and_ordered_by_score(context: Context) -> None:
    first = shown(context)
    assert len(drawn_prompts(first)) == PER_PAGE and f"Page 1 of {N_PROMPTS // PER_PAGE}" in first
    means = [float(m) for m in re.findall(r"mean <b>([0-9.]+)</b>", first)]
    assert means == sorted(means)
    best = shown(context, order="best")
    assert float(re.findall(r"mean <b>([0-9.]+)</b>", best)[0]) >= max(means)
    as_set = shown(context, order="set")
    assert drawn_prompts(as_set)[:2] == ["p000", "p001"]
    last = shown(context, order="set", page="99")
    assert drawn_prompts(last)[-1] == HOSTILE_ID
    assert "./v1/generations/drawn-00000/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D/40?w=320" in last


def test_skill_words_and_metric_choose_what_is_seen(context: Context) -> None:
    page = shown(context, skill="count", words="8 red", judge=JUDGES[1])
    assert 0 < len(drawn_prompts(page)) < PER_PAGE
    assert "Scores by" in page and "VQAScore 1.0</option>" in page
    assert "No prompt is kept by these filters" in shown(context, words="nothing like it")
    assert "not published" in shown(context, IDS[4])


def test_runs_tell_cost_isolation_failures_and_the_one_pixel_change(context: Context) -> None:
    part = shown(context).split('id="runs"')[1].split("</section>")[0]
    assert "own network namespace" in part and "3.0 GiB" in part and "0.0021" in part
    assert "unreadable_image: 1" in part and "failed</span>" in part
    assert "of its smallest gap between models" in part


def test_who_shares_images_is_flagged_with_a_link(context: Context) -> None:
    page = shown(context, IDS[3])
    assert (
        "17 images as in <a" in page and "p001 seed 40" in page and "A flag, not a verdict" in page
    )


def test_a_command_draws_the_prompts_again_and_holds_nothing_a_shell_could_take_amiss() -> None:
    card = prompt_sets()[SET].card
    known = again_section(entry(0, "Aurora"), card)
    assert "--model someone/model" in known and "--seeds 40,41,42" in known
    assert f"--revision {'0' * 40}" in known
    for name in ("a/b; rm -rf ~", "--help/x", "a/b\nrm", "$(x)/y", "`x`/y", NASTY, "a/b c"):
        hostile = entry(0, "A").model_copy(update={"card": ModelCard(model=name, revision=name)})
        section = again_section(hostile, card)
        command = section.split("<pre")[1]
        assert "rm" not in command.replace("from", "") and "generate" not in command
        assert f"python -m benchmarks prompts {SET}" in command


@pytest.mark.parametrize("submission_id", ["", "nobody", NASTY, "x" * 500])
def test_a_model_that_is_not_there_leads_to_those_that_are(
    context: Context, submission_id: str
) -> None:
    page = shown(context, submission_id)
    assert page.count("./model?id=drawn-") == len(IDS)
    assert ("There is no model" in page) is bool(submission_id)
    assert not any(one in page for one in UNESCAPED)


def test_a_model_of_another_revision_stands_on_no_board_and_says_so() -> None:
    store = filled(1)
    old = entry(0, "Old one")
    old = old.model_copy(update={"images": old.images.model_copy(update={"revision": "2023"})})
    content = track_bytes(ModelTrack({IDS[0]: old}))
    store.public.commit({PATH: content}, parent=store.public.head(), message="publish")
    page = shown(context_of(store))
    assert "stands on no board" in page and 'id="card"' in page and 'id="means"' not in page


def test_a_model_of_a_set_that_is_not_known_here_is_no_defect() -> None:
    store = filled(1)
    other = entry(0, "Other")
    seen = other.images.model_copy(update={"prompt_set": "elsewhere"})
    content = track_bytes(ModelTrack({IDS[0]: other.model_copy(update={"images": seen})}))
    store.public.commit({PATH: content}, parent=store.public.head(), message="publish")
    assert "prompt set of this model is not known" in shown(context_of(store))
    assert EMPTY not in shown(context_of(store))


def test_a_metric_that_was_taken_off_the_boards_is_named_nowhere() -> None:
    store = filled()
    own = entry(0, "Aurora")
    gone = next(iter(own.judges.values())).model_copy(update={"metric": "gone-metric"})
    judged = own.model_copy(update={"judges": {**own.judges, "gone-0001/gone-metric": gone}})
    content = track_bytes(ModelTrack({IDS[0]: judged}))
    store.public.commit({PATH: content}, parent=store.public.head(), message="publish")
    page = shown(context_of(store))
    assert 'id="runs"' in page and "gone-metric" not in page
    head = model_head({"id": IDS[0]}, source_of(store))
    assert head is not None and "scored by 3 metrics" in head.description
    (row,) = models(source_of(store), Asked({}, QueryParams())).rows
    assert row["n_judges"] == 3
