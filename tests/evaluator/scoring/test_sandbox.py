"""Asking a box: canonical images, requests that fit, and a box that is opened when it is needed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.schema import Element
from evaluator.isolation.inside import wire_protocol
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.scoring import sandbox
from evaluator.scoring.asking import Item, PairRequest, Ready
from evaluator.scoring.images import ImageError, is_canonical
from evaluator.scoring.sandbox import SandboxClient, SandboxSource, requests
from tests.evaluator.scoring.fakes import FakeSession, content_score, picture


def items_of(client: SandboxClient, *sizes: int, elements: bool = False) -> list[Item]:
    parts = (Element("a", "part"),) if elements else ()
    return [
        Item(
            f"i{i}",
            client.ready(picture(i)),
            tuple(PairRequest(f"p{i}-{k}", f"t{k}", f"prompt {k}", parts) for k in range(n)),
        )
        for i, n in enumerate(sizes)
    ]


def test_an_image_is_sent_in_its_canonical_form() -> None:
    ready = SandboxClient(FakeSession()).ready(picture(1))
    assert is_canonical(ready.content[0])
    assert (ready.pixels, ready.n_bytes) == (4, len(ready.content[0]))
    with pytest.raises(ImageError):
        SandboxClient(FakeSession()).ready(b"no image")


def test_each_pair_gets_its_score_and_only_calls_and_images_are_counted() -> None:
    client = SandboxClient(FakeSession())
    items = items_of(client, 2, 1)
    reply = client.ask(items)
    assert [[v.score for v in row] for row in reply.verdicts] == [
        [content_score(i.image.content[0], p.prompt) for p in i.asked] for i in items
    ]
    assert reply.elements is None
    work = reply.work
    assert (work.calls, work.images_decoded, work.images_encoded, work.texts_encoded) == (
        1,
        2,
        0,
        0,
    )


def test_of_an_encoder_rows_are_counted_and_a_text_once_in_its_life() -> None:
    session = FakeSession()
    session._capabilities = Capability.SCORE | Capability.ENCODE
    client = SandboxClient(session)
    first, second = client.ask(items_of(client, 2, 1)).work, client.ask(items_of(client, 3)).work
    assert (first.images_encoded, first.texts_encoded) == (2, 2)
    assert (second.images_encoded, second.texts_encoded) == (1, 1)
    assert client.environment == {"asked": "encode_images, encode_texts, similarity"}


def test_elements_follow_their_images() -> None:
    client = SandboxClient(FakeSession(elements=True))
    items = items_of(client, 2, 1, elements=True)
    items[0] = replace(items[0], asked=(replace(items[0].asked[0], elements=()), items[0].asked[1]))
    reply = client.ask(items)
    assert reply.elements is not None
    assert reply.elements[0][0].tolist() == []
    assert reply.elements[0][1].tolist() == [content_score(items[0].image.content[0], "part")]
    assert reply.elements[1][0].tolist() == [content_score(items[1].image.content[0], "part")]


@pytest.mark.parametrize(("limit", "value"), [("USUAL_REQUEST", 700), ("USUAL_PIXELS", 11)])
def test_a_batch_that_is_too_large_for_a_request_is_sent_in_several(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    session = FakeSession()
    client = SandboxClient(session)
    items = items_of(client, 2, 1, 3, 1)
    whole = client.ask(items)
    monkeypatch.setattr(sandbox, limit, value)
    parts = client.ask(items)
    assert parts.verdicts == whole.verdicts
    assert parts.work.calls == len(session.batches) - 1 > 1


TEXT = st.text(max_size=40)
ITEM = st.builds(
    lambda data, pixels, texts: Item(
        "i",
        Ready((data,), len(data), pixels),
        tuple(
            PairRequest(str(n), "t", text, tuple(Element("e", part) for part in parts))
            for n, (text, parts) in enumerate(texts)
        ),
    ),
    st.binary(max_size=300),
    st.integers(0, 30),
    st.lists(st.tuples(TEXT, st.lists(TEXT, max_size=2)), min_size=1, max_size=6),
)


@pytest.mark.slow
@given(st.lists(ITEM, max_size=8), st.integers(1_000, 3_000))
def test_every_request_fits_and_nothing_is_left_out(items: list[Item], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "MAX_REQUEST", most)
        patch.setattr(sandbox, "USUAL_REQUEST", 700)
        patch.setattr(sandbox, "USUAL_PIXELS", 40)
        sent = list(requests(items))
    assert [pair for part in sent for item in part for pair in item.asked] == [
        pair for item in items for pair in item.asked
    ]
    for part in sent:
        pairs = [(n, pair) for n, item in enumerate(part) for pair in item.asked]
        frame = wire_protocol.encode_score(
            1, [item.image.content[0] for item in part], [(n, pair.prompt) for n, pair in pairs]
        )
        asked = [(n, pair.prompt, [e.text for e in pair.elements]) for n, pair in pairs]
        assert len(frame) <= (most if len(part) == 1 else 700 + 64)
        assert len(wire_protocol.encode_elements(1, None, asked)) <= most
        assert len(part) == 1 or sum(item.image.pixels for item in part) <= 40


def test_a_box_ends_with_its_run() -> None:
    session = FakeSession()
    source = SandboxSource(session, "content")
    assert (source.fingerprint, session.entered) == ("content", 0)
    with source.open() as client:
        assert session.entered == 1
        assert not client.asks_elements
        assert client.peak_memory_bytes == 1000
    assert session.left == 1


def test_a_box_may_serve_several_runs() -> None:
    session = FakeSession()
    with ExitStack() as stack:
        source = SandboxSource(session, "content", until=stack)
        for _ in range(3):
            with source.open() as client:
                client.ask(items_of(client, 1))
        assert (session.entered, session.left) == (1, 0)
    assert session.left == 1
