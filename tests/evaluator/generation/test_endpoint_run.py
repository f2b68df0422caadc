"""Images from an endpoint: one for each prompt and seed, whatever it answers, and paid for once."""

from __future__ import annotations

import hashlib
import io
import itertools
import socket
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.responses import JSONResponse, PlainTextResponse, Response

from benchmarks.errors import PlatformError, TransientError
from benchmarks.sources.client import httpx
from evaluator.generation.endpoint_run import EndpointRequest, EndpointSummary, ask_for_images
from evaluator.generation.folder import RunFolder
from evaluator.generation.image_endpoint import ImageEndpoint, endpoint_settings
from evaluator.generation.manifest import parse_generations
from evaluator.generation.prompts import ChosenPrompts, Prompt
from evaluator.scorers.endpoints import EndpointImageModel, find_endpoint
from evaluator.scorers.models.endpoint_requests import RequestFailure
from evaluator.scorers.models.reply_cache import ReplyCache
from evaluator.scoring.images import MAX_PIXELS
from evaluator.scoring.progress import Tracker
from evaluator.submission.generations.checking import check_folder
from tests.evaluator import raw_server as raw
from tests.evaluator.generation import image_server
from tests.evaluator.generation.runs import contents, damage, rows_of, stop_after
from tests.evaluator.scorers.chat_server import KEY, ChatServer
from tests.evaluator.scorers.common import refusal

PROMPTS = tuple(Prompt(f"p{n}", f"{n} red cats") for n in range(3))
SEEDS = (42, 7)
SIZE = f"{image_server.SIDE}x{image_server.SIDE}"


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[ChatServer, str]]:
    with image_server.image_server() as served:
        yield served


