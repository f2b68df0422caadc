"""Reader of CROC_hum: pairs of prompts, images, and the score files of the authors' runner."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from benchmarks.command_line import ForceOption, run
from benchmarks.errors import SubmitterError
from benchmarks.schema import Answers, Card, Pair, Questions
from benchmarks.sources.folder import DataFolder, data_row, folder_images
from benchmarks.sources.output import check_output, write_whole
from benchmarks.tables import read_table


@dataclass(frozen=True)
class PromptPair:
    """Contrast pair of prompts with its images (a cluster)."""

    id: str  # `<category>_<num>`
    category: str  # the CROC category, e.g. `counting`, `spacial_relation` (sic).
    prompt: str  # the original prompt T_O
    contrast: str  # the contrast prompt T_C
    original_images: tuple[str, ...]  # stems of I_O, images of T_O
    # stems of I_C, images of T_C (for negation: images of "A" alone)
    contrast_images: tuple[str, ...]

    @property
    def images(self) -> tuple[str, ...]:
        """Stems of all its images, each of which is scored with both prompts."""
        return (*self.original_images, *self.contrast_images)


TEXTS: tuple[str, str] = ("orig", "contrast")
"""Texts a pair id may name: that of T_O or that of T_C."""


def pair_id(stem: str, text: str) -> str:
    """Public id of (image, whose text): `<stem>|orig` or `<stem>|contrast`."""
    return f"{stem}|{text}"


@dataclass(frozen=True)
class CrocAnswers(Answers):
    """Contrast pairs; every image is scored with both prompts of its pair."""

    prompt_pairs: tuple[PromptPair, ...]  # the clusters, in the order of `clusters`

    def counts(self) -> dict[str, int]:
        """Images and prompt pairs, in all and by category."""
        categories = Counter(pair.category for pair in self.prompt_pairs)
        return {
            "images": sum(len(pair.images) for pair in self.prompt_pairs),
            "prompt pairs": len(self.prompt_pairs),
            "unique prompts": len({t for p in self.prompt_pairs for t in (p.prompt, p.contrast)}),
            **{f"{category}: prompt pairs": n for category, n in categories.items()},
        }


@dataclass(frozen=True)
class CrocHumAnswers(CrocAnswers):
    """The answer side of CROC_hum, whose file names tell which model made an image."""

    def counts(self) -> dict[str, int]:
        """As for any CROC benchmark, and the images of each generator."""
        made = Counter(generator(stem) for pair in self.prompt_pairs for stem in pair.images)
        return {**super().counts(), **{f"{name}: images": n for name, n in sorted(made.items())}}


def generator(name: str) -> str:
    """Generator of an image, by its file name: `flux`, `sd` or `gpt`.

    The releases spell the models differently (`FLUX_1_schnell`, `FLUX_1_dev`, ...), so the authors
    look for a part of the name, and what is neither Flux nor Stable Diffusion is GPT-4o.
    """
    if "flux" in name.lower():
        return "flux"
    return "sd" if "stable_diffusion" in name else "gpt"


METADATA = "croc_hum/croc_hum_metadata.tsv"
CATEGORIES: tuple[str, ...] = (
    "shapes",
    "spacial_relation",
    "size_relation",
    "counting",
    "body_parts",
    "action",
    "things_parts",
    "negation",
)
"""As they are spelt in the ids of prompt pairs."""


@dataclass(frozen=True)
class Layout:
    """What differs between CROC_hum and somebody's own data that are laid out as it is."""

    metadata: str = METADATA  # path of the table in the card; category folders lie beside it
    categories: tuple[str, ...] = CATEGORIES  # the beginnings of ids; the longest that fits counts

    @classmethod
    def of(cls, card: Card) -> Layout:
        """The layout that a card tells: its file of answers, and its skills.

        Raises:
            SubmitterError: `invalid_benchmark`: it tells neither.
        """
        tables = [file.path for file in card.files if file.role == "answers"]
        if len(tables) != 1 or not card.skills:
            raise SubmitterError(
                "invalid_benchmark",
                f"The card of {card.name} declares {len(tables)} files of role answers and "
                f"{len(card.skills)} skills; a benchmark of family croc has one table, and its "
                "categories are the skills.",
            )
        return cls(tables[0], tuple(card.skills))


RELEASED = Layout()
SHARED = "negation"
"""The category whose prompt pairs may list the same images of "A" as others do."""

