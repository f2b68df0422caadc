"""`judges`, `pin`, `unpin`: which metrics judge text-to-image models, and what operators decide."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption
from benchmarks.errors import SubmitterError
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, table
from leaderboard.governance.authentication import this_person

if TYPE_CHECKING:
    from leaderboard.ledger.judge_pins import Pin
    from leaderboard.models.board_types import Evidence, Judge
    from leaderboard.models.judges import Judging
    from leaderboard.models.reading import ModelReader

PromptSetName = Annotated[str, typer.Argument(help="Prompt set.", metavar="SET")]
Metric = Annotated[
    str, typer.Argument(help="Entry (SUBMISSION/METRIC), or a metric's name for all of that name.")
]
OfSet = Annotated[str, typer.Option("--prompt-set", help="Prompt set; * means every one.")]
OfSkill = Annotated[
    str, typer.Option("--skill", help="Key of a skill; overall: all prompts; * means every one.")
]
Reason = Annotated[str, typer.Option(help="Why; everybody can read it.")]


def judges(
    prompt_set: PromptSetName,
    skill: Annotated[
        str, typer.Option(help="Only this skill (overall: all prompts), also a sub-skill.")
    ] = "",
    everyone: Annotated[
        bool, typer.Option("--all", help="Also the metrics that do not judge, and why not.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the metrics that judge the models of a prompt set, skill by skill, and why.

    Example: python -m evaluator judges demo_prompts --all
    """
    from leaderboard.models.judges import RULE  # noqa: PLC0415 (the command line starts light)

    judging, reader = judging_of(prompt_set, store, data)
    metrics = _able(judging)
    skills = _skills(judging, skill)
    found = {one: in_role(judging, reader, one, metrics) for one in skills}
    if as_json:
        record = {
            "rule": RULE,
            "skills": [
                {"skill": one, "judges": [asdict(judge) for judge in of]}
                for one, of in found.items()
            ],
            "pins": [pin.model_dump(mode="json") for pin in judging.pins.pins],
        }
        typer.echo(json.dumps(record, indent=1))
        return
    console().print(_table(judging, found, everyone=everyone))
    console().print(Text(RULE), soft_wrap=True)
    if reader.prompts(prompt_set) is None:
        said = (
            "The prompts are not here (--data), so whether metrics tell models apart was not asked."
        )
        console().print(Text(said), soft_wrap=True)


