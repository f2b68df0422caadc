"""`reevaluate`, `moved`: what new revisions and versions concern, and what they changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption
from benchmarks.registry import find, load_registry
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, table
from evaluator.reevaluating import outdated_builtins, renew_builtins
from leaderboard.governance.authentication import this_person
from leaderboard.governance.operator_actions import checked_reason
from leaderboard.governance.rights import require_operator
from leaderboard.publication.changes import BoardPlace, Compared, compared
from leaderboard.publication.publisher import cards_of
from leaderboard.publication.requeue import Outdated, Reevaluation, RequeueRequest, plan, requeue
from leaderboard.records import Submission

Reason = Annotated[str, typer.Option(help="Why; everybody can read it.")]
BenchmarkOption = Annotated[str, typer.Option(help="What is outdated on this benchmark.")]
ScorerOption = Annotated[
    str, typer.Option(help="All submissions of code of this name, outdated or not.")
]


def reevaluate(
    benchmark: BenchmarkOption = "",
    scorer: ScorerOption = "",
    everything: Annotated[bool, typer.Option("--all", help="All that is outdated.")] = False,
    reason: Reason = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Queue again what a new revision or version concerns; old results stay addressable.

    A submission is run on the benchmarks concerned only. Where its scores still stand, just its
    measures are computed again. Authors of scores files for another revision are told what to send.

    Example: python -m evaluator reevaluate --all --reason "new labels" --dry-run
    """
    if sum((bool(benchmark), bool(scorer), everything)) != 1:
        raise typer.BadParameter("give exactly one of --benchmark, --scorer and --all")
    registry, opened, person = load_registry(), store.open(), this_person(operator=True)
    if benchmark:
        find(registry, benchmark)
    require_operator(person, "evaluate submissions again")
    told = reason if dry_run and not reason else checked_reason(reason)
    wanted = RequeueRequest(benchmark=benchmark, scorer=scorer, by=person.key, reason=told)
    # These are sent anew, as their rows are now, in place of the submission with the old row.
    outdated = [one for one in outdated_builtins(opened) if everything or one.builtin == scorer]
    if not dry_run:
        renew_builtins(opened, registry, data, outdated)
    act = plan if dry_run else requeue
    done = Reevaluation() if scorer and outdated else act(opened, cards_of(registry), wanted)
    if as_json:
        record = {
            "dry_run": dry_run,
            "new_rows": [one.submission_id for one in outdated],
            "found": [_record(one) for one in done.found],
            "passed_over": list(done.passed_over),
        }
        typer.echo(json.dumps(record, indent=1))
        return
    _print(done.found, done.passed_over, outdated, dry_run=dry_run)


def board_changes(
    benchmark: Annotated[str, typer.Argument(help="Benchmark.")],
    since: Annotated[
        str, typer.Option("--from", help="Tag of the earlier board; the latest if not given.")
    ] = "",
    until: Annotated[
        str, typer.Option("--to", help="Tag of the later board; the current one if not given.")
    ] = "",
    measure: Annotated[str, typer.Option(help="Measure; the headline if not given.")] = "",
    skill: Annotated[str, typer.Option(help="Of one skill; all if not given.")] = "",
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Show what moved between two revisions of a benchmark: values, rank ranges, who came and left.

    Example: python -m evaluator moved demo_croc --json
    """
    card = find(load_registry(), benchmark).card
    found = compared(
        store.open(), card, since=since, until=until, measure=measure, skill=skill or None
    )
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=1))
        return
    _print_changes(found)


def _record(one: Outdated) -> dict[str, Any]:
    return {
        "submission_id": one.submission_id,
        "act": str(one.act),
        "code": one.code,
        "benchmarks": [change.benchmark for change in one.changes],
        "reason": one.summary,
        "hint": one.hint,
    }


def _print(
    found: Sequence[Outdated],
    passed_over: Sequence[str],
    builtins: Sequence[Submission],
    *,
    dry_run: bool,
) -> None:
    out = console()
    for said in passed_over:
        out.print(Text(said))
    for one in builtins:
        done = "would be" if dry_run else "is"
        out.print(
            Text(f"{one.submission_id}: the row of {one.builtin} changed; it {done} sent anew.")
        )
    if not found and builtins:
        return
    if not found:
        out.print(Text("Nothing is outdated."))
        return
    rows = [(one.submission_id, one.act, f"{one.summary} {one.hint}") for one in found]
    out.print(table(("submission", "what", "why"), rows))
    said = "would be" if dry_run else "are"
    out.print(Text(f"{len(found)} submissions {said} evaluated again or told."))


def _print_changes(found: Compared) -> None:
    out = console()
    out.print(Text(found.summary))
    heads = ("metric", "then", "now", "difference", "ranks then", "ranks now", "apart")
    rows = [
        (
            f"{one.after.metric} {one.after.version}".strip(),
            _value(one.then),
            _value(one.now),
            "" if one.difference is None else f"{one.difference:+.3f}",
            _ranks(one.then),
            _ranks(one.now),
            _APART[one.ranks_overlap],
        )
        for one in found.movement.moved
    ]
    out.print(table(heads, rows))
    alone = found.movement
    for heading, entries in (
        ("Came", alone.came),
        ("Not here yet", alone.waiting),
        ("Left", alone.left),
    ):
        if entries:
            names = ", ".join(f"{entry.metric} ({entry.submission_id})" for entry in entries)
            out.print(Text(f"{heading}: {names}"))


def _value(standing: BoardPlace) -> str:
    if standing.value is None:
        return "undefined"
    if standing.low is None or standing.high is None:
        return f"{standing.value:.3f}"
    return f"{standing.value:.3f} [{standing.low:.3f}, {standing.high:.3f}]"


def _ranks(standing: BoardPlace) -> str:
    if standing.rank_low is None or standing.rank_high is None:
        return "no rank"
    if standing.rank_low == standing.rank_high:
        return str(standing.rank_low)
    return f"{standing.rank_low} to {standing.rank_high}"


_APART = {True: "ranges overlap", False: "ranges apart", None: ""}
