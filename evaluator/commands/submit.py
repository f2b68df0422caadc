"""`submit`: send a scoring module, a scores file, or the images of a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption, errors
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from evaluator.commands.common import (
    DEFAULT_STORE,
    IsolationOption,
    LowerIsBetterOption,
    StoreOption,
    console,
    stopped_in_words,
    store_words,
)
from evaluator.commands.progress import fetched_source, progress_bar, run_bars
from evaluator.commands.status import exit_code_of, watched
from evaluator.commands.submit_builtin import WantedBuiltins, send_builtins, single
from evaluator.commands.worker_loop import make_worker
from evaluator.hub.source import PREFIX
from evaluator.isolation.availability import IsolationChoice, isolation_gate
from evaluator.submission.archives.entries import ArchiveLimits
from evaluator.submission.generations.sources import GenerationsLimits, says_generations
from evaluator.submission.receipts import MAX_BYTES
from evaluator.submission.service import SubmissionService
from evaluator.worker.worker import Worker
from leaderboard.accounts import Account
from leaderboard.governance.authentication import this_person
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Kind, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.submission_service import ManifestOverrides, ScoresForm, SubmissionReceipt

_TABLES = (".csv", ".parquet", ".npz")
_GOES_ON = "It is queued: a worker takes it up, or send the same again to go on here."


def submit(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help="Archive or folder, hub:owner/name@revision, a scores file, or Parquet of images; "
            "or builtin:METRIC of one or several built-in metrics.",
        ),
    ] = None,
    kind: Annotated[
        Kind,
        typer.Option(help="metric (code), scores (a file) or generations (a model's images)."),
    ] = Kind.METRIC,
    benchmark: Annotated[
        str,
        typer.Option(
            help="Benchmark of a scores file; prompt set of Parquet files; of built-in metrics "
            "those to run on, with commas between them."
        ),
    ] = "",
    name: Annotated[
        str, typer.Option(help="Name on the boards, of a scores file or of Parquet files.")
    ] = "",
    version: Annotated[str, typer.Option(help="Version, likewise.")] = "",
    submitter: Annotated[str, typer.Option(help="Signature on the boards.")] = "",
    description: Annotated[str, typer.Option(help="One sentence for the boards.")] = "",
    lower_is_better: LowerIsBetterOption = None,
    private: Annotated[
        bool, typer.Option("--private", help="Keep the results to yourself until you publish them.")
    ] = False,
    receipt: Annotated[
        Path | None, typer.Option(help="Of your own check; differences are then explained.")
    ] = None,
    all_fitting: Annotated[
        bool,
        typer.Option("--all-fitting", help="Every built-in metric that the machine can hold."),
    ] = False,
    gpu: Annotated[
        str,
        typer.Option(
            help="GPU of the worker that is to run a built-in metric, as `scorers cost` names it; "
            "by default this machine is looked at."
        ),
    ] = "",
    questions: Annotated[
        Path | None, typer.Option(help="Question file, of a built-in metric that asks.")
    ] = None,
    isolation: IsolationOption = IsolationChoice.AUTO,
    wait: Annotated[
        bool,
        typer.Option(
            help="Process the submission here and now, or wait for the worker that has it."
        ),
    ] = True,
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a metric, or the images that a model drew of a prompt set.

    Built-in metrics (builtin:METRIC) are queued by operators, and run by the worker itself. What
    they lack, of memory, weights or access to them, is told before anything is queued.

    What a folder or an archive holds is said in its assay.toml. Parquet files have it beside them,
    or take name, version, prompt set (--benchmark) and description from the options.

    Example: python -m evaluator submit scores.csv --kind scores --benchmark ts2 --data data
    """
    wanted = WantedBuiltins.of(
        paths or (), all_fitting=all_fitting, gpu=gpu, benchmark=benchmark, questions=questions
    )
    path = "" if wanted else single(paths or ())
    if wanted is None:
        _check_usage(path, kind, benchmark)
    elif kind is not Kind.METRIC or submitter or private or receipt is not None:
        raise typer.BadParameter("a built-in metric is public, and signed by Assay")
    _check_options(kind, name, version, description, lower_is_better, receipt)
    opened, registry, person = store.open(), load_registry(), this_person()
    desk = SubmissionService(
        opened, registry, data, lambda: isolation_gate(isolation), opened.clock
    )
    accepted: list[SubmissionReceipt] = []
    if wanted is not None:
        accepted += send_builtins(desk, wanted, this_person(operator=True))
    elif kind is Kind.METRIC:
        accepted += [_send_module(desk, path, person, submitter, receipt, private=private)]
    elif kind is Kind.GENERATIONS:
        said = ManifestOverrides(name, version, benchmark, description)
        accepted += [_send_generations(desk, path, person, submitter, said, private=private)]
    else:
        form = ScoresForm(benchmark, name, version, description, tuple(lower_is_better or ()))
        accepted += [
            desk.submit_scores(
                Path(path), form, account=person, submitter=submitter, private=private
            )
        ]
    for one in accepted:
        _say(one)
    statuses = [one.status for one in accepted]
    if wait and any(status.unfinished for status in statuses):
        with stopped_in_words(_GOES_ON), run_bars() as listener:
            worker = make_worker(opened, store, registry, data, listener, isolation=isolation)
            statuses = [_processed(worker, opened, status) for status in statuses]
    _report(statuses, as_json, store_words(store))
    if code := max(map(exit_code_of, statuses)):
        raise typer.Exit(code)


