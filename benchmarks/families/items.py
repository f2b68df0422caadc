"""Items of a card: the pairs of image and text that its rows name, and the images themselves."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.families.card import FamilyCard, Sample
from benchmarks.families.tables import JoinedTable
from benchmarks.schema import Pair, Questions
from benchmarks.sources.folder import DataFolder

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Items:
    """What is scored, and which row of the card's table asks for it.

    Attributes:
        rows: the joined table, with columns `row_id`, `prompt_id` (the cluster), `split` (may be
            empty) and `skills` (joined by `;`) beside those of the card; index 0..n-1.
        pairs: a pair of image and text in each line, in the benchmark's order, each once: columns
            `pair_id`, `image` (its name in the source of images), `prompt_id`, `text`, `model`
            (empty where it is not known), `position` (place in the list it was released in), all
            text but the last.
        cells: shape (k, 3), for each pair that a row asks for: the row, its place among the pairs
            of that row, and the line in `pairs`; sorted.
        dropped: table to rows that were left out by the card's `where`.
    """

    rows: pd.DataFrame
    pairs: pd.DataFrame
    cells: IntArray
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def pair_ids(self) -> tuple[str, ...]:
        """The pairs, in the benchmark's order."""
        return tuple(self.pairs["pair_id"])

    @property
    def clusters(self) -> tuple[str, ...]:
        """The prompts, in the benchmark's order."""
        return tuple(self.rows["prompt_id"].drop_duplicates())

    @property
    def cluster_of_row(self) -> IntArray:
        """Shape (n,), position of the prompt of each row in `clusters`."""
        return pd.factorize(self.rows["prompt_id"])[0]

    def prompts(self) -> pd.DataFrame:
        """The prompts, each once, as of its first row; see `Benchmark.prompts`."""
        texts = self.pairs.drop_duplicates("prompt_id").set_index("prompt_id")["text"]
        first = self.rows.drop_duplicates("prompt_id")
        named = first[["prompt_id", "split", "skills"]].reset_index(drop=True)
        named.insert(1, "prompt", texts.loc[first["prompt_id"]].to_numpy(object))
        return named

    def cases(
        self, case: str, row: IntArray, line: IntArray, expected: FloatArray, said: Sequence[str]
    ) -> pd.DataFrame:
        """Cases, of which each line is a pair in a row; see `benchmarks.cases.SCHEMA`.

        `case`: the column of `rows` that tells one case from another.
        """
        rows, pairs = self.rows.iloc[row], self.pairs.iloc[line]
        columns = {
            "case_id": rows[case],
            "cluster": rows["prompt_id"],
            "split": rows["split"],
            "skills": rows["skills"],
            "pair_id": pairs["pair_id"],
            "image_id": pairs["image"],
            "prompt": pairs["text"],
        }
        found = {name: column.to_numpy(object) for name, column in columns.items()}
        return pd.DataFrame(found | {"expected": expected, "said": said})

    def skills(self) -> dict[str, np.ndarray]:
        """Skill to its rows, shape (n,) bool; in the order in which skills first stand."""
        lists = self.rows["skills"].str.split(";")
        names = dict.fromkeys(one for skills in lists for one in skills if one)
        return {
            name: np.fromiter((name in skills for skills in lists), bool, len(lists))
            for name in names
        }


