"""Judges behind an API: scores, what is kept and paid, and endpoints that misbehave."""

from __future__ import annotations

import io
import json
import math
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.responses import JSONResponse, PlainTextResponse, Response

from benchmarks.errors import AssayError, PlatformError, TransientError
from benchmarks.schema import Pair, Questions
from evaluator.scorers.endpoints import find_endpoint, read_endpoints
from evaluator.scorers.families.endpoint_judge import FAMILY, EndpointJudgeOptions
from evaluator.scorers.in_process import ModelSource, fingerprint_of
from evaluator.scorers.models.chat_endpoint import ChatEndpoint, ChatRequest
from evaluator.scorers.models.endpoint_requests import EndpointRequests, RequestFailure, RequestRate
from evaluator.scorers.models.judge_replies import LONGEST_KEPT
from evaluator.scorers.models.reply_cache import ReplyCache
from evaluator.scorers.registry import Runtime, ScorerRow, load_rows, load_scorer
from evaluator.scoring.asking import ScoringPlan
from evaluator.scoring.column import ScoreColumn, ShardFolder
from evaluator.scoring.contract import Verdict
from evaluator.scoring.engine import run_plan
from tests.evaluator.raw_server import dripping_body, dripping_header, endless_body, raw_server
from tests.evaluator.scorers.chat_server import (
    KEY,
    MODEL,
    WORDS,
    ChatServer,
    chat_server,
    completion,
    endpoints_file,
    honest,
    log_probabilities,
)
from tests.evaluator.scorers.common import refusal

QUESTION = 'Does this figure show "{prompt}"? Please answer Yes or No.'


def row_of(**options: Any) -> ScorerRow:
    """A row of the family."""
    own = {"endpoint": "here", "model": MODEL, "question": QUESTION, "reading": "probability"}
    return ScorerRow(
        name="judge", family="endpoint_judge", title="Judge", summary="Asks.", formula="P(Yes)",
        source="this test", options=own | options,
    )  # fmt: skip


def pictures(count: int, side: int = 8) -> list[Image.Image]:
    """Images of which no two are equal."""
    made = np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)
    return [Image.fromarray(one) for one in made]


def png(image: Image.Image) -> bytes:
    """An image as a file."""
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


