"""A site that is served, and calls of its events as a browser makes them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
from itsdangerous import TimestampSigner

from benchmarks.schema import Card
from leaderboard.api import picture_routes
from leaderboard.api.routes import routes
from leaderboard.governance.authentication import Authentication, AuthenticationMethod
from leaderboard.models.pictures import ModelPictures
from leaderboard.service.pictures import Pictures
from leaderboard.store.interface import Store
from leaderboard.web.site import create_app, launch_options
from tests.kit.boards import StubDesk, site_of
from tests.kit.processes import await_answer, free_port, running
from tests.leaderboard.web.oauth_provider import CLIENT_SECRET

REPOSITORY = Path(__file__).resolve().parents[2]
LOCAL = Authentication(AuthenticationMethod.LOCAL, local="ada")
App = tuple[gr.Blocks, dict[str, Any]]
"""The pages of a site, and the options it is launched with."""
_AT = {"server_name": "127.0.0.1", "prevent_thread_lock": True, "quiet": True, "_frontend": False}
"""With `_frontend`, Gradio gives up where its first page does not come within three seconds."""


def app_of(
    store: Store, cards: Mapping[str, Card], sign_in: Authentication = LOCAL, *, desk: Any = None,
    models: Any = None, pictures: Pictures | None = None, clock: Any = None,
) -> App:  # fmt: skip
    """The site of a store, and what serves it with its API and its pictures."""
    context = site_of(
        store, desk or StubDesk(store=store), cards, sign_in, models=models,
        pictures=pictures or Pictures({}, None), **({"wait_s": 0.2} if models else {}),
    )  # fmt: skip
    if clock is not None:
        context = replace(context, clock=clock)
    drawn = None if models is None else ModelPictures(models, store.public)
    every = [*picture_routes.routes(context.pictures, drawn), *routes(context)]
    return create_app(context), launch_options(context, every)


@contextmanager
def served(app: gr.Blocks, options: Mapping[str, Any]) -> Iterator[str]:
    """Where an app is served until the block ends."""
    _, address, _ = app.launch(**_AT, **options)
    try:
        yield str(address)
    finally:
        app.close()


@contextmanager
def running_app(folder: Path, **settings: str) -> Iterator[str]:
    """Serves a store below a folder with the real app, and says where."""
    port = free_port()
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_", "OAUTH_"))}
    environment = {
        **clean, "ASSAY_STORE": str(folder / "store"), "PORT": str(port),
        "GRADIO_TEMP_DIR": str(folder / "uploads"), **settings,
    }  # fmt: skip
    address, log = f"http://127.0.0.1:{port}/", folder / "app.log"
    command = [sys.executable, "app.py"]
    with (
        log.open("w") as output,
        running(command, cwd=REPOSITORY, env=environment, stdout=output, stderr=output) as process,
    ):
        await_answer(address, process, log)
        yield address


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

    def upload(self, path: str, name: str = "left.zip") -> httpx.Response:
        """Leave a file, as the upload fields of a page do."""
        files = {"files": (name, b"left behind")}
        return self.client.post(f"{self.address}{path}", files=files, headers=dict(self.headers))

    def _post(self, path: str, body: dict[str, Any], query: dict[str, str]) -> httpx.Response:
        return self.client.post(
            f"{self.address}gradio_api/{path}", json=body, params=query, headers=dict(self.headers)
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
