"""Pairwise judges behind an API: margins, both orders, what cannot be read, and a judge of places."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.responses import Response

from benchmarks.errors import PlatformError
from benchmarks.schema import Pair, Questions
from evaluator.scorers.families.endpoint_comparison import FAMILY
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import Runtime, ScorerRow, load_rows, load_scorer
from evaluator.scoring.asking import ScoringPlan
from evaluator.scoring.column import ScoreColumn, ShardFolder
from evaluator.scoring.comparing import Comparisons
from evaluator.scoring.contract import Verdict
from evaluator.scoring.engine import run_plan
from evaluator.trust import order_figures
from tests.evaluator.scorers import chat_server as chat
from tests.evaluator.scorers.common import refusal
from tests.kit.pictures import encoded

PROMPT = "a white square"


def row_of(**options: Any) -> ScorerRow:
    """A row of the family."""
    own = {
        "method": "compare",
        "endpoint": "here",
        "model": chat.MODEL,
        "reading": "log_odds",
        "question": "Which shows {prompt}, A or B?",
    }
    return ScorerRow(
        name="judge",
        family="endpoint_comparison",
        title="Judge",
        summary="Asks.",
        formula="A or B",
        source="this test",
        options=own | options,
    )


@pytest.fixture
def compared(served: chat.ChatServer) -> chat.ChatServer:
    """The chat server of a judge of brightness."""
    served.behaviour = brighter
    return served


def grey(level: int) -> Image.Image:
    return Image.new("RGB", (8, 8), (level, level, level))


def levels(body: Mapping[str, Any]) -> list[float]:
    """Mean grey of the images of a request, in their order."""
    return [float(np.asarray(image).mean()) for image in chat.images_of(body)]


def brighter(body: Mapping[str, Any]) -> dict[str, Any]:
    """An honest judge of brightness, with probabilities."""
    first, second = levels(body)
    p = 1 / (1 + math.exp((second - first) / 50))
    return chat.listing({"A": 0.9 * p, " a": 0.1 * p, "B": 1 - p})


def verdicts(row: ScorerRow, *pairs: tuple[int, int]) -> list[Verdict]:
    scorer: Any = load_scorer(row, Runtime()).scorer
    first, second = ([scorer.prepare(grey(pair[side])) for pair in pairs] for side in (0, 1))
    found: list[Verdict] = scorer.compare([PROMPT] * len(pairs), first, second)
    return found


def test_a_margin_is_the_log_odds_of_the_answers_and_changes_sign_with_the_order(
    compared: chat.ChatServer,
) -> None:
    there, back = verdicts(row_of(), (200, 100), (100, 200))
    assert [there.score, back.score] == pytest.approx([2.0, -2.0], abs=1e-9)
    assert [len(verdict.answers) for verdict in (there, back)] == [1, 1]
    assert len(compared.bodies) == 2  # An order is a request of its own.
    assert sorted(levels(body) for body in compared.bodies) == [[100, 200], [200, 100]]


@pytest.mark.parametrize(
    ("listed", "margin"),
    [
        ({"A": 0.6, "B": 0.3}, math.log(2)),
        ({"A": 0.6, "The": 0.1}, math.log(6)),
        ({"The": 0.5, "b": 0.25, "It": 0.125}, -math.log(2)),
        ({"The": 0.6, "It": 0.3}, math.nan),
        ({"The": 0.6, "A": 0.3}, math.nan),
    ],
)
def test_an_answer_that_is_not_listed_is_bounded_by_the_last_and_never_a_silent_tie(
    compared: chat.ChatServer, listed: dict[str, float], margin: float
) -> None:
    compared.behaviour = lambda _: chat.listing(listed)
    (found,) = verdicts(row_of(), (1, 2))
    assert found.score == pytest.approx(margin, nan_ok=True)
    assert bool(found.problem) == math.isnan(margin)


@pytest.mark.parametrize(
    ("reply", "margin"),
    [
        (chat.completion("A"), 1.0),
        (chat.completion(" b."), -1.0),
        (chat.completion("Tie"), 0.0),
        (chat.completion("A or B"), math.nan),
        (chat.completion("Both are fine."), math.nan),
        (chat.completion(""), math.nan),
        (chat.completion("A", finish_reason="length"), math.nan),
        (chat.completion("", finish_reason="content_filter"), math.nan),
    ],
)
def test_words_are_read_strictly_and_kept_as_evidence(
    compared: chat.ChatServer, reply: dict[str, Any], margin: float
) -> None:
    compared.behaviour = lambda _: reply
    (found,) = verdicts(row_of(reading="words", max_tokens=8), (1, 2))
    assert found.score == pytest.approx(margin, nan_ok=True)
    assert found.answers[0].valid != math.isnan(margin)


def test_a_server_that_ignores_probabilities_ends_the_run(compared: chat.ChatServer) -> None:
    compared.behaviour = lambda _: chat.completion("A")
    with refusal("logprobs_ignored", "here", kind=PlatformError):
        verdicts(row_of(), (1, 2))


def column(row: ScorerRow, folder: Path) -> ScoreColumn:
    """Four images of one prompt, each brighter than the one before."""
    asked = Comparisons.of(
        Questions(
            images={f"i{n}": partial(encoded, grey(60 * n)) for n in range(4)},
            texts={"t": PROMPT},
            pairs=tuple(Pair(f"p{n}", f"i{n}", "t") for n in range(4)),
        ),
        b"seed",
    )
    plan = ScoringPlan.of(asked.questions, b"seed")
    source = ModelSource(row, Runtime())
    return asked.column(run_plan(plan, asked.questions, source, ShardFolder(folder, "run")))


@pytest.mark.slow
def test_a_run_asks_both_orders_and_a_rerun_nothing(
    compared: chat.ChatServer, tmp_path: Path
) -> None:
    first = column(row_of(), tmp_path / "first")
    assert first.overall.is_monotonic_increasing and first.margins is not None
    assert len(compared.bodies) == len(first.margins) == 12
    assert first.answers is not None and len(first.answers) == 12
    assert first.cost.usd == pytest.approx(12 * chat.REPLY_USD)
    compared.behaviour = lambda _: Response(status_code=410)
    again = column(row_of(), tmp_path / "again")
    assert again.overall.equals(first.overall) and again.cost.usd == first.cost.usd
    assert len(compared.bodies) == 12


def by_place(body: Mapping[str, Any]) -> dict[str, Any]:
    return chat.completion("A")


def by_brightness(body: Mapping[str, Any]) -> dict[str, Any]:
    first, second = levels(body)
    return chat.completion("A" if first > second else "B")


def half_nonsense(body: Mapping[str, Any]) -> dict[str, Any]:
    return (
        chat.completion("A")
        if levels(body)[0] > levels(body)[1]
        else chat.completion("I cannot say.")
    )


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("behaviour", "figures"),
    [(by_brightness, (1.0, 0.5, 0)), (by_place, (0.0, 1.0, 0)), (half_nonsense, (0.0, 1.0, 6))],
)
def test_what_both_orders_say_tells_an_honest_judge_from_one_of_places(
    compared: chat.ChatServer,
    tmp_path: Path,
    behaviour: Callable[[Mapping[str, Any]], Any],
    figures: tuple[float, float, int],
) -> None:
    compared.behaviour = behaviour
    found = column(row_of(reading="words", max_tokens=8), tmp_path / "run")
    assert found.margins is not None
    orders = order_figures(found.margins)
    assert (orders.alike, orders.first, orders.one_order) == figures
    unread = [one for one in found.findings if not one.scored]
    assert len(unread) == orders.one_order  # Each of them is counted.


def test_every_row_says_that_it_compares() -> None:
    rows = [row for row in load_rows().values() if row.family == "endpoint_comparison"]
    assert len(rows) == 4 and {row.method for row in rows} == {"compare"}
    assert {FAMILY.check(row).method for row in rows} == {"compare"}