@pytest.fixture
def served(
    running: tuple[ChatServer, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ChatServer:
    server, address = running
    server.behaviour, server.first = image_server.paint, []
    server.bodies.clear()
    server.keys.clear()
    path = image_server.painters_file(tmp_path, address, key_variable="PAINTER_KEY")
    monkeypatch.setenv("ASSAY_ENDPOINTS", str(path))
    monkeypatch.setenv("PAINTER_KEY", KEY)
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody")
    return server


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def _told_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.generation.endpoint_run.Tracker", partial(Tracker, every_s=0.0))


def asked(
    folder: Path,
    listener: Any = None,
    prompts: tuple[Prompt, ...] = PROMPTS,
    waited: list[float] | None = None,
    **how: Any,
) -> EndpointSummary:
    endpoint = find_endpoint("here")
    settings = endpoint_settings(endpoint, image_server.PAINTER, **{"size": SIZE, **how})
    request = EndpointRequest(endpoint, settings, ChosenPrompts(prompts), SEEDS)
    rests: list[float] = [] if waited is None else waited
    return ask_for_images(request, RunFolder(folder), listener, sleep=rests.append)


def rewritten(folder: Path, model: str = "", **more: Any) -> None:
    """Write the file of endpoints anew."""
    image_server.painters_file(
        folder, find_endpoint("here").address, model, key_variable="PAINTER_KEY", **more
    )


def spent() -> float:
    return ReplyCache(find_endpoint("here").replies).spent_usd("here")


def test_each_prompt_and_seed_is_asked_for_once_and_the_folder_says_how(
    served: ChatServer, out: Path
) -> None:
    served.behaviour = lambda body: image_server.with_image(
        image_server.painted(f"{body['prompt']} {body['seed']}", form="WEBP"),
        revised_prompt=f"a nicer {body['prompt']}\n{KEY}",
    )
    summary = asked(out, quality="high", call={"style": "vivid"})
    assert (summary.drawn, summary.failed) == (6, {})
    assert summary.usd == pytest.approx(6 * image_server.USD)
    said = {
        "model": image_server.PAINTER,
        "n": 1,
        "size": SIZE,
        "quality": "high",
        "style": "vivid",
    }
    assert all(body.items() >= said.items() for body in served.bodies)
    keys = {(body["prompt"], body["seed"]) for body in served.bodies}
    assert keys == {(prompt.text, seed) for prompt in PROMPTS for seed in SEEDS}
    assert {body["response_format"] for body in served.bodies} == {"b64_json"}
    assert served.keys == {f"Bearer {KEY}"}
    for row in rows_of(out):
        data = (out / str(row.file)).read_bytes()
        assert (row.sha256, row.usd) == (hashlib.sha256(data).hexdigest(), image_server.USD)
        assert (row.endpoint, row.model, row.width) == (
            "here",
            image_server.PAINTER,
            image_server.SIDE,
        )
        assert row.revised_prompt == f"a nicer {row.prompt} ***"
        with Image.open(io.BytesIO(data)) as image:
            assert (image.format, image.mode, image.info) == ("PNG", "RGB", {})
    manifest = parse_generations((out / "assay.toml").read_bytes())
    assert (manifest.model, manifest.settings, manifest.seeds) == (
        image_server.PAINTER,
        None,
        SEEDS,
    )
    made = manifest.endpoint
    assert made is not None
    assert (made.endpoint, made.image_usd, made.reproducible) == ("here", image_server.USD, True)
    assert (made.size, made.quality, made.call) == (SIZE, "high", {"style": "vivid"})
    assert manifest.drawn_on == rows_of(out)[0].drawn_on != ""
    assert check_folder(out, PROMPTS, SEEDS).complete
    everything = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    again = asked(out, quality="high", call={"style": "vivid"})
    assert (again.drawn, len(served.bodies)) == (0, 6)
    assert spent() == pytest.approx(6 * image_server.USD)


def test_without_a_seed_each_image_is_one_draw_and_the_manifest_says_so(
    served: ChatServer, tmp_path: Path, out: Path
) -> None:
    rewritten(tmp_path, 'response_format = ""')
    draws = itertools.count()
    served.behaviour = lambda _: image_server.with_image(image_server.painted(str(next(draws))))
    assert not asked(out).reproducible
    assert not any({"seed", "response_format"} & body.keys() for body in served.bodies)
    made = parse_generations((out / "assay.toml").read_bytes()).endpoint
    assert made is not None and not made.reproducible
    assert check_folder(out, PROMPTS, SEEDS).complete


def refused(status: int, **error: str) -> Response:
    return JSONResponse({"error": error}, status_code=status)


@pytest.mark.parametrize(
    "answer",
    [
        refused(400, code="content_policy_violation", message=f"No cats. {KEY}"),
        refused(400, code="moderation_blocked", type="image_generation_user_error", message="No cats."),
        refused(403, code="contentFilter", message="No\x1b[31m cats."),
        JSONResponse({"code": "content_filter", "message": "No cats."}, status_code=422),
    ],
)  # fmt: skip
def test_a_refused_prompt_is_a_missing_image_with_the_reason_and_costs_nothing(
    served: ChatServer, out: Path, answer: Response
) -> None:
    honest = served.behaviour
    served.behaviour = lambda body: answer if body["prompt"] == "1 red cats" else honest(body)
    summary = asked(out)
    assert (summary.withheld, summary.failed) == ({"refused": 2}, {})
    assert spent() == pytest.approx(4 * image_server.USD)
    found = [row for row in rows_of(out) if row.prompt_id == "p1"]
    assert {(row.problem, row.file, row.usd) for row in found} == {("refused", None, 0.0)}
    told = str(found[0].refusal)
    assert told.startswith("No") and KEY not in told and told.isprintable()
    report = check_folder(out, PROMPTS, SEEDS)
    assert (report.usable, report.withheld, report.problems) == (4, {"refused": 2}, ())
    assert (asked(out).drawn, len(served.bodies)) == (0, 6)


def bomb() -> bytes:
    """A small PNG that says to have more pixels than are decoded."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    side = int(MAX_PIXELS**0.5) + 1
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data)


HICCUPS: dict[str, tuple[Any, int]] = {  # and how many images were paid for
    "too many": (Response(status_code=429, headers={"retry-after": "7"}), 6),
    "away": (PlainTextResponse("bad gateway", status_code=502), 6),
    "a refusal that is none": (PlainTextResponse("moderation", status_code=503), 6),
    "cut off": (Response(b'{"data": [{', headers={"content-length": "1000"}), 7),
    "no JSON": (PlainTextResponse("<html>hello</html>"), 7),
    "no image": ({"data": []}, 7),
    "nothing in it": ({"data": [{"b64_json": None}]}, 7),
    "two images": ({"data": 2 * image_server.with_image(image_server.painted("x"))["data"]}, 7),
    "no base64": ({"data": [{"b64_json": "?" * 40}]}, 7),
    "half an image": (image_server.with_image(image_server.painted("x")[:-200]), 7),
    "other format": (image_server.with_image(image_server.painted("x", form="BMP")), 7),
    "other size": (image_server.with_image(image_server.painted("x", side=8)), 7),
    "a bomb": (image_server.with_image(bomb()), 7),
    "accepted": (JSONResponse({}, status_code=202), 6),
}


@pytest.mark.first_quick
@pytest.mark.parametrize(("hiccup", "paid"), HICCUPS.values(), ids=HICCUPS)
def test_an_endpoint_that_fails_for_once_is_asked_again(
    served: ChatServer, out: Path, hiccup: Any, paid: int
) -> None:
    served.first = [hiccup]
    waited: list[float] = []
    assert asked(out, waited=waited).failed == {}
    assert len(served.bodies) == 7
    assert spent() == pytest.approx(paid * image_server.USD)
    assert {7.0, 2.0} & set(waited)
    assert check_folder(out, PROMPTS, SEEDS).complete


def test_what_stays_unusable_is_told_and_asked_for_again_by_the_next_start(
    served: ChatServer, out: Path
) -> None:
    honest = served.behaviour
    served.behaviour = lambda body: (
        image_server.with_image(image_server.painted("x", side=8))
        if body["seed"] == 7
        else honest(body)
    )
    summary = asked(out)
    (reason,) = summary.failed
    assert ("8x8" in reason, summary.failed[reason], summary.drawn) == (True, 3, 3)
    assert check_folder(out, PROMPTS, SEEDS).counts == {"missing": 3}
    served.behaviour = honest
    assert asked(out).drawn == 3
    assert check_folder(out, PROMPTS, SEEDS).complete


@pytest.mark.parametrize(
    ("answer", "code", "kind"),
    [
        (PlainTextResponse(f"no: {KEY}", 401), "endpoint_refused", PlatformError),
        (
            Response(status_code=307, headers={"location": f"http://127.0.0.1:9/{KEY}"}),
            "endpoint_redirects",
            PlatformError,
        ),
        (Response(status_code=429), "endpoint_unavailable", TransientError),
    ],
)
def test_what_no_request_can_pass_ends_the_run(
    served: ChatServer, out: Path, answer: Response, code: str, kind: Any
) -> None:
    served.behaviour = lambda _: answer
    with refusal(code, "here", kind=kind) as caught:
        asked(out)
    assert KEY not in str(caught.value)
    assert spent() == 0.0


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("answer", "expected", "paid"),
    [
        (raw.dripping_header, TransientError, 0),
        (raw.dripping_body, RequestFailure, 2),
        (raw.endless_body, RequestFailure, 1),
    ],
    ids=["slow header", "slow body", "endless"],
)
def test_a_slow_reply_is_not_waited_for_and_a_long_one_not_read(
    served: ChatServer, tmp_path: Path, answer: Any, expected: Any, paid: int
) -> None:
    seconds = 60 if answer is raw.endless_body else 1
    with raw.raw_server(answer) as address:
        image_server.painters_file(
            tmp_path, address, key_variable="PAINTER_KEY", timeout_s=seconds, attempts=2
        )
        with pytest.raises(expected):
            drawn("a cat")
    assert spent() == pytest.approx(paid * image_server.USD)


def test_an_image_of_black_pixels_is_withheld(served: ChatServer, out: Path) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (image_server.SIDE, image_server.SIDE)).save(stream, "PNG")
    served.behaviour = lambda _: image_server.with_image(stream.getvalue())
    assert asked(out).withheld == {"black": 6}
    assert contents(out) == {}


# Addresses in place of images


def with_url(url: str) -> dict[str, Any]:
    return {"data": [{"url": url}]}


def drawn(url: str) -> Any:
    endpoint = find_endpoint("here")
    settings = endpoint_settings(endpoint, image_server.PAINTER)
    model = ImageEndpoint(endpoint, settings, sleep=lambda _: None)
    return model.draw(url, 1, threading.Event())


def test_an_image_is_fetched_from_the_endpoint_itself_without_the_key(served: ChatServer) -> None:
    home = find_endpoint("here").address.removesuffix("/v1")
    served.behaviour = lambda body: with_url(body["prompt"])
    with Image.open(io.BytesIO(image_server.painted("fetched"))) as expected:
        found = drawn(f"{home}/file/png").image
        assert np.array_equal(np.asarray(found), np.asarray(expected))
    for other in ("html", "moved"):
        with pytest.raises(RequestFailure, match="answers"):
            drawn(f"{home}/file/{other}")


def test_an_image_that_is_cut_off_at_its_address_was_paid_for_once(served: ChatServer) -> None:
    home = find_endpoint("here").address.removesuffix("/v1")
    served.behaviour = lambda body: with_url(body["prompt"])
    with pytest.raises(RequestFailure, match="cut off"):
        drawn(f"{home}/file/cut")
    assert spent() == pytest.approx(len(served.bodies) * image_server.USD)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/x.png", "https://127.0.0.1/x.png", "https://localhost/x.png",
        "https://169.254.169.254/latest", "https://[::1]/x.png", "https://[::ffff:10.0.0.1]/x.png",
        "http://example.com/x.png", "file:///etc/passwd", "https://a:b@example.com/x.png",
        "https://mixed.example/x.png", "https://nowhere.example/x.png", "x.png", "https://[", "//",
        "https://x:99999999/",
    ],
)  # fmt: skip
def test_no_other_place_is_asked_than_a_public_one_by_https(
    served: ChatServer, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    real = socket.getaddrinfo

    def resolved(host: str, *more: Any, **options: Any) -> Any:
        if host == "mixed.example":
            return [(0, 0, 0, "", (one, 443)) for one in ("93.184.215.14", "10.0.0.1")]
        if host.endswith(".example"):
            raise socket.gaierror
        return real(host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    served.behaviour = lambda body: with_url(body["prompt"])
    with pytest.raises(RequestFailure, match="it names a place"):
        drawn(url)


def test_a_public_place_is_asked_at_the_address_that_was_looked_at(
    served: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def handled(request: Any) -> Any:
        if request.method == "POST":
            return httpx.Response(200, json=with_url("https://images.example/a.png?sig=1"))
        seen.append(request)
        return httpx.Response(
            200, content=image_server.painted("fetched"), headers={"content-type": "image/png"}
        )

    client = partial(httpx.AsyncClient, transport=httpx.MockTransport(handled))
    monkeypatch.setattr(httpx, "AsyncClient", client)
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("93.184.215.14", 443))]
    )
    assert drawn("a cat").image.size == (image_server.SIDE, image_server.SIDE)
    (request,) = seen
    assert (request.url.host, request.url.query) == ("93.184.215.14", b"sig=1")
    assert request.headers["host"] == request.extensions["sni_hostname"] == "images.example"
    assert "authorization" not in request.headers


# Stopped, and gone on with


def without_times(folder: Path) -> list[Mapping[str, Any]]:
    return [row.model_dump(exclude={"seconds"}) for row in rows_of(folder)]


@pytest.mark.slow
def test_a_run_interrupted_anywhere_gives_the_same_folder_and_pays_for_nothing_twice(
    served: ChatServer, tmp_path: Path
) -> None:
    asked(tmp_path / "whole")
    for images in (0, 1, 3, 5):
        folder = tmp_path / str(images)
        served.bodies.clear()
        with pytest.raises(KeyboardInterrupt):
            asked(folder, stop_after(images))
        assert asked(folder).usd == pytest.approx(6 * image_server.USD)
        assert len(served.bodies) == 6
        assert contents(folder) == contents(tmp_path / "whole")
        assert without_times(folder) == without_times(tmp_path / "whole")


def test_a_killed_run_leaves_nothing_that_is_trusted_wrongly(
    served: ChatServer, tmp_path: Path, out: Path
) -> None:
    asked(tmp_path / "whole")
    asked(out)
    damage(out)
    summary = asked(out)
    assert (summary.drawn, summary.damaged) == (3, 2)
    assert contents(out) == contents(tmp_path / "whole")


def test_the_budget_stops_a_run_before_it_is_passed_and_a_greater_one_goes_on(
    served: ChatServer, tmp_path: Path, out: Path
) -> None:
    rewritten(tmp_path, budget_usd=3 * image_server.USD + 0.01)
    with refusal("budget_spent", "here", kind=PlatformError):
        asked(out)
    assert (len(served.bodies), len(contents(out))) == (3, 3)
    assert spent() == pytest.approx(3 * image_server.USD)
    rewritten(tmp_path, budget_usd=6 * image_server.USD)
    assert asked(out).drawn == 3
    assert len(served.bodies) == 6
    assert check_folder(out, PROMPTS, SEEDS).complete


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"size": ""}, "size"),
        ({"quality": "low"}, "quality"),
        ({"call": {"style": "vivid"}}, "style"),
        ({"prompts": (Prompt("p0", "another"),)}, "'p0'"),
    ],
)
def test_images_of_other_settings_are_not_mixed_but_a_price_may_change(
    served: ChatServer, tmp_path: Path, out: Path, changes: dict[str, Any], named: str
) -> None:
    asked(out)
    with refusal("other_settings", named):
        asked(out, **changes)
    rewritten(tmp_path, "takes_seed = false")
    with refusal("other_settings", "reproducible"):
        asked(out)
    path = tmp_path / "endpoints.toml"
    text = path.read_text().replace("takes_seed = false", "takes_seed = true")
    path.write_text(text.replace(f"image_usd = {image_server.USD}", "image_usd = 0.5"))
    assert (asked(out).drawn, len(served.bodies)) == (0, 6)


def test_a_price_is_one_or_stands_by_quality_and_size() -> None:
    assert EndpointImageModel(image_usd=1).usd("high", "8x8") == 1.0
    by_name = EndpointImageModel(image_usd={"high 8x8": 0.2, "8x8": 0.1, "": 0.05})
    asked_for = [("high", "8x8"), ("", "8x8"), ("", "")]
    assert [by_name.usd(*one) for one in asked_for] == [0.2, 0.1, 0.05]
    with refusal("image_price_missing", "low 8x8", "high 8x8"):
        by_name.usd("low", "8x8")
    assert EndpointImageModel(image_usd={"a": 0.0}).free
    assert not by_name.free


@pytest.mark.parametrize("name", ["prompt", "n", "seed", "size", "response_format"])
def test_what_a_request_says_anyway_cannot_be_set(served: ChatServer, name: str) -> None:
    with refusal("unknown_argument", name):
        endpoint_settings(find_endpoint("here"), image_server.PAINTER, call={name: "x"})
    with refusal("unknown_endpoint_model", "image_models"):
        endpoint_settings(find_endpoint("here"), "other")
