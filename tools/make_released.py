"""Maker of the released results: from the authors' files to `benchmarks/released/`.

    python -m tools.make_released --data ../shared/data           # write tables and hashes
    python -m tools.make_released --data ../shared/data --check   # compare, write nothing

Figures and ids only: no prompt, question or image of anybody is in a table. What the tables are,
where they come from and under which licence stands in `benchmarks/released/released.toml`; this
command writes the SHA-256 of each table there and refuses originals that are not the named ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benchmarks.accumulation.question_scores import (
    AnsweredQuestions,
    QuestionGraph,
    Rule,
    equals_yes,
    image_scores,
)
from benchmarks.arrays import FloatArray
from benchmarks.errata.figures import TIFA160_METRICS as TIFA_METRICS
from benchmarks.genai_bench.protocol import GENAI_1600
from benchmarks.parquet import parquet_table
from benchmarks.released.bundle import FOLDER, MANIFEST, Original, ReleasedFile, read_manifest
from benchmarks.sources.pins import sha256_of
from benchmarks.tifa160.protocol import MODEL_NAMES, TIFA160

VQA_MODELS = ("mplug", "instructblip", "pali17b")
"""The models that answered the questions of DSG's release."""
_DSG_SCORES: Mapping[str, tuple[str, Rule]] = {
    "dsg": ("dsg", "dsg"),
    "dsg-no-dependency": ("dsg", "mean"),
    "vq2a": ("vq2a", "mean"),
}
"""Name of a metric, before that of the answering model, to its questions and its rule."""
_VERDICTS = {
    "[[A>B]]": (1.0, 0.0),
    "[[B>A]]": (0.0, 1.0),
    "[[A=B=Good]]": (1.0, 1.0),
    "[[A=B=Bad]]": (0.0, 0.0),
    "[[A=B]]": (1.0, 1.0),
}
"""Verdict to the scores of the left and the right image; anything else is -1 and -1. Two replies say that
both are equal and no more: as ties they give the 44.67 % that was released of their judge."""


def ts2_structure(data: Path) -> pa.Table:
    """Image, graph and node label of the 2,840 images, in the released order."""
    table = _csv(data / "ts2" / "metadata.csv")
    return pa.table(
        {
            "pair_id": table["file_name"].map(lambda name: Path(name).stem).tolist(),
            "graph": pa.array(table["id"].astype(int), pa.int16()),
            "label": table["rank"].tolist(),
        }
    )


def ts2_scores(data: Path) -> pa.Table:
    """The released scores of 19 metrics; as text where a cell is not a number."""
    table = _csv(data / "ts2" / "scores_all.csv")
    return pa.table({str(name): _cells(str(name), column) for name, column in table.items()})


def tifa160_ratings(data: Path) -> pa.Table:
    """The ratings of each image: two collected with TIFA, up to five with DSG."""
    answers = TIFA160.answers(data)
    columns: dict[str, object] = {
        "pair_id": answers.images["pair_id"].tolist(),
        "prompt_id": answers.images["prompt_id"].tolist(),
    }
    for gold, rated in sorted(answers.facets.items()):
        for place, column in enumerate(rated.ratings.T, 1):
            columns[f"{gold}_{place}"] = _counts(column)
    return pa.table(columns)


def tifa160_scores(data: Path) -> pa.Table:
    """The ten metrics of the TIFA file."""
    content = (data / "tifa160" / "human_annotations_with_scores.json").read_text("utf-8")
    entries = json.loads(content)
    scores = {name: [float(one[name]) for one in entries.values()] for name in TIFA_METRICS}
    return pa.table({"pair_id": list(entries), **scores})


def tifa160_questions(data: Path) -> pa.Table:
    """Which question of DSG depends on which, as the cells of the release have it."""
    rows = _answers(data, "mplug", "dsg")[["prompt_id", "question_id", "dependency_id"]]
    rows = rows.drop_duplicates(ignore_index=True)
    return pa.table(
        {
            "prompt_id": rows["prompt_id"].tolist(),
            "question_id": pa.array(rows["question_id"].astype(int), pa.int16()),
            "parents": rows["dependency_id"].tolist(),
        }
    )


