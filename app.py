"""Serves the site: `python app.py`, then open http://127.0.0.1:7860.

What it reads from variables or from .assay/settings.toml (`python -m evaluator settings` shows all):
the store, the folder of data, where to listen, operators, and what it shares with workers and the
Hub.

Beside the pages it answers programs at /v1 (docs/api.md), /mcp, /health, /metrics and
/live/pulses.

On a Space with `hf_oauth: true` people sign in with their account of the Hub. Elsewhere only
visitors from this machine are known, as the local account; all others may read.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import TypeVar

from starlette.routing import BaseRoute

from benchmarks.errors import AssayError, SubmitterError, TransientError
from benchmarks.prompt_sets.prompt_set import load_prompt_sets
from benchmarks.registry import load_registry
from benchmarks.settings.model import load_process
from benchmarks.settings.model import read as read_settings
from benchmarks.settings.rotation import SecretRotation
from evaluator.isolation.availability import isolation_gate
from evaluator.submission.receipts import assay_version
from evaluator.submission.service import SubmissionService
from leaderboard.api.mcp import routes as mcp_routes
from leaderboard.api.picture_routes import routes as picture_routes
from leaderboard.api.routes import routes as api_routes
from leaderboard.api.source import Source
from leaderboard.governance.authentication import Authentication, os_user, read_sign_in
from leaderboard.models.pictures import ModelPictures
from leaderboard.models.reading import ModelReader
from leaderboard.publication.publisher import cards_of
from leaderboard.publication.reader import Reader
from leaderboard.service.address import listens_at
from leaderboard.service.health_routes import routes as health_routes
from leaderboard.service.live_routes import routes as live_routes
from leaderboard.service.memory import keep_small
from leaderboard.service.pictures import Pictures
from leaderboard.service.polling import HealthWatch
from leaderboard.service.webhooks import routes as webhook_routes
from leaderboard.service.webhooks import webhook_from
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import FolderLive
from leaderboard.store.live.wire import SECRET, checked_secret
from leaderboard.store.opening import StoreName
from leaderboard.submission_service import SandboxAvailability
from leaderboard.votes.committing import votes_committed
from leaderboard.votes.disagreement import disagreements
from leaderboard.votes.service import VOTES, VoteLimits, VotingService
from leaderboard.web.page import Context, all_pages
from leaderboard.web.site import create_app, launch_options
from leaderboard.web.voting import routes as vote_routes

LONGEST_PAUSE_S = 60.0
_Started = TypeVar("_Started")


@dataclass(frozen=True)
class Settings:
    """What the environment says, with the settings file adopted."""

    store: StoreName  # where submissions and results are kept
    data: Path | None  # folder of benchmark data; None where none was named
    host: str  # address to listen at
    port: int  # port to listen at
    sign_in: Authentication  # how visitors are told apart
    live_secret: str = ""  # of the workers that tell this app what they do; empty where none does
    # how much one account may vote
    vote_limits: VoteLimits = field(default_factory=VoteLimits)
    votes_commit_s: float = 300.0  # between two commits of votes

    @classmethod
    def read(cls, environment: Mapping[str, str], os_user: str) -> Settings:
        """Read the settings."""
        values = read_settings(environment)
        if not environment.get("PORT", "7860").strip():
            raise SubmitterError("bad_port", "PORT is empty.", "Give a number up to 65535.")
        return cls(
            store=StoreName.parse(values.store),
            data=Path(values.data) if values.data else None,
            host=listens_at(values),
            port=values.port,
            sign_in=read_sign_in(environment, os_user),
            live_secret=checked_secret(values.live_secret) if values.live_secret else "",
            vote_limits=VoteLimits(
                values.votes_per_minute, values.votes_per_day, values.votes_hasty_s
            ),
            votes_commit_s=values.votes_commit_s,
        )

    def as_far_as_allowed(self) -> Settings:
        """These, or where the store can only be read, the same with nobody able to sign in."""
        why = self.store.why_read_only()
        return replace(self, sign_in=self.sign_in.reading_only(why)) if why else self


def open_store(settings: Settings) -> Store:
    """The store. An app that workers tell what they do keeps that itself, and asks nobody."""
    store = settings.store.open()
    if not settings.live_secret:
        return store
    return replace(store, live=FolderLive(settings.store.folder / "live"))


def source_of(store: Store, data: Path | None = None) -> Source:
    """What pages and programs read, once for both."""
    # Boards of people's ratings come before simulated ones.
    every = sorted(cards_of(load_registry()).values(), key=lambda c: (c.simulated, c.name))
    cards = {card.name: card for card in every}
    models = ModelReader(store, load_prompt_sets(), data)
    reader = Reader(store, cards, clock=store.clock)
    return Source(reader, store, cards, store.clock, models, assay_version())


def context_of(settings: Settings, store: Store, watch: HealthWatch) -> Context:
    """What the pages use, and programs read with them: a source, with the evaluator's desk."""
    read = source_of(store, settings.data)
    return Context(
        read.reader, store, read.cards, read.clock, read.models, read.assay_version,
        desk=SubmissionService(
            store, load_registry(), settings.data, _sandbox_availability, store.clock
        ),
        sign_in=settings.sign_in, pictures=_pictures(settings.data),
        hub=settings.store.hub_name if settings.store.on_hub else "", watch=watch,
    )  # fmt: skip


