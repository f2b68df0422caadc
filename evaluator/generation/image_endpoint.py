"""Image model behind an endpoint: one image for a prompt, by OpenAI's protocol of images.

Whatever an endpoint answers is untrusted: its length, the format and size of an image, and the address
it may name in place of one are bounded, and its copies of the key are blotted out.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PIL import Image
from pydantic import BaseModel, Field, ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.sources.client import httpx, origin
from evaluator.bounded_http import resolve
from evaluator.generation.folder import clipped
from evaluator.generation.manifest import EndpointSettings
from evaluator.scorers.endpoints import Endpoint
from evaluator.scorers.models.endpoint_requests import EndpointRequests, RequestFailure
from evaluator.scoring.images import ImageError, decode

FORMATS = ("PNG", "JPEG", "WEBP")
LARGEST_FILE = 32 << 20
"""Bytes of an image's file."""
LARGEST_REPLY = LARGEST_FILE * 4 // 3 + (1 << 16)
LONGEST_REVISION = 4000
"""Characters of a revised prompt that are kept."""
LONGEST_REFUSAL = 300
_OURS = frozenset(
    {"model", "prompt", "n", "seed", "size", "quality", "response_format", "stream", "user"}
)
_POLICY = ("contentpolicy", "contentfilter", "policyviolation", "moderation", "safety")
"""What the codes of refused prompts say, without their underscores."""


@dataclass(frozen=True, slots=True)
class EndpointImage:
    """What became of a prompt."""

    image: Image.Image | None  # RGB; None where the prompt was refused
    usd: float  # what it cost
    refusal: str = ""  # why it was refused, in the endpoint's words
    revised_prompt: str = ""  # what the endpoint says it drew; empty: the prompt


class _Datum(BaseModel):
    b64_json: str | None = None
    url: str | None = None
    revised_prompt: str | None = None


class _Reply(BaseModel):
    data: list[_Datum] = Field(min_length=1, max_length=1)


def endpoint_settings(
    endpoint: Endpoint, model: str, *, size: str = "", quality: str = "", call: Any = None
) -> EndpointSettings:
    """How images are asked for, with what the operator's file says of the model.

    Raises:
        SubmitterError: `unknown_endpoint_model`, `image_price_missing`, `unknown_argument`.
    """
    about = endpoint.image_model(model)
    call = dict(call or {})
    if taken := sorted(_OURS & call.keys()):
        raise SubmitterError(
            "unknown_argument",
            f"Requests to endpoints take no {', '.join(taken)} from --set.",
            "Size and quality are --width with --height, and --quality; the rest is given.",
        )
    return EndpointSettings(
        endpoint=endpoint.name,
        model=model,
        size=size,
        quality=quality,
        image_usd=about.usd(quality, size),
        reproducible=about.takes_seed,
        call=call,
    )