_LISTS = ("prompt_paths", "contrast_paths", "alt_contrast_paths")
_COLUMNS = ("id", "prompt", "contrast", *_LISTS)
_LONGEST_CELL = 1 << 20
_EMPTY = frozenset({"", "nan", "NaN", "NA", "N/A", "null", "NULL", "None"})
"""Cells that the authors' reader takes for missing: then a pair has no images on that side."""


def load_answers(folder: DataFolder, layout: Layout = RELEASED) -> CrocHumAnswers:
    """Read the metadata: prompt pairs with the images of either side."""
    pairs, _ = read_pairs(folder, layout)
    return CrocHumAnswers(
        pair_ids=tuple(pair_id(s, text) for pair in pairs for s in pair.images for text in TEXTS),
        clusters=tuple(pair.id for pair in pairs),
        prompt_pairs=pairs,
        sources=folder.verified(),
    )


def load_questions(folder: DataFolder, layout: Layout = RELEASED) -> Questions:
    """Every image with both prompts of its pair."""
    pairs, paths = read_pairs(folder, layout)
    root = root_of_images(folder, layout) or folder.beside(layout.metadata)
    image = {name: PurePosixPath(path).stem for name, path in paths.items()}
    return Questions(
        images=folder_images("croc_hum", root, {image[name]: paths[name] for name in paths}),
        texts={
            pair_id(pair.id, text): said
            for pair in pairs
            for text, said in zip(TEXTS, (pair.prompt, pair.contrast), strict=True)
        },
        pairs=tuple(
            Pair(pair_id(name, text), image[name], pair_id(pair.id, text))
            for pair in pairs
            for name in pair.images
            for text in TEXTS
        ),
    )


def has_images(folder: DataFolder, layout: Layout = RELEASED) -> bool:
    """Whether the archive was unpacked; that each image is there, `load_questions` checks."""
    return root_of_images(folder, layout) is not None


def load_prompts(folder: DataFolder, layout: Layout = RELEASED) -> pd.DataFrame:
    """Both prompts of every pair, each text once under the id of its first appearance."""
    found: dict[str, tuple[str, list[str]]] = {}
    for pair in read_pairs(folder, layout)[0]:
        for text, said in zip(TEXTS, (pair.prompt, pair.contrast), strict=True):
            _, categories = found.setdefault(said, (pair_id(pair.id, text), []))
            if pair.category not in categories:
                categories.append(pair.category)
    return pd.DataFrame(
        [(name, said, "", ";".join(skills)) for said, (name, skills) in found.items()],
        columns=["prompt_id", "prompt", "split", "skills"],
    )


def read_pairs(
    folder: DataFolder, layout: Layout = RELEASED
) -> tuple[tuple[PromptPair, ...], dict[str, str]]:
    """The prompt pairs, and the path below `root_of_images` of each image by its name in pair ids.

    Raises:
        SubmitterError: `data_missing`, or `data_malformed`, naming the row.
    """
    table = folder.read_table(layout.metadata, _COLUMNS, separator="\t")
    folder.check_count(layout.metadata, "prompt pairs", len(table))
    paths: dict[str, str] = {}
    alone: dict[str, str] = {}
    pairs: dict[str, PromptPair] = {}
    for number, cells in enumerate(table[list(_COLUMNS)].to_dict("records")):
        row = _Row(folder, layout, data_row(number), cells)
        if row.id in pairs:
            raise row.error("stands for the second time; expected each id once")
        category = row.category()
        # Images of "A and no B" often show B, so negation is tested with images of "A" alone.
        original = row.names(row.images("prompt_paths"), paths)
        if category == SHARED:
            contrast = row.names(row.images("alt_contrast_paths"), paths, alone)
        else:
            contrast = row.names(row.images("contrast_paths"), paths)
        texts = row.text("prompt"), row.text("contrast")
        pairs[row.id] = PromptPair(row.id, category, *texts, original, contrast)
    folder.check_count(layout.metadata, "images", len(paths))
    return tuple(pairs.values()), paths


def shared_name(stem: str, pair: str) -> str:
    """Name, in the pair ids of a prompt pair, of an image that an earlier prompt pair lists too."""
    return f"{stem}@{pair}"