def pin(
    metric: Metric,
    verdict: Annotated[str, typer.Argument(help="trust or distrust.")],
    reason: Reason,
    prompt_set: OfSet = "*",
    skill: OfSkill = "*",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Decide that a metric judges models, or does not, whatever the rule says.

    An unchanged template of init never judges, nor does what is blind to the prompt, whatever is
    decided.

    Example: python -m evaluator pin my-metric distrust --skill text --reason "trained on it"
    """
    from benchmarks.prompt_sets.prompt_set import load_prompt_sets  # noqa: PLC0415
    from leaderboard.governance import operator_actions as pins_acts  # noqa: PLC0415

    if verdict not in ("trust", "distrust"):
        raise SubmitterError(
            "bad_verdict", f"{verdict[:80]!r} is no verdict.", "Say trust or distrust."
        )
    wanted = _about(metric, prompt_set, skill, verdict=verdict, reason=reason)
    cards = {name: one.card for name, one in load_prompt_sets().items()}
    pins_acts.pin(store.existing(), wanted, this_person(operator=True), cards)
    console().print(Text(f"{verdict}: {metric} on {prompt_set}, skill {skill}."))


def unpin(
    metric: Metric,
    reason: Reason,
    prompt_set: OfSet = "*",
    skill: OfSkill = "*",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Let the rule decide again whether a metric judges models.

    Example: python -m evaluator unpin my-metric --skill text --reason "a mistake"
    """
    from leaderboard.governance import operator_actions as pins_acts  # noqa: PLC0415

    about = _about(metric, prompt_set, skill, verdict="trust", reason="-")
    pins_acts.unpin(store.existing(), about, this_person(operator=True), reason)
    console().print(Text(f"The rule decides of {metric} on {prompt_set}, skill {skill}."))


def _about(metric: str, prompt_set: str, skill: str, *, verdict: str, reason: str) -> Pin:
    from pydantic import ValidationError  # noqa: PLC0415

    from leaderboard.ledger.judge_pins import Pin  # noqa: PLC0415

    try:
        return Pin.model_validate(
            {
                "metric": metric,
                "prompt_set": prompt_set,
                "skill": skill,
                "verdict": verdict,
                "reason": reason or " ",
            }
        )
    except ValidationError as error:
        where = error.errors()[0]["loc"][0]
        raise SubmitterError(
            "bad_pin", f"The {where} is empty or too long.", "See `--help` for what it may be."
        ) from error


def in_role(
    judging: Judging, reader: ModelReader, skill: str | None, metrics: Iterable[str]
) -> tuple[Judge, ...]:
    """Metrics in their role on a skill, as the board of models has them where they scored any."""
    from leaderboard.models.board_types import BoardQuery  # noqa: PLC0415
    from leaderboard.models.selection import selection  # noqa: PLC0415

    found = judging.of(skill, metrics)
    if reader.prompts(judging.card.name) is None:
        return found
    chosen = selection(reader, judging.view, BoardQuery(judging.card.name))
    on_board = {one.entry_id: one for one in chosen.judges(skill)}
    shown = [on_board.get(one.entry_id, one) for one in found]
    return tuple(sorted(shown, key=lambda one: not one.trusted))


def judging_of(
    prompt_set: str, store: StoreOption, data: Path | None
) -> tuple[Judging, ModelReader]:
    """What finds who judges the models of a prompt set in a store, and the models there."""
    from benchmarks.prompt_sets.prompt_set import find_prompt_set, load_prompt_sets  # noqa: PLC0415
    from benchmarks.registry import load_registry  # noqa: PLC0415
    from leaderboard.ledger.judge_pins import read_pins  # noqa: PLC0415
    from leaderboard.models.judges import Judging  # noqa: PLC0415
    from leaderboard.models.reading import BoardCache, ModelReader  # noqa: PLC0415
    from leaderboard.publication.publisher import cards_of  # noqa: PLC0415
    from leaderboard.publication.reader import Reader  # noqa: PLC0415

    known = load_prompt_sets()
    card = find_prompt_set(known, prompt_set).card
    opened = store.existing()
    view = Reader(opened, cards_of(load_registry())).view()
    reader = ModelReader(opened, known, data)
    return Judging(view, card, read_pins(opened.public), BoardCache()), reader


def _able(judging: Judging) -> list[str]:
    """Metrics whose code can be run on images."""
    from leaderboard.records import Kind  # noqa: PLC0415

    entries = judging.view.entries.items()
    return [entry_id for entry_id, entry in entries if entry.kind is Kind.METRIC]


def _skills(judging: Judging, wanted: str) -> list[str | None]:
    from leaderboard.ledger.judge_pins import OVERALL  # noqa: PLC0415

    known = judging.card.skills
    if not wanted:
        return [None, *(key for key in known if ":" not in key)]
    if wanted != OVERALL and wanted not in known:
        raise SubmitterError(
            "unknown_skill",
            f"{judging.card.name} has no skill {wanted[:80]!r}.",
            f"Skills: {OVERALL}, {', '.join(known)}.",
        )
    return [None if wanted == OVERALL else wanted]


def _table(
    judging: Judging, found: Mapping[str | None, Iterable[Judge]], *, everyone: bool
) -> Table:
    rows: list[Sequence[str | Text]] = []
    for skill, of_skill in found.items():
        shown = [one for one in of_skill if one.trusted or everyone]
        name = "all prompts" if skill is None else judging.card.skills[skill]
        if not shown:
            rows.append((name, "", "", "no qualified metric", ""))
        for place, judge in enumerate(shown):
            evidence = Text("\n".join(map(_evidence, judge.evidence)), overflow="fold")
            titled, why = Text(judge.title, overflow="fold"), Text(judge.why, overflow="fold")
            judges_it = "yes" if judge.trusted else "no"
            rows.append(("" if place else name, titled, judges_it, why, evidence))
    return table(("skill", "metric", "judges", "why", "evidence"), rows)


def _evidence(one: Evidence) -> str:
    value = "no value" if one.value is None else f"{one.value:.3f}"
    ends = "" if one.ci_low is None else f" [{one.ci_low:.3f}, {one.ci_high:.3f}]"
    tier = (one.too_few or "no tier") if one.tier is None else f"tier {one.tier}"
    chance = "" if one.chance is None else f", chance {one.chance:g}"
    return f"{one.benchmark}: {one.measure} {value}{ends}, {tier}{chance}"
