"""`croc compare`: agreement of CROC boards, of the models behind them, of metrics, and of people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import RenderableType
from rich.text import Text

from benchmarks.command_line import DataOption, ForceOption, JsonOption
from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.schema import Answers, Benchmark, ScoreTable
from benchmarks.scores import read_scores
from benchmarks.sources.output import check_output, write_whole
from evaluator.commands.common import Head, LowerIsBetterOption, aligned_table, console
from leaderboard.text import interval, number


def compare(
    benchmarks: Annotated[
        list[str], typer.Argument(help="Boards of CROC, for example croc_hum croc_syn.")
    ],
    scores: Annotated[
        list[str],
        typer.Option(
            "--scores", help="BENCHMARK=FILE, a scores file (CSV or Parquet); repeatable."
        ),
    ],
    *,
    data: DataOption = None,
    lower_is_better: LowerIsBetterOption = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Choices of people: CSV with setup, item, rater, intended, chosen, and planted."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Report to write (.html), with heat maps.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare the orders in which CROC boards put metrics, by Kendall's tau with intervals.

    A synthetic against a human-supervised board by property, the models behind a synthetic one
    against each other, metrics over the cells of each board, and people against what is intended.
    One board is enough for the last three.

    Example: python -m evaluator croc compare croc_hum croc_syn --scores croc_hum=hum.csv --scores
    croc_syn=syn.parquet --out agreement.html
    """
    from evaluator.croc.boards import board_of  # noqa: PLC0415 (with SciPy, where it is used)
    from evaluator.croc.comparison import ComparisonReport, compare_boards  # noqa: PLC0415
    from evaluator.croc.human_check import read_human_check  # noqa: PLC0415

    files = _files(benchmarks, scores)
    if out is not None:
        inputs = [path for of in files.values() for path in of]
        check_output(out, force=force, inputs=[*inputs, *filter(None, [labels])])
    people = None if labels is None else read_human_check(labels)
    registry = load_registry()
    lower = set(lower_is_better or ())
    boards = []
    for name, paths in files.items():
        target = find(registry, name)
        answers = target.answers(data)
        boards.append(board_of(target, _scores(target, answers, paths, lower), answers))
    unknown = sorted(lower - {metric for board in boards for metric in board.metrics})
    if unknown:
        raise SubmitterError("unknown_metric", f"No file has a metric {', '.join(unknown)}.")
    report = ComparisonReport(compare_boards(boards), people)
    if out is not None:
        page = report.html
        write_whole(out, lambda place: place.write_text(page, "utf-8"))
    if as_json:
        typer.echo(json.dumps(report.figures, indent=1))
        return
    for block in _report_lines(report.figures):
        console().print(block)
    if out is not None:
        console().print(Text(f"Heat maps and intervals: {out}"))


def _files(benchmarks: Sequence[str], given: Sequence[str]) -> dict[str, list[Path]]:
    """Benchmark to its scores files."""
    files: dict[str, list[Path]] = {name: [] for name in benchmarks}
    for text in given:
        name, _, path = text.partition("=")
        if name not in files or not path:
            raise SubmitterError(
                "bad_scores_option",
                f"--scores {text} does not begin with one of {', '.join(files)} and =.",
                f"For example --scores {benchmarks[0]}=scores.csv.",
            )
        files[name].append(Path(path))
    without = [name for name, paths in files.items() if not paths]
    if without:
        raise SubmitterError(
            "no_scores",
            f"No scores are given for {', '.join(without)}.",
            "Name files with --scores.",
        )
    return files


def _scores(
    benchmark: Benchmark, answers: Answers, paths: Sequence[Path], lower: Set[str]
) -> ScoreTable:
    """The metrics of several files as one table."""
    tables = [read_scores(path, benchmark, answers) for path in paths]
    names = [name for table in tables for name in table.metrics]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SubmitterError(
            "same_metric",
            f"Several files for {benchmark.name} have a metric {', '.join(twice)}.",
            "Name each column for its metric.",
        )
    return ScoreTable(
        pd.concat([table.overall for table in tables], axis=1),
        directions={name: -1 for name in names if name in lower},
        margins={name: of for table in tables for name, of in table.margins.items()},
    )


def _report_lines(report: dict[str, Any]) -> Iterator[RenderableType]:
    """All figures but those between metrics, which fill a page."""
    for board in report["boards"]:
        missing = sum(board["missing_scores"].values())
        told = (
            f"{board['name']}: {board['prompt_pairs']:,} prompt pairs, {missing:,} missing scores"
        )
        for what, names in (
            ("not compared", board["further_metrics"]),
            ("models without prompts of some kind", board["incomplete_models"]),
        ):
            told += f"; {what}: {', '.join(names)}" if names else ""
        yield Text(told)
    for pair in report["agreements"]:
        yield Text(
            f"\n{' and '.join(pair['boards'])}, Kendall's τ over {', '.join(report['metrics'])}"
        )
        rows = {"all, metrics as one row": pair["overall"], **pair["by_property"]}
        cells = [
            [key, *(_tau(ways.get(way)) for way in ("text", "image"))] for key, ways in rows.items()
        ]
        yield aligned_table([("property", "left"), ("text", "left"), ("image", "left")], cells)
        for name, alone in zip(pair["boards"], pair["alone"], strict=True):
            if alone:
                yield Text(f"Only on {name}: {', '.join(alone)}")
    if report["stabilities"]:
        heads: list[Head] = [("board", "left"), ("by", "left"), ("models", "left"), ("τ", "left")]
        yield aligned_table(
            heads,
            [
                [one["board"], one["kind"], " · ".join(one["models"]), _tau(one["tau"])]
                for one in report["stabilities"]
            ],
        )
    for board in report["between_metrics"]:
        pairs = combinations(range(len(board["metrics"])), 2)
        taus = [(board["taus"][i][j]["value"], i, j) for i, j in pairs]
        known = sorted((tau, i, j) for tau, i, j in taus if tau is not None)
        if known:
            ends = (
                f"{board['metrics'][i]} and {board['metrics'][j]} {number(tau)}"
                for tau, i, j in (known[0], known[-1])
            )
            yield Text(
                f"{board['board']}, between metrics over {board['n_cells']} cells: {' to '.join(ends)}"
            )
    if report["people"]:
        yield from _people(report["people"])


def _people(people: dict[str, Any]) -> Iterator[RenderableType]:
    told = f"{people['raters']:,} raters, {people['choices']:,} choices; α {_tau(people['alpha'])}"
    if people["planted"]:
        right = number(people["planted"]["accuracy"])
        told += f"; of {people['planted']['items']:,} planted items {right} right"
    yield Text(told)
    heads: list[Head] = [
        ("people", "left"), ("accuracy", "left"), ("scaled", "right"), ("items", "right"),
        ("ties", "right"),
    ]  # fmt: skip
    yield aligned_table(
        heads,
        [
            [
                one["name"],
                f"{number(one['accuracy'])} {interval(one['low'], one['high'])}".rstrip(),
                number(one["scaled"]),
                f"{one['items']:,}",
                f"{one['ties']:,}",
            ]
            for one in people["figures"]
        ],
    )


def _tau(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    return f"{number(found['value'])} {interval(found['low'], found['high'])}".rstrip()
