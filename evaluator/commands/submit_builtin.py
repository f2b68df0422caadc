"""Built-in metrics named to `submit`: told all that stands in the way, then queued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.text import Text

from benchmarks.command_line import errors
from benchmarks.errors import SubmitterError
from benchmarks.problems import Problem, ProblemsError, one_error
from evaluator.scorers.registry import load_rows
from evaluator.submission.builtin import ExaminedBuiltin
from evaluator.submission.service import SubmissionService
from leaderboard.accounts import Account
from leaderboard.records import BUILTIN
from leaderboard.submission_service import BuiltinForm, SubmissionReceipt


@dataclass(frozen=True)
class WantedBuiltins:
    """The built-in metrics that a command asks for."""

    names: tuple[str, ...]  # of their rows; none: all that fit
    gpu: str = ""  # as in `BuiltinForm`
    benchmarks: tuple[str, ...] = ()
    questions: Path | None = None

    @classmethod
    def of(
        cls,
        paths: Sequence[str],
        *,
        all_fitting: bool,
        gpu: str,
        benchmark: str,
        questions: Path | None,
    ) -> WantedBuiltins | None:
        """What is asked for; None where no built-in metric is."""
        named = [path for path in paths if path.startswith(BUILTIN)]
        if not named and not all_fitting:
            for option, given in (("--gpu", gpu), ("--questions", questions)):
                if given:
                    raise typer.BadParameter("only of built-in metrics", param_hint=option)
            return None
        if all_fitting and (paths or questions is not None):
            raise typer.BadParameter(
                "it names every built-in metric that this machine can run, without questions",
                param_hint="--all-fitting",
            )
        if len(named) < len(paths):
            raise typer.BadParameter("built-in metrics are sent by themselves", param_hint="PATH")
        names = dict.fromkeys(path.removeprefix(BUILTIN) for path in named)
        chosen = tuple(part.strip() for part in benchmark.split(",") if part.strip())
        return cls(tuple(names), gpu, chosen, questions)

    def form(self, name: str) -> BuiltinForm:
        """What is asked of one."""
        return BuiltinForm(name, self.gpu, self.benchmarks, self.questions)


def send_builtins(
    desk: SubmissionService, wanted: WantedBuiltins, person: Account
) -> list[SubmissionReceipt]:
    """Queue all that are named, or none of them; of all rows, those that nothing stands against."""
    rows = load_rows()
    # Judges behind an API cost money: they are queued by name alone.
    names = wanted.names or [name for name in desk.builtin_names() if not rows[name].endpoint]
    with errors().status("Looking at memory and weights"):
        found = desk.examine_builtins([wanted.form(name) for name in names], person)
    problems = tuple(problem for one in found for problem in one.report.problems)
    ready = [one for one in found if not one.report.problems]
    if problems and wanted.names:
        raise _all_of(problems)
    if not ready:
        raise one_error(problems)
    _say(found)
    return [desk.queue_builtin(one, by=person) for one in ready]


def _all_of(problems: tuple[Problem, ...]) -> ProblemsError:
    """Each of them on a line of its own: what is alike of two metrics is to be mended twice."""
    if len(problems) == 1:
        return one_error(problems)
    lines = [f"{one.sentence} {one.hint}".rstrip() for one in problems]
    text = "\n".join([f"{len(lines)} things stand in the way:", *lines])
    return ProblemsError(
        "several_problems", text, "Nothing was queued; correct all of them.", problems
    )


def _say(found: Sequence[ExaminedBuiltin]) -> None:
    out = errors()
    for one in found:
        report = one.report
        if not report.problems:
            out.print(Text(f"{report.name}: {' '.join(report.notes)}"), soft_wrap=True)
        for problem in report.problems:
            out.print(Text(f"Left out: {problem.sentence}"), soft_wrap=True)


def single(paths: Sequence[str]) -> str:
    """The one path of anything else."""
    if len(paths) == 1:
        return paths[0]
    if not paths:
        raise typer.BadParameter("name what is to be sent", param_hint="PATH")
    raise SubmitterError(
        "several_paths",
        f"{len(paths)} paths are named: {', '.join(paths)[:200]}.",
        "Send one module, file or set of images at a time; several built-in metrics may be named.",
    )
