"""`fetch`: download the files of a benchmark."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import asdict
from typing import Annotated

import typer

from benchmarks.command_line import errors
from benchmarks.commands.common import AsJson, Data, Name, named, print_json
from benchmarks.errors import SubmitterError
from benchmarks.sources.fetch import Fetched
from benchmarks.sources.fetch import fetch as fetch_files
from benchmarks.sources.progress import meter_for
from benchmarks.sources.remote import Hub


def fetch(
    name: Name,
    *,
    data: Data = None,
    answers_only: Annotated[
        bool, typer.Option("--answers-only", help="Leave the images out.")
    ] = False,
    subset: Annotated[
        int | None,
        typer.Option(
            "--subset", min=1, help="Take the images of about so many prompts only, to try out."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download a benchmark's files: continued after a cut, checked, each only once.

    HF_TOKEN opens repositories whose terms you accepted. What was fetched first is what every
    later fetch takes: commit and hashes are kept in pins.json beside the files.

    Example: python -m benchmarks fetch ts2 --data data
    """
    benchmark = named(name)
    if data is None:
        raise SubmitterError(
            "no_folder",
            "There is no folder for the files.",
            "Name one with --data or ASSAY_DATA; it is made if needed.",
        )
    if answers_only and subset is not None:
        raise typer.BadParameter("--answers-only and --subset exclude each other")
    console = errors()
    with meter_for(console) as meter:
        done = fetch_files(
            benchmark, data, Hub(), answers_only=answers_only, subset=subset, meter=meter
        )
    if as_json:
        print_json(asdict(done))
        return
    optional = {file.path for file in benchmark.card.files if file.optional}
    for line in _closing(done, optional):
        console.print(line, markup=False, highlight=False)


def _closing(done: Fetched, optional: Set[str]) -> list[str]:
    """What a person should know at the end."""
    lines = [f"{repo} at commit {commit}" for repo, commit in done.commits.items()]
    for path, how in done.supplied.items():
        duty = "May be supplied" if path in optional else "Still to be supplied"
        lines.append(f"{duty}: {path}. {how}")
    if done.trial:
        lines.append(
            f"These images are for trying things out; {done.benchmark} itself still needs all of "
            f"them: python -m benchmarks fetch {done.benchmark} --data {done.data}"
        )
    if not (done.downloaded or done.there or done.supplied or done.trial):
        lines.append(f"{done.benchmark} needs no files.")
    return lines
