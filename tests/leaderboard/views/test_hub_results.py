"""Results of models for the Hub: what its client reads back, and why the rest is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from leaderboard.api.source import Source
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery, ModelBoard
from leaderboard.publication.reader import Revision
from leaderboard.views.citation import NOWHERE, CitedAt
from leaderboard.views.hub_results import NO_DATASET, benchmark_file, model_hub_results
from tests.leaderboard.views.model_track import IDS, JUDGES, SET, filled, source_of

KEPT = "https://huggingface.co/datasets/lab/assay-results/tree/" + "d" * 40
AT = CitedAt(Revision("c" * 40, "ab" * 32, None, KEPT), "https://assay.example/")
DATASET = "someone/prompts"


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(filled())


@pytest.fixture(scope="module")
def board(source: Source) -> ModelBoard:
    return model_board(source.model_reader, source.reader.view(), BoardQuery(SET))


def test_values_are_those_of_the_board_and_the_source_is_the_exact_revision(
    source: Source, board: ModelBoard
) -> None:
    card, entry = source.model_reader.prompt_sets[SET].card, board.entries[IDS[0]]
    made = model_hub_results(entry, card, board, AT, DATASET)
    found = parse_eval_result_entries(yaml.safe_load(made.content))
    led = [of for of in board.skills.values() if of.lead]
    assert [one.value for one in found] == [
        of.standings[IDS[0]].means[of.lead].value for of in led if of.lead
    ]
    assert {(one.dataset_id, one.source_url) for one in found} == {(DATASET, KEPT)}
    assert all("c" * 40 in (one.notes or "") and IDS[0] in (one.notes or "") for one in found)
    assert found[0].task_id == "made_up_prompts-all-blip2_itm"
    assert made.left_out == {"Language": "no qualified metric judges it"}
    by_page = model_hub_results(entry, card, board, replace(AT, revision=Revision()), DATASET)
    assert f"url: {AT.site}model?id={IDS[0]}" in by_page.content


def test_the_results_of_each_prompt_set_and_submission_have_a_file_of_their_own(
    source: Source, board: ModelBoard
) -> None:
    card, entry = source.model_reader.prompt_sets[SET].card, board.entries[IDS[0]]
    images = entry.images.model_copy(update={"prompt_set": "other"})
    elsewhere = entry.model_copy(update={"images": images})
    of = [model_hub_results(one, card, board, AT, DATASET).path
          for one in (entry, elsewhere, board.entries[IDS[1]])]  # fmt: skip
    assert of == [
        f".eval_results/assay-{name}.yaml"
        for name in (f"{SET}-{IDS[0]}", f"other-{IDS[0]}", f"{SET}-{IDS[1]}")
    ]


def test_what_the_hub_cannot_take_is_left_out_with_the_reason(
    source: Source, board: ModelBoard
) -> None:
    card, entry = source.model_reader.prompt_sets[SET].card, board.entries[IDS[0]]
    nowhere = model_hub_results(entry, card, board, NOWHERE)
    assert nowhere.content == "" and NO_DATASET in nowhere.left_out.values()
    simulated = card.model_copy(update={"simulated": True})
    made = model_hub_results(entry, simulated, board, NOWHERE, DATASET)
    assert made.content == "" and set(made.left_out.values()) == {"its models are simulated"}


def test_the_file_of_the_benchmark_has_every_task_that_results_name(
    source: Source, board: ModelBoard
) -> None:
    card = source.model_reader.prompt_sets[SET].card
    found = yaml.safe_load(benchmark_file(card, board))
    made = model_hub_results(board.entries[IDS[0]], card, board, NOWHERE, DATASET)
    tasks = {one.task_id for one in parse_eval_result_entries(yaml.safe_load(made.content))}
    assert {one["id"] for one in found["tasks"]} == tasks and JUDGES[0] not in tasks
    assert set(found) == {"name", "description", "evaluation_framework", "tasks"}
