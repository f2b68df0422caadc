"""Serves the site: `python app.py`, then open http://127.0.0.1:7860.

Environment:
    ASSAY_STORE  the store: a folder, or hub:OWNER/NAME (default `.assay/store`)
    ASSAY_DATA   folder of benchmark data files (default: none; what needs none works)
    ASSAY_HOST   address to listen at (default: GRADIO_SERVER_NAME, which a Space sets, or
                 127.0.0.1; 0.0.0.0 inside a container)
    PORT         port to listen at (default 7860)
    ASSAY_USER   name of the local account (default: the operating system's user)
    ASSAY_OPERATORS  accounts that may hide, rerun and ban, e.g. `hub:ada,hub:grace`
    ASSAY_LIVE_SECRET  shared with workers that name this app in their ASSAY_LIVE: it takes their
                 heartbeats and running logs (default: those of this machine are shown)
    ASSAY_WEBHOOK_SECRET  as given to the Hub, which tells of changes at /webhook

Beside the pages it answers programs at /v1 (docs/api.md), /mcp, /health, /metrics and
/live/pulses.

On a Space with `hf_oauth: true` people sign in with their account of the Hub. Elsewhere only
visitors from this machine are known, as the local account; all others may read.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import TypeVar

import gradio as gr
from starlette.routing import BaseRoute

from benchmarks.errors import AssayError, SubmitterError, TransientError
from benchmarks.prompt_sets.registry import load_prompt_sets
from benchmarks.registry import load_registry
from evaluator.commands.person import os_user
from evaluator.isolation.gate import isolation_gate
from evaluator.submission.receiving.desk import SubmissionDesk
from leaderboard.api.mcp_routes import routes as mcp_routes
from leaderboard.api.routes import routes as api_routes
from leaderboard.api.source import Source
from leaderboard.desk import Gate
from leaderboard.governance.signing_in import SignIn, read_sign_in
from leaderboard.models.pictures import ModelPictures
from leaderboard.models.reading import ModelReader
from leaderboard.pages.reading import Reader
from leaderboard.pages.site import create_app, launch_options
from leaderboard.service.health_routes import routes as health_routes
from leaderboard.service.live_routes import routes as live_routes
from leaderboard.service.looking import HealthWatch
from leaderboard.service.memory import keep_small
from leaderboard.service.picture_routes import routes as picture_routes
from leaderboard.service.pictures import Pictures
from leaderboard.service.webhooks import routes as webhook_routes
from leaderboard.service.webhooks import webhook_from
from leaderboard.store.interface import Store
from leaderboard.store.live.opening import SECRET, live_of
from leaderboard.store.live.wire import checked_secret
from leaderboard.store.opening import StoreName

LONGEST_PAUSE_S = 60.0
_Started = TypeVar("_Started")


@dataclass(frozen=True)
class Settings:
    """What the environment says.

    Attributes:
        store: where submissions and results are kept.
        data: folder of benchmark data; None where none was named.
        host: address to listen at.
        port: port to listen at.
        sign_in: how visitors are told apart.
        live_secret: of the workers that tell this app what they do; empty where none does.
    """

    store: StoreName
    data: Path | None
    host: str
    port: int
    sign_in: SignIn
    live_secret: str = ""

    @classmethod
    def read(cls, environment: Mapping[str, str], os_user: str) -> Settings:
        """Read the settings.

        Args:
            environment: of the process.
            os_user: name of the operating system's user.

        Raises:
            SubmitterError: `bad_port` where PORT is no port, `bad_live_secret`, or what
                `read_sign_in` raises.
        """
        port = environment.get("PORT", "7860")
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise SubmitterError("bad_port", f"PORT is {port!r}.", "Give a number up to 65535.")
        data = environment.get("ASSAY_DATA")
        secret = environment.get(SECRET, "").strip()
        return cls(
            store=StoreName.parse(environment.get("ASSAY_STORE", ".assay/store")),
            data=Path(data) if data else None,
            host=environment.get("ASSAY_HOST")
            or environment.get("GRADIO_SERVER_NAME")
            or "127.0.0.1",
            port=int(port),
            sign_in=read_sign_in(environment, os_user),
            live_secret=checked_secret(secret) if secret else "",
        )


def open_store(settings: Settings) -> Store:
    """The store. An app that workers tell what they do keeps that itself, and asks nobody."""
    store = settings.store.open()
    if not settings.live_secret:
        return store
    return replace(store, live=live_of(settings.store.folder, {}))


def source_of(store: Store, data: Path | None = None) -> Source:
    """What pages and programs read, once for both.

    Args:
        store: where it is.
        data: folder of benchmark data; None: the bundled prompt set is all there is of models.
    """
    # Boards of people's ratings come before simulated ones.
    every = (benchmark.card for benchmark in load_registry().values())
    cards = {card.name: card for card in sorted(every, key=lambda c: (c.simulated, c.name))}
    models = ModelReader(store, load_prompt_sets(), data)
    return Source(Reader(store, cards, clock=store.clock), store, cards, store.clock, models)


def build(
    settings: Settings,
    store: Store,
    source: Source | None = None,
    watch: HealthWatch | None = None,
) -> gr.Blocks:
    """The site over a store, with the evaluator's desk."""
    desk = SubmissionDesk(store, load_registry(), settings.data, _gate, store.clock)
    read = source or source_of(store, settings.data)
    return create_app(
        store,
        desk,
        read.cards,
        clock=store.clock,
        sign_in=settings.sign_in,
        pictures=_pictures(settings.data),
        source=read,
        hub=settings.store.hub_name if settings.store.on_hub else "",
        watch=watch,
    )


