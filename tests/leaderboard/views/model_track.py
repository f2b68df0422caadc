"""A made-up model track beside the made-up boards of metrics, for tests of its pages."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

from benchmarks.parquet import SCHEMA
from benchmarks.prompt_sets.prompt_set import (
    MEASURE,
    MEASURES,
    Judge,
    PromptSet,
    SetElement,
    SetPrompt,
    pair_id,
)
from benchmarks.schema import Card, Selector
from leaderboard.api.source import Source
from leaderboard.models.pictures import image_table, images_path, pictures_path, write_pictures
from leaderboard.models.reading import ModelReader, scores_path
from leaderboard.publication.model_entries import PATH, ModelEntry, ModelTrack, track_bytes
from leaderboard.records import Cost, ImagesSeen, JudgeRun, ModelCard, SharedImages
from leaderboard.store.interface import Store
from leaderboard.web.page import Context
from tests.kit.boards import card_of, keep, site_of, source_over
from tests.kit.store import memory_store
from tests.leaderboard.web.skills_fixture import NASTY, NOW, cards, fill

SET, EMPTY = "made_up_prompts", "unused_prompts"
TITLES = {"count": "Counting", "count:few": "Counting: few", "count:many": "Counting: many",
          "spatial": "Spatial", "named_entity": "Named entities", "lang": "Language"}  # fmt: skip
JUDGES = ("made-up-0001/BLIP2-ITM", "made-up-0000/VQAScore", "made-up-0004/CLIPScore")
NAMES = ("Aurora XL", "Brush 3", NASTY, "Daub", "Easel Turbo")
IDS = tuple(f"drawn-{place:05d}" for place in range(len(NAMES)))
N_PROMPTS = 96
OWN_JUDGE = Judge(title="A detector", metrics=("bvqa",), note="Its weights are others.")
HOSTILE_ID = "a/b?c=1&d#e{f}"
"""A prompt's id that is no harmless part of an address."""


def prompts() -> tuple[SetPrompt, ...]:
    """Of the made-up set: every third one is about counting, and so on; one is hostile."""
    skills = (("count", "count:few"), ("spatial",), ("named_entity",), ("count", "count:many"))
    found = [
        SetPrompt(f"p{n:03d}", f"{n} red cups beside a blue box number {n}",
                  "real" if n % 2 else "synth", skills[n % len(skills)])
        for n in range(N_PROMPTS - 1)
    ]  # fmt: skip
    parts = (SetElement("e0", f"a cup {NASTY}", "count"), SetElement("e1", "a box"))
    return (*found, SetPrompt(HOSTILE_ID, f"a cup {NASTY}", "real", ("spatial", "lang"), parts))


def prompt_sets() -> dict[str, PromptSet]:
    """One with models, one without."""
    return {
        EMPTY: PromptSet(_card(EMPTY, "Unused prompts"), lambda _: prompts()),
        SET: PromptSet(_card(SET, "Made-up prompts"), lambda _: prompts(), judge=OWN_JUDGE),
    }


def _card(name: str, title: str) -> Card:
    return card_of(
        name, title, dict(MEASURES), Selector(measure=MEASURE), family="gecko",
        summary=f"{title} about cups and boxes.", skills=TITLES,
        description="What the prompts are.\n\nHow they were made.",
        splits={"real": "Real", "synth": "Synthetic"}, licence="CC BY 4.0",
        links={"Paper": "https://example.org/paper", "bad": "javascript:alert(1)"},
    )  # fmt: skip


def entry(place: int, name: str, n_seeds: int = 3) -> ModelEntry:
    """A model; the second took the best of four, the third withheld some, the fourth copied."""
    seeds = tuple(range(40 + place, 40 + place + n_seeds))
    wanted = N_PROMPTS * n_seeds
    withheld = {"nsfw": 2} if place == 2 else {}
    absent = 60 if place == 3 else 0
    shared = (SharedImages(submission_id="drawn-00000", n_images=17, examples=(("p001", 40),)),)
    card = ModelCard(
        model="someone/model" if place == 0 else "", revision="0" * 40 if place == 0 else "",
        parameters=(2_600_000_000, 860_000_000, None, 12_000_000_000)[place % 4],
        steps=(30, 50, None, 4)[place % 4], guidance=(7.5, 3.0, None, 0.0)[place % 4],
        drawn_on="2026-02-0" + str(place + 1) if place < 9 else "",
        selection="best_of" if place == 1 else "first", best_of=4 if place == 1 else None,
        selected_by=NASTY if place == 1 else "",
    )  # fmt: skip
    return ModelEntry(
        submission_id=f"drawn-{place:05d}", model=name, version="" if place % 2 else f"{place}.1",
        submitter=NASTY if name == NASTY else "A lab", account="hub:ada" if place == 0 else "",
        description=f"A made-up model. {NASTY}" if name == NASTY else "A made-up model.",
        authors=("Ada", NASTY) if name == NASTY else (), licence="Apache-2.0" if place % 2 else "",
        links={"code": "https://example.org/c", "bad": "javascript:alert(1)"} if place < 3 else {},
        card=card,
        images=ImagesSeen(
            prompt_set=SET, revision="2024-12-01", seeds=seeds, wanted=wanted,
            present=wanted - sum(withheld.values()) - absent, withheld=withheld,
            n_bytes=10**8, sizes={"1024x1024": wanted - 5, "512x512": 5},
            shared=shared if place == 3 else (),
        ),
        judges=runs(), pictures=int(place in {0, 1}), received_at=NOW - timedelta(days=2),
        published_at=NOW - timedelta(days=1), since=NOW - timedelta(days=1),
    )  # fmt: skip


