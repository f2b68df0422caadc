"""Turns the score files of the CROC authors' runner into a scores file for `croc_hum`.

That runner writes two files a category, `counting_prompt_img_scores.tsv` for the images of the
original and `counting_contrast_img_scores.tsv` for those of the contrast, with one image per row.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath
from typing import Annotated

import pandas as pd
import typer

from benchmarks.command_line import run
from benchmarks.croc.load import SHARED, shared_name
from benchmarks.croc.score_columns import joined, pair_scores, read_score_table
from benchmarks.errors import SubmitterError
from benchmarks.sources.output import check_output, write_whole

_FILE = re.compile(r"(?P<category>.+)_(?P<kind>prompt|contrast)_img_scores\.tsv")
_SIDES = {"prompt": "orig", "contrast": "contrast"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def read_score_files(folder: Path) -> pd.DataFrame:
    """The scores in a folder of the runner's files.

    Args:
        folder: holds `<category>_prompt_img_scores.tsv` and `<category>_contrast_img_scores.tsv`;
            other files are passed over.

    Returns:
        `pair_id` (`<image file stem>|orig` or `|contrast`) and one float64 column per metric, NaN
        where a cell is empty. Whether all pairs of the benchmark are there, the reader of scores
        files checks.

    Raises:
        SubmitterError: `file_missing` (no such files, or one of a category's two), and what
            `score_columns` raises.
    """
    files = {
        (match["category"], match["kind"]): path
        for path in sorted(folder.glob("*.tsv"))
        if (match := _FILE.fullmatch(path.name))
    }
    _check_complete(folder, files)
    parts = []
    for (category, kind), path in files.items():
        table = read_score_table(path, ("id", f"{kind}_paths"))
        names = [PurePosixPath(name).stem for name in table[f"{kind}_paths"]]
        if (category, kind) == (SHARED, "contrast"):
            names = _names_of_shared(names, list(table["id"]))
        parts.append((path, pair_scores(path, table, _SIDES[kind], names)))
    return joined(parts)


def _names_of_shared(stems: list[str], pairs: list[str]) -> list[str]:
    """Names in pair ids of images that several prompt pairs may share; as in `load`."""
    first: dict[str, str] = {}
    return [
        stem if first.setdefault(stem, pair) == pair else shared_name(stem, pair)
        for stem, pair in zip(stems, pairs, strict=True)
    ]


def _check_complete(folder: Path, files: dict[tuple[str, str], Path]) -> None:
    if not files:
        raise SubmitterError(
            "file_missing",
            f"{folder} holds no score file of the CROC runner.",
            "Expected names such as counting_prompt_img_scores.tsv.",
        )
    for category in {category for category, _ in files}:
        for kind in _SIDES:
            if (category, kind) not in files:
                raise SubmitterError(
                    "file_missing",
                    f"{folder} lacks {category}_{kind}_img_scores.tsv.",
                    "Each category has two files; finish the run of that category.",
                )


def write_table(table: pd.DataFrame, out: Path) -> None:
    """Write a scores table as Parquet, or as CSV where the name says so.

    Raises:
        SubmitterError: `cannot_write`.
    """
    is_csv = out.suffix.lower() == ".csv"
    write = table.to_csv if is_csv else table.to_parquet
    write_whole(out, lambda place: write(place, index=False))


@app.command()
def convert(
    folder: Annotated[Path, typer.Argument(help="Folder with the runner's score files.")],
    out: Annotated[Path, typer.Option("--out", help="Scores file to write (.parquet or .csv).")],
    force: Annotated[bool, typer.Option("--force", help="Replace --out if it exists.")] = False,
) -> None:
    """Make one scores file of the files that the CROC runner wrote for CROC_hum.

    Example: python -m benchmarks.croc.authors_files outputs/scores --out scores.parquet
    """
    check_output(out, force=force, inputs=folder.glob("*.tsv"))
    table = read_score_files(folder)
    write_table(table, out)
    typer.echo(f"{out}: {len(table)} pairs, metrics {', '.join(table.columns[1:])}")


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
