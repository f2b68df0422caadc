"""Asking a model in this process: each thing once, the same score on every way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaluator.scorers.embeddings import About, EmbeddingCache
from evaluator.scorers.in_process import ModelAsker
from evaluator.scoring.asking import Item, Reply
from evaluator.scoring.contract import Answer, Verdict
from evaluator.scoring.images import ImageError, decode
from tests.evaluator.scorers.tiny_towers import (
    LONGEST,
    DualTiny,
    ElementTiny,
    PairTiny,
    SharedTiny,
    asker_of,
    item_of,
    photo,
    scores_of,
)

ABOUT = About("d" * 64, "8 pixels", "tiny")
PROMPTS = ["a cup", "two cups on a table", "a dog", "a dog beside two cups"]


def workload(asker: ModelAsker) -> list[list[Item]]:
    """Batches of 20 images with two prompts each, as in CROC."""
    items = [item_of(asker, photo(n), PROMPTS[2 * (n % 2) :][:2]) for n in range(20)]
    return [items[start : start + 6] for start in range(0, 20, 6)]


def run(asker: ModelAsker) -> list[Reply]:
    return [asker.ask(batch) for batch in workload(asker)]


def all_scores(replies: Sequence[Reply]) -> list[float]:
    return [score for reply in replies for score in scores_of(reply)]


def pair_by_pair() -> list[float]:
    """The formula, without any of the code under test but decoding."""
    import torch

    tiny = DualTiny()
    with torch.inference_mode():
        return [
            float(tiny.score([tiny.prepare(decode(photo(n)).image)], [prompt])[0])
            for n in range(20)
            for prompt in PROMPTS[2 * (n % 2) :][:2]
        ]


@pytest.mark.parametrize("kind", [PairTiny, SharedTiny, DualTiny])
def test_every_way_gives_the_scores_of_single_pairs(kind: type[PairTiny]) -> None:
    np.testing.assert_allclose(all_scores(run(asker_of(kind()))), pair_by_pair(), atol=1e-6)


def test_a_dual_encoder_sees_each_image_and_each_text_once() -> None:
    tiny = DualTiny()
    works = [reply.work for reply in run(asker_of(tiny))]
    assert sum(work.images_decoded for work in works) == tiny.prepared == 20
    assert sum(work.images_encoded for work in works) == tiny.image_rows == 20
    assert sum(work.texts_encoded for work in works) == tiny.text_rows == len(PROMPTS)
    assert all(work.seconds > 0 for work in works)


def test_several_prompts_of_an_image_share_it() -> None:
    tiny = SharedTiny()
    works = [reply.work for reply in run(asker_of(tiny))]
    assert sum(work.images_encoded for work in works) == tiny.image_rows == 20
    assert sum(work.texts_encoded for work in works) == tiny.text_rows == 40


def test_pairs_go_through_the_model_one_by_one_where_it_offers_no_more() -> None:
    tiny = PairTiny()
    works = [reply.work for reply in run(asker_of(tiny))]
    assert sum(work.images_decoded for work in works) == 20
    assert sum(work.images_encoded for work in works) == tiny.image_rows == 40


def test_a_second_run_decodes_and_encodes_nothing_and_scores_the_same_bits(tmp_path: Path) -> None:
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        first = all_scores(run(asker_of(DualTiny(), cache=cache)))
    tiny = DualTiny()
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        replies = run(asker_of(tiny, cache=cache))
    assert all_scores(replies) == first == all_scores(run(asker_of(DualTiny())))
    assert tiny.prepared == tiny.image_rows == tiny.text_rows == 0
    for work in (reply.work for reply in replies):
        assert (work.images_decoded, work.images_encoded, work.texts_encoded) == (0, 0, 0)


def test_a_half_kept_run_encodes_what_is_missing(tmp_path: Path) -> None:
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        asker = asker_of(DualTiny(), cache=cache)
        asker.ask([item_of(asker, photo(n), PROMPTS[:2]) for n in range(8)])
    tiny = DualTiny()
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        found = all_scores(run(asker_of(tiny, cache=cache)))
    assert (tiny.prepared, tiny.image_rows, tiny.text_rows) == (12, 12, 2)
    np.testing.assert_allclose(found, pair_by_pair(), atol=1e-6)


def test_remarks_on_an_image_outlive_its_decoding(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    for _ in range(2):
        with EmbeddingCache(tmp_path, ABOUT) as cache:
            asker = asker_of(DualTiny(), cache=cache)
            item = item_of(asker, photo(1, "JPEG", exif=exif), ["a cup"])
            assert [code for code, _ in item.image.remarks] == ["image_rotated"]
            asker.ask([item])


def test_one_image_under_two_names_is_encoded_once() -> None:
    tiny = DualTiny()
    asker = asker_of(tiny)
    reply = asker.ask([item_of(asker, photo(1), ["a cup"]), item_of(asker, photo(1), ["a dog"])])
    assert tiny.image_rows == reply.work.images_encoded == 1
    assert reply.work.images_decoded == 2


def test_texts_alone_do_not_depend_on_what_was_asked_before() -> None:
    def score_of_the_dog(before: Sequence[str]) -> float:
        asker = asker_of(DualTiny(), batch_texts=1)
        asker.ask([item_of(asker, photo(0), before)])
        return scores_of(asker.ask([item_of(asker, photo(1), ["a dog"])]))[0]

    assert score_of_the_dog(["a cup"]) == score_of_the_dog(["a dog", *PROMPTS, "x" * 30])


def test_texts_are_encoded_in_chunks_of_like_length() -> None:
    class Chunks(DualTiny):
        def __init__(self) -> None:
            super().__init__()
            self.chunks: list[list[str]] = []

        def encode_texts(self, prompts: Sequence[str]) -> Any:
            self.chunks.append(list(prompts))
            return super().encode_texts(prompts)

    tiny = Chunks()
    asker = asker_of(tiny, batch_texts=2)
    asker.ask([item_of(asker, photo(0), ["ccc", "a", "dddd", "bb", "a"])])
    assert tiny.chunks == [["a", "bb"], ["ccc", "dddd"]]


def test_a_bad_image_is_named_when_it_is_made_ready() -> None:
    with pytest.raises(ImageError, match="damaged"):
        asker_of(DualTiny()).ready(photo(1)[:-60])


def test_a_text_that_is_cut_is_told_once() -> None:
    asker = asker_of(DualTiny())
    long = "word " * 20
    first = asker.ask([item_of(asker, photo(n), [long, "a cup"]) for n in range(2)])
    (finding,) = first.findings
    assert (finding.code, finding.item, finding.item_id) == (
        "text_truncated",
        "text",
        f"text {long}",
    )
    assert finding.scored
    assert "20 words" in finding.message
    assert not asker.ask([item_of(asker, photo(3), [long])]).findings
    assert not asker.ask([item_of(asker, photo(0), ["x" * LONGEST])]).findings


def test_an_empty_prompt_is_scored_and_told() -> None:
    asker = asker_of(DualTiny())
    reply = asker.ask([item_of(asker, photo(0), ["", " \n"])])
    assert [finding.code for finding in reply.findings] == ["text_empty"] * 2
    assert np.isfinite(scores_of(reply)).all()


def test_elements_are_scored_where_there_are_any(tmp_path: Path) -> None:
    tiny = ElementTiny()
    for _ in range(2):  # the second time from kept embeddings
        with EmbeddingCache(tmp_path, ABOUT) as cache:
            asker = asker_of(tiny, cache=cache)
            assert asker.asks_elements
            items = [
                item_of(asker, photo(0), ["a cup", "a dog"], ["cup", "dog", "table"]),
                item_of(asker, photo(1), ["a dog"]),
            ]
            reply = asker.ask(items)
            assert reply.elements is not None
            assert [[len(one) for one in row] for row in reply.elements] == [[3, 3], [0]]
            alone = asker.ask([item_of(asker, photo(0), ["dog"])])
            np.testing.assert_allclose(reply.elements[0][1][1], scores_of(alone)[0], atol=1e-6)
    assert tiny.image_rows == 2 + 2 * 6, "two encoded, and six elements scored in each run"


def test_without_elements_of_its_own_a_scorer_is_not_asked_for_them() -> None:
    asker = asker_of(DualTiny())
    reply = asker.ask([item_of(asker, photo(0), ["a cup"], ["cup"])])
    assert reply.elements is None
    assert not asker.asks_elements


def test_verdicts_with_answers_pass_through() -> None:
    answer = Answer("q1", "Is there a cup?", "yes", "Yes.", 1.0)

    class Asks(SharedTiny):
        def score_texts(self, images: Sequence[Any], prompts: Sequence[Sequence[str]]) -> Any:
            return [[Verdict(1.0, answers=(answer,)), math.nan] for _ in images]

    asker = asker_of(Asks())
    ((first, second),) = asker.ask([item_of(asker, photo(0), ["a cup", "a dog"])]).verdicts
    assert first.answers == (answer,)
    assert second.problem == "the scorer gave no number"


def test_the_record_says_on_what_it_ran() -> None:
    import torch

    environment = asker_of(DualTiny()).environment
    assert environment["device"] == "cpu"
    assert environment["dtype"] == "float32"
    assert environment["torch"] == torch.__version__.partition("+")[0]
    assert int(environment["threads"]) >= 1
    assert asker_of(DualTiny()).peak_memory_bytes > 50 * 2**20


def test_no_gradients_are_kept() -> None:
    import torch

    class Watches(DualTiny):
        def encode_images(self, images: Sequence[Any]) -> Any:
            assert torch.is_inference_mode_enabled()
            return super().encode_images(images)

    asker = asker_of(Watches())
    assert np.isfinite(scores_of(asker.ask([item_of(asker, photo(0), ["a cup"])]))).all()