def runs() -> dict[str, JudgeRun]:
    """Three metrics that scored a model, and one that failed."""
    found = {
        judge: JudgeRun(
            submission_id=judge.partition("/")[0], metric=judge.partition("/")[2],
            isolation=("own network namespace",), perturbed=72, mean_change=0.0021,
            max_change=0.031, scored_at=NOW, unscored={"unreadable_image": 1} if k == 1 else {},
            cost=Cost(pairs=216, images=216, seconds=2.0 + 40 * k, pairs_per_s=5.0,
                      peak_memory_bytes=3 * 2**30),
        )
        for k, judge in enumerate(JUDGES)
    }  # fmt: skip
    failed = JudgeRun(
        submission_id="made-up-0003", metric="ImageReward", failed=NASTY, scored_at=NOW
    )
    return {**found, "made-up-0003/ImageReward": failed}


def scores(one: ModelEntry, worth: Mapping[str, float], rng: np.random.Generator) -> bytes:
    """What every metric says of the images of a model."""
    rows = []
    for judge in JUDGES:
        hard = np.random.default_rng(1).normal(0, 0.12, N_PROMPTS)
        for place, prompt in enumerate(prompts()):
            for seed in one.images.seeds:
                value = worth[judge] + hard[place] + rng.normal(0, 0.05)
                lacks = judge == JUDGES[1] and place == 5 and seed == one.images.seeds[0]
                rows.append((one.submission_id, SET, "2024-12-01", judge,
                             pair_id(prompt.prompt_id, seed), None,
                             np.nan if lacks else value, np.nan))  # fmt: skip
    frame = pd.DataFrame(rows, columns=SCHEMA.names)
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, SCHEMA, preserve_index=False), buffer)
    return buffer.getvalue()


def picture_files(one: ModelEntry) -> dict[str, bytes]:
    """The pictures of a model: a disc of a colour for each prompt and seed."""

    def drawn(prompt: int, seed: int) -> bytes:
        image = Image.new("RGB", (128, 96), (240, 240, 235))
        colour = (37 * prompt % 255, 91 * seed % 255, 160)
        ImageDraw.Draw(image).ellipse((20 + 5 * (seed % 7), 10, 90 + 5 * (seed % 7), 80), colour)
        kept = io.BytesIO()
        image.save(kept, "PNG")
        return kept.getvalue()

    images = [
        (prompt.prompt_id, seed, partial(drawn, place, seed))
        for place, prompt in enumerate(prompts())
        for seed in one.images.seeds
    ]
    with tempfile.TemporaryDirectory() as folder:
        made = write_pictures(images, Path(folder) / "pictures")
        table = image_table({"prompt_id": p, "seed": s, "sha256": "0" * 64} for p, s, _ in images)
        return {
            images_path(one.submission_id, SET): table,
            **{
                pictures_path(one.submission_id, SET, k): path.read_bytes()
                for k, path in enumerate(made)
            },
        }


def keep_models(store: Store, *entries: ModelEntry) -> Store:
    """Put these models, and no others, on the track."""
    keep(store, {PATH: track_bytes(ModelTrack({one.submission_id: one for one in entries}))})
    return store


@cache
def _published(n_models: int) -> tuple[tuple[ModelEntry, ...], Mapping[str, bytes]]:
    """Models with the files of their scores and pictures, made once for all stores."""
    rng = np.random.default_rng(7)
    names = [NAMES[k] if k < len(NAMES) else f"Model {k}" for k in range(n_models)]
    entries = tuple(entry(k, name, 2 if k == 4 else 3) for k, name in enumerate(names))
    files: dict[str, bytes] = {}
    for k, model in enumerate(entries):
        # The second metric sees the first two models the other way round.
        first = 0.8 - 0.06 * (k % 11)
        second = {0: 0.6, 1: 0.75}.get(k, 0.55 - 0.03 * (k % 7))
        worth = dict(zip(JUDGES, (first, second, 0.3 + 0.01 * k), strict=True))
        files[scores_path(model.submission_id, SET)] = scores(model, worth, rng)
    for model in entries[:2]:
        files |= picture_files(model)
    return entries, files


def fill_models(store: Store, n_models: int = len(NAMES)) -> Store:
    """Publish that many models, the first five with names of their own, and pictures of two."""
    entries, files = _published(n_models)
    keep(keep_models(store, *entries), files)
    return store


def filled(n_models: int = len(NAMES)) -> Store:
    """Boards of metrics and of models."""
    return fill_models(fill(memory_store()), n_models)


def reader_of(store: Store) -> ModelReader:
    """Reads the models of a store."""
    return ModelReader(store, prompt_sets(), None)


def context_of(store: Store) -> Context:
    """What the pages of a store are given."""
    return site_of(store, cards_=cards(), models=reader_of(store))


def source_of(store: Store) -> Source:
    """What programs read of a store."""
    return source_over(store, cards(), models=reader_of(store), wait_s=0.2)