PROMPTS = ["a red cube", "two dogs", "a cat on a mat"]


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited, were it not for the test."""
    waited: list[float] = []
    patient = partial(ChatEndpoint, sleep=waited.append)
    monkeypatch.setattr("evaluator.scorers.families.endpoint_judge.ChatEndpoint", patient)
    return waited


@pytest.fixture
def served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rests: list[float]
) -> Iterator[ChatServer]:
    with chat_server() as (server, address):
        path = endpoints_file(tmp_path, address, key_variable="JUDGE_KEY")
        monkeypatch.setenv("ASSAY_ENDPOINTS", str(path))
        monkeypatch.setenv("JUDGE_KEY", KEY)
        monkeypatch.setenv("HF_TOKEN", "hf_of_somebody")
        yield server


def verdicts(row: ScorerRow, images: list[Image.Image], prompts: list[str]) -> list[Verdict]:
    """Of each image with its prompt."""
    scorer: Any = load_scorer(row, Runtime()).scorer
    ready = [scorer.prepare(image) for image in images]
    return [of_image[0] for of_image in scorer.score_texts(ready, [[one] for one in prompts])]


def test_a_probability_is_summed_over_the_ways_to_write_the_answer(served: ChatServer) -> None:
    images = pictures(3)
    found = verdicts(row_of(), images, PROMPTS)
    for verdict, image, prompt in zip(found, images, PROMPTS, strict=True):
        said = log_probabilities(image, QUESTION.replace("{prompt}", prompt))
        assert verdict.score == pytest.approx(math.exp(said["Yes"]) + math.exp(said[" yes"]))
        assert verdict.answers[0].raw in WORDS
    body = served.bodies[0]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 0, 1)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    assert served.keys == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("listed", "score"),
    [
        ({"No": math.log(0.9995)}, 0.0),
        ({"No": math.log(0.9)}, math.nan),
        ({"Perhaps": math.log(0.9)}, math.nan),
        ({"YES": math.log(0.25), "No": math.log(0.75)}, 0.25),
        ([("Yes", math.log(0.8)), ("No", math.log(0.1)), ("Yes", math.log(0.01))], 0.81),
    ],
)
def test_an_answer_that_is_not_listed_is_nought_or_missing_and_one_written_alike_counts_twice(
    served: ChatServer, listed: dict[str, float] | list[tuple[str, float]], score: float
) -> None:
    pairs = listed if isinstance(listed, list) else listed.items()
    top = [{"token": token, "logprob": p} for token, p in pairs]
    place = {"token": "No", "logprob": 0.0, "top_logprobs": top}
    served.behaviour = lambda _: completion("No", choice={"logprobs": {"content": [place]}})
    (found,) = verdicts(row_of(), pictures(1), PROMPTS[:1])
    assert found.score == pytest.approx(score, nan_ok=True)
    assert bool(found.problem) == math.isnan(score)


RATING = {"reading": "rating", "high": 5.0, "low": 1.0, "max_tokens": 64}
CHOICE = {"reading": "choice", "choices": {"good": 1.0, "poor": 0.0}, "max_tokens": 4}
REPLIES: list[tuple[str, dict[str, Any], dict[str, Any], float]] = [
    ("object", RATING, completion('{"why": "it fits", "score": 4.5}'), 4.5),
    ("in prose", RATING, completion('I say {"score": 3} and mean it'), 3.0),
    ("two that differ", RATING, completion('{"score": 3} or {"score": 4}'), math.nan),
    ("out of range", RATING, completion('{"score": 7}'), math.nan),
    ("a word", RATING, completion('{"score": "five"}'), math.nan),
    ("no object", RATING, completion("It is fine."), math.nan),
    ("no object, a number", RATING, completion("Score (1-10): 7"), math.nan),
    ("huge", RATING, completion('{"score": 1' + "0" * 400 + "}"), math.nan),
    ("nothing", RATING, completion(message={"role": "assistant", "content": None}), math.nan),
    ("cut", RATING, completion('{"score": 4}', finish_reason="length"), math.nan),
    ("filtered", RATING, completion("", finish_reason="content_filter"), math.nan),
    ("word", CHOICE, completion(" Good. "), 1.0),
    ("other word", CHOICE, completion("poor"), 0.0),
    ("both words", CHOICE, completion("good or poor"), math.nan),
    (
        "refused", CHOICE, completion(message={"role": "a", "content": None, "refusal": "I may not"}),
        math.nan,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "reply", "score"), [one[1:] for one in REPLIES], ids=[one[0] for one in REPLIES]
)
def test_a_reply_in_words_is_read_strictly_and_kept_as_evidence(
    served: ChatServer, options: dict[str, Any], reply: dict[str, Any], score: float
) -> None:
    served.behaviour = lambda _: reply
    (found,) = verdicts(row_of(**options), pictures(1), PROMPTS[:1])
    assert found.score == pytest.approx(score, nan_ok=True)
    assert bool(found.problem) == math.isnan(score)
    (choice,) = reply["choices"]
    filtered = choice["finish_reason"] if choice["finish_reason"] == "content_filter" else ""
    said = choice["message"]["content"] or choice["message"].get("refusal") or filtered
    assert found.answers[0].raw == said
    assert found.answers[0].valid == (not math.isnan(score))
    assert "logprobs" not in served.bodies[0]


def test_evidence_is_bounded_and_the_rest_is_told_by_its_hash(served: ChatServer) -> None:
    served.behaviour = lambda _: completion("x" * 50_000)
    (found,) = verdicts(row_of(**RATING), pictures(1), PROMPTS[:1])
    assert len(found.answers[0].raw) < LONGEST_KEPT + 100
    assert "sha256:" in found.answers[0].raw


def test_a_second_run_asks_nothing_and_gives_the_same(served: ChatServer, tmp_path: Path) -> None:
    images = pictures(30)
    prompts = [f"thing {n}" for n in range(30)]
    first = verdicts(row_of(), images, prompts)
    assert len(served.bodies) == 30
    served.behaviour = lambda _: Response(status_code=410)  # The model is retired.
    assert verdicts(row_of(), images, prompts) == first
    assert len(served.bodies) == 30
    with sqlite3.connect(tmp_path / "replies.sqlite") as kept:
        rows = kept.execute("select request, reply, usd from replies").fetchall()
        ((spent,),) = kept.execute("select usd from spending").fetchall()
    assert spent == pytest.approx(30 * rows[0][2])
    assert len(rows) == 30
    assert {usd for *_, usd in rows} == {(1000 * 2.0 + 10 * 8.0) / 1e6}
    assert json.loads(rows[0][1])["model"] == MODEL
    assert not any("base64" in request for request, *_ in rows)
    assert KEY not in (tmp_path / "replies.sqlite").read_bytes().decode("latin-1")
    assert (tmp_path / "replies.sqlite").stat().st_mode & 0o077 == 0


ABSURD = {
    "no JSON": "{",
    "a list": "[]",
    "no choice": '{"choices": []}',
    "a choice of another type": '{"choices": [7]}',
    "1e30 tokens": json.dumps(
        completion("yes") | {"usage": {"prompt_tokens": 1e30, "completion_tokens": 1}}
    ),
    "negative tokens": json.dumps(
        completion("yes") | {"usage": {"prompt_tokens": -5, "completion_tokens": 1}}
    ),
}


@pytest.mark.parametrize("content", ABSURD.values(), ids=ABSURD)
def test_a_kept_reply_that_is_no_reply_is_asked_for_again_and_replaced(
    served: ChatServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    def run() -> list[Verdict]:
        return verdicts(row_of(), pictures(1), PROMPTS[:1])

    first = run()
    with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as kept, kept:
        kept.execute("update replies set reply = ?", (content,))
    caplog.clear()
    assert run() == first
    assert [one.levelname for one in caplog.records if "kept" in one.message] == ["WARNING"]
    assert run() == first
    assert len(served.bodies) == 2
    spent = ReplyCache(tmp_path / "replies.sqlite").spent_usd("here")
    assert spent == pytest.approx(2 * (1000 * 2.0 + 10 * 8.0) / 1e6)


@pytest.mark.parametrize(
    "change", [{"question": "Show {prompt}?"}, {"top_logprobs": 5}, {"longest_side": 16}], ids=str
)
def test_another_question_is_another_request(served: ChatServer, change: dict[str, Any]) -> None:
    images = pictures(1, side=32)
    verdicts(row_of(), images, PROMPTS[:1])
    verdicts(row_of(**change), images, PROMPTS[:1])
    assert len(served.bodies) == 2


def test_a_run_has_the_price_of_its_replies_and_a_rerun_the_same(
    served: ChatServer, tmp_path: Path
) -> None:
    images = {f"i{n}": png(image) for n, image in enumerate(pictures(4))}
    pairs = tuple(Pair(f"p{n}", f"i{n // 2}", f"t{n % 2}") for n in range(8))
    questions = Questions(
        images={name: partial(bytes, data) for name, data in images.items()},
        texts={f"t{n}": prompt for n, prompt in enumerate(PROMPTS)},
        pairs=pairs,
    )
    one_usd = (1000 * 2.0 + 10 * 8.0) / 1e6

    def column(name: str) -> ScoreColumn:
        source = ModelSource(row_of(), Runtime())
        shards = ShardFolder(tmp_path / name, "fingerprint")
        plan = ScoringPlan.of(questions, b"seed")
        return run_plan(plan, questions, source, shards)

    first = column("first")
    assert first.cost.usd == pytest.approx(8 * one_usd)
    assert first.cost.usd_per_1000_pairs == pytest.approx(1000 * one_usd)
    endpoints_file(tmp_path, find_endpoint("here").address, budget_usd=0.0)
    again = column("second")  # From what is kept, and not paid for.
    assert again.cost.usd == first.cost.usd
    assert column("first").cost.usd == first.cost.usd  # From its shards.
    assert len(served.bodies) == 8


def test_equal_requests_of_a_batch_are_one(served: ChatServer) -> None:
    images = [*pictures(1), *pictures(1), *pictures(1)]
    found = verdicts(row_of(), images, ["a cube"] * 3)
    assert len(served.bodies) == 1
    assert found[0] == found[1] == found[2]


def test_images_are_scaled_to_the_longest_side_and_never_enlarged(served: ChatServer) -> None:
    scorer: Any = load_scorer(row_of(longest_side=100), Runtime()).scorer
    sizes = [(400, 200), (50, 20), (1000, 3)]
    assert [scorer.prepare(Image.new("RGB", size)).size for size in sizes] == [
        (100, 50), (50, 20), (100, 1),
    ]  # fmt: skip


USAGE = {"prompt_tokens": 1000, "completion_tokens": 10}
HICCUPS: dict[str, tuple[Any, float]] = {
    "too many": (Response(status_code=429, headers={"retry-after": "7"}), 7.0),
    "too many for an hour": (Response(status_code=429, headers={"retry-after": "3600"}), 120.0),
    "too many, in words": (Response(status_code=429, headers={"retry-after": "later"}), 2.0),
    "away": (PlainTextResponse("bad gateway", status_code=502), 2.0),
    "slow": (Response(status_code=408), 2.0),
    "no JSON": (PlainTextResponse("<html>hello</html>"), 2.0),
    "a list": (PlainTextResponse("[1, 2]"), 2.0),
    "no choices": (PlainTextResponse(json.dumps(completion() | {"choices": []})), 2.0),
    "no number": (PlainTextResponse('{"choices": [{"message": {"content": NaN}}]}'), 2.0),
    "half a body": (Response('{"choi', headers={"content-length": "60"}), 2.0),
    "absurd counts": (JSONResponse(completion(usage=USAGE | {"prompt_tokens": 10**400})), 2.0),
    "counts of 10^305": (
        JSONResponse(completion(usage=USAGE | {"completion_tokens": 10**305})),
        2.0,
    ),
    "one token too many": (
        JSONResponse(completion(usage=USAGE | {"prompt_tokens": 10**9 + 1})),
        2.0,
    ),
}


@pytest.mark.parametrize(("hiccup", "rest"), HICCUPS.values(), ids=HICCUPS)
def test_an_endpoint_that_fails_for_once_is_asked_again(
    served: ChatServer, rests: list[float], hiccup: Response, rest: float
) -> None:
    served.first = [hiccup]
    (found,) = verdicts(row_of(), pictures(1), PROMPTS[:1])
    assert 0 < found.score < 1
    assert len(served.bodies) == 2
    assert rest in rests


def test_counts_of_tokens_that_are_none_cost_as_much_as_the_dearest(
    served: ChatServer, tmp_path: Path
) -> None:
    endpoints_file(tmp_path, find_endpoint("here").address, concurrency=1)
    reply = completion('{"score": 3}')
    served.first = [reply, reply | {"usage": USAGE | {"prompt_tokens": 10**305}}]
    served.behaviour = lambda _: reply
    found = verdicts(row_of(**RATING), pictures(2), PROMPTS[:2])
    assert [one.score for one in found] == [3.0, 3.0]
    spent = ReplyCache(tmp_path / "replies.sqlite").spent_usd("here")
    assert spent == pytest.approx(3 * (1000 * 2.0 + 10 * 8.0) / 1e6)


@pytest.mark.parametrize("answer", [dripping_header, dripping_body], ids=["header", "body"])
def test_an_endpoint_that_answers_too_slowly_is_away(
    served: ChatServer, tmp_path: Path, answer: Any
) -> None:
    with raw_server(answer) as address:
        endpoints_file(tmp_path, address, timeout_s=0.5, attempts=2)
        with refusal("endpoint_unavailable", "here", kind=TransientError):
            verdicts(row_of(**RATING), pictures(1), PROMPTS[:1])


def test_of_a_reply_without_an_end_no_more_is_read_than_may_be(
    served: ChatServer, tmp_path: Path
) -> None:
    with raw_server(endless_body) as address:
        endpoints_file(tmp_path, address)
        (found,) = verdicts(row_of(**RATING), pictures(1), PROMPTS[:1])
    assert math.isnan(found.score) and "long" in found.problem


def always(response: Response) -> Any:
    return lambda _: response


def as_charset(charset: str, status: int) -> Response:
    """An error in what is no character set, though Python has a codec of that name."""
    said = {"content-type": f"text/plain; charset={charset}"}
    return Response(b"aGVsbG8=", status, headers=said)


REFUSED = PlainTextResponse(json.dumps({"error": f"bad image; key {KEY}"}), status_code=400)


@pytest.mark.parametrize(
    ("behaviour", "asked"),
    [
        (always(REFUSED), 1),
        *((always(as_charset(name, 400)), 1) for name in ("base64", "hex", "zlib")),
        (always(HICCUPS["no JSON"][0]), 2),
        (lambda _: completion("y" * 10**6), 1),
    ],
    ids=["refused", "base64", "hex", "zlib", "nonsense", "endless"],
)
def test_a_pair_that_gets_no_reply_has_no_score_and_the_reason(
    served: ChatServer, behaviour: Any, asked: int
) -> None:
    served.behaviour = behaviour
    (found,) = verdicts(row_of(**RATING), pictures(1), PROMPTS[:1])
    assert math.isnan(found.score)
    assert found.problem
    assert KEY not in found.problem
    assert len(served.bodies) == asked


SAMPLED = {"logprobs": {"content": [{"token": "No", "logprob": -0.4, "top_logprobs": []}]}}
ENDS: list[tuple[str, Any, str, type[AssayError]]] = [
    ("no access", always(PlainTextResponse(f"no: {KEY}", 401)), "endpoint_refused", PlatformError),
    ("no model", always(PlainTextResponse("?", 404)), "endpoint_refused", PlatformError),
    ("exchanged", lambda _: completion(model="other"), "model_exchanged", PlatformError),
    ("no probabilities", lambda _: completion(), "logprobs_ignored", PlatformError),
    (
        "a list",
        always(PlainTextResponse('[{"error": "no"}]', 401)),
        "endpoint_refused",
        PlatformError,
    ),
    ("no charset", always(as_charset("base64", 401)), "endpoint_refused", PlatformError),
    ("latin", always(Response(b'{"error": "\xe9"}', 403)), "endpoint_refused", PlatformError),
    ("all refused", always(REFUSED), "endpoint_refused", PlatformError),
    ("no usage", lambda _: completion(usage=None), "usage_untold", PlatformError),
    ("only what it said", lambda _: completion(choice=SAMPLED), "logprobs_ignored", PlatformError),
    (
        "busy, in a list",
        always(PlainTextResponse("[1]", 429)),
        "endpoint_unavailable",
        TransientError,
    ),
    ("busy", always(HICCUPS["too many"][0]), "endpoint_unavailable", TransientError),
    ("away", always(HICCUPS["away"][0]), "endpoint_unavailable", TransientError),
]


@pytest.mark.parametrize(
    ("behaviour", "code", "kind"), [one[1:] for one in ENDS], ids=[one[0] for one in ENDS]
)
def test_what_no_request_can_pass_ends_the_run(
    served: ChatServer, behaviour: Any, code: str, kind: type[AssayError]
) -> None:
    served.behaviour = behaviour
    with refusal(code, "here", kind=kind) as caught:
        verdicts(row_of(), pictures(40), [f"thing {n}" for n in range(40)])
    assert KEY not in str(caught.value)
    assert len(served.bodies) <= 3 * 8 * 2  # It did not go on through all of them.


def test_a_spent_budget_stops_a_run_which_goes_on_where_it_stopped(
    served: ChatServer, tmp_path: Path
) -> None:
    address = find_endpoint("here").address
    one_usd = (1000 * 2.0 + 10 * 8.0) / 1e6
    images, prompts = pictures(20), [f"thing {n}" for n in range(20)]
    endpoints_file(tmp_path, address, budget_usd=10 * one_usd)
    with refusal("budget_spent", "here", kind=PlatformError):
        verdicts(row_of(), images, prompts)
    asked = len(served.bodies)
    assert 10 <= asked <= 10 + 8  # Requests that were under way before the first price was known.
    endpoints_file(tmp_path, address, budget_usd=30 * one_usd)
    assert len(verdicts(row_of(), images, prompts)) == 20
    assert len(served.bodies) == 20


@pytest.mark.parametrize(
    "answer",
    [
        *(PlainTextResponse("no", status) for status in (400, 413, 415, 422)),
        PlainTextResponse("<html>"),
        JSONResponse(completion("y" * 120_000)),
    ],
    ids=["400", "413", "415", "422", "no reply", "too long"],
)
def test_a_request_that_was_refused_for_good_is_not_made_again_by_a_second_run(
    served: ChatServer, answer: Response
) -> None:
    images = pictures(3)
    refused = PROMPTS[0]

    def behave(body: Any) -> Any:
        return answer if refused in body["messages"][0]["content"][1]["text"] else honest(body)

    served.behaviour = behave
    first = verdicts(row_of(), images, PROMPTS)
    assert [math.isnan(one.score) for one in first] == [True, False, False]
    asked = len(served.bodies)
    served.behaviour = always(Response(status_code=404))  # The model is retired.
    assert repr(verdicts(row_of(), images, PROMPTS)) == repr(first)
    assert len(served.bodies) == asked


def test_while_nothing_is_answered_no_refusal_is_kept_and_what_is_can_be_removed(
    served: ChatServer, tmp_path: Path
) -> None:
    images = pictures(2)
    served.behaviour = always(REFUSED)
    verdicts(row_of(), images[:1], PROMPTS[:1])
    served.behaviour = honest
    (found,) = verdicts(row_of(), images[:1], PROMPTS[:1])
    assert not math.isnan(found.score)
    served.behaviour = always(REFUSED)
    verdicts(row_of(), images, PROMPTS[:2])
    asked = len(served.bodies)
    verdicts(row_of(), images, PROMPTS[:2])
    assert len(served.bodies) == asked
    with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as kept, kept:
        kept.execute("delete from refusals")
    served.behaviour = honest
    assert not any(math.isnan(one.score) for one in verdicts(row_of(), images, PROMPTS[:2]))


def test_a_run_that_is_stopped_refuses_nothing_for_good(served: ChatServer) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(RequestFailure) as caught:
        EndpointRequests(find_endpoint("here")).answer(dict, stopped)
    assert not caught.value.of_the_request


LONG = completion("y" * 120_000, usage={"prompt_tokens": 10**6, "completion_tokens": 10**5})


@pytest.mark.parametrize(
    ("answer", "budget_usd", "asked"),
    [
        (JSONResponse(LONG), 10.0, 1 + 4),  # 2.8 USD each, as their usage tells
        (PlainTextResponse("<html>"), 0.00208 * 4, 1 + 3),  # as dear as the one that is kept
    ],
    ids=["too long", "no reply"],
)
def test_paid_replies_that_cannot_be_used_count_in_a_new_process(
    served: ChatServer, tmp_path: Path, answer: Response, budget_usd: float, asked: int
) -> None:
    address = find_endpoint("here").address
    endpoints_file(tmp_path, address, budget_usd=budget_usd, concurrency=1)
    images, prompts = pictures(60), [f"thing {n}" for n in range(60)]
    verdicts(row_of(), images[:1], prompts[:1])
    served.behaviour = always(answer)
    with refusal("budget_spent", "here", kind=PlatformError):
        verdicts(row_of(), images, prompts)
    assert len(served.bodies) == asked


def test_nothing_goes_where_a_redirect_leads(served: ChatServer) -> None:
    with chat_server() as (elsewhere, address):
        there = f"{address}/chat/completions"
        served.behaviour = always(Response(status_code=307, headers={"location": there}))
        with refusal("endpoint_redirects", "here", there, kind=PlatformError):
            verdicts(row_of(), pictures(1), PROMPTS[:1])
    assert (len(served.bodies), elsewhere.bodies) == (1, [])


@pytest.mark.parametrize(
    ("per_minute", "texts"),
    [(10_000.0, ["busy", "refused"]), (0.5, ["refused", "its turn is far"])],
)
def test_a_run_that_ends_waits_for_nobody_who_waits(
    served: ChatServer, tmp_path: Path, per_minute: float, texts: list[str]
) -> None:
    def behave(body: Any) -> Response:
        if body["messages"][0]["content"][-1]["text"] == "busy":
            return Response(status_code=429, headers={"retry-after": "120"})
        time.sleep(0.3)
        return Response(status_code=401)

    served.behaviour = behave
    address = find_endpoint("here").address
    endpoints_file(tmp_path, address, requests_per_minute=per_minute)
    (image,) = pictures(1)
    requests = [ChatRequest((image,), text, 1) for text in texts]
    started = time.monotonic()
    with refusal("endpoint_refused", "here", kind=PlatformError):
        ChatEndpoint(find_endpoint("here"), MODEL).ask(requests)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("variable", ["", "JUDGE_KEY"])
def test_without_a_key_no_token_of_the_hub_is_sent(
    served: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    endpoints_file(tmp_path, find_endpoint("here").address, key_variable=variable)
    if variable:
        monkeypatch.delenv(variable)
        with refusal("endpoint_key_missing", "JUDGE_KEY"):
            verdicts(row_of(), pictures(1), PROMPTS[:1])
        return
    verdicts(row_of(), pictures(1), PROMPTS[:1])
    assert served.keys == {"Bearer none"}


BAD: list[tuple[str, str]] = [
    ("endpoint = [", ""),
    ("", "endpoint"),
    ('[[endpoint]]\nname = "x"\naddress = "ftp://x"\nbudget_usd = -1\n', "budget_usd"),
    ('[[endpoint]]\nname = "x"\naddress = "http://x"\nbudget_usd = 1\nkey = "sk-1"\n', "key"),
    (
        '[[endpoint]]\nname = "x"\naddress = "http://x/v1"\nbudget_usd = 1\n'
        "[endpoint.models.m]\ninput_usd = 1\noutput_usd = 1\n" * 2,
        "twice",
    ),
]


@pytest.mark.parametrize(("text", "named"), BAD)
def test_a_file_of_endpoints_is_refused_with_what_is_wrong(
    tmp_path: Path, text: str, named: str
) -> None:
    path = tmp_path / "endpoints.toml"
    path.write_text(text)
    with refusal("bad_endpoints", named) as caught:
        read_endpoints(path)
    assert "sk-1" not in str(caught.value)


def test_what_is_missing_is_told_by_name(
    served: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refusal("unknown_endpoint", "here"):
        find_endpoint("there")
    with refusal("unknown_endpoint_model", "other-model"):
        load_scorer(row_of(model="other-model"), Runtime())
    monkeypatch.setenv("ASSAY_ENDPOINTS", str(tmp_path / "none.toml"))
    with refusal("endpoints_unreadable", "none.toml"):
        find_endpoint("here")
    monkeypatch.delenv("ASSAY_ENDPOINTS")
    with refusal("endpoints_missing", "ASSAY_ENDPOINTS"):
        find_endpoint("here")


def test_a_fingerprint_tells_servers_and_models_apart_and_no_budgets(
    served: ChatServer, tmp_path: Path
) -> None:
    address = find_endpoint("here").address
    first = fingerprint_of(row_of(), Runtime())
    endpoints_file(tmp_path, address, budget_usd=5.0, concurrency=2)
    assert fingerprint_of(row_of(), Runtime()) == first
    endpoints_file(tmp_path, "http://127.0.0.1:9/v1")
    assert fingerprint_of(row_of(), Runtime()) != first


@pytest.mark.parametrize(
    "wrong",
    [
        {"question": "no place"},
        {"reading": "choice"},
        {"choices": {"good": 1.0}},
        {"reading": "rating", "low": 3.0, "high": 3.0},
        {"reading": "choice", "choices": {"Good": 1.0, "good.": 0.0}},
    ],
)
def test_rows_that_cannot_be_asked_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlatformError, check=lambda error: error.code == "bad_scorer_row"):
        load_scorer(row_of(**wrong), Runtime())


def test_a_judge_behind_an_api_has_no_weights(served: ChatServer) -> None:
    row = row_of().model_copy(
        update={"checkpoints": {"model": load_rows()["pickscore"].checkpoints["model"]}}
    )
    with pytest.raises(PlatformError, check=lambda error: error.code == "bad_scorer_row"):
        FAMILY.load(row, EndpointJudgeOptions(**row.options), Runtime())


def test_requests_are_spaced_evenly() -> None:
    now, rests = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        rests.append(seconds)
        now[0] += seconds

    rate = RequestRate(120.0, lambda: now[0])
    for _ in range(4):
        rate.wait(sleep)
    assert rests == pytest.approx([0.5, 0.5, 0.5])


def test_an_unusable_file_of_replies_stops_before_anything_is_paid(
    served: ChatServer, tmp_path: Path
) -> None:
    (tmp_path / "replies.sqlite").write_bytes(b"no database" * 100)
    with refusal("replies_unusable", "replies.sqlite", kind=PlatformError):
        verdicts(row_of(), pictures(1), PROMPTS[:1])
    assert served.bodies == []