class _Row:
    """Row of the metadata; every error says which row it is, and its id."""

    def __init__(
        self, folder: DataFolder, layout: Layout, place: str, cells: dict[Any, str]
    ) -> None:
        self._folder, self._layout, self._place, self._cells = folder, layout, place, cells
        self.id = cells["id"]

    def error(self, what: str) -> Exception:
        return self._folder.malformed(self._layout.metadata, f"{self._place}: {self.id!r} {what}")

    def category(self) -> str:
        """By the start of the id, as the authors choose the rows of a category."""
        known = self._layout.categories
        fitting = [category for category in known if self.id.startswith(category)]
        if not fitting:
            raise self.error(f"is of no known category; expected one of {', '.join(known)}")
        return max(fitting, key=len)

    def text(self, column: str) -> str:
        if not self._cells[column].strip():
            raise self.error(f"has an empty {column}")
        return self._cells[column]

    def images(self, column: str) -> tuple[str, ...]:
        """Paths below the folder of the unpacked archive."""
        # The released lists say `images/<category>/...`, the archive holds `<category>/...`, and
        # the authors delete every `images/` from the joined path. That would also cut it out of the
        # folder a user chose for the data, so here it is taken from the listed path alone.
        paths = [path.replace("images/", "") for path in self._list(column) if path]
        for path in paths:
            if not _is_below(path):
                raise self.error(f"lists {path!r} in {column}; expected a path below the archive")
        return tuple(paths)

    def names(
        self, listed: tuple[str, ...], paths: dict[str, str], shared: dict[str, str] | None = None
    ) -> tuple[str, ...]:
        """Names of listed images in pair ids: the stems of their files; `paths` gains those listed.

        `shared` is path to first prompt pair, for images that several prompt pairs may list. Their
        text depends on the prompt pair, so each further one names the image anew.
        """
        names = []
        for path in listed:
            name = PurePosixPath(path).stem
            if shared is not None and shared.setdefault(path, self.id) != self.id:
                name = shared_name(name, self.id)
            if name in paths:  # its scores could not be told from those of the other one
                raise self.error(f"lists {path!r}, but an image {paths[name]!r} came before")
            paths[name] = path
            names.append(name)
        return tuple(names)

    def _list(self, column: str) -> list[str]:
        cell = self._cells[column]
        if cell.strip() in _EMPTY:
            return []
        if "\\" in cell:
            raise self.error(f"has a backslash in column {column}: {cell[:60]!r}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of Python's parser, about what is no list anyway
                found = ast.literal_eval(cell) if len(cell) <= _LONGEST_CELL else None
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, Warning):
            found = None
        if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
            raise self.error(
                f"has {cell[:60]!r} in column {column}; expected a list of paths, such as "
                "['images/counting/prompt/x.jpg']"
            )
        return found


def _is_below(path: str) -> bool:
    """Whether a listed path leads to a file below the archive, on any system."""
    pure = PurePosixPath(path)
    leaves = pure.is_absolute() or ".." in pure.parts or bool(PureWindowsPath(path).drive)
    return bool(pure.stem) and not leaves and path.isprintable()


def root_of_images(folder: DataFolder, layout: Layout = RELEASED) -> Path | None:
    """The folder that holds the category folders: beside the table, or one below; None without any."""
    base = folder.beside(layout.metadata)
    if not base.is_dir():
        return None
    # A hidden folder is what an interrupted unpacking left behind.
    below = sorted(p for p in base.iterdir() if p.is_dir() and not p.name.startswith("."))
    return next(
        (
            root
            for root in (base, *below)
            if any((root / category).is_dir() for category in layout.categories)
        ),
        None,
    )


_COLUMN = re.compile(r"(?P<metric>.+)___(?P<text>orig|contrast)_text___(?P<side>orig|contrast)_img")
_NO_SCORE = frozenset({"", "nan", "NaN", "NA", "N/A", "null", "NULL", "None", "none"})


def read_score_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A tab-separated file of the authors' runner, all cells as text."""
    return read_table(path, columns, separator="\t")


def pair_scores(
    path: Path, table: pd.DataFrame, side: str, images: Iterable[str]
) -> dict[str, pd.Series]:
    """Metric to its scores by pair id: the images of one side (`orig`, `contrast`), with both texts."""
    names = list(images)
    columns = _columns_of(path, table, side)
    ids = [pair_id(name, text) for text in TEXTS for name in names]
    return {
        metric: pd.Series(
            np.concatenate([_numbers(path, table[by_text[text]]) for text in TEXTS]), index=ids
        )
        for metric, by_text in columns.items()
    }


