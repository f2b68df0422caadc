"""Asking a scorer in a sandbox: canonical PNGs go in, and nothing but numbers comes back.

What the sandbox does with a request is up to its runner, which takes the cheapest of the ways that
the scorer offers. Whether prompts were cut is not asked of a sandbox: only numbers leave it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.errors import SubmitterError
from evaluator.isolation.inside.wire_protocol import MAX_REQUEST, Capability
from evaluator.isolation.session import ScorerSession
from evaluator.scoring.asking import Item, PairRequest, Ready, Reply, Work
from evaluator.scoring.comparing import method_missing, unpacked
from evaluator.scoring.contract import Verdict
from evaluator.scoring.images import MAX_PIXELS, ImageError, canonical_image

USUAL_REQUEST = MAX_REQUEST // 4
"""Bytes of a request, unless a single image has more: the sandbox holds all of it at once,"""
USUAL_PIXELS = 4 * MAX_PIXELS  # and all of it decoded
_OVERHEAD = 64  # At least what a request holds beside the bytes of each of its images and texts

_MOST_BYTES = MAX_REQUEST - MAX_REQUEST // 64
"""Of two images that are compared, so that there is room for their prompt."""

ASKED_FOR_OUTPUTS = Capability.SCORE | Capability.PREPARE
"""What a scorer with several outputs is asked by."""

Floats = NDArray[np.float64]


class SandboxSource:
    """A sandbox that is entered when the first question is asked.

    The session belongs to whoever made it, who may read its log at any time.
    """

    def __init__(
        self,
        session: ScorerSession,
        fingerprint: str,
        until: ExitStack | None = None,
        environment: Mapping[str, str] | None = None,
        outputs: int = 1,
    ) -> None:
        self._session = session
        self.fingerprint = fingerprint
        self._until = until
        self._environment = dict(environment or {})
        self._outputs = outputs
        self._client: SandboxClient | None = None

    @contextmanager
    def open(self) -> Iterator[SandboxClient]:
        """See `ClientSource`."""
        if self._until is None:
            with self._session:
                yield SandboxClient(self._session, self._environment, self._outputs)
            return
        if self._client is None:
            self._until.enter_context(self._session)
            self._client = SandboxClient(self._session, self._environment, self._outputs)
        yield self._client


class StartedSandboxes:
    """Sandboxes that are started when they are asked for: one for all, or a new one each time."""

    def __init__(
        self,
        start: Callable[[], ScorerSession],
        fingerprint: str,
        until: ExitStack | None = None,
        environment: Mapping[str, str] | None = None,
        outputs: int = 1,
    ) -> None:
        self.fingerprint = fingerprint
        self._start = start
        self._outputs = outputs
        self._environment = environment
        # The one sandbox lives until this is left.
        self._until = None if until is None else until.enter_context(ExitStack())
        self._source: SandboxSource | None = None

    def open(self) -> AbstractContextManager[SandboxClient]:
        """See `ClientSource`."""
        if self._until is None:
            return self._made().open()
        if self._source is None:
            self._source = self._made()
        return self._source.open()

    def end(self) -> None:
        """End the one for all, if it was started; whoever asks next starts another."""
        self._source = None
        if self._until is not None:
            self._until.close()

    def _made(self) -> SandboxSource:
        return SandboxSource(
            self._start(), self.fingerprint, self._until, self._environment, self._outputs
        )


class SandboxClient:
    """Puts questions to a sandbox that is open; see `ScorerClient`.

    `outputs`: scores of each pair; of several `score` gives a row per pair, and nothing else is asked.
    """

    def __init__(
        self,
        session: ScorerSession,
        environment: Mapping[str, str] | None = None,
        outputs: int = 1,
    ) -> None:
        self._session = session
        self._outputs = outputs
        self._can = capabilities_with(outputs, session.capabilities)
        self.asks_elements = Capability.SCORE_ELEMENTS in self._can
        self.environment = {**(environment or {}), "asked": _way(self._can)}
        self._texts_encoded: set[str] = set()

    @property
    def peak_memory_bytes(self) -> int:
        """See `ScorerClient`."""
        return self._session.peak_memory_bytes

    def ready(self, data: bytes) -> Ready:
        """See `ScorerClient`."""
        images = [canonical_image(one) for one in unpacked(data) or (data,)]
        pngs = tuple(image.png for image in images)
        if sum(map(len, pngs)) > _MOST_BYTES:
            raise ImageError(f"both images together have more than {_MOST_BYTES} bytes")
        return Ready(
            pngs,
            sum(map(len, pngs)),
            sum(image.width * image.height for image in images),
            tuple(dict.fromkeys(remark for image in images for remark in image.remarks)),
        )

    def ask(self, items: Sequence[Item]) -> Reply:
        """See `ScorerClient`; a sandbox that ran out of memory is gone, so nothing smaller is tried."""
        started = time.monotonic()
        scores: dict[str, Verdict] = {}
        elements: dict[str, Floats] = {}
        images = calls = texts = 0
        for request in requests(items):
            scores |= self._scores(request)
            texts += self._new_texts(request)
            images += sum(len(item.image.content) for item in request)
            calls += 1
            if self.asks_elements and (found := self._elements(request)):
                elements |= found
                calls += 1
        encodes = Capability.ENCODE in self._can
        work = Work(
            calls=calls,
            images_decoded=images,
            images_encoded=images if encodes else 0,
            texts_encoded=texts if encodes else 0,
            seconds=time.monotonic() - started,
        )
        return _reply(items, scores, elements if self.asks_elements else None, work)

    def _scores(self, request: Sequence[Item]) -> dict[str, Verdict]:
        """Of items with one image each, or of comparisons, which have two."""
        pairs = [(n, pair) for n, item in enumerate(request) for pair in item.asked]
        images = [png for item in request for png in item.image.content]
        compares = len(images) > len(request)
        if (Capability.COMPARE if compares else Capability.SCORE) not in self._can:
            raise method_missing("compare" if compares else "score")
        texts = [(n, pair.prompt) for n, pair in pairs]
        if self._outputs > 1:
            rows = self._session.score_rows(images, texts, self._outputs)
            found = [Verdict.of_outputs(row) for row in rows]
        else:
            scores = (
                self._session.compare(images, [(2 * n, 2 * n + 1, text) for n, text in texts])
                if compares
                else self._session.score(images, texts)
            )
            found = [Verdict.of(float(score)) for score in scores]
        return {pair.pair_id: verdict for (_, pair), verdict in zip(pairs, found, strict=True)}

    def _elements(self, request: Sequence[Item]) -> dict[str, Floats]:
        asked = [
            (n, pair) for n, item in enumerate(request) for pair in item.asked if pair.elements
        ]
        if not asked:
            return {}
        # None: the images of the request before, which the sandbox has decoded already.
        replies = self._session.score_elements(
            None, [(n, pair.prompt, [e.text for e in pair.elements]) for n, pair in asked]
        )
        return {pair.pair_id: values for (_, pair), values in zip(asked, replies, strict=True)}

    def _new_texts(self, request: Sequence[Item]) -> int:
        """Texts that the sandbox, which keeps their vectors, has to encode for this request."""
        texts = {pair.prompt for item in request for pair in item.asked} - self._texts_encoded
        self._texts_encoded |= texts
        return len(texts)


def requests(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """Cut what is to be asked so that each part fits into one request.

    Images are not cut apart from their prompts unless these are too many for any request.
    """
    part: list[Item] = []
    size = pixels = 0
    for item in items:
        for piece in _pieces(item, MAX_REQUEST - _OVERHEAD):
            n_bytes, n_pixels = _item_bytes(piece), piece.image.pixels
            if part and (size + n_bytes > USUAL_REQUEST or pixels + n_pixels > USUAL_PIXELS):
                yield tuple(part)
                part, size, pixels = [], 0, 0
            part.append(piece)
            size, pixels = size + n_bytes, pixels + n_pixels
    if part:
        yield tuple(part)


def _pieces(item: Item, max_bytes: int) -> Iterator[Item]:
    if len(item.asked) < 2 or _item_bytes(item) <= max_bytes:
        yield item
        return
    middle = len(item.asked) // 2
    for half in (item.asked[:middle], item.asked[middle:]):
        yield from _pieces(replace(item, asked=half), max_bytes)


def _item_bytes(item: Item) -> int:
    return item.image.n_bytes + 2 * _OVERHEAD + sum(map(_asked_bytes, item.asked))


def _asked_bytes(pair: PairRequest) -> int:
    texts = [pair.prompt, *(element.text for element in pair.elements)]
    return sum(len(text.encode()) + _OVERHEAD for text in texts)


def _reply(
    items: Sequence[Item],
    scores: Mapping[str, Verdict],
    elements: Mapping[str, Floats] | None,
    work: Work,
) -> Reply:
    rows = None
    if elements is not None:
        none = np.zeros(0)
        rows = tuple(tuple(elements.get(p.pair_id, none) for p in i.asked) for i in items)
    verdicts = tuple(tuple(scores[p.pair_id] for p in i.asked) for i in items)
    return Reply(verdicts, rows, work=work)


def capabilities_with(outputs: int, can: Capability) -> Capability:
    """What a scorer is asked by that gives so many scores per pair.

    Raises:
        SubmitterError: `elements_of_outputs`: it has several, and scores elements as well.
    """
    if outputs == 1:
        return can
    if Capability.SCORE_ELEMENTS in can:
        raise SubmitterError(
            "elements_of_outputs",
            "The metric has several outputs and a method score_elements, which gives one number for "
            "an element.",
            "Leave outputs out of assay.toml, or score_elements out of the class.",
        )
    return can & ASKED_FOR_OUTPUTS


def _way(can: Capability) -> str:
    """Which of its methods a scorer is asked by."""
    if Capability.SCORE not in can:
        return "compare"
    if Capability.ENCODE in can:
        return "encode_images, encode_texts, similarity"
    return "score_texts" if Capability.SCORE_TEXTS in can else "score"
