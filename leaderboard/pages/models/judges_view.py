"""View of the metrics that judge models, with the evidence that qualifies them."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.schema import Card
from leaderboard.models.board_types import Evidence, Judge, ModelBoard, SkillBoard
from leaderboard.pages.models.names import judge_name, named_in_words
from leaderboard.pages.shown.markup import badge, scroll_box, section, text
from leaderboard.publication.measure_names import info, skill_title
from leaderboard.text import MISSING, count, interval, number
from leaderboard.views.addresses import board_address
from leaderboard.views.models import Choice

NOBODY = "No metric has earned trust here."
_SPEAKS = {"for": "speaks for it", "against": "speaks against it", "undecided": "decides nothing"}


def judges_section(board: ModelBoard, choice: Choice, cards: Mapping[str, Card]) -> str:
    """The rule, and the judges of each skill with their evidence.

    Args:
        board: what is shown.
        choice: what is looked at, for the links that judge by one metric alone.
        cards: of the boards of metrics, by name.
    """
    if board.query.judge:
        back = text(choice.query.to_link(judge=""))
        said = (
            f"<p>Judged by one metric alone, whether or not it earned trust. "
            f'<a href="{back}">Judge by the trusted metrics</a></p>'
        )
    else:
        said = f'<p class="as-lead">{text(board.rule)}</p>'
    skills = "".join(_skill(of, choice, cards) for of in board.skills.values())
    return section("Which metrics judge, and why", f"{said}{skills}", ident="judges")


def _skill(of: SkillBoard, choice: Choice, cards: Mapping[str, Card]) -> str:
    trusted = of.trusted
    who = named_in_words(trusted) if trusted else f'<span class="as-none">{NOBODY}</span>'
    others = len(of.judges) - len(trusted)
    more = f' <span class="as-muted">({count(others, "other")})</span>' if others else ""
    rows = "".join(_judge(judge, choice, cards) for judge in of.judges)
    table = (
        f"{scroll_box(f'Metrics for {of.title}')}"
        f'<table class="as-table as-judges"><caption class="as-sr">Metrics for {text(of.title)}'
        '</caption><thead><tr><th scope="col">Metric</th><th scope="col">Judges</th>'
        '<th scope="col">What it rests on</th><th scope="col">Cost of an image</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        if rows
        else "<p>No metric has scored these models.</p>"
    )
    kept = f"judges-{of.skill or ''}"
    return (
        f'<details class="as-judged" data-keep="{text(kept)}"><summary><b>{text(of.title)}</b>: '
        f"{who}{more}</summary>{table}</details>"
    )


def _judge(judge: Judge, choice: Choice, cards: Mapping[str, Card]) -> str:
    mark = badge("judges", "good") if judge.trusted else badge("for the curious", "plain")
    pinned = f" {badge('by an operator', 'info', 'Decided by hand')}" if judge.pinned else ""
    alone = text(choice.query.to_link(judge=judge.entry_id))
    only = (
        '<span class="as-note">shown now</span>'
        if choice.query.judge == judge.entry_id
        else f'<a class="as-note" href="{alone}">Judge by it alone</a>'
    )
    rests = "".join(f"<li>{_evidence(one, cards)}</li>" for one in judge.evidence)
    listed = f'<ul class="as-evidence">{rests}</ul>' if rests else ""
    why = f"<p>{text(judge.why)}</p>" if judge.why else ""
    cost = (
        f"{number(judge.seconds_per_image)} s" if judge.seconds_per_image is not None else MISSING
    )
    return (
        f'<tr><th scope="row">{judge_name(judge.entry_id, judge.title)}{only}</th>'
        f'<td data-label="Judges">{mark}{pinned}</td><td data-label="Rests on">{why}{listed}</td>'
        f'<td data-label="Cost of an image">{cost}</td></tr>'
    )


def _evidence(one: Evidence, cards: Mapping[str, Card]) -> str:
    address = board_address(one.benchmark, skill=one.skill or "")
    card = cards.get(one.benchmark)
    where = card.title if card else one.benchmark
    if one.skill:
        where = f"{where}, {skill_title(card, one.skill) if card else one.skill}"
    measure = info(card, one.measure).title if card else one.measure
    tier = f", tier {one.tier}" if one.tier is not None else f", {one.too_few or 'no tier'}"
    chance = f", chance {number(one.chance)}" if one.chance is not None else ""
    return (
        f'<a href="{text(address)}">{text(where)}</a>: {text(measure)} {number(one.value)} '
        f"{interval(one.ci_low, one.ci_high)}{tier}{chance} – {_SPEAKS.get(one.speaks, text(one.speaks))}"
    )
