"""Turns the score shards of the CROC authors' runner into a scores file for `croc_syn`.

That runner writes `<image model>_<text model>/part<0..9>_scores.tsv`; a row holds one image of the
original and one of the contrast prompt, and four scores per metric.
"""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from typing import Annotated

import pandas as pd
import typer

from benchmarks.command_line import run
from benchmarks.croc.authors_files import write_table
from benchmarks.croc.score_columns import joined, pair_scores, read_score_table
from benchmarks.croc_syn.load import FILES, SIDES
from benchmarks.errors import SubmitterError
from benchmarks.sources.output import check_output

_SIDES = {"prompts": "orig", "contrast_prompts": "contrast"}
_COLUMNS = {"prompts": "img_paths_prompts", "contrast_prompts": "img_paths_contrast"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def read_shards(folder: Path) -> pd.DataFrame:
    """The scores in a folder of the runner's shards.

    Args:
        folder: holds `flux_ds`, `flux_qwen`, `sd_ds` and `sd_qwen` with `part*_scores.tsv`.

    Returns:
        `pair_id` as in `croc_syn` and one float64 column per metric, NaN where a cell is empty.
        Whether all pairs are there, the reader of scores files checks.

    Raises:
        SubmitterError: `file_missing` (no shards of one of the four), and what
            `croc.score_columns` raises.
    """
    parts = []
    for image_model, text_model in FILES.values():
        place = folder / f"{image_model}_{text_model}"
        shards = sorted(place.glob("part*_scores.tsv"))
        if not shards:
            raise SubmitterError(
                "file_missing",
                f"{place} holds no score shard of the CROC runner.",
                "Expected names such as part0_scores.tsv.",
            )
        for path in shards:
            table = read_score_table(path, tuple(_COLUMNS.values()))
            found: dict[str, list[pd.Series]] = {}
            for side, _ in SIDES:
                images = [
                    f"{image_model}/{text_model}/{side}/{PurePosixPath(name).stem}"
                    for name in table[_COLUMNS[side]]
                ]
                for metric, values in pair_scores(path, table, _SIDES[side], images).items():
                    found.setdefault(metric, []).append(values)
            parts.append((path, {metric: pd.concat(both) for metric, both in found.items()}))
    return joined(parts)


@app.command()
def convert(
    folder: Annotated[Path, typer.Argument(help="Folder with flux_ds, flux_qwen, sd_ds, sd_qwen.")],
    out: Annotated[Path, typer.Option("--out", help="Scores file to write (.parquet or .csv).")],
    force: Annotated[bool, typer.Option("--force", help="Replace --out if it exists.")] = False,
) -> None:
    """Make one scores file of the shards that the CROC runner wrote for CROC_syn.

    Example: python -m benchmarks.croc_syn.authors_files outputs/scores --out scores.parquet
    """
    check_output(out, force=force, inputs=folder.glob("*/*.tsv"))
    table = read_shards(folder)
    write_table(table, out)
    typer.echo(f"{out}: {len(table)} pairs, metrics {', '.join(table.columns[1:])}")


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
