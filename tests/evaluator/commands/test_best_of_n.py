"""`best-of-n` prints what the page of a metric says of choosing by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from evaluator.commands.best_of_n import gains_table
from leaderboard.models.choosing import NoGain, Reason
from leaderboard.store.folder import folder_store
from tests.evaluator.commands.submitting import Run
from tests.kit.boards import cards, keep
from tests.kit.toy import Toy
from tests.leaderboard.views import example_fixture
from tests.leaderboard.views.test_best_of_n import models_gain, of_site

NOISY = example_fixture.entry_id(example_fixture.NOISY)


def test_the_command_says_what_is_known_and_who_is_on_no_board(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"ratings": Toy(cards()["ratings"])}
    monkeypatch.setattr("benchmarks.registry.load_registry", lambda: known)
    made = example_fixture.filled()
    keep(
        folder_store(tmp_path / "store"),
        {path: made.public.read(path) for path in made.public.list("")},
    )
    shown = run("best-of-n", NOISY)
    assert shown.code == 0 and "of a rating point" in shown.out and "best of" in shown.out
    told = run("best-of-n", NOISY, "--json").json
    assert {row["under"] for row in told["rows"]} == {"people", "raters"}
    assert told["about"]["sentences"][0]["sentence"][:60] in " ".join(shown.out.split())
    assert run("best-of-n", "nobody").code != 0


def test_the_table_has_every_value_at_the_sizes_of_the_page() -> None:
    found = replace(of_site(example_fixture.filled(), example_fixture.NOISY),
                    under_others=(models_gain(),))  # fmt: skip
    made = gains_table(found)
    assert made.row_count == 2 * (2 + 4)  # sizes 2 and 4: people, raters, itself, mean, two others
    apart = NoGain(Reason.NO_COMMON_SCORES, 40)
    (models,) = found.under_others
    others = tuple(replace(one, curve=apart) for one in models.others)
    alone = replace(models, others=others, mean=None)
    assert gains_table(replace(found, under_others=(alone,))).row_count == 2 * 3 + 2
    console = Console(width=160, record=True, quiet=True)
    console.print(made)
