"""`export`: results of models and metrics in the forms of others, each with its exact revision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from benchmarks.command_line import DataOption
from benchmarks.errors import SubmitterError
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console
from evaluator.submission.receipts import assay_version
from leaderboard.store.opening import StoreName

if TYPE_CHECKING:
    from leaderboard.exports.exporter import Exporter

app = typer.Typer(
    help="Results in the forms of others: Every Eval Ever, Inspect, the Hub, citations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

IdsArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Models by submission, metrics by SUBMISSION/METRIC. Without: all."),
]
IdArgument = Annotated[
    str, typer.Argument(help="A model by its submission, a metric by SUBMISSION/METRIC.")
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder to write to.")]
SiteOption = Annotated[
    str, typer.Option("--site", help="Address of the site, for links to its pages and pictures.")
]


class CitationForm(StrEnum):
    """In which a citation is printed."""

    PLAIN = "plain"
    BIBTEX = "bibtex"
    CFF = "cff"


@app.command("every-eval-ever")
def every_eval_ever(
    out: OutOption,
    ids: IdsArgument = None,
    benchmark: Annotated[
        str, typer.Option(help="Only this benchmark or prompt set, by its name.")
    ] = "",
    site: SiteOption = "",
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
) -> None:
    """Write records of Every Eval Ever (schema 0.3.0) of models and metrics, with their samples.

    Example: python -m evaluator export every-eval-ever --out records
    """
    exporter = _exporter(store, data, site)
    wanted = ids or [*exporter.model_ids(), *exporter.metric_ids()]

    def files_of(ident: str) -> Mapping[str, bytes]:
        found: dict[str, bytes] = {}
        for record in exporter.records(ident, benchmark):
            found |= record.files()
        return found

    n_files = _write_each(wanted, files_of, out, strict=bool(ids))
    if benchmark and not n_files:
        raise SubmitterError(
            "nothing_to_export",
            f"None of these has a result on {benchmark[:120]!r}.",
            "Benchmarks are listed by `python -m benchmarks list`, prompt sets by "
            "`python -m benchmarks prompts`.",
        )


@app.command("inspect")
def inspect(
    out: OutOption,
    ids: Annotated[
        list[str] | None, typer.Argument(help="Models by submission. Without: all.")
    ] = None,
    site: SiteOption = "",
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
) -> None:
    """Write a log of Inspect for each model, which `inspect view --log-dir FOLDER` opens.

    Example: python -m evaluator export inspect --out logs
    """
    exporter = _exporter(store, data, site)
    _write_each(
        ids or exporter.model_ids(), lambda one: dict([exporter.log(one)]), out, strict=bool(ids)
    )


@app.command("eval-results")
def eval_results(
    ident: IdArgument,
    out: OutOption,
    dataset: Annotated[
        str, typer.Option(help="OWNER/NAME of the benchmark's dataset, in place of its own.")
    ] = "",
    with_benchmark: Annotated[
        bool, typer.Option("--benchmark-file", help="Write eval.yaml for that dataset too.")
    ] = False,
    pull_request: Annotated[
        bool,
        typer.Option("--pull-request", help="Propose the file to the repository of the model."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --pull-request: only print what would be sent.")
    ] = False,
    site: SiteOption = "",
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
) -> None:
    """Write the file of `.eval_results` for the repository of a model or metric on the Hub.

    With `--pull-request` it is proposed there, with your token (HF_TOKEN).

    Example: python -m evaluator export eval-results my-model-0123456789 --out results
    """
    from leaderboard.views.hub_results import BENCHMARK_FILE  # noqa: PLC0415

    exporter, said = _exporter(store, data, site), console()
    repository, made = exporter.hub_results(ident, _dataset(dataset))
    for name, why in made.left_out.items():
        said.print(Text(f"{name}: left out, {why}."))
    if with_benchmark:
        _write({BENCHMARK_FILE: exporter.benchmark_file(ident).encode()}, out)
    if not made.content:
        raise SubmitterError(
            "nothing_to_export",
            f"{ident[:120]!r} has no result that the Hub takes.",
            "Name the dataset of the benchmark with --dataset OWNER/NAME, where it is on the Hub.",
        )
    files = {made.path: made.content.encode()}
    _write(files, out)
    if not pull_request:
        return
    if not repository:
        raise SubmitterError(
            "no_repository",
            f"{ident[:120]!r} names no repository of the Hub.",
            "A model names it in its manifest (`model`); a metric has one if it was sent as "
            "hub:OWNER/NAME.",
        )
    from evaluator.hub.pull_request import has_file, open_pull_request  # noqa: PLC0415

    title = "Add evaluation results of Assay"
    description = exporter.citation(ident).plain()
    if dry_run:
        said.print(Text(f"Would be proposed to {repository}: {title}\n{description}\n"))
        said.print(Text(f"{made.path}\n{made.content}"))
        if has_file(repository, made.path):
            said.print(Text(f"{repository} has {made.path} already: it would be replaced."))
        return
    address = open_pull_request(repository, files, title, description)
    said.print(Text(f"Proposed: {address}"), soft_wrap=True)


@app.command("citation")
def citation(
    ident: IdArgument,
    form: Annotated[CitationForm, typer.Option(help="Form of the citation.")] = CitationForm.BIBTEX,
    site: SiteOption = "",
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
) -> None:
    """Print how a model or metric is cited, with the exact revision of the store.

    Example: python -m evaluator export citation my-metric-0123456789/mine
    """
    found = _exporter(store, data, site).citation(ident)
    texts = {CitationForm.PLAIN: found.plain, CitationForm.BIBTEX: found.bibtex,
             CitationForm.CFF: found.cff}  # fmt: skip
    typer.echo(texts[form]().rstrip())


def _exporter(store: StoreName, data: Path | None, site: str) -> Exporter:
    from benchmarks.prompt_sets.prompt_set import load_prompt_sets  # noqa: PLC0415
    from benchmarks.registry import load_registry  # noqa: PLC0415
    from leaderboard.exports.exporter import Exporter  # noqa: PLC0415
    from leaderboard.models.reading import ModelReader  # noqa: PLC0415
    from leaderboard.publication.item_scores import ItemReader  # noqa: PLC0415
    from leaderboard.publication.publisher import cards_of  # noqa: PLC0415
    from leaderboard.publication.reader import Reader  # noqa: PLC0415

    if site and not site.startswith(("https://", "http://")):
        raise typer.BadParameter("--site is an address, such as https://example.org/")
    opened, cards = store.existing(), cards_of(load_registry())
    return Exporter(
        reader=Reader(opened, cards, clock=opened.clock),
        models=ModelReader(opened, load_prompt_sets(), data),
        items=ItemReader(opened.public),
        cards=cards,
        version=assay_version(),
        site=f"{site.rstrip('/')}/" if site else "",
    )


def _dataset(name: str) -> str:
    from leaderboard.views.hub_results import is_hub_id  # noqa: PLC0415

    if name and not is_hub_id(name):
        raise typer.BadParameter("--dataset is OWNER/NAME of a dataset of the Hub")
    return name


def _write_each(
    idents: Iterable[str],
    files_of: Callable[[str], Mapping[str, bytes]],
    out: Path,
    *,
    strict: bool,
) -> int:
    """Write the files of each, and tell how many; without `strict` some are named and passed over."""
    said, left_out, n_files = console(), 0, 0
    for ident in idents:
        try:
            files = files_of(ident)
        except SubmitterError as error:
            if strict:
                raise
            said.print(Text(f"{ident}: left out: {error.message}"))
            left_out += 1
            continue
        _write(files, out)
        n_files += len(files)
    tail = f", {left_out} left out" if left_out else ""
    said.print(Text(f"{n_files} files written to {out}{tail}."), soft_wrap=True)
    return n_files


def _write(files: Mapping[str, bytes], out: Path) -> None:
    for name, content in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
