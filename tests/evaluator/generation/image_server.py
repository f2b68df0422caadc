"""A server of images on this machine, which behaves as it is told."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.evaluator.scorers.chat_server import ChatServer, chat_server, endpoints_file

PAINTER = "painter-2026-01-01"
USD = 0.04
SIDE = 16


def painted(words: str, side: int = SIDE, form: str = "PNG") -> bytes:
    """A file of an image that the words decide."""
    seed = int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big")
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form)
    return stream.getvalue()


def with_image(data: bytes, **more: Any) -> dict[str, Any]:
    """A reply as the protocol has it."""
    return {"created": 0, "data": [{"b64_json": base64.b64encode(data).decode(), **more}]}


def paint(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a model draws: the same for the same prompt and seed."""
    return with_image(painted(f"{body['prompt']} {body.get('seed')}"))


async def elsewhere(request: Request) -> Response:
    """GET /file/{form}: an image as a file of its own, or what is none."""
    form = request.path_params["form"]
    if form == "moved":
        return Response(status_code=302, headers={"location": "/file/png"})
    if form == "cut":
        return Response(b"half", media_type="image/png", headers={"content-length": "1000"})
    data = b"<html>" if form == "html" else painted("fetched")
    kind = "text/html" if form == "html" else "image/png"
    asked_with_key = "authorization" in request.headers
    return Response(data, status_code=500 if asked_with_key else 200, media_type=kind)


@contextmanager
def image_server() -> Iterator[tuple[ChatServer, str]]:
    """A server, and its address up to the version."""
    files = Route("/file/{form}", elsewhere)
    with chat_server("/v1/images/generations", paint, files) as served:
        yield served


def painters_file(folder: Path, address: str, model: str = "", **more: Any) -> Path:
    """A file of endpoints with one, named `here`, that has an image model with a seed."""
    prices = (
        f'[endpoint.image_models."{PAINTER}"]\nimage_usd = {USD}\n{model or "takes_seed = true"}\n'
    )
    return endpoints_file(folder, address, prices, **{"requests_per_minute": 1e6, **more})
