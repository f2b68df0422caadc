"""Batching: neighbours of the plan, of like size and with texts alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from benchmarks.schema import Questions
from evaluator.scoring.asking import Asked
from evaluator.scoring.engines import Batch, RawItem
from evaluator.scoring.plan import Unit
from evaluator.scoring.reading import Fetched


def in_windows(
    fetched: Iterable[Fetched], texts: Callable[[Unit], int], *, images: int, max_bytes: int
) -> Iterator[Fetched]:
    """The same images, within short stretches ordered by size and by their longest text.

    The order depends on the images and texts of the stretch alone, and on the order of the plan
    where these are equal. Batches of like items are filled up with less padding.

    Args:
        fetched: in the order of the plan.
        texts: the longest text of a unit, in characters.
        images: length of a stretch; 1 keeps the order of the plan.
        max_bytes: a stretch ends, too, where its images hold so much.
    """
    window: list[Fetched] = []
    n_bytes = 0
    for one in fetched:
        window.append(one)
        n_bytes += len(one.data)
        if len(window) >= images or n_bytes >= max_bytes:
            yield from _ordered(window, texts)
            window, n_bytes = [], 0
    yield from _ordered(window, texts)


def batches(
    fetched: Iterable[Fetched], questions: Questions, *, max_pairs: int, max_bytes: int
) -> Iterator[Batch]:
    """Cut at image boundaries; only a single image may pass a limit, for it is sent but once."""
    batch: list[RawItem] = []
    number = pairs = size = 0
    for one in fetched:
        n, n_bytes = len(one.unit.pairs), len(one.data)
        if batch and (pairs + n > max_pairs or size + n_bytes > max_bytes):
            yield Batch(number, tuple(batch))
            number, pairs, size, batch = number + 1, 0, 0, []
        batch.append(RawItem(one.unit.image_id, one.data, asked_of(one.unit, questions)))
        pairs, size = pairs + n, size + n_bytes
    if batch:
        yield Batch(number, tuple(batch))


def asked_of(unit: Unit, questions: Questions) -> tuple[Asked, ...]:
    """What is asked about an image, prompts and elements spelled out."""
    return tuple(
        Asked(
            pair.pair_id,
            pair.text_id,
            questions.texts[pair.text_id],
            questions.elements.get(pair.text_id, ()),
        )
        for pair in unit.pairs
    )


def _ordered(window: Sequence[Fetched], texts: Callable[[Unit], int]) -> list[Fetched]:
    if len(window) < 2:
        return list(window)
    return sorted(window, key=lambda one: (*one.size, texts(one.unit)))
