"""The four simulated models of the demo: what the board says of them, held against the truth."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prompt_sets.prompt_set import load_prompt_sets
from benchmarks.registry import load_registry
from evaluator.demo.simulated_models import PROMPT_SET, write_generations
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery, ModelBoard, SkillBoard
from leaderboard.models.reading import ModelReader
from leaderboard.publication.model_entries import ModelTrack, read_track
from leaderboard.publication.publisher import cards_of
from leaderboard.publication.reader import Reader
from leaderboard.store.folder import folder_store
from tools.demo_split.gecko import prompts
from tools.demo_split.models import MODELS, depict
from tools.demo_split.pictures import chance
from tools.demo_split.scenes import aspects

UNSEEN = range(1000, 1060)
"""Seeds that nobody drew with: many of them give each model's true share of right claims."""


@cache
def truth(model: str, skill: str | None) -> float:
    """Mean share of the claims of a prompt that a model gets right."""
    chosen = [prompt for prompt in prompts() if skill in (None, prompt.skill)]
    return float(
        np.mean(
            [
                1 - depict(p.scene, model, chance("models", p.id, model, s)).errors / len(claims)
                for p in chosen
                if (claims := aspects(p.scene))
                for s in UNSEEN
            ]
        )
    )


def board(demo: Path, **asked: object) -> ModelBoard:
    store = folder_store(demo)
    view = Reader(store, cards_of(load_registry())).view()
    reader = ModelReader(store, load_prompt_sets(), None)
    return model_board(reader, view, BoardQuery(PROMPT_SET, **asked))  # type: ignore[arg-type]


def by_name(found: ModelBoard, skill: SkillBoard) -> dict[str, frozenset[str]]:
    """Model to the models that it is better than."""
    names = {one: entry.model for one, entry in found.entries.items()}
    return {
        names[one]: frozenset(names[other] for other in standing.better_than)
        for one, standing in skill.standings.items()
    }


@pytest.fixture(scope="module")
def track(demo: Path) -> ModelTrack:
    return read_track(folder_store(demo).public)


@pytest.mark.slow
def test_every_metric_has_scored_every_image_of_every_model(track: ModelTrack) -> None:
    assert {entry.model for entry in track.entries.values()} == set(MODELS)
    for entry in track.entries.values():
        assert len(entry.judges) == 5
        assert not any(run.failed or run.unscored for run in entry.judges.values())
        assert entry.images.present == entry.images.wanted == 2 * len(prompts())
        assert entry.pictures > 0


@pytest.mark.slow
def test_the_board_recovers_the_true_order_and_tells_first_and_last_from_all_others(
    demo: Path,
) -> None:
    overall = board(demo).skills[None]
    found = by_name(board(demo), overall)
    right = sorted(MODELS, key=lambda model: -truth(model, None))
    assert list(found) == right
    first, *_, last = right
    assert found[first] == frozenset(right[1:])
    assert all(last in found[model] for model in right[:-1])
    for place, standing in enumerate(overall.standings.values(), 1):
        assert (standing.rank_low or 9) <= place <= (standing.rank_high or 0)


@pytest.mark.slow
def test_what_the_board_says_of_a_skill_never_contradicts_the_truth(demo: Path) -> None:
    shown = board(demo)
    told = 0
    for key, skill in shown.skills.items():
        better = by_name(shown, skill)
        for a, b in combinations(MODELS, 2):
            for first, second in ((a, b), (b, a)):
                if second in better.get(first, ()):
                    told += 1
                    assert truth(first, key) > truth(second, key), (key, first, second)
    assert told >= 5


@pytest.mark.slow
def test_with_too_few_prompts_the_board_says_that_it_cannot_order(demo: Path) -> None:
    few = board(demo, words="striped").skills[None]
    assert 0 < few.n_prompts < 20
    shapes = board(demo, words="blue circle").skills[None]
    assert shapes.note
    assert {s.rank_low for s in shapes.standings.values()} <= {1, None}


@pytest.mark.slow
def test_no_metric_judges_what_it_did_not_earn(demo: Path) -> None:
    for skill in board(demo).skills.values():
        assert not any("random-floor" in judge.title for judge in skill.trusted)
        if not skill.trusted:
            assert skill.note
            assert all(s.rank_low is None for s in skill.standings.values())


@pytest.mark.slow
def test_a_metric_that_looks_at_prompts_alone_judges_nothing_and_the_page_says_why(
    demo: Path,
) -> None:
    for skill in board(demo).skills.values():
        (prior,) = [judge for judge in skill.judges if judge.title.startswith("prompt-prior")]
        assert not prior.trusted and prior.why


def test_the_same_model_draws_the_same_bytes(tmp_path: Path) -> None:
    one, two = (
        write_generations("demo-beta", tmp_path / "one"),
        write_generations("demo-beta", tmp_path / "two"),
    )
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert len(files) == 2 * len(prompts()) + 2
    assert all((one / file).read_bytes() == (two / file).read_bytes() for file in files)
