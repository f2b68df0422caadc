"""Reads the ratings that an operator supplies (see FORMAT.md), and checks every one of them."""

from __future__ import annotations

import pandas as pd

from benchmarks.gecko.aggregate import VALUES
from benchmarks.gecko.answers import TEMPLATES
from benchmarks.sources.folder import DataFolder, data_row

RATINGS = "gecko/ratings.csv"
MODELS_FILE = "gecko/models.csv"
MODELS: tuple[str, ...] = ("Imagen", "Muse", "SDXL", "SD1.5")
"""The models of the paper; a models file names others."""
COLUMNS: tuple[str, ...] = (
    "template", "prompt_id", "model", "model_b", "rater_id", "unit_index", "unit_text", "value",
)  # fmt: skip

_WITH_UNITS = frozenset({"WL", "DSGH"})


def load_models(folder: DataFolder) -> tuple[str, ...]:
    """The models that may be rated: those of `gecko/models.csv`, or the paper's without it.

    Raises:
        SubmitterError: `data_malformed`.
    """
    if not folder.has(MODELS_FILE):
        return MODELS
    names = folder.read_table(MODELS_FILE, ("model",))["model"]
    odd = names[names.duplicated() | ~names.str.fullmatch(r"[^/\\\s]+")]
    if len(odd) or names.empty:
        found = f"{odd.iloc[0]!r} ({data_row(odd.index[0])})" if len(odd) else "no row"
        raise folder.malformed(
            MODELS_FILE,
            f"has {found} in column model; expected names without spaces and slashes, each once",
        )
    return tuple(names)


def load_ratings(
    folder: DataFolder, prompts: tuple[str, ...], models: tuple[str, ...]
) -> pd.DataFrame:
    """The ratings in the form of `GeckoAnswers.ratings`.

    Raises:
        SubmitterError: `data_missing` or `data_malformed`, with the first wrong row.
    """
    table = _read(folder)
    check = _Check(folder, table)
    is_sxs = table["template"] == "SxS"
    check.allowed("template", table["template"].isin(TEMPLATES), " | ".join(TEMPLATES))
    check.allowed("prompt_id", table["prompt_id"].isin(prompts), "an id of prompts.csv")
    check.allowed("model", table["model"].isin(models), " | ".join(models))
    check.allowed(
        "model_b",
        (table["model_b"].isin(models) & (table["model_b"] != table["model"])).where(
            is_sxs, table["model_b"] == ""
        ),
        f"another of {' | '.join(models)} for SxS, else nothing",
    )
    check.allowed("rater_id", table["rater_id"].str.strip() != "", "the name of a rater")
    whole = table["unit_index"].str.fullmatch(r"0|[1-9]\d{0,5}")
    one_unit = table["template"].isin(_WITH_UNITS) | (table["unit_index"] == "0")
    check.allowed("unit_index", whole & one_unit, "a whole number from 0 on; 0 for Likert and SxS")
    for template, values in VALUES.items():
        fits = table["value"].isin(values) | (table["template"] != template)
        check.allowed("value", fits, f"{' | '.join(values)} for {template}")
    ratings = table[list(COLUMNS)].assign(unit_index=table["unit_index"].astype(int))
    _check_once(check, ratings)
    _check_texts(check, ratings)
    if ratings.empty:
        raise folder.malformed(RATINGS, "has no rating; expected one in each row")
    return ratings


class _Check:
    """Says which row of the ratings is wrong, where it stands and what was expected."""

    def __init__(self, folder: DataFolder, table: pd.DataFrame) -> None:
        self._folder, self._table = folder, table

    def allowed(self, column: str, right: pd.Series, expected: str) -> None:
        """Refuse the table unless every row is right (bool, one per row)."""
        wrong = self._table.loc[~right.astype(bool), column]
        if len(wrong):
            raise self._folder.malformed(
                RATINGS,
                f"has {wrong.iloc[0]!r} in column {column} ({data_row(wrong.index[0])}; "
                f"{len(wrong)} such ratings); expected {expected}",
            )

    def refuse(self, what: str) -> None:
        """Refuse the table."""
        raise self._folder.malformed(RATINGS, what)


def _read(folder: DataFolder) -> pd.DataFrame:
    """All cells as text; a missing cell is empty."""
    path = folder.path(RATINGS)
    if path.suffix != ".parquet":
        return folder.read_table(RATINGS, COLUMNS)
    try:
        table = pd.read_parquet(path)
    except (ValueError, OSError) as error:  # pyarrow's errors are kinds of both
        raise folder.malformed(RATINGS, "cannot be read; expected a Parquet table") from error
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise folder.malformed(
            RATINGS, f"has no column {', '.join(missing)}; expected {', '.join(COLUMNS)}"
        )
    texts = {name: table[name].astype(object).where(table[name].notna(), "") for name in COLUMNS}
    return pd.DataFrame({name: cells.astype(str) for name, cells in texts.items()})


def _check_once(check: _Check, ratings: pd.DataFrame) -> None:
    """One answer of a rater to a unit; a comparison is the same in either order of the models."""
    sides = ratings[["model", "model_b"]]
    sxs = ratings["template"] == "SxS"
    key = ratings.assign(
        model=sides.min(axis=1).where(sxs, ratings["model"]),
        model_b=sides.max(axis=1).where(sxs, ""),
    )[["template", "prompt_id", "model", "model_b", "rater_id", "unit_index"]]
    again = key.duplicated()
    if again.any():
        at = int(again.to_numpy().argmax())
        first = int((key == key.loc[at]).all(axis=1).to_numpy().argmax())
        row = ratings.loc[at]
        turned = " with the models the other way round" * bool(
            row["model"] != ratings.loc[first, "model"]
        )
        check.refuse(
            f"has a second answer of rater {row['rater_id']!r} to {row['template']} of prompt "
            f"{row['prompt_id']} and model {row['model']}, unit {row['unit_index']}{turned} "
            f"({data_row(at)}; the first is {data_row(first)}); expected one"
        )


def _check_texts(check: _Check, ratings: pd.DataFrame) -> None:
    """A word or question is the same for all raters and models."""
    told = ratings[(ratings["unit_text"] != "") & ratings["template"].isin(_WITH_UNITS)]
    unit = told.groupby(["template", "prompt_id", "unit_index"])["unit_text"]
    odd = told[told["unit_text"] != unit.transform("first")]
    if len(odd):
        row = odd.iloc[0]
        check.refuse(
            f"has {row['unit_text']!r} as unit {row['unit_index']} of {row['template']} of prompt "
            f"{row['prompt_id']} ({data_row(odd.index[0])}), but another text before; expected "
            "the same for all raters and models"
        )
