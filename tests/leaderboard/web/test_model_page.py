"""The page of one model: what it is, its scores, its seeds, its images, its runs."""

from __future__ import annotations

import pytest

from leaderboard.api.tables.models import ModelsParameters, models
from leaderboard.views.models import PER_PAGE, ModelQuery
from leaderboard.web.heads.of_models import model_head
from leaderboard.web.model_detail import model_html
from leaderboard.web.page import Context
from tests.leaderboard.views.model_track import (
    EMPTY,
    HOSTILE_ID,
    IDS,
    JUDGES,
    N_PROMPTS,
    context_of,
    entry,
    filled,
    keep_models,
    source_of,
)
from tests.leaderboard.web.parsed import Node, harmless, named, read
from tests.leaderboard.web.skills_fixture import NASTY
from tests.leaderboard.web.test_models_place import OLD_WORDS


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def model(context: Context, submission_id: str = IDS[0], **params: str) -> Node:
    query = ModelQuery.from_params({"id": submission_id, **params})
    assert context.models is not None
    html, _, _ = model_html(query, context.models, context.reader.view())
    harmless(html)
    page = read(html)
    named(page)
    assert len(page.all("h1")) == 1
    return page


@pytest.mark.parametrize("submission_id", IDS)
def test_every_model_has_every_part_in_the_words_of_the_field(
    context: Context, submission_id: str
) -> None:
    page = model(context, submission_id)
    for part in ("card", "means", "seeds", "images", "runs", "again"):
        assert page.all(f"#{part}"), part
    assert not OLD_WORDS.findall(page.told)


def test_means_stand_with_intervals_and_who_judges_and_seeds_with_a_verdict(
    context: Context,
) -> None:
    page = model(context)
    assert "Rank 1 of 5 models" in page and "better than 4" in page
    table = page.one("#means").one("table")
    for name in ("BLIP2-ITM 1.1", "VQAScore 1.0", "CLIPScore 1.4", "Counting", "All prompts"):
        assert name in table
    assert table.texts("span.as-good") == ["judges"] * 6
    assert any(cell.text.startswith("0.786 [0.") for cell in table.all("td"))
    part = page.one("#seeds")
    assert "stable" in part and "seed no. 1" in part and len(part.all(".as-seed-mean")) == 3
    assert any(f"judge={JUDGES[0]}" in link for link in part.links())


def test_images_are_paged_ordered_and_filtered(context: Context) -> None:
    def prompts(**params: str) -> list[str]:
        return model(context, **params).one("#images").texts("code.as-ident")

    assert len(prompts()) == PER_PAGE
    assert f"Page 1 of {N_PROMPTS // PER_PAGE}" in model(context)
    orders = [prompts(order=order) for order in ("", "best", "set")]
    assert orders[0] != orders[1] and orders[2][:2] == ["p000", "p001"]
    assert prompts(order="set", page="99")[-1] == HOSTILE_ID
    last = model(context, order="set", page="99")
    address = "./v1/generations/drawn-00000/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D/40?w=320"
    assert address in [image["src"] for image in last.all("img")]
    some = model(context, skill="count", words="8 red", judge=JUDGES[1])
    assert 0 < len(some.all("#images article")) < PER_PAGE
    assert not prompts(words="nothing like it")
    assert "Images not available" in model(context, IDS[4])


def test_runs_tell_cost_isolation_failures_the_one_pixel_change_and_shared_images(
    context: Context,
) -> None:
    part = model(context).one("#runs")
    for words in ("own network namespace", "3.0 GiB", "0.0021", "unreadable_image: 1", "failed",
                  "smallest gap"):  # fmt: skip
        assert words in part, words
    shared = model(context, IDS[3])
    assert "17 images" in shared and "p001 seed 40" in shared


@pytest.mark.parametrize("submission_id", ["", "nobody", NASTY, "x" * 500])
def test_a_model_that_is_not_there_leads_to_those_that_are(
    context: Context, submission_id: str
) -> None:
    page = model(context, submission_id)
    assert len(page.links("./model?id=drawn-")) == len(IDS)
    assert ("no model" in page) is bool(submission_id)


def test_a_model_of_another_revision_or_set_stands_on_no_board_and_says_so() -> None:
    own = entry(0, "Old one")
    for update in ({"revision": "2023"}, {"prompt_set": "elsewhere"}):
        changed = own.model_copy(update={"images": own.images.model_copy(update=update)})
        page = model(context_of(keep_models(filled(1), changed)))
        assert "Old one" in page and not page.all("#means")
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
