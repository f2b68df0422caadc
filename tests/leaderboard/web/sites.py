"""Each made-up site by its name, and its pages; `python -m tests.leaderboard.web.sites NAME [PORT]` serves one."""

from __future__ import annotations

import sys
from collections.abc import Callable

from leaderboard.accounts import Account, Origin
from leaderboard.views.addresses import (
    compare_address,
    items_address,
    metric_address,
    model_address,
    model_pair_address,
    models_address,
    prompt_address,
)
from leaderboard.web.page import all_pages
from tests.kit.boards import cards, fill
from tests.kit.site import App, app_of
from tests.kit.store import memory_store
from tests.leaderboard.views import example_fixture, model_track
from tests.leaderboard.views.example_fixture import LACKS, NOISY, RIGHT, TURNED, entry_id
from tests.leaderboard.views.model_track import EMPTY, HOSTILE_ID, IDS, JUDGES, SET
from tests.leaderboard.web import (
    families_fixture,
    index_fixture,
    moved_fixture,
    own_submissions,
    skills_fixture,
)

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
PAGES: dict[str, dict[str, str]] = {
    "boards": {
        **{page.path: "h1" for page in all_pages()}, "": ".as-activity",
        "?tab=skill:spatial&ratings=simulated": ".as-skill-parts",
        "?chart=ranks&ratings=simulated&q=s": ".as-fchip",
        "?tab=benchmark:ratings&columns=plcc~paper&search=s": "td.as-fig",
        "?tab=benchmark:ratings&search=tifa,dsg&within=1&open=made-up-0008/TIFA": "#by-skill td",
        metric_address(entry_id(NOISY)): "#results table",
        "benchmark?name=ratings": "#measures table", "guide?name=start": ".as-doc pre",
        "guide?name=reference/settings": ".as-doc table", "guide?name=statistics": ".as-doc img",
        items_address("ratings", a=entry_id(NOISY), b=entry_id(RIGHT)): ".as-case",
        items_address("ratings", a=entry_id(LACKS), case="p3"): ".as-case",
        compare_address("ratings", *map(entry_id, (RIGHT, NOISY, TURNED))): "#pairs table",
        compare_address("ratings", entry_id(10), entry_id(0)): "#measures table",
        "compare?benchmark=ratings&view=pairs": "#agreement table",
        "compare?benchmark=ratings&view=skills": ".as-skill-values",
    },
    "skills": {
        "": ".as-board", "?chart=skills": ".as-chart-parallel",
        "?tab=skill:counting": ".as-skill-parts", "?tab=skill:": ".as-skill-list",
        metric_address("made-up-0002/SigLIP-2"): "#hub",
    },
    "models": {
        models_address(): "#board",
        models_address(SET, skill="count", words="box", judge=JUDGES[1], models=",".join(IDS[:3])):
            "#board",
        models_address(EMPTY): ".as-empty",
        models_address(SET, view="gallery"): "#gallery img",
        models_address(SET, view="judges"): "#orderings",
        model_address(IDS[0]): "#images img",
        model_address(IDS[2], skill="count"): "#images article",
        model_pair_address(SET, IDS[0], IDS[1], skill="count"): "#deciding",
        prompt_address(SET, HOSTILE_ID): "#images img",
        models_address(SET, view="seeds", judge=JUDGES[2]): "#ranks svg",
    },
    "moved": {"?tab=benchmark:ratings&view=changes": ".as-moved tbody tr",
              "?tab=benchmark:ratings&view=earlier": "#earlier tbody tr"},
    "families": {
        **{f"?tab=benchmark:of_{family}": ".as-board td.as-v" for family in families_fixture.FAMILIES},
        **{f"benchmark?name=of_{family}": "#measures table" for family in families_fixture.FAMILIES},
    },
}  # fmt: skip
"""Pages of each site, those with something chosen in them too, and what shows they are complete."""


if __name__ == "__main__":
    app, options = SITES[sys.argv[1]]()
    port = int(sys.argv[2]) if sys.argv[2:] else 7861
    app.launch(server_name="127.0.0.1", server_port=port, **options)