def items_of(folder: DataFolder, card: FamilyCard, table: JoinedTable) -> Items:
    """The items of a joined table.

    Raises:
        SubmitterError: `data_malformed`: a pair stands twice, or an image is compared with itself.
    """
    path, columns = card.tables[0].paths[0], card.items
    rows = table.rows
    row_id = rows[columns.pair].astype(str) if columns.pair else pd.Series(rows.index.astype(str))
    rows = rows.assign(
        row_id=row_id.to_numpy(object),
        prompt_id=rows[columns.prompt].astype(str).to_numpy(object),
        split=rows[columns.split].astype(str) if columns.split else "",
        skills=rows[columns.skills].map(partial(_joined_skills, known=tuple(card.skills)))
        if columns.skills
        else "",
    )
    if columns.sample:
        rows = rows[_sampled(rows, columns.sample)].reset_index(drop=True)
    cells = _cells(rows, card)
    repeats = cells["pair_id"].duplicated()
    one_each = card.gold and any(gold.rating for gold in card.gold.values())
    if repeats.any() and not (columns.shared or one_each or card.follows == "element"):
        twice = cells.loc[repeats, "pair_id"].iloc[0]
        raise folder.malformed(path, f"has pair {twice!r} twice ({int(repeats.sum())} such pairs)")
    within = cells.duplicated(["row", "image", "text"])
    if within.any():
        raise folder.malformed(
            path, f"compares {cells.loc[within, 'pair_id'].iloc[0]!r} with itself"
        )
    pairs = cells.drop_duplicates("pair_id", ignore_index=True)
    if by_hash(card):
        pairs = pairs.iloc[np.argsort([_digest(name) for name in pairs["pair_id"]])]
        pairs = pairs.reset_index(drop=True)
    same = ["pair_id", "image", "prompt_id", "text"]
    unlike = cells[same].drop_duplicates()["pair_id"].duplicated()
    if unlike.any():
        raise folder.malformed(
            path,
            f"gives {int(unlike.sum())} pairs two images or texts; the first is "
            f"{cells.loc[unlike.index[unlike][0], 'pair_id']!r}",
        )
    line = pd.Index(pairs["pair_id"]).get_indexer(cells["pair_id"])
    numbers = np.column_stack([cells["row"], cells["place"], line]).astype(np.intp)
    wanted = ["pair_id", "image", "prompt_id", "text", "model", "position"]
    return Items(rows, pairs[wanted], numbers, table.dropped)


def by_hash(card: FamilyCard) -> bool:
    """Whether order and ids of the pairs of a row must not tell where they were released."""
    if card.group is not None:
        return card.group.rule != "best_of"
    return card.preference is not None and card.preference.sides == "hash"


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _released_places(
    rows: pd.DataFrame, row: np.ndarray, place: np.ndarray, card: FamilyCard, kind: str = ""
) -> np.ndarray:
    """Place that the id of an image, or of a text, tells: its own, or that of its hash in its row."""
    if not by_hash(card):
        return place
    ids = rows["row_id"].to_numpy(object)[row]
    named = zip(ids, place, strict=True)
    digests = pd.Series([_digest(f"{one}/{kind}{at}") for one, at in named], dtype=object)
    ordered = pd.DataFrame({"row": row, "digest": digests}).sort_values(["row", "digest"])
    return ordered.groupby("row").cumcount().sort_index().to_numpy()


def _cells(rows: pd.DataFrame, card: FamilyCard) -> pd.DataFrame:
    """One line for each pair of each row: `row`, `place`, and the columns of `Items.pairs`."""
    columns = card.items
    if columns.image and isinstance(columns.image, str) and _holds_lists(rows[columns.image]):
        return _listed(rows, card)
    images = (columns.image,) if isinstance(columns.image, str) else columns.image
    texts = (columns.text,) if isinstance(columns.text, str) else columns.text
    models = (columns.model,) if isinstance(columns.model, str) else columns.model
    if images == ("",):  # Images without names: the sides of a comparison, or those of a group.
        images *= 2 if card.preference else card.group.n_images if card.group else 1
    n = len(rows)
    shown = _released_places(rows, *_every(n, len(images)), card).reshape(n, len(images))
    of_text = _released_places(rows, *_every(n, len(texts)), card, "c").reshape(n, len(texts))
    parts = []
    for k, text in enumerate(texts):
        for i, image in enumerate(images):
            place = k * len(images) + i
            letters = [f"/{LETTERS[at]}" if len(images) > 1 else "" for at in shown[:, i]]
            suffix = np.array(letters, object)
            named = rows[image].astype(str) if image else rows["row_id"] + suffix
            if len(texts) > 1:
                both = zip(of_text[:, k], shown[:, i], strict=True)
                suffix = np.array([f"/c{text}i{at}" for text, at in both], object)
            model = models[min(i, len(models) - 1)]
            parts.append(
                pd.DataFrame(
                    {
                        "row": np.arange(len(rows)),
                        "place": place,
                        "pair_id": named if columns.shared else rows["row_id"] + suffix,
                        "image": named,
                        "prompt_id": rows["prompt_id"],
                        "text": rows[text].astype(str) if text else "",
                        "model": rows[model].astype(str) if model else "",
                        "position": i,
                    }
                )
            )
    found = pd.concat(parts).sort_values(["row", "place"], ignore_index=True)
    if len(parts) == 1:
        # Where each row is one image, the list it stands in is that of its prompt.
        found["position"] = found.groupby("prompt_id").cumcount()
    return found