def tifa160_answers(data: Path) -> pa.Table:
    """Whether each answer to a question of DSG or VQ2A was yes, by the model that answered."""
    parts = [
        _answers(data, model, asked).assign(asked=asked, model=model)
        for asked in ("dsg", "vq2a")
        for model in VQA_MODELS
    ]
    rows = pd.concat(parts, ignore_index=True)
    return pa.table(
        {
            "pair_id": rows["pair_id"].tolist(),
            "questions": rows["asked"].tolist(),
            "question_id": pa.array(rows["question_id"].astype(int), pa.int16()),
            "answered_by": rows["model"].tolist(),
            "yes": equals_yes(rows["answer"]).tolist(),
        }
    )


def tifa160_dsg_scores(data: Path) -> pa.Table:
    """The scores that follow from those answers by the rules of DSG's release."""
    questions, answers = (make(data).to_pandas() for make in (tifa160_questions, tifa160_answers))
    images = TIFA160.answers(data).images.rename(columns={"prompt_id": "text_id"})
    columns: dict[str, object] = {"pair_id": images["pair_id"].tolist()}
    for name, (asked, rule) in _DSG_SCORES.items():
        for model in VQA_MODELS:
            of = (answers["questions"] == asked) & (answers["answered_by"] == model)
            scores = _accumulated(answers[of], questions, images[["pair_id", "text_id"]], rule)
            columns[f"{name}_{model}"] = scores.loc[images["pair_id"]].tolist()
    return pa.table(columns)


def genai_1600_ratings(data: Path) -> pa.Table:
    """The three ratings of each of 9,600 images, as released."""
    answers = GENAI_1600.answers(data)
    [rated] = answers.facets.values()
    raters = {f"rating_{place}": _counts(one) for place, one in enumerate(rated.ratings.T, 1)}
    return pa.table(
        {name: answers.images[name].tolist() for name in ("prompt_id", "model")} | raters
    )


def genai_1600_tags(data: Path) -> pa.Table:
    """The tags of each prompt that has some."""
    prompts = GENAI_1600.prompts(data).set_index("prompt_id")["skills"]
    rows = sorted(
        (prompt, tag) for prompt, tags in prompts.items() for tag in filter(None, tags.split(";"))
    )
    return pa.table({"prompt_id": [row[0] for row in rows], "tag": [row[1] for row in rows]})


def genai_arena_verdicts(data: Path) -> pa.Table:
    """The verdicts of 18 judges as scores of the left and the right image of each comparison."""
    votes = _csv(data / "genai_arena" / "votes.csv")
    judges = votes.columns.drop(["idx", "prompt_group", "human_vote"])
    columns: dict[str, object] = {
        "pair_id": [f"{one}/{side}" for one in votes["idx"] for side in "ab"]
    }
    for judge in judges:
        scores = votes[judge].map(lambda verdict: _VERDICTS.get(verdict, (-1.0, -1.0)))
        columns[str(judge)] = pa.array([one for pair in scores for one in pair], pa.float64())
    return pa.table(columns)


MAKERS: Mapping[str, Callable[[Path], pa.Table]] = {
    "ts2/structure.parquet": ts2_structure,
    "ts2/scores.parquet": ts2_scores,
    "tifa160/ratings.parquet": tifa160_ratings,
    "tifa160/scores.parquet": tifa160_scores,
    "tifa160/questions.parquet": tifa160_questions,
    "tifa160/answers.parquet": tifa160_answers,
    "tifa160/dsg_scores.parquet": tifa160_dsg_scores,
    "genai_1600/ratings.parquet": genai_1600_ratings,
    "genai_1600/tags.parquet": genai_1600_tags,
    "genai_arena/verdicts.parquet": genai_arena_verdicts,
}
"""Path below `benchmarks/released/` to what makes the table from a folder of originals."""


def changed_originals(file: ReleasedFile, data: Path) -> list[str]:
    """The originals of a table that are absent from a folder, or are not the named ones."""

    def is_named(original: Original) -> bool:
        places = [data / name for name in (original.data, original.also) if name]
        return any(one.is_file() and sha256_of(one) == original.sha256 for one in places)

    return [one.data for one in file.originals if not is_named(one)]


