"""What the loader of every benchmark keeps, on a small release that its folder describes."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.released.bundle import is_bundled
from benchmarks.schema import Answers, Benchmark, ScoreTable
from benchmarks.scores import parse_scores
from tests.benchmarks.contract import Case, Damage, all_cases
from tests.kit.refusals import refused

CASES = {case.card.name: case for case in all_cases()}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
SHIPPED = {"demo_croc", "demo_evalmuse", "demo_gecko", "demo_ts2"}
"""Benchmarks without a loader of released files: theirs are pinned in `demo/test_demo.py`."""


def by_case(values: Mapping[str, tuple[Case, object]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("case", "of"), values.values(), ids=values)


def test_every_benchmark_with_a_loader_of_its_own_has_a_case() -> None:
    families = "benchmarks.families."
    own = {
        name
        for name, board in load_registry(cards=()).items()
        if not type(board).__module__.startswith(families)
    }
    assert own - SHIPPED <= CASES.keys() | {"genai_527"}  # genai_1600 with other files


@each_case
def test_ids_are_unique_and_stable_and_sources_are_the_files(case: Case, tmp_path: Path) -> None:
    case.write(tmp_path)
    answers, again = (case.small().answers(tmp_path) for _ in range(2))
    assert answers.pair_ids[: len(case.pair_ids)] == case.pair_ids
    assert answers.clusters[: len(case.clusters)] == case.clusters
    for ids, others in (
        (answers.pair_ids, again.pair_ids),
        (answers.clusters, again.clusters),
    ):
        assert ids == others
        assert len(set(ids)) == len(ids) > 0
    assert case.counts.items() <= answers.counts().items()
    assert answers.sources == {
        path: sha256((tmp_path / path).read_bytes()).hexdigest() for path in case.files
    }


DAMAGES = {
    f"{name}-{number}": (case, damage)
    for name, case in CASES.items()
    for number, damage in enumerate(case.damages)
}


@by_case(DAMAGES)
def test_a_damaged_release_is_refused_with_its_place_and_where_to_get_another(
    case: Case, of: Damage, tmp_path: Path
) -> None:
    of.write(tmp_path)
    with refused("data_malformed", *of.says) as caught:
        getattr(case.small(), of.read)(tmp_path)
    origins = [file.supplied or file.repo or file.url for file in case.card.files]
    assert [origin for origin in origins if origin in caught.value.hint]


COUNTS = {f"{name}-{what}": (case, what) for name, case in CASES.items() for what in case.held}


@by_case(COUNTS)
def test_what_the_card_counts_must_be_there(case: Case, of: str, tmp_path: Path) -> None:
    case.write(tmp_path)
    more = case.held[of] + 1
    with refused("data_malformed", f"{case.held[of]} {of}; expected {more}"):
        case.small(**{of: more}).answers(tmp_path)


PINNED = {
    name: case
    for name, case in CASES.items()
    if any(file.sha256 and file.path in case.files for file in case.card.files)
}


@pytest.mark.parametrize("case", PINNED.values(), ids=PINNED)
def test_another_release_is_refused_by_its_hash(case: Case, tmp_path: Path) -> None:
    case.write(tmp_path)
    with refused("data_malformed", "sha256") as caught:
        case.pinned().answers(tmp_path)
    assert "another release may differ" in caught.value.hint


FILES = {f"{name}-{path}": (case, path) for name, case in CASES.items() for path in case.files}


@pytest.mark.first_quick
@by_case(FILES)
def test_a_missing_file_is_named_with_the_way_to_it(case: Case, of: str, tmp_path: Path) -> None:
    """Where the figures of an authors' file ship with Assay, these are the answers."""
    case.write(tmp_path)
    board, (file,) = case.small(), [file for file in case.card.files if file.path == of]
    assert board.has_answers(tmp_path)
    (tmp_path / of).unlink()
    if is_bundled(of):
        assert board.answers(tmp_path).pair_ids == board.answers(None).pair_ids
        return
    assert not board.has_answers(tmp_path)
    with refused("data_missing", str(tmp_path / of)) as caught:
        board.answers(tmp_path)
    assert (file.supplied or f"fetch {board.card.name}") in caught.value.hint
    assert board.card.answers_public or file.supplied, "withheld answers are nowhere to fetch"


@each_case
def test_each_pair_is_asked_about_with_its_image_and_text(case: Case, tmp_path: Path) -> None:
    case.write(tmp_path)
    board = case.small()
    assert not board.has_questions(tmp_path)
    with refused("images_missing"):
        board.questions(tmp_path)
    case.draw(tmp_path)
    assert board.has_questions(tmp_path)
    questions = board.questions(tmp_path)
    assert sorted(p.pair_id for p in questions.pairs) == sorted(board.answers(tmp_path).pair_ids)
    assert {pair.image_id for pair in questions.pairs} == set(questions.images)
    assert {pair.text_id for pair in questions.pairs} == set(questions.texts)
    pair_id, image, text = case.question
    (pair,) = (pair for pair in questions.pairs if pair.pair_id == pair_id)
    assert (questions.images[pair.image_id](), questions.texts[pair.text_id]) == (image, text)
    with pytest.raises(KeyError):
        questions.images["../answers"]


@each_case
def test_a_missing_image_is_counted_and_named(case: Case, tmp_path: Path) -> None:
    case.incomplete.write(tmp_path)
    with refused("images_missing", *case.incomplete.says):
        case.small().questions(tmp_path)


PROMPTS = {name: case for name, case in CASES.items() if case.prompts}


@pytest.mark.parametrize("case", PROMPTS.values(), ids=PROMPTS)
def test_developers_of_models_get_each_prompt_once(case: Case, tmp_path: Path) -> None:
    case.write(tmp_path)
    prompts = case.small().prompts(tmp_path)
    rows = prompts[["prompt_id", "prompt", "split", "skills"]].itertuples(index=False, name=None)
    assert tuple(rows)[: len(case.prompts)] == case.prompts
    assert prompts["prompt_id"].is_unique


def parsed(board: Benchmark, answers: Answers, scores: pd.Series) -> ScoreTable:
    content = scores.rename("score").rename_axis("pair_id").to_csv().encode()
    return parse_scores(content, "scores.csv", board, answers, metric="m")


@pytest.mark.first_quick
@each_case
def test_scores_are_joined_by_id_and_every_row_is_explained(case: Case, tmp_path: Path) -> None:
    case.write(tmp_path)
    board = case.small()
    answers, card = board.answers(tmp_path), board.card
    rng = np.random.default_rng(0)
    scores = pd.Series(rng.random(len(answers.pair_ids)), list(answers.pair_ids))
    table = parsed(board, answers, scores.sample(frac=1, random_state=1))
    pd.testing.assert_series_equal(table.overall["m"], scores, check_names=False)
    for other, code in (
        (scores[1:], "missing_pairs"),
        (pd.concat([scores, pd.Series({"no such pair": 1.0})]), "unknown_pairs"),
    ):
        with refused(code):
            parsed(board, answers, other)
    rows = board.evaluate(table, answers, 2).rows
    assert [row for row in rows if card.headline.matches(row)]
    assert {(row.benchmark, row.revision, row.metric) for row in rows} == {
        (card.name, card.revision, "m")
    }
    assert {row.measure for row in rows} <= {*card.measures, "by_generator"}
    of_facets = {row.facet for row in rows if row.measure != "by_generator"}
    assert of_facets <= {None, *card.facets} or not card.facets
