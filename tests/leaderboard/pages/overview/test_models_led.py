"""Cards of text-to-image models on the first page."""

from __future__ import annotations

import numpy as np

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt
from leaderboard.models.entries import PATH, ModelTrack, track_bytes
from leaderboard.models.reading import ModelReader
from leaderboard.pages.overview.models_led import NO_MODELS, model_cards
from leaderboard.store.interface import transact
from tests.leaderboard.models.made_up_models import World, prompt_set, prompts_of, trusting

VQA = "vqa/vqa"


def world(n: int, *trusted: str) -> World:
    return World(prompt_set(prompts_of(n)), trusting(*trusted))


def scores(mean: float, n: int) -> np.ndarray:
    return mean + 0.2 * np.random.default_rng(int(100 * mean)).standard_normal((2, n))


def test_a_card_names_who_leads_and_who_judges() -> None:
    made = world(200, VQA)
    for name, mean in (("low", 0.3), ("high", 0.7)):
        made.add(name, {VQA: scores(mean, 200)})
    html = model_cards(made.view, made.reader).real
    assert ">high" in html and ">low" not in html
    assert "rank 1 of 2 models" in html
    assert "judged by vqa" in html


def test_where_nothing_can_be_ordered_the_card_says_why_and_names_no_leader() -> None:
    made = world(200)
    for name, mean in (("low", 0.3), ("high", 0.7)):
        made.add(name, {VQA: scores(mean, 200)})
    html = model_cards(made.view, made.reader).real
    assert "No metric earned trust" in html
    assert ">high" not in html


def test_names_of_strangers_are_only_text() -> None:
    made = world(200, VQA)
    made.add("nasty", {VQA: scores(0.7, 200)})
    made.add("plain", {VQA: scores(0.3, 200)})
    entry = made.entries["nasty-0123456789"].model_copy(update={"model": "<script>alert(1)"})
    track = ModelTrack({**made.entries, entry.submission_id: entry})
    transact(made.store.public, lambda: {PATH: track_bytes(track)}, "nasty")
    html = model_cards(made.view, made.reader).real
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_without_models_there_is_nothing() -> None:
    made = world(20, VQA)
    assert model_cards(made.view, made.reader) == NO_MODELS
    assert model_cards(made.view, None) == NO_MODELS


def test_where_the_prompts_are_not_here_models_are_only_counted() -> None:
    made = world(200, VQA)
    made.add("high", {VQA: scores(0.7, 200)})

    def absent(_: object) -> list[SetPrompt]:
        raise SubmitterError("data_missing", "The prompts are not here.")

    known = PromptSet(made.known.card, absent)
    html = model_cards(made.view, ModelReader(made.store, {known.name: known}, None)).real
    assert "1 model" in html
    assert ">high" not in html