def voting_of(settings: Settings, store: Store, source: Source) -> VotingService | None:
    """What takes votes; None where no models are read."""
    models = source.models
    if models is None:
        return None
    pictures = ModelPictures(models, store.public)

    def disagreeing(prompt_set: str, first: str, second: str) -> Collection[str]:
        return disagreements(models, source.reader.view(), prompt_set, first, second)

    return VotingService(
        store,
        models,
        pictures,
        settings.store.folder / VOTES,
        limits=settings.vote_limits,
        disagreements=disagreeing,
    )


def routes_of(
    settings: Settings,
    store: Store,
    environment: MutableMapping[str, str],
    source: Source,
    watch: HealthWatch,
    *,
    voting: VotingService | None = None,
) -> list[BaseRoute]:
    """What is served to programs, beside the pages; and the page of votes, which needs no Gradio."""
    # Told of a change, the pages see it at once and not when the version is next asked for.
    webhook = webhook_from(environment, settings.store.repositories, store.look_anew)
    live_secrets = SecretRotation(SECRET, environment, checked_secret)
    return [
        # Before whatever else is below /v1: the first route that fits answers.
        *picture_routes(_pictures(settings.data), _generations(source)),
        *health_routes(watch),
        *live_routes(store.live, live_secrets, store.clock),
        *(webhook_routes(webhook) if webhook is not None else ()),
        # After all others below /v1: it answers whatever else is asked for there.
        *api_routes(source),
        *mcp_routes(source),
        *(
            vote_routes(voting, settings.sign_in, source.model_reader.prompt_sets, all_pages())
            if voting
            else ()
        ),
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


def main(words: Sequence[str] = ()) -> int:
    """Serve until interrupted.

    `words`: of the command line; `--help` alone is one.
    """
    argparse.ArgumentParser(
        prog="python app.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(words)
    keep_small()
    try:
        for warning in load_process():
            sys.stderr.write(f"warning: {warning}\n")
        settings = Settings.read(os.environ, os_user()).as_far_as_allowed()
        store = patiently(lambda: open_store(settings))
        watch = HealthWatch(store, settings.store.folder)
        context = context_of(settings, store, watch)
        app = create_app(context)
        voting = voting_of(settings, store, context)
        routes = routes_of(settings, store, os.environ, context, watch, voting=voting)
    except AssayError as error:
        sys.stderr.write(f"error [{error.code}]: {error}\n")
        return error.exit_code
    # SIGTERM is as Ctrl-C from here on: the server closes, and then the last votes are stored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    committing = votes_committed(voting, settings.votes_commit_s) if voting else nullcontext()
    with suppress(KeyboardInterrupt), committing:
        try:
            app.launch(
                server_name=settings.host,
                server_port=settings.port,
                prevent_thread_lock=True,
                quiet=True,
                **launch_options(context, routes),
            )
        except OSError:  # its words are of settings of Gradio, which this does not read
            sys.stderr.write(
                "error [port_unavailable]: Cannot listen at "
                f"{settings.host}:{settings.port}: another program has it, or it is not yours to "
                "use. Choose another port with PORT.\n"
            )
            return SubmitterError.exit_code
        sys.stdout.write(f"Serving at http://{settings.host}:{settings.port} (Ctrl-C stops)\n")
        sys.stdout.flush()
        app.block_thread()
    return 0


@cache
def _sandbox_availability() -> SandboxAvailability:
    """Whether code can be isolated here; probed once, since a machine seldom changes."""
    return isolation_gate()


@cache
def _pictures(data: Path | None) -> Pictures:
    """Of the benchmarks; the pages and the route that serves them look at the same lists."""
    return Pictures(load_registry(), data)


def _generations(source: Source) -> ModelPictures | None:
    return ModelPictures(source.models, source.store.public) if source.models else None


if __name__ == "__main__":
    code = main(sys.argv[1:])
    gc.freeze()  # else the interpreter looks for seconds through what is given up anyway
    sys.exit(code)