def _every(n: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and place of each of n rows of one size."""
    return np.repeat(np.arange(n), size), np.tile(np.arange(size), n)


def _holds_lists(column: pd.Series) -> bool:
    return bool(len(column)) and isinstance(column.iloc[0], list)


def _listed(rows: pd.DataFrame, card: FamilyCard) -> pd.DataFrame:
    """The same where a row has a list of images, and perhaps a list of who made them."""
    columns = card.items
    image, text, model = str(columns.image), str(columns.text), str(columns.model)
    lengths = rows[image].map(len)
    row = np.repeat(np.arange(len(rows)), lengths)
    of_row = rows.iloc[row]
    place = np.concatenate([np.arange(n) for n in lengths]) if len(rows) else np.empty(0, int)
    names = [str(one) for cell in rows[image] for one in cell]
    if model and _holds_lists(rows[model]):
        models = [str(one) for cell in rows[model] for one in cell]
    else:
        models = list(of_row[model].astype(str)) if model else [""] * len(row)
    shown = np.char.add("/", _released_places(rows, row, place, card).astype(str)).astype(object)
    numbered = of_row["row_id"].to_numpy(object) + shown
    return pd.DataFrame(
        {
            "row": row,
            "place": place,
            "pair_id": names if columns.shared else numbered,
            "image": names,
            "prompt_id": of_row["prompt_id"].to_numpy(object),
            "text": of_row[text].astype(str).to_numpy(object) if text else "",
            "model": models,
            "position": place,
        }
    )


def _joined_skills(cell: Any, known: Sequence[str]) -> str:
    """Skills of a row, each once; those that the card knows in its order, then the others."""
    skills = cell if isinstance(cell, list) else [cell]
    names = dict.fromkeys(str(one).replace(";", ",") for one in skills if one is not None)
    first = [one for one in known if one in names]
    return ";".join(dict.fromkeys((*first, *names)))


def _sampled(rows: pd.DataFrame, sample: Sample) -> np.ndarray:
    """Rows of the units that are kept, shape (n,) bool."""
    units = rows[[sample.by]].assign(
        stratum=rows[sample.strata].astype(str) if sample.strata else ""
    )
    kept: set[str] = set()
    for _, names in units.drop_duplicates().groupby("stratum")[sample.by]:
        ordered = sorted(map(str, names), key=lambda n: hashlib.sha256(n.encode()).hexdigest())
        kept.update(ordered[: math.ceil(sample.keep * len(ordered))])
    return rows[sample.by].astype(str).isin(kept).to_numpy(bool)


def questions_of(items: Items, images: Mapping[str, Any]) -> Questions:
    """The question side: `images` has a reader for each name of an image."""
    pairs = items.pairs
    # One text is one question, whatever prompts it stands for.
    texts = pairs.drop_duplicates("text")
    number = dict(zip(texts["text"], texts["pair_id"], strict=True))
    asked = zip(pairs["pair_id"], pairs["image"], pairs["text"], strict=True)
    return Questions(
        images={name: images[name] for name in pairs["image"].drop_duplicates()},
        texts={pair: text for text, pair in number.items()},
        pairs=tuple(Pair(pair, image, number[text]) for pair, image, text in asked),
        lists=_lists(items),
    )


def _lists(items: Items) -> tuple[tuple[str, ...], ...]:
    """Pairs of each row that share a text, where there are several."""
    ids = items.pairs["pair_id"].to_numpy(object)
    row, line = items.cells[:, 0], items.cells[:, 2]
    text = pd.factorize(items.pairs["text"])[0][line]
    order = np.lexsort((line, text, row))
    row, text = row[order], text[order]
    starts = np.flatnonzero((np.diff(row) != 0) | (np.diff(text) != 0)) + 1
    found = (tuple(pairs) for pairs in np.split(ids[line[order]], starts) if len(pairs) > 1)
    return tuple(dict.fromkeys(found))
