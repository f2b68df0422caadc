"""Calling the events of a served site as any program could: over HTTP, by their numbers."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
import httpx
from itsdangerous import TimestampSigner

from tests.leaderboard.web.oauth_provider import CLIENT_SECRET


def session_of(name: str, secret: str = CLIENT_SECRET, expires_at: float = 9e9) -> str:
    """The session cookie of somebody who signed in through the Hub, as Gradio signs it."""
    profile = {
        "name": name, "preferred_username": name, "profile": f"https://hub.example/{name}",
        "picture": "",
    }  # fmt: skip
    content = base64.b64encode(
        json.dumps({"oauth_info": {"userinfo": profile, "expires_at": expires_at}}).encode()
    )
    key = hashlib.sha256(f"{secret}-v4".encode()).hexdigest()
    return TimestampSigner(key).sign(content).decode()


@dataclass(frozen=True)
class Caller:
    """Somebody who calls events without a browser.

    Attributes:
        address: of the site.
        headers: sent along each time.
        session: of this caller, as a browser's tab has one.
        client: what sends.
    """

    address: str
    headers: Mapping[str, str] = field(default_factory=dict)
    session: str = field(default_factory=lambda: secrets.token_hex(6))
    # Certificates are not needed here, and reading them takes longer than a call.
    client: httpx.Client = field(default_factory=lambda: httpx.Client(verify=False, timeout=20))

    def at_once(self, number: int, data: list[Any], **query: str) -> str:
        """Call an event directly; the answer as text, whatever it is."""
        body = {"data": data, "fn_index": number, "session_hash": self.session}
        return self._post("run/predict", body, query).text

    def by_queue(self, number: int, data: list[Any], **query: str) -> str:
        """Call an event through Gradio's queue, as its own pages do."""
        body = {"data": data, "fn_index": number, "session_hash": self.session}
        joined = self._post("queue/join", body, query)
        if joined.status_code != 200:
            return joined.text
        event = joined.json()["event_id"]
        with self.client.stream(
            "GET",
            f"{self.address}gradio_api/queue/data?session_hash={self.session}",
            headers=dict(self.headers),
        ) as answer:
            for line in answer.iter_lines():
                message = json.loads(line.removeprefix("data: ")) if line else {}
                if message.get("msg") == "process_completed" and message["event_id"] == event:
                    return json.dumps(message["output"])
        return ""

    def upload(self, path: str) -> httpx.Response:
        """Leave a file, as the upload fields of a page do."""
        files = {"files": ("left.zip", b"left behind")}
        return self.client.post(f"{self.address}{path}", files=files, headers=dict(self.headers))

    def _post(self, path: str, body: dict[str, Any], query: dict[str, str]) -> httpx.Response:
        return self.client.post(
            f"{self.address}gradio_api/{path}",
            json=body,
            params=query,
            headers=dict(self.headers),
        )


@dataclass(frozen=True)
class Endpoint:
    """One event of an app that runs code of ours.

    Attributes:
        number: by which it is called.
        page: address of the page it belongs to.
        name: of the function.
        inputs: how many values it takes.
        clicked: label of the button that triggers it; empty for other events.
        queued: whether Gradio's pages call it through the queue.
    """

    number: int
    page: str
    name: str
    inputs: int
    clicked: str
    queued: bool


def endpoints(app: gr.Blocks) -> Iterator[Endpoint]:
    """Every event of an app that runs code of ours."""
    for number, event in app.fns.items():
        if event.fn is None:
            continue
        buttons = [
            str(app.blocks[ident].value)
            for ident, trigger in event.targets
            if trigger == "click" and ident is not None
        ]
        name = getattr(event.fn, "__name__", "")
        yield Endpoint(
            number, event.page, name, len(event.inputs), buttons[0] if buttons else "", event.queue
        )
