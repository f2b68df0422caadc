"""What a model does wrong stays with the item that it went wrong for."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.scorers.in_process import ModelAsker
from evaluator.scoring.asking import Item, OutOfMemoryError, Reply
from tests.evaluator.scorers.tiny_towers import (
    DualTiny,
    ElementTiny,
    PairTiny,
    SharedTiny,
    asker_of,
    item_of,
    photo,
    scores_of,
)

if TYPE_CHECKING:
    import torch

BAD_IMAGE = 3
BAD_PROMPT = "the forbidden one"


def refuses(kind: type[PairTiny]) -> PairTiny:
    """A scorer that raises for one image and for one prompt."""

    import torch

    class Refuses(kind):  # type: ignore[valid-type, misc]
        def _images(self, images: Sequence[torch.Tensor]) -> Any:
            bad = self.prepare(Image.open(_file(BAD_IMAGE)))
            if any(torch.equal(image, bad) for image in images):
                raise ValueError("an image\nI cannot see")
            return super()._images(images)

        def _texts(self, prompts: Sequence[str]) -> Any:
            if BAD_PROMPT in prompts:
                raise IndexError("index out of range in self")
            return super()._texts(prompts)

    scorer: PairTiny = Refuses()
    return scorer


def _file(number: int) -> Any:

    return io.BytesIO(photo(number))


def batch_of(asker: ModelAsker) -> list[Item]:
    return [item_of(asker, photo(n), ["a cup", BAD_PROMPT, "a dog"]) for n in range(5)]


@pytest.mark.parametrize("kind", [PairTiny, SharedTiny, DualTiny])
def test_one_bad_image_and_one_bad_prompt_cost_their_own_pairs_only(kind: type[PairTiny]) -> None:
    asker = asker_of(refuses(kind))
    reply = asker.ask(batch_of(asker))
    good = asker_of(kind())
    expected = good.ask([item_of(good, photo(n), ["a cup", "a dog"]) for n in range(5)])
    for n, (verdicts, wanted) in enumerate(zip(reply.verdicts, expected.verdicts, strict=True)):
        if n == BAD_IMAGE:
            assert all(math.isnan(verdict.score) for verdict in verdicts)
            assert verdicts[0].problem == "ValueError: an image I cannot see"
            continue
        assert verdicts[1].problem == "IndexError: index out of range in self"
        found = [verdicts[0].score, verdicts[2].score]
        np.testing.assert_allclose(found, [one.score for one in wanted], atol=1e-6)


def test_an_image_that_cannot_be_prepared_has_a_reason() -> None:
    class Picky(DualTiny):
        def prepare(self, image: Image.Image) -> torch.Tensor:
            if image.width == 1:
                raise ValueError("mean must have 1 elements")
            return super().prepare(image)

    buffer = io.BytesIO()
    Image.new("RGB", (1, 3)).save(buffer, "PNG")
    asker = asker_of(Picky())
    reply = asker.ask(
        [item_of(asker, buffer.getvalue(), ["a cup"]), item_of(asker, photo(1), ["a cup"])]
    )
    (bad,), (good,) = reply.verdicts
    assert "cannot take the image: ValueError: mean must have 1 elements" in bad.problem
    assert math.isfinite(good.score)


def broken(error: Exception, kind: type[PairTiny] = DualTiny) -> PairTiny:
    class Broken(kind):  # type: ignore[valid-type, misc]
        def _images(self, images: Sequence[Any]) -> Any:
            raise error

    scorer: PairTiny = Broken()
    return scorer


@pytest.mark.parametrize("n_batches", [1, 2])
def test_a_scorer_that_fails_on_everything_is_a_defect(n_batches: int) -> None:
    asker = asker_of(broken(ValueError("no such layer")))
    items = [item_of(asker, photo(n), ["a cup"]) for n in range(2)]
    with pytest.raises(PlatformError, match="every image: ValueError: no such layer") as raised:
        for start in range(0, 2, 2 // n_batches):
            asker.ask(items[start : start + 2 // n_batches])
    assert raised.value.code == "scorer_failed"


@pytest.mark.parametrize(
    "error",
    [
        "torch",
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
        MemoryError(),
    ],
)
@pytest.mark.parametrize("kind", [PairTiny, SharedTiny, DualTiny])
def test_too_little_memory_asks_for_a_smaller_batch(
    error: Exception | str, kind: type[PairTiny]
) -> None:
    import torch

    if isinstance(error, str):
        error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB")
    asker = asker_of(broken(error, kind))
    with pytest.raises(OutOfMemoryError) as raised:
        asker.ask([item_of(asker, photo(n), ["a cup"]) for n in range(3)])
    assert raised.value.__context__ is None, "it would hold on to tensors"


def test_real_memory_that_is_not_there_asks_for_a_smaller_batch() -> None:
    import torch

    class Greedy(DualTiny):
        def _images(self, images: Sequence[Any]) -> Any:
            torch.empty(2**60, dtype=torch.uint8)
            return super()._images(images)

    asker = asker_of(Greedy())
    with pytest.raises(OutOfMemoryError):
        asker.ask([item_of(asker, photo(0), ["a cup"])])


def test_work_of_a_batch_that_did_not_fit_counts_with_the_next() -> None:
    import torch

    class Small(DualTiny):
        def _images(self, images: Sequence[Any]) -> Any:
            if len(images) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super()._images(images)

    tiny = Small()
    asker = asker_of(tiny)
    items = [item_of(asker, photo(n), ["a cup", "a dog"]) for n in range(4)]
    with pytest.raises(OutOfMemoryError):
        asker.ask(items)
    works = [asker.ask(half).work for half in (items[:2], items[2:])]
    assert sum(work.images_decoded for work in works) == 4
    assert sum(work.images_encoded for work in works) == tiny.image_rows == 4
    assert sum(work.texts_encoded for work in works) == tiny.text_rows == 2
    assert sum(work.calls for work in works) == 1 + 2 + 1 + 2 + 1, "images, texts, scores, lengths"


def test_an_image_whose_prompts_are_asked_in_two_parts_is_encoded_once() -> None:
    tiny = DualTiny()
    asker = asker_of(tiny)
    item = item_of(asker, photo(0), ["a cup", "a dog"])
    parts = [Item(item.image_id, item.image, (asked,)) for asked in item.asked]
    works = [asker.ask([part]).work for part in parts]
    assert tiny.image_rows == 1
    assert [work.images_decoded for work in works] == [1, 0]


def test_a_device_that_failed_ends_the_run() -> None:
    asker = asker_of(broken(RuntimeError("CUDA error: device-side assert triggered")))
    with pytest.raises(PlatformError) as raised:
        asker.ask([item_of(asker, photo(n), ["a cup"]) for n in range(2)])
    assert raised.value.code == "device_failed"


def test_an_error_with_a_remedy_is_not_swallowed() -> None:
    error = SubmitterError("questions_missing", "There are no questions for this text.")
    asker = asker_of(broken(error))
    with pytest.raises(SubmitterError) as raised:
        asker.ask([item_of(asker, photo(0), ["a cup"])])
    assert raised.value is error


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_wrong_number_of_scores_is_a_defect(n: int) -> None:
    class Miscounts(PairTiny):
        def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
            return [0.5] * n

    asker = asker_of(Miscounts())
    with pytest.raises(PlatformError, match=f"score gave {n} values for 2") as raised:
        asker.ask([item_of(asker, photo(k), ["a cup"]) for k in range(2)])
    assert raised.value.code == "scorer_defect"


def test_elements_that_fail_leave_the_score_and_have_a_reason() -> None:
    class NoDogs(ElementTiny):
        def score_elements(
            self, images: Sequence[Any], prompts: Sequence[str], elements: Sequence[Sequence[str]]
        ) -> list[list[float]]:
            if any("dog" in one for one in elements):
                raise KeyError("dog")
            return super().score_elements(images, prompts, elements)

    asker = asker_of(NoDogs())
    reply = asker.ask(
        [item_of(asker, photo(0), ["a"], ["cup"]), item_of(asker, photo(1), ["a"], ["cup", "dog"])]
    )
    assert np.isfinite(scores_of(reply)).all()
    assert reply.elements is not None
    assert np.isfinite(reply.elements[0][0]).all()
    assert np.isnan(reply.elements[1][0]).all()
    (finding,) = reply.findings
    assert (finding.code, finding.scored) == ("no_element_scores", True)
    assert "KeyError: 'dog'" in finding.message


def test_a_prompt_whose_length_cannot_be_told_is_scored_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unsure(DualTiny):
        def truncated(self, prompts: Sequence[str]) -> list[bool]:
            if "a dog" in prompts:
                raise ValueError("a dog")
            return [True for _ in prompts]

    asker = asker_of(Unsure())
    reply: Reply = asker.ask([item_of(asker, photo(0), ["a cup", "a dog"])])
    assert [finding.item_id for finding in reply.findings] == ["text a cup"]
    assert "not known" in caplog.text
