"""Each made-up site by its name; `python -m tests.leaderboard.web.sites NAME [PORT]` serves one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import gradio as gr

from leaderboard.accounts import Account, Origin
from tests.kit.boards import cards, fill
from tests.kit.site import app_of
from tests.kit.store import memory_store
from tests.leaderboard.views import example_fixture, model_track
from tests.leaderboard.web import (
    families_fixture,
    index_fixture,
    moved_fixture,
    own_submissions,
    skills_fixture,
)

App = tuple[gr.Blocks, dict[str, Any]]
ADA = Account(origin=Origin.LOCAL, name="ada")


def _submissions() -> App:
    """Everything that happens to a submission."""
    store = own_submissions.give(fill(memory_store()), ADA)
    return app_of(own_submissions.run_one(store, ADA), cards())


def _models() -> App:
    store = model_track.filled()
    return app_of(store, skills_fixture.cards(), models=model_track.reader_of(store))


SITES: dict[str, Callable[[], App]] = {
    "boards": lambda: app_of(example_fixture.filled(), cards()),
    "index": lambda: app_of(index_fixture.fill(memory_store()), index_fixture.cards()),
    "skills": lambda: app_of(skills_fixture.fill(memory_store()), skills_fixture.cards()),
    "models": _models,
    "moved": lambda: app_of(moved_fixture.fill_moved(memory_store()), cards()),
    "submissions": _submissions,
    "families": lambda: app_of(*families_fixture.filled()),
}


if __name__ == "__main__":
    app, options = SITES[sys.argv[1]]()
    port = int(sys.argv[2]) if sys.argv[2:] else 7861
    app.launch(server_name="127.0.0.1", server_port=port, **options)