def routes_of(
    settings: Settings,
    store: Store,
    environment: Mapping[str, str],
    source: Source | None = None,
    watch: HealthWatch | None = None,
) -> list[BaseRoute]:
    """What is served to programs, beside the pages.

    Raises:
        SubmitterError: `weak_secret`, of the webhook.
    """
    read = source or source_of(store, settings.data)
    # Told of a change, the pages see it at once and not when the version is next asked for.
    webhook = webhook_from(environment, settings.store.repositories, store.look_anew)
    return [
        # Before whatever else is below /v1: the first route that fits answers.
        *picture_routes(_pictures(settings.data), _generations(read)),
        *health_routes(watch or HealthWatch(store, settings.store.folder)),
        *live_routes(store.live, settings.live_secret, store.clock),
        *(webhook_routes(webhook) if webhook is not None else ()),
        # After all others below /v1: it answers whatever else is asked for there.
        *api_routes(read),
        *mcp_routes(read),
    ]


def patiently(
    start: Callable[[], _Started],
    *,
    sleep: Callable[[float], None] = time.sleep,
    say: Callable[[str], object] = sys.stderr.write,
) -> _Started:
    """Start, however long the store does not answer: who starts this may do so only once."""
    for attempt in count():
        try:
            return start()
        except TransientError as error:
            pause = min(5.0 * 2 ** min(attempt, 10), LONGEST_PAUSE_S)
            say(f"error [{error.code}]: {error} The next try is in {pause:.0f} s.\n")
            sleep(pause)
    raise AssertionError("counting ended")


def main() -> int:
    """Serve until interrupted."""
    keep_small()
    try:
        settings = Settings.read(os.environ, os_user())
        store = patiently(lambda: open_store(settings))
        source = source_of(store, settings.data)
        watch = HealthWatch(store, settings.store.folder)
        app = patiently(lambda: build(settings, store, source, watch))
        routes = routes_of(settings, store, os.environ, source, watch)
    except AssayError as error:
        sys.stderr.write(f"error [{error.code}]: {error}\n")
        return error.exit_code
    try:
        app.launch(
            server_name=settings.host,
            server_port=settings.port,
            prevent_thread_lock=True,
            quiet=True,
            **launch_options(settings.sign_in, routes, source),
        )
    except OSError as error:
        sys.stderr.write(
            f"error [port_unavailable]: Cannot listen at {settings.host}:{settings.port}: {error} "
            "Choose another port with PORT.\n"
        )
        return SubmitterError.exit_code
    sys.stdout.write(f"Serving at http://{settings.host}:{settings.port} (Ctrl-C stops)\n")
    sys.stdout.flush()
    app.block_thread()
    return 0


@cache
def _gate() -> Gate:
    """Whether code can be isolated here; probed once, since a machine seldom changes."""
    return isolation_gate()


@cache
def _pictures(data: Path | None) -> Pictures:
    """Of the benchmarks; the pages and the route that serves them look at the same lists."""
    return Pictures(load_registry(), data)


def _generations(source: Source) -> ModelPictures | None:
    return ModelPictures(source.models, source.store.public) if source.models else None


if __name__ == "__main__":
    sys.exit(main())
