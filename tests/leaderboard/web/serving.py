"""Sites that a test serves: in this process over a made-up store, or `python app.py` as its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gradio as gr

from benchmarks.schema import Card
from leaderboard.api import picture_routes
from leaderboard.api.routes import routes
from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.models.pictures import ModelPictures
from leaderboard.service.pictures import Pictures
from leaderboard.store.interface import Store
from leaderboard.web.site import create_app, launch_options
from tests.leaderboard.web.synthetic import NOW, StubDesk, source_over
from tests.processes import await_answer, free_port, running

REPOSITORY = Path(__file__).resolve().parents[3]
LOCAL = SignIn(Way.LOCAL, local="ada")
_AT = {"server_name": "127.0.0.1", "prevent_thread_lock": True, "quiet": True}


def app_of(
    store: Store, cards: Mapping[str, Card], sign_in: SignIn = LOCAL, *, desk: Any = None,
    models: Any = None, pictures: Pictures | None = None, clock: Any = None,
) -> tuple[gr.Blocks, dict[str, Any]]:  # fmt: skip
    """The site of a store, and what serves it with its API and its pictures."""
    source = source_over(store, cards, models=models, **({"wait_s": 0.2} if models else {}))
    drawn = None if models is None else ModelPictures(models, store.public)
    every = [*picture_routes.routes(pictures or Pictures({}, None), drawn), *routes(source)]
    app = create_app(
        store, desk or StubDesk(store=store), dict(cards), clock=clock or (lambda: NOW),
        sign_in=sign_in, source=source, pictures=pictures,
    )  # fmt: skip
    return app, launch_options(sign_in, every, source)


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
