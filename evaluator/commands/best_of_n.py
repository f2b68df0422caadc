"""`best-of-n`: whether a metric is safe to optimise, as its page has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption
from benchmarks.errors import SubmitterError
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, table

if TYPE_CHECKING:
    from benchmarks.statistics.best_of_n import GainCurve
    from leaderboard.models.choosing import NoGain
    from leaderboard.views.best_of_n import BestOfN


def best_of_n(
    metric: Annotated[
        str, typer.Argument(help="Entry (SUBMISSION/METRIC), or a submission with one metric.")
    ],
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what choosing the best of n images by a metric gains: is it safe to optimise?

    Under people's ratings, and under the other qualified metrics.

    Example: python -m evaluator best-of-n my-metric-0123456789
    """
    from benchmarks.prompt_sets.prompt_set import load_prompt_sets  # noqa: PLC0415
    from benchmarks.registry import load_registry  # noqa: PLC0415
    from leaderboard.models.reading import ModelReader  # noqa: PLC0415
    from leaderboard.publication.item_scores import ItemReader  # noqa: PLC0415
    from leaderboard.publication.publisher import cards_of  # noqa: PLC0415
    from leaderboard.publication.reader import Reader  # noqa: PLC0415
    from leaderboard.tables import to_json  # noqa: PLC0415
    from leaderboard.views.best_of_n import best_of_n as gains_of  # noqa: PLC0415
    from leaderboard.views.best_of_n import best_of_n_table, sentences  # noqa: PLC0415
    from leaderboard.views.metric import MetricOnBoards, MetricQuery, resolve  # noqa: PLC0415

    opened, cards = store.existing(), cards_of(load_registry())
    reader = Reader(opened, cards, clock=opened.clock)
    view, statuses = reader.view(), reader.statuses()
    shown = resolve(MetricQuery(metric), view, statuses)
    if not isinstance(shown, MetricOnBoards):
        raise SubmitterError(
            "unknown_entry",
            f"{metric[:120]!r} is no metric on the boards.",
            "Give it as SUBMISSION/METRIC; `python -m evaluator status` lists submissions.",
        )
    found = gains_of(
        shown,
        view,
        items=ItemReader(opened.public),
        models=ModelReader(opened, load_prompt_sets(), data),
        here=cards,
        statuses=statuses,
    )
    if as_json:
        typer.echo(to_json(best_of_n_table(found, {"entry_id": shown.entry.entry_id})))
        return
    out = console()
    for card, said in sentences(found):
        simulated = " (simulated)" if card.simulated else ""
        out.print(Text(f"{card.title}{simulated}: {said}"), soft_wrap=True)
    out.print(gains_table(found) if sentences(found) else Text("Nothing is known of it yet."))


def gains_table(found: BestOfN) -> Table:
    """The figures of pages, a row for each value and size."""
    from leaderboard.models.choosing import NoGain  # noqa: PLC0415
    from leaderboard.views.best_of_n import (  # noqa: PLC0415
        gain_text,
        no_gain_text,
        raters_text,
        share_text,
        shown_places,
    )

    rows: list[list[str | Text]] = []

    def add(
        source: str, valued_by: str, curve: GainCurve | NoGain | None, shares: list[str]
    ) -> None:
        if isinstance(curve, NoGain):
            said = no_gain_text(curve)
            rows.append([source, Text(valued_by), "", said, "", "0", f"{curve.n_missing:,}"])
            return
        if curve is None:
            return
        for at, place in enumerate(shown_places(curve.sizes)):
            rows.append(
                [
                    "" if at else source,
                    "" if at else Text(valued_by),
                    str(curve.sizes[place]),
                    gain_text(curve, place),
                    shares[at] if shares else "",
                    f"{curve.n_prompts:,}",
                    f"{curve.n_missing:,}",
                ]
            )

    for gain in found.under_people:
        shares = [share_text(gain.share, place) for place in shown_places(gain.curve.sizes)]
        add(gain.card.name, "people", gain.curve, shares)
        if gain.raters is not None:
            add(gain.card.name, f"people, {raters_text(gain.raters)} choosing", gain.people, [])
    for models in found.under_others:
        add(models.card.name, "itself", models.own, [])
        add(models.card.name, "mean of the others", models.mean, [])
        for other in models.others:
            add(models.card.name, other.judge.title, other.curve, [])
    return table(("source", "valued by", "best of", "gain", "share", "choices", "missing"), rows)
