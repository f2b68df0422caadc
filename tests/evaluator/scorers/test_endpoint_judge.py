"""Judges behind an API: scores, what is kept and paid, and endpoints that misbehave."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass
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
from tests.evaluator.raw_server import dripping_body, endless_body, raw_server
from tests.evaluator.scorers import chat_server as chat
from tests.evaluator.scorers.chat_server import ChatRooms, ChatServer, completion, endpoints_file
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scorers.tiny_towers import photo

QUESTION = 'Does this figure show "{prompt}"? Please answer Yes or No.'
PROMPTS = ["a red cube", "two dogs", "a cat on a mat"]
RATING = {"reading": "rating", "high": 5.0, "low": 1.0, "max_tokens": 64}
CHOICE = {"reading": "choice", "choices": {"good": 1.0, "poor": 0.0}, "max_tokens": 4}
AWAY = "endpoint_unavailable"
NAN = math.nan


def row_of(**options: Any) -> ScorerRow:
    """A row of the family."""
    own = {"endpoint": "here", "model": chat.MODEL, "question": QUESTION, "reading": "probability"}
    return ScorerRow(
        name="judge",
        family="endpoint_judge",
        title="Judge",
        summary="Asks.",
        formula="P(Yes)",
        source="this test",
        options=own | options,
    )


def pictures(count: int, side: int = 8) -> list[Image.Image]:
    """Images of which no two are equal."""
    pixels = np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)
    return [Image.fromarray(values) for values in pixels]


def things(count: int) -> tuple[list[Image.Image], list[str]]:
    """Images with a prompt each."""
    return pictures(count), [f"thing {n}" for n in range(count)]


def verdicts(row: ScorerRow, images: list[Image.Image], prompts: list[str]) -> list[Verdict]:
    """Of each image with its prompt."""
    scorer: Any = load_scorer(row, Runtime()).scorer
    ready = [scorer.prepare(image) for image in images]
    return [of_image[0] for of_image in scorer.score_texts(ready, [[text] for text in prompts])]


def verdict(**options: Any) -> Verdict:
    """Of one image with its prompt."""
    return verdicts(row_of(**options), pictures(1), PROMPTS[:1])[0]


def always(response: Any) -> Any:
    """A server that answers everything with the same."""
    return lambda _: response


def spent_usd(folder: Path) -> float:
    return ReplyCache(folder / "replies.sqlite").spent_usd("here")


def test_a_probability_is_summed_over_the_ways_to_write_the_answer(served: ChatServer) -> None:
    images = pictures(3)
    for scored, image, prompt in zip(
        verdicts(row_of(), images, PROMPTS), images, PROMPTS, strict=True
    ):
        known = chat.log_probabilities(image, QUESTION.replace("{prompt}", prompt))
        assert scored.score == pytest.approx(math.exp(known["Yes"]) + math.exp(known[" yes"]))
        assert scored.answers[0].raw in chat.WORDS
    body = served.bodies[0]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 0, 1)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    assert served.keys == {f"Bearer {chat.KEY}"}


@pytest.mark.parametrize(
    ("listed", "score"),
    [
        ([("No", 0.9995)], 0.0),
        ([("No", 0.9)], NAN),
        ([("Perhaps", 0.9)], NAN),
        ([("YES", 0.25), ("No", 0.75)], 0.25),
        ([("Yes", 0.8), ("No", 0.1), ("Yes", 0.01)], 0.81),
    ],
)
def test_an_answer_that_is_not_listed_is_nought_or_missing_and_one_written_alike_counts_twice(
    served: ChatServer, listed: list[tuple[str, float]], score: float
) -> None:
    served.behaviour = always(chat.listing(listed, "No"))
    scored = verdict()
    assert scored.score == pytest.approx(score, nan_ok=True)
    assert bool(scored.problem) == math.isnan(score)


def without_content(**message: str) -> dict[str, Any]:
    return completion(message={"role": "assistant", "content": None, **message})


@pytest.mark.parametrize(
    ("options", "reply", "score"),
    [
        pytest.param(RATING, completion('{"why": "it fits", "score": 4.5}'), 4.5, id="object"),
        pytest.param(RATING, completion('I say {"score": 3} and mean it'), 3.0, id="in prose"),
        pytest.param(RATING, completion('{"score": 3} or {"score": 4}'), NAN, id="two"),
        pytest.param(RATING, completion('{"score": 7}'), NAN, id="out of range"),
        pytest.param(RATING, completion('{"score": "five"}'), NAN, id="a word"),
        pytest.param(RATING, completion("Score (1-10): 7"), NAN, id="no object"),
        pytest.param(RATING, completion('{"score": 1' + "0" * 400 + "}"), NAN, id="huge"),
        pytest.param(RATING, without_content(), NAN, id="nothing"),
        pytest.param(RATING, completion('{"score": 4}', finish_reason="length"), NAN, id="cut"),
        pytest.param(RATING, completion("", finish_reason="content_filter"), NAN, id="filtered"),
        pytest.param(CHOICE, completion(" Good. "), 1.0, id="word"),
        pytest.param(CHOICE, completion("poor"), 0.0, id="other word"),
        pytest.param(CHOICE, completion("good or poor"), NAN, id="both words"),
        pytest.param(CHOICE, without_content(refusal="I may not"), NAN, id="refused"),
    ],
)
def test_a_reply_in_words_is_read_strictly_and_kept_as_evidence(
    served: ChatServer, options: dict[str, Any], reply: dict[str, Any], score: float
) -> None:
    served.behaviour = always(reply)
    scored = verdict(**options)
    assert scored.score == pytest.approx(score, nan_ok=True)
    assert bool(scored.problem) == math.isnan(score)
    (choice,) = reply["choices"]
    filtered = choice["finish_reason"] if choice["finish_reason"] == "content_filter" else ""
    text = choice["message"]["content"] or choice["message"].get("refusal") or filtered
    assert scored.answers[0].raw == text
    assert scored.answers[0].valid == (not math.isnan(score))
    assert "logprobs" not in served.bodies[0]


def test_evidence_is_bounded_and_the_rest_is_told_by_its_hash(served: ChatServer) -> None:
    served.behaviour = always(completion("x" * 50_000))
    (answer,) = verdict(**RATING).answers
    assert len(answer.raw) < LONGEST_KEPT + 100
    assert "sha256:" in answer.raw


# What is kept and paid


def test_a_second_run_asks_nothing_and_gives_the_same(served: ChatServer, tmp_path: Path) -> None:
    first = verdicts(row_of(), *things(30))
    assert len(served.bodies) == 30
    served.behaviour = always(Response(status_code=410))  # The model is retired.
    assert verdicts(row_of(), *things(30)) == first
    assert len(served.bodies) == 30
    file = tmp_path / "replies.sqlite"
    with closing(sqlite3.connect(file)) as kept:
        rows = kept.execute("select request, reply, usd from replies").fetchall()
    assert spent_usd(tmp_path) == pytest.approx(30 * chat.REPLY_USD)
    assert [usd for *_, usd in rows] == [chat.REPLY_USD] * 30
    assert json.loads(rows[0][1])["model"] == chat.MODEL
    assert not any("base64" in request for request, *_ in rows)
    assert chat.KEY not in file.read_bytes().decode("latin-1")
    assert file.stat().st_mode & 0o077 == 0


ABSURD = {
    "no JSON": "{",
    "a list": "[]",
    "no choice": '{"choices": []}',
    "a choice of another type": '{"choices": [7]}',
    "1e30 tokens": json.dumps(completion(usage=chat.USAGE | {"prompt_tokens": 1e30})),
    "negative tokens": json.dumps(completion(usage=chat.USAGE | {"prompt_tokens": -5})),
}


@pytest.mark.parametrize("content", ABSURD.values(), ids=ABSURD)
def test_a_kept_reply_that_is_no_reply_is_asked_for_again_and_replaced(
    served: ChatServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    first = verdict()
    with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as kept, kept:
        kept.execute("update replies set reply = ?", (content,))
    caplog.clear()
    assert verdict() == first
    assert [record.levelname for record in caplog.records if "kept" in record.message] == [
        "WARNING"
    ]
    assert verdict() == first
    assert len(served.bodies) == 2
    assert spent_usd(tmp_path) == pytest.approx(2 * chat.REPLY_USD)


@pytest.mark.parametrize(
    "change", [{"question": "Show {prompt}?"}, {"top_logprobs": 5}, {"longest_side": 16}], ids=str
)
def test_another_question_is_another_request(served: ChatServer, change: dict[str, Any]) -> None:
    images = pictures(1, side=32)
    verdicts(row_of(), images, PROMPTS[:1])
    verdicts(row_of(**change), images, PROMPTS[:1])
    assert len(served.bodies) == 2


@pytest.mark.slow
def test_a_run_has_the_price_of_its_replies_and_a_rerun_the_same(
    served: ChatServer, tmp_path: Path
) -> None:
    questions = Questions(
        images={f"i{n}": partial(photo, n) for n in range(4)},
        texts={f"t{n}": prompt for n, prompt in enumerate(PROMPTS)},
        pairs=tuple(Pair(f"p{n}", f"i{n // 2}", f"t{n % 2}") for n in range(8)),
    )

    def column(name: str) -> ScoreColumn:
        shards = ShardFolder(tmp_path / name, "fingerprint")
        plan = ScoringPlan.of(questions, b"seed")
        return run_plan(plan, questions, ModelSource(row_of(), Runtime()), shards)

    first = column("first")
    assert first.cost.usd == pytest.approx(8 * chat.REPLY_USD)
    assert first.cost.usd_per_1000_pairs == pytest.approx(1000 * chat.REPLY_USD)
    endpoints_file(tmp_path, served.address, budget_usd=0.0)
    assert column("second").cost.usd == first.cost.usd  # From what is kept, and not paid for.
    assert column("first").cost.usd == first.cost.usd  # From its shards.
    assert len(served.bodies) == 8


def test_equal_requests_of_a_batch_are_one(served: ChatServer) -> None:
    first, second, third = verdicts(row_of(), pictures(1) * 3, ["a cube"] * 3)
    assert len(served.bodies) == 1
    assert first == second == third


def test_images_are_scaled_to_the_longest_side_and_never_enlarged(served: ChatServer) -> None:
    scorer: Any = load_scorer(row_of(longest_side=100), Runtime()).scorer
    for before, after in (
        ((400, 200), (100, 50)),
        ((50, 20), (50, 20)),
        ((1000, 3), (100, 1)),
    ):
        assert scorer.prepare(Image.new("RGB", before)).size == after


# What an endpoint may answer instead of a reply


@dataclass(frozen=True)
class Fault:
    """An answer that is no reply, and what follows from it."""

    response: Any
    rest_s: float | None = None  # Where it happens once: the request is made again after so long.
    asked: int = 0  # Where it always happens: requests for a pair, which then has no score.
    ends: str = ""  # Where it always happens: the code of the error that ends a run.

    @property
    def kind(self) -> type[AssayError]:
        """Of the error that ends a run."""
        return TransientError if self.ends == AWAY else PlatformError


def text(content: str, status: int = 200) -> Response:
    return PlainTextResponse(content, status_code=status)


def in_charset(charset: str, status: int) -> Response:
    """An error in what is no character set, though Python has a codec of that name."""
    header = {"content-type": f"text/plain; charset={charset}"}
    return Response(b"aGVsbG8=", status, headers=header)


def busy(retry_after: str) -> Response:
    return Response(status_code=429, headers={"retry-after": retry_after})


def counted(**counts: int) -> Response:
    return JSONResponse(completion(usage=chat.USAGE | counts))


def sampled_alone() -> dict[str, Any]:
    """A reply with the probability of the token that was drawn, and of no other."""
    place = {"token": "No", "logprob": -0.4, "top_logprobs": []}
    return completion(choice={"logprobs": {"content": [place]}})


REFUSED = text(json.dumps({"error": f"bad image; key {chat.KEY}"}), 400)
LONG = completion("y" * 120_000, usage={"prompt_tokens": 10**6, "completion_tokens": 10**5})
FAULTS = {
    "busy": Fault(busy("7"), rest_s=7.0, ends=AWAY),
    "busy for an hour": Fault(busy("3600"), rest_s=120.0),
    "busy, in words": Fault(busy("later"), rest_s=2.0),
    "busy, in a list": Fault(text("[1]", 429), rest_s=2.0, ends=AWAY),
    "away": Fault(text("bad gateway", 502), rest_s=2.0, ends=AWAY),
    "slow": Fault(Response(status_code=408), rest_s=2.0),
    "no JSON": Fault(text("<html>hello</html>"), rest_s=2.0, asked=2),
    "a list": Fault(text("[1, 2]"), rest_s=2.0),
    "no choices": Fault(text(json.dumps(completion() | {"choices": []})), rest_s=2.0),
    "no number": Fault(text('{"choices": [{"message": {"content": NaN}}]}'), rest_s=2.0),
    "half a body": Fault(Response('{"choi', headers={"content-length": "60"}), rest_s=2.0),
    "absurd counts": Fault(counted(prompt_tokens=10**400), rest_s=2.0),
    "counts of 10^305": Fault(counted(completion_tokens=10**305), rest_s=2.0),
    "one token too many": Fault(counted(prompt_tokens=10**9 + 1), rest_s=2.0),
    "refused": Fault(REFUSED, asked=1, ends="endpoint_refused"),
    "refused in base64": Fault(in_charset("base64", 400), asked=1),
    "refused in hex": Fault(in_charset("hex", 400), asked=1),
    "refused in zlib": Fault(in_charset("zlib", 400), asked=1),
    "endless": Fault(completion("y" * 10**6), asked=1),
    "no access": Fault(text(f"no: {chat.KEY}", 401), ends="endpoint_refused"),
    "no access, in a list": Fault(text('[{"error": "no"}]', 401), ends="endpoint_refused"),
    "no access, in base64": Fault(in_charset("base64", 401), ends="endpoint_refused"),
    "no access, in Latin-1": Fault(Response(b'{"error": "\xe9"}', 403), ends="endpoint_refused"),
    "no model": Fault(text("?", 404), ends="endpoint_refused"),
    "another model": Fault(completion(model="other"), ends="model_exchanged"),
    "no probabilities": Fault(completion(), ends="logprobs_ignored"),
    "the drawn token alone": Fault(sampled_alone(), ends="logprobs_ignored"),
    "no usage": Fault(completion(usage=None), ends="usage_untold"),
}


def faults(chosen: Any) -> Any:
    """Parametrise by the faults that have some consequence."""
    return pytest.mark.parametrize(
        "fault", [pytest.param(one, id=name) for name, one in FAULTS.items() if chosen(one)]
    )


@faults(lambda fault: fault.rest_s)
def test_an_endpoint_that_fails_for_once_is_asked_again(
    served: ChatServer, rests: list[float], fault: Fault
) -> None:
    served.first = [fault.response]
    assert 0 < verdict().score < 1
    assert len(served.bodies) == 2
    assert fault.rest_s in rests


@faults(lambda fault: fault.asked)
def test_a_pair_that_gets_no_reply_has_no_score_and_the_reason(
    served: ChatServer, fault: Fault
) -> None:
    served.behaviour = always(fault.response)
    scored = verdict(**RATING)
    assert math.isnan(scored.score)
    assert scored.problem
    assert chat.KEY not in scored.problem
    assert len(served.bodies) == fault.asked


@pytest.mark.first_quick
@faults(lambda fault: fault.ends)
def test_what_no_request_can_pass_ends_the_run(served: ChatServer, fault: Fault) -> None:
    served.behaviour = always(fault.response)
    with refusal(fault.ends, "here", kind=fault.kind) as caught:
        verdicts(row_of(), *things(40))
    assert chat.KEY not in str(caught.value)
    assert len(served.bodies) <= 3 * 8 * 2  # It did not go on through all of them.


def test_counts_of_tokens_that_are_none_cost_as_much_as_the_dearest(
    served: ChatServer, tmp_path: Path
) -> None:
    endpoints_file(tmp_path, served.address, concurrency=1)
    reply = completion('{"score": 3}')
    served.first = [reply, reply | {"usage": chat.USAGE | {"prompt_tokens": 10**305}}]
    served.behaviour = always(reply)
    first, second = verdicts(row_of(**RATING), pictures(2), PROMPTS[:2])
    assert (first.score, second.score) == (3.0, 3.0)
    assert spent_usd(tmp_path) == pytest.approx(3 * chat.REPLY_USD)


def test_an_endpoint_that_answers_too_slowly_is_away(served: ChatServer, tmp_path: Path) -> None:
    with raw_server(dripping_body) as address:
        endpoints_file(tmp_path, address, timeout_s=0.2, attempts=2)
        with refusal(AWAY, "here", kind=TransientError):
            verdict(**RATING)


def test_of_a_reply_without_an_end_no_more_is_read_than_may_be(
    served: ChatServer, tmp_path: Path
) -> None:
    with raw_server(endless_body) as address:
        endpoints_file(tmp_path, address)
        scored = verdict(**RATING)
    assert math.isnan(scored.score) and "long" in scored.problem


def test_a_spent_budget_stops_a_run_which_goes_on_where_it_stopped(
    served: ChatServer, tmp_path: Path
) -> None:
    endpoints_file(tmp_path, served.address, budget_usd=10 * chat.REPLY_USD)
    with refusal("budget_spent", "here", kind=PlatformError):
        verdicts(row_of(), *things(20))
    # Requests that were under way before the first price was known.
    assert 10 <= len(served.bodies) <= 10 + 8
    endpoints_file(tmp_path, served.address, budget_usd=30 * chat.REPLY_USD)
    assert len(verdicts(row_of(), *things(20))) == 20
    assert len(served.bodies) == 20


@pytest.mark.parametrize(
    "answer",
    [
        *(text("no", status) for status in (400, 413, 415, 422)),
        text("<html>"),
        JSONResponse(LONG),
    ],
    ids=["400", "413", "415", "422", "no reply", "too long"],
)
def test_a_request_that_was_refused_for_good_is_not_made_again_by_a_second_run(
    served: ChatServer, answer: Response
) -> None:
    def behave(body: Any) -> Any:
        words = body["messages"][0]["content"][1]["text"]
        return answer if PROMPTS[0] in words else chat.honest(body)

    served.behaviour = behave
    first = verdicts(row_of(), pictures(3), PROMPTS)
    assert [math.isnan(scored.score) for scored in first] == [True, False, False]
    asked = len(served.bodies)
    served.behaviour = always(Response(status_code=404))  # The model is retired.
    assert repr(verdicts(row_of(), pictures(3), PROMPTS)) == repr(first)
    assert len(served.bodies) == asked


def test_while_nothing_is_answered_no_refusal_is_kept_and_what_is_can_be_removed(
    served: ChatServer, tmp_path: Path
) -> None:
    both = pictures(2), PROMPTS[:2]
    served.behaviour = always(REFUSED)
    verdict()
    served.behaviour = chat.honest
    assert not math.isnan(verdict().score)
    served.behaviour = always(REFUSED)
    verdicts(row_of(), *both)
    asked = len(served.bodies)
    verdicts(row_of(), *both)
    assert len(served.bodies) == asked
    with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as kept, kept:
        kept.execute("delete from refusals")
    served.behaviour = chat.honest
    assert not any(math.isnan(scored.score) for scored in verdicts(row_of(), *both))


def test_a_run_that_is_stopped_refuses_nothing_for_good(served: ChatServer) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(RequestFailure) as caught:
        EndpointRequests(find_endpoint("here")).answer(dict, stopped)
    assert not caught.value.of_the_request


@pytest.mark.parametrize(
    ("answer", "budget_usd", "asked"),
    [
        (JSONResponse(LONG), 10.0, 1 + 4),  # 2.8 USD each, as their usage tells
        (text("<html>"), 4 * chat.REPLY_USD, 1 + 3),  # as dear as the one that is kept
    ],
    ids=["too long", "no reply"],
)
def test_paid_replies_that_cannot_be_used_count_in_a_new_process(
    served: ChatServer, tmp_path: Path, answer: Response, budget_usd: float, asked: int
) -> None:
    endpoints_file(tmp_path, served.address, budget_usd=budget_usd, concurrency=1)
    images, prompts = things(60)
    verdicts(row_of(), images[:1], prompts[:1])
    served.behaviour = always(answer)
    with refusal("budget_spent", "here", kind=PlatformError):
        verdicts(row_of(), images, prompts)
    assert len(served.bodies) == asked


def test_nothing_goes_where_a_redirect_leads(served: ChatServer, rooms: ChatRooms) -> None:
    elsewhere = rooms.add()
    there = f"{elsewhere.address}/chat/completions"
    served.behaviour = always(Response(status_code=307, headers={"location": there}))
    with refusal("endpoint_redirects", "here", there, kind=PlatformError):
        verdict()
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
            return busy("120")
        time.sleep(0.3)
        return Response(status_code=401)

    served.behaviour = behave
    endpoints_file(tmp_path, served.address, requests_per_minute=per_minute)
    (image,) = pictures(1)
    requests = [ChatRequest((image,), words, 1) for words in texts]
    started = time.monotonic()
    with refusal("endpoint_refused", "here", kind=PlatformError):
        ChatEndpoint(find_endpoint("here"), chat.MODEL).ask(requests)
    assert time.monotonic() - started < 60


# Files of endpoints, and rows


@pytest.mark.parametrize("variable", ["", "JUDGE_KEY"])
def test_without_a_key_no_token_of_the_hub_is_sent(
    served: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    endpoints_file(tmp_path, served.address, key_variable=variable)
    if variable:
        monkeypatch.delenv(variable)
        with refusal("endpoint_key_missing", "JUDGE_KEY"):
            verdict()
        return
    verdict()
    assert served.keys == {"Bearer none"}


TABLE = '[[endpoint]]\nname = "x"\naddress = "http://x/v1"\nbudget_usd = 1\n'


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("endpoint = [", ""),
        ("", "endpoint"),
        (TABLE.replace("http:", "ftp:").replace("= 1", "= -1"), "budget_usd"),
        (TABLE + 'key = "sk-1"\n', "key"),
        ((TABLE + "[endpoint.models.m]\ninput_usd = 1\noutput_usd = 1\n") * 2, "twice"),
    ],
)
def test_a_file_of_endpoints_is_refused_with_what_is_wrong(
    tmp_path: Path, content: str, named: str
) -> None:
    path = tmp_path / "endpoints.toml"
    path.write_text(content)
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
    first = fingerprint_of(row_of(), Runtime())
    endpoints_file(tmp_path, served.address, budget_usd=5.0, concurrency=2)
    assert fingerprint_of(row_of(), Runtime()) == first
    endpoints_file(tmp_path, "http://127.0.0.1:9/v1")
    assert fingerprint_of(row_of(), Runtime()) != first


def test_a_row_that_cannot_be_asked_is_refused_when_it_is_loaded() -> None:
    with refusal("bad_scorer_row", kind=PlatformError):
        load_scorer(row_of(question="no place"), Runtime())


def test_a_judge_behind_an_api_has_no_weights(served: ChatServer) -> None:
    checkpoints = {"model": load_rows()["pickscore"].checkpoints["model"]}
    row = row_of().model_copy(update={"checkpoints": checkpoints})
    with refusal("bad_scorer_row", kind=PlatformError):
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
        verdict()
    assert served.bodies == []