def concatenate_files(parts: Sequence[tuple[Path, dict[str, pd.Series]]]) -> pd.DataFrame:
    """The scores of several files as one scores table."""
    wanted = {metric: path for path, found in parts for metric in found}
    for path, found in parts:
        lacking = [metric for metric in wanted if metric not in found]
        if lacking:
            raise SubmitterError(
                "no_scores",
                f"{path} has no scores of {lacking[0]}, which {wanted[lacking[0]]} has.",
                "Score all files with the same metrics, or remove the columns of the others.",
            )
    table = pd.DataFrame({m: pd.concat([found[m] for _, found in parts]) for m in wanted})
    twice = table.index[table.index.duplicated()]
    if len(twice):
        raise SubmitterError(
            "duplicate_pairs",
            f"{len(twice)} pairs of image and text stand in two rows, the first is {twice[0]!r}.",
            "Keep each image in one row of one file.",
        )
    return table.rename_axis("pair_id").reset_index()


def _columns_of(path: Path, table: pd.DataFrame, side: str) -> dict[str, dict[str, str]]:
    """Metric to its column for each text."""
    found: dict[str, dict[str, str]] = {}
    for column in map(str, table.columns):
        match = _COLUMN.fullmatch(column)
        if match and match["side"] == side:
            found.setdefault(match["metric"], {})[match["text"]] = column
    if not found:
        raise SubmitterError(
            "no_scores",
            f"{path} has no score column for the {side} images; expected names such as "
            f"VQAScore___orig_text___{side}_img.",
        )
    for metric, by_text in found.items():
        for text in TEXTS:
            if text not in by_text:
                raise SubmitterError(
                    "no_scores",
                    f"{path} has no column {metric}___{text}_text___{side}_img.",
                    "Each image needs scores with both texts; finish the run of that metric.",
                )
    return found


def _numbers(path: Path, cells: pd.Series) -> np.ndarray:
    nulls = cells.str.strip().isin(_NO_SCORE)
    values = pd.to_numeric(cells.where(~nulls), errors="coerce").to_numpy(np.float64)
    bad = ~np.isfinite(values) & ~nulls.to_numpy()
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise SubmitterError(
            "not_numeric",
            f"{path}, column {cells.name!r}: {int(bad.sum())} cells are not finite numbers, the "
            f"first is {cells.iloc[first][:60]!r} ({data_row(first)}).",
            "Leave a cell empty where the metric gave no score.",
        )
    return values


_FILE = re.compile(r"(?P<category>.+)_(?P<kind>prompt|contrast)_img_scores\.tsv")
_SIDES = {"prompt": "orig", "contrast": "contrast"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def read_score_files(folder: Path) -> pd.DataFrame:
    """Scores in a folder of the authors' runner, by pair id; NaN where a cell is empty.

    The runner writes two files a category, one image per row: `counting_prompt_img_scores.tsv` for
    the images of the original and `counting_contrast_img_scores.tsv` for those of the contrast.
    Other files are passed over.
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
    return concatenate_files(parts)


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


def write_converted(
    read: Callable[[Path], pd.DataFrame], folder: Path, pattern: str, out: Path, *, force: bool
) -> None:
    """Write the scores in a folder as Parquet, or as CSV where the name says so; tell how many."""
    check_output(out, force=force, inputs=folder.glob(pattern))
    table = read(folder)
    write = table.to_csv if out.suffix.lower() == ".csv" else table.to_parquet
    write_whole(out, lambda place: write(place, index=False))
    typer.echo(f"{out}: {len(table)} pairs, metrics {', '.join(table.columns[1:])}")


@app.command()
def convert(
    folder: Annotated[Path, typer.Argument(help="Folder with the runner's score files.")],
    out: Annotated[Path, typer.Option("--out", help="Scores file to write (.parquet or .csv).")],
    force: ForceOption = False,
) -> None:
    """Make one scores file of the files that the CROC runner wrote for CROC_hum.

    Example: python -m benchmarks.croc.load outputs/scores --out scores.parquet
    """
    write_converted(read_score_files, folder, "*.tsv", out, force=force)


if __name__ == "__main__":
    sys.exit(run(app))
