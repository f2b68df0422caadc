"""A server of chat completions or of images on this machine, which behaves as it is told."""

from __future__ import annotations

import base64
import io
import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.kit.serving import serving

WORDS = ("Yes", " yes", "No", "no", "Maybe", "The")
MODEL = "tiny-2026-01-01"
KEY = "sk-very-secret"


def log_probabilities(image: Image.Image, text: str) -> dict[str, float]:
    """Of the first token, by word: a softmax over numbers that image and text decide."""
    seen = np.asarray(image.convert("RGB"), dtype=float).mean(axis=(0, 1)) / 255
    read = np.frombuffer(text.encode(), dtype=np.uint8).mean() / 255
    logits = np.array([np.sin(7 * (k + 1) * seen + read).sum() for k in range(len(WORDS))])
    found = logits - np.log(np.exp(logits).sum())
    return dict(zip(WORDS, map(float, found), strict=True))


def completion(text: str = "Yes", **more: Any) -> dict[str, Any]:
    """A reply as the protocol has it, with changes to it or to its choice."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    choice |= {key: more.pop(key) for key in tuple(more) if key in {"finish_reason", "message"}}
    whole = {"id": "1", "object": "chat.completion", "created": 0, "model": MODEL, "usage": USAGE}
    return whole | {"choices": [choice | more.pop("choice", {})]} | more


def listing(
    probabilities: Mapping[str, float] | Sequence[tuple[str, float]], text: str = ""
) -> dict[str, Any]:
    """A reply whose first token has these probabilities; by default the first of them was drawn."""
    pairs = list(probabilities.items() if isinstance(probabilities, Mapping) else probabilities)
    top = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in pairs]
    drawn = text or pairs[0][0]
    place = {"token": drawn, "logprob": math.log(dict(pairs).get(drawn, 1.0)), "top_logprobs": top}
    return completion(drawn, choice={"logprobs": {"content": [place]}})


def images_of(body: Mapping[str, Any]) -> list[Image.Image]:
    """The images of a request, in their order; its text follows them."""
    *pictures, words = body["messages"][0]["content"]
    assert words["type"] == "text"
    files = (base64.b64decode(one["image_url"]["url"].partition(",")[2]) for one in pictures)
    return [Image.open(io.BytesIO(file)) for file in files]


def honest(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a model says, with probabilities where they are asked for."""
    (image,) = images_of(body)
    known = log_probabilities(image, body["messages"][0]["content"][-1]["text"])
    ranked = sorted(((word, math.exp(p)) for word, p in known.items()), key=lambda one: -one[1])
    if not body.get("logprobs"):
        return completion(ranked[0][0])
    return listing(ranked[: body["top_logprobs"]])


Behaviour = Callable[[Mapping[str, Any]], Any]
"""What to answer to a body: JSON, or a response as it is."""


@dataclass
class ChatServer:
    """What it was asked, and how it answers."""

    behaviour: Behaviour = honest
    first: list[Any] = field(default_factory=list)  # before it behaves: responses, in turn
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    most_at_once: int = 0
    address: str = ""  # up to the version
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def answer(self, request: Request) -> Response:
        """POST /v1/chat/completions, or /v1/images/generations."""
        body = json.loads(await request.body())
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            self.bodies.append(body)
            self.keys.add(request.headers.get("authorization", ""))
            said = self.first.pop(0) if self.first else self.behaviour(body)
            self._now -= 1
        return said if isinstance(said, Response) else JSONResponse(said)


@contextmanager
def chat_server(
    path: str = "/v1/chat/completions", behaviour: Behaviour = honest, *more: Route
) -> Iterator[tuple[ChatServer, str]]:
    """A server, and its address up to the version."""
    server = ChatServer(behaviour)
    with serving([Route(path, server.answer, methods=["POST"]), *more]) as address:
        server.address = f"{address}/v1"
        yield server, server.address


@dataclass
class ChatRooms:
    """One HTTP server with an address for each test, so that late requests reach no other test."""

    address: str
    rooms: dict[str, ChatServer] = field(default_factory=dict)

    def add(self) -> ChatServer:
        """An honest chat server at an address of its own."""
        name = f"room-{len(self.rooms)}"
        self.rooms[name] = ChatServer(address=f"{self.address}/{name}/v1")
        return self.rooms[name]


@contextmanager
def chat_rooms() -> Iterator[ChatRooms]:
    """Start the HTTP server, without a room yet."""
    rooms = ChatRooms("")

    async def answer(request: Request) -> Response:
        return await rooms.rooms[request.path_params["room"]].answer(request)

    with serving([Route("/{room}/v1/chat/completions", answer, methods=["POST"])]) as address:
        rooms.address = address
        yield rooms


USAGE = {"prompt_tokens": 1000, "completion_tokens": 10}
"""Of every reply here."""
REPLY_USD = (1000 * 2.0 + 10 * 8.0) / 1e6
"""What one of them costs."""
PRICES = f'[endpoint.models."{MODEL}"]\ninput_usd = 2.0\noutput_usd = 8.0\n'


def endpoints_file(folder: Path, address: str, prices: str = PRICES, **more: Any) -> Path:
    """A file of endpoints with one, named `here`."""
    values = {"name": "here", "address": address, "budget_usd": 10.0, "attempts": 3} | more
    told = "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())
    path = folder / "endpoints.toml"
    path.write_text(f"[[endpoint]]\n{told}\n{prices}")
    return path