def _processed(worker: Worker, opened: Store, status: Status) -> Status:
    """What becomes of a submission that is processed here, or by the worker that has it."""
    own_id = status.submission.submission_id
    if status.unfinished and not worker.run(own_id):
        _wait_for_worker(opened, own_id)
    return Ledger(opened).whole_status(own_id)


def _wait_for_worker(store: Store, submission_id: str) -> None:
    """Return when the worker that holds the submission is done with it, or none holds it."""
    for status in watched(store, submission_id, follow=True):
        if status.lease_until is None or status.expired(store.clock()):
            return


def _check_usage(path: str, kind: Kind, benchmark: str) -> None:
    if kind is Kind.SCORES and not benchmark:
        raise typer.BadParameter("a scores file needs --benchmark", param_hint="--benchmark")
    if kind is Kind.METRIC and benchmark:
        raise typer.BadParameter("a module names its benchmarks in assay.toml")
    if kind is Kind.METRIC and Path(path).suffix in _TABLES:
        raise typer.BadParameter(
            "this looks like a scores file: add --kind scores --benchmark NAME; or like images: "
            "add --kind generations"
        )
    if kind is Kind.METRIC and not path.startswith(PREFIX) and says_generations(Path(path)):
        raise typer.BadParameter("this holds the images of a model: add --kind generations")


def _check_options(
    kind: Kind,
    name: str,
    version: str,
    description: str,
    lower_is_better: list[str] | None,
    receipt: Path | None,
) -> None:
    """Refuse what would be passed over without a word."""
    in_manifest = {
        "--name": name,
        "--version": version,
        "--description": description,
        "--lower-is-better": lower_is_better,
    }
    for option, given in in_manifest.items():
        if kind is Kind.METRIC and given:
            raise typer.BadParameter("a module says it in assay.toml", param_hint=option)
    if kind is Kind.GENERATIONS and lower_is_better:
        raise typer.BadParameter("it is said of scores", param_hint="--lower-is-better")
    if kind is not Kind.METRIC and receipt is not None:
        raise typer.BadParameter(f"a receipt is of code, not of {kind}", param_hint="--receipt")


def _send_module(
    desk: SubmissionService,
    named: str,
    person: Account,
    submitter: str,
    place: Path | None,
    *,
    private: bool,
) -> SubmissionReceipt:
    receipt = _read_receipt(place)
    with ExitStack() as stack:
        folder, origin = stack.enter_context(fetched_source(named, ArchiveLimits()))
        if not origin:
            stack.enter_context(errors().status("Checking and storing the module"))
        return desk.submit_metric(
            folder,
            account=person,
            submitter=submitter,
            private=private,
            receipt=receipt,
            source=origin,
        )


def _send_generations(
    desk: SubmissionService,
    named: str,
    person: Account,
    submitter: str,
    said: ManifestOverrides,
    *,
    private: bool,
) -> SubmissionReceipt:
    with ExitStack() as stack:
        place, origin = stack.enter_context(fetched_source(named, GenerationsLimits()))
        tell = stack.enter_context(progress_bar("looking at images", transient=True))
        return desk.submit_generations(
            place,
            account=person,
            submitter=submitter,
            private=private,
            source=origin,
            said=said,
            tell=tell,
        )


def _read_receipt(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)  # A longer one is refused by its length.
    except OSError as error:
        raise SubmitterError(
            "receipt_missing",
            f"The receipt {path} cannot be read: {error.strerror}.",
            "python -m evaluator check FOLDER writes one.",
        ) from error


def _say(accepted: SubmissionReceipt) -> None:
    """What the sender should read; on standard error, since the answer may be for a program."""
    if accepted.recognised:
        submission = accepted.status.submission
        errors().print(
            Text(f"This is {submission.submission_id}, which you sent before; nothing was added.")
        )
    for note in accepted.notes:
        errors().print(Text(note))


def _report(statuses: Sequence[Status], as_json: bool, there: str) -> None:
    if not as_json:
        for status in statuses:
            _report_one(status, there)
        return
    records = [status.model_dump(mode="json") for status in statuses]
    typer.echo(json.dumps(records[0] if len(records) == 1 else records, indent=1))


def _report_one(status: Status, there: str) -> None:
    submission = status.submission
    out, own_id = console(), submission.submission_id
    text = f"{own_id}: {status.state}"
    if status.state in (State.PUBLISHED, State.HELD):
        text += f" ({_what(submission)} on {', '.join(submission.benchmarks)})"
    out.print(Text(text))
    if status.reason:
        out.print(Text(f"{status.reason} {status.hint}"))
    if status.state in (State.PUBLISHED, State.HELD):
        out.print(Text(f"See all of it with: python -m evaluator report {own_id}{there}"))
    if status.state is State.HELD:
        out.print(Text(f"Publish it with: python -m evaluator publish {own_id}{there}"))
    if status.unfinished:
        out.print(Text(f"Follow it with: python -m evaluator status {own_id} --follow{there}"))


def _what(submission: Submission) -> str:
    if submission.images is not None:
        return f"{submission.images.present} images"
    n = len(submission.metrics)
    return f"{n} metric{'s' if n != 1 else ''}"