class ImageEndpoint:
    """An image model of an endpoint; any number of threads may ask.

    Args:
        endpoint: of the operator's file.
        settings: how images are asked for.
        sleep: as `EndpointRequests` has it, as is `clock`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: EndpointSettings,
        *,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint, self._settings = endpoint, settings
        self._response_format = endpoint.image_model(settings.model).response_format
        self._requests = EndpointRequests(
            endpoint, each_usd=settings.image_usd, sleep=sleep, clock=clock
        )

    def draw(self, prompt: str, seed: int, stopped: threading.Event) -> EndpointImage:
        """An image of a prompt.

        Raises:
            RequestFailure: none could be had of this prompt, or the run was stopped.
            PlatformError: none can be had of any: no access, a spent budget.
            TransientError: the endpoint stayed away or busy through all attempts.
        """
        body = self._body(prompt, seed)
        return self._requests.answer(lambda: self._drawn(body), stopped)

    def _body(self, prompt: str, seed: int) -> dict[str, Any]:
        said = {
            "size": self._settings.size,
            "quality": self._settings.quality,
            "response_format": self._response_format,
        }
        seeded = {"seed": seed} if self._settings.reproducible else {}
        given = {name: value for name, value in said.items() if value}
        return {
            "model": self._settings.model, "prompt": prompt, "n": 1, **given, **seeded,
            **self._settings.call,
        }  # fmt: skip

    def _drawn(self, body: dict[str, Any]) -> EndpointImage:
        key = self._requests.key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        address = f"{self._endpoint.address}/images/generations"
        response = self._response("POST", address, LARGEST_REPLY, json=body, headers=headers)
        if response.is_error or response.is_redirect:
            return self._refused(response)
        if response.status_code != httpx.codes.OK:
            raise RequestFailure(f"it answers {response.status_code}", of_the_request=True)
        # It has drawn, and is paid, whether or not its answer can be used.
        self._requests.budget.count_dearest()
        try:
            datum = _Reply.model_validate_json(response.content).data[0]
        except ValidationError:
            raise RequestFailure("what it answers is no reply", of_the_request=True) from None
        image = self._image(self._file(datum))
        revised = clipped(self._requests.without_key(datum.revised_prompt or ""), LONGEST_REVISION)
        return EndpointImage(image, self._settings.image_usd, revised_prompt=revised)

    def _refused(self, response: httpx.Response) -> EndpointImage:
        """A refused prompt; raises where it is not the prompt that was refused."""
        codes, message = _error(response.content.decode(errors="replace"))
        said = clipped(self._requests.without_key(message), LONGEST_REFUSAL)
        if response.status_code < 500 and any(word in code for code in codes for word in _POLICY):
            return EndpointImage(None, 0.0, refusal=said or "refused by its policy of content")
        raise self._requests.refused(response, said)

    def _file(self, datum: _Datum) -> bytes:
        if datum.b64_json:
            try:
                return base64.b64decode(datum.b64_json, validate=True)
            except (binascii.Error, ValueError):
                raise RequestFailure("its image is not in base64", of_the_request=True) from None
        if datum.url:
            return self._fetched(datum.url)
        raise RequestFailure("its answer holds no image", of_the_request=True)

    def _fetched(self, url: str) -> bytes:
        """The file at an address that the endpoint names; it is given no key."""
        address, options = _reachable(url, self._endpoint)
        response = self._response("GET", address, LARGEST_FILE, **options)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code != httpx.codes.OK or kind not in _MEDIA_TYPES:
            told = f"{response.status_code} {clipped(kind, 40)}".strip()
            raise RequestFailure(f"its image's address answers {told}", of_the_request=True)
        return response.content

    def _image(self, data: bytes) -> Image.Image:
        try:
            if len(data) > LARGEST_FILE:
                raise ImageError(f"{len(data)} bytes are too many")
            image = decode(data, FORMATS).image
        except ImageError as error:
            told = f"its image cannot be used: {clipped(str(error), 120)}"
            raise RequestFailure(told, of_the_request=True) from None
        size = f"{image.width}x{image.height}"
        asked = self._settings.size
        if asked and asked != size:
            told = f"its image is {size}, and {asked} was asked for"
            raise RequestFailure(told, of_the_request=True)
        return image

    def _response(
        self, method: str, address: str | httpx.URL, most: int, **options: Any
    ) -> httpx.Response:
        return self._requests.exchange(method, address, most, cut_of_the_request=True, **options)


_MEDIA_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "application/octet-stream"})


def _error(text: str) -> tuple[list[str], str]:
    """Codes of an error, in small letters alone, and its message, of whatever shape it has."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return [], text
    layers = [said, said.get("error")] if isinstance(said, dict) else []
    found = [one for one in layers if isinstance(one, dict)]
    codes = [str(one.get(name) or "") for one in found for name in ("code", "type")]
    plain = ["".join(c for c in code.lower() if c.isalpha()) for code in codes]
    messages = [one.get("message") for one in reversed(found)]
    return plain, next((one for one in messages if isinstance(one, str) and one), text)


def _reachable(url: str, endpoint: Endpoint) -> tuple[httpx.URL, dict[str, Any]]:
    """Where an image is fetched from: the endpoint itself, or a public address by https.

    A name is resolved once, and the connection goes to the very address that was looked at.
    """
    try:
        there, own = httpx.URL(url), origin(url) == origin(endpoint.address) != ""
    except (httpx.InvalidURL, ValueError):
        raise _unreachable("that cannot be read") from None
    if own:
        return there, {}
    if there.scheme != "https" or not there.host or there.userinfo:
        raise _unreachable("which is neither the endpoint's own nor begins with https")
    try:
        addresses = resolve(there.host, there.port or 443, endpoint.timeout_s)
    except (OSError, UnicodeError):
        raise _unreachable("which has no address") from None
    if not all(_is_public(one) for one in addresses):
        raise _unreachable("which is not public")
    options = {
        "headers": {"Host": there.netloc.decode("ascii")},
        "extensions": {"sni_hostname": there.host},
    }
    return there.copy_with(host=addresses[0]), options


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None) or found
    return bool(mapped.is_global and not mapped.is_multicast)


def _unreachable(why: str) -> RequestFailure:
    return RequestFailure(f"it names a place {why}", of_the_request=True)
