"""Section of a metric's page: is it safe to optimise?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote

import numpy as np

from benchmarks.statistics.best_of_n import GainCurve
from leaderboard.models.choosing import ModelImagesGain, NoGain
from leaderboard.publication.entries import Entry
from leaderboard.publication.metric_facts import metric_in_words, metric_label, metric_name
from leaderboard.publication.reader import View
from leaderboard.rendering import render
from leaderboard.views.addresses import metric_address, with_state
from leaderboard.views.best_of_n import (
    PeopleGain,
    gain_text,
    no_gain_text,
    others_sentence,
    people_gain,
    people_sentence,
    rated_boards,
    raters_text,
    share_text,
    shown_places,
    under_others,
)
from leaderboard.views.examples import lower_is_better
from leaderboard.views.metric import MetricOnBoards, OnBoard
from leaderboard.web.components import Curve, CurveChart, Scale, Tick
from leaderboard.web.page import Context

_ROOM = 1.28  # Of the axis of n, for the names at the ends of the curves


def best_of_n_html(
    context: Context, found: MetricOnBoards, boards: Sequence[OnBoard], on: str
) -> str:
    """What choosing the best of n images by a metric gains; `on`: the benchmark to show first."""
    view, entry = context.reader.view(), found.entry
    rated = list(rated_boards(boards, context.items, context.cards))
    rated.sort(key=lambda one: one.card.name != on)  # The others stay in their order.
    people = next(filter(None, (_of_board(context, view, one) for one in rated)), None)
    others = under_others(context.model_reader, view, [one.entry_id for one in found.entries])
    here = metric_address(entry.entry_id)
    name = metric_in_words(entry)
    return render(
        "metric/best_of_n.html",
        options=[
            (one.card.title, with_state(here, on=one.card.name),
             people is not None and one.card.name == people.card.name)
            for one in sorted(rated, key=lambda one: one.card.name)
        ],
        people=_people(people, entry, name) if people else None,
        others=[_others(one, view, entry, name) for one in others],
        data=f"./v1/best-of-n/{quote(entry.entry_id)}",
    )  # fmt: skip


def _of_board(context: Context, view: View, one: OnBoard) -> PeopleGain | None:
    lower = lower_is_better(context.reader.statuses())
    return people_gain(context.items, view.entries[one.entry_id], one.card, lower)


def _people(gain: PeopleGain, entry: Entry, name: str) -> dict[str, Any]:
    people = gain.people
    curves = [_curve(gain.curve, metric_name(entry), "a")]
    who = raters_text(gain.raters) if gain.raters is not None else ""
    curves += [_curve(people, who, "b")] if people is not None else []
    return {
        "gain": gain,
        "sentence": people_sentence(gain, name),
        "who": who,
        "chart": _chart(
            f"Gain of the best of n images on {gain.card.title}",
            curves, "gain in mean rating, points",
        ),
        "rows": [
            (
                gain.curve.sizes[place],
                gain_text(gain.curve, place),
                share_text(gain.share, place),
                gain_text(people, place) if people is not None else "",
            )
            for place in shown_places(gain.curve.sizes)
        ],
    }  # fmt: skip


def _others(gain: ModelImagesGain, view: View, entry: Entry, name: str) -> dict[str, Any]:
    known: list[tuple[str, str, GainCurve | NoGain]] = [
        (f"{metric_name(entry)} itself", "", gain.own)
    ]
    if gain.mean is not None:
        known.append(("Mean of the others", "", gain.mean))
    known += [
        (
            metric_label(view.entries[one.judge.entry_id]),
            metric_address(one.judge.entry_id),
            one.curve,
        )
        for one in gain.others
    ]
    sizes = gain.own.sizes if isinstance(gain.own, GainCurve) else ()
    places = shown_places(sizes)
    curves = [
        _curve(one.curve, one.judge.title, "")
        for one in gain.others
        if isinstance(one.curve, GainCurve)
    ]
    curves += [_curve(gain.own, "itself", "b")] if isinstance(gain.own, GainCurve) else []
    curves += [_curve(gain.mean, "mean of the others", "a")] if gain.mean is not None else []
    return {
        "gain": gain,
        "sentence": others_sentence(gain, name),
        "chart": _chart(
            f"Gain of the best of n images on {gain.card.title}",
            curves, "gain, standard deviations within prompts",
        ) if sizes and gain.mean is not None else None,
        "sizes": [sizes[place] for place in places],
        "rows": [
            (title, href, None, no_gain_text(curve))
            if isinstance(curve, NoGain)
            else (title, href, curve, [gain_text(curve, place) for place in places])
            for title, href, curve in known
        ],
    }  # fmt: skip


def _curve(curve: GainCurve, name: str, emphasis: Literal["", "a", "b"]) -> Curve:
    low, high = curve.ends
    points = list(zip(map(float, curve.sizes), curve.values.tolist(), strict=True))
    drawn = bool(emphasis) and bool(np.isfinite(low).all())
    band = list(zip(low.tolist(), high.tolist(), strict=True)) if drawn else []
    return Curve(name, points, band, emphasis)


def _chart(title: str, curves: Sequence[Curve], upward: str) -> CurveChart:
    values = [y for one in curves for _, y in one.points]
    ends = [end for one in curves for of in one.band for end in of]
    most = max(x for one in curves for x, _ in one.points)
    x, y = Scale(1.0, 1.0 + (most - 1.0) * _ROOM), Scale.around((*values, *ends), 0.0)
    summary = "; ".join(f"{one.name} {one.points[-1][1]:.2f}" for one in curves if one.emphasis)
    return CurveChart(
        title=title,
        summary=f"At n = {most:g}: {summary}",
        points=(),
        x=x,
        y=y,
        x_title="n, images that the best is chosen from",
        y_title=upward,
        x_ticks=tuple(Tick(n, f"{n}") for n in range(1, int(most) + 1)),
        y_ticks=tuple(Tick(tick, f"{tick:.3g}".replace("-", "−")) for tick in y.ticks()),
        curves=curves,
    )