def main(
    data: Annotated[Path, typer.Option(help="Folder of the authors' files.")],
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; 1 if any differs.")
    ] = False,
) -> None:
    """Write the released results anew, or compare them with the authors' files."""
    manifest = read_manifest()
    wrong = sorted({one for file in manifest.files for one in changed_originals(file, data)})
    if wrong:
        typer.echo(f"Not the named originals below {data}: {', '.join(wrong)}.", err=True)
        raise typer.Exit(1)
    differ = []
    for file in manifest.files:
        table, path = MAKERS[file.path](data), FOLDER / file.path
        same = path.is_file() and parquet_table(path.read_bytes()).equals(table)
        differ += [] if same else [file.path]
        typer.echo(f"{file.path}: {table.num_rows:,} rows, {'equal' if same else 'differs'}")
        if not check and not same:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_parquet(table))
    if check and differ:
        raise typer.Exit(1)
    if not check:
        _write_hashes({file.path: sha256_of(FOLDER / file.path) for file in manifest.files})


def _csv(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _cells(name: str, column: pd.Series) -> pa.Array:
    """Ids as text, scores as numbers; a column with a malformed cell stays text, cell by cell."""
    if name == "pair_id":
        return pa.array(column.tolist())
    numbers = pd.to_numeric(column.where(column != ""), errors="coerce").astype(np.float64)
    if (numbers.isna() & (column != "")).any():
        return pa.array(column.tolist())
    return pa.array(numbers, pa.float64(), from_pandas=True)


def _counts(column: FloatArray) -> pa.Array:
    """Whole numbers; null where there is none."""
    return pa.array([None if np.isnan(one) else int(one) for one in column], pa.int8())


def _answers(data: Path, model: str, asked: str) -> pd.DataFrame:
    """Answers about the 800 images; VQ2A numbers no question, so they count from 1 by image."""
    folder = data / "dsg_tifa160"
    ids = _csv(folder / "tifa160-likert-anns.csv").drop_duplicates("item_id")
    prompt = ids.set_index("item_id")["source_id"]
    rows = _csv(folder / "vqa_answers" / f"{model}_{asked}.csv")
    kept = (rows["dsg_prompt_split"] == "tifa160") & rows["t2i_model"].isin(list(MODEL_NAMES))
    rows = rows[kept].assign(prompt_id=rows["item_id"].map(prompt)).reset_index(drop=True)
    rows["pair_id"] = rows["prompt_id"] + "_" + rows["t2i_model"].map(MODEL_NAMES)
    if "question_id" not in rows:
        rows["question_id"] = (rows.groupby("pair_id").cumcount() + 1).astype(str)
    return rows


def _accumulated(
    answers: pd.DataFrame, questions: pd.DataFrame, pairs: pd.DataFrame, rule: Rule
) -> pd.Series:
    text = pairs.set_index("pair_id")["text_id"]
    rows = answers.assign(
        text_id=answers["pair_id"].map(text), question_id=answers["question_id"].astype(str)
    )
    asked = rows[["text_id", "question_id"]].drop_duplicates()
    if rule == "dsg":
        asked = questions.rename(columns={"prompt_id": "text_id"}).astype({"question_id": str})
    graph = QuestionGraph.of(asked, unparsable="independent")
    found = AnsweredQuestions.of(rows, rows["yes"].to_numpy(bool), graph, pairs)
    return image_scores(found, rule, "zero")


def _parquet(table: pa.Table) -> bytes:
    buffer = BytesIO()
    pq.write_table(table, buffer, compression="zstd", compression_level=19)
    return buffer.getvalue()


def _write_hashes(hashes: Mapping[str, str]) -> None:
    """Put each table's hash below its path; the rest of the manifest stays as it was written."""
    text = MANIFEST.read_text("utf-8")
    for path, sha256 in hashes.items():
        text = re.sub(
            rf'(path = "{re.escape(path)}"\nsha256 = )"[0-9a-f]*"', rf'\1"{sha256}"', text
        )
    MANIFEST.write_text(text, "utf-8")


if __name__ == "__main__":
    typer.run(main)
