"""Reader of CROC_syn: prompt files, taxonomy, images on demand, and the score shards of the authors' runner."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import pandas as pd
import typer

from benchmarks.command_line import ForceOption, run
from benchmarks.croc.load import (
    TEXTS,
    concatenate_files,
    pair_scores,
    read_score_table,
    write_converted,
)
from benchmarks.croc.measures import length_split
from benchmarks.errors import SubmitterError
from benchmarks.parsing import parse_json
from benchmarks.schema import Answers, Card, Pair, Questions
from benchmarks.sources.folder import DataFolder

NODES: dict[str, tuple[str, ...]] = {
    "Domain": ("Photography", "Illustration", "3D Rendering", "Anime", "Mixed Media", "Painting"),
    "Action": (
        "Pointing", "Waving", "Facial Expression", "Nodding", "Running", "Dancing", "Jumping",
        "Swimming",
    ),
    "Spatial": (
        "Foreground Emphasis", "Midground Placement", "Background Silhouette", "Close Proximity",
        "Overlapping Forms", "Left-of", "Right-of", "Above", "Below", "Inside",
    ),
    "Scale": (
        "Giant Figures", "Miniature Objects", "Distorted Perspective", "Life-Size Representation",
        "Proportional Figures", "Consistent Depth",
    ),
    "Color": (
        "Monochrome", "Vibrant", "Red", "Blue", "Green", "Yellow", "Purple", "Orange", "Pink",
        "Brown", "Black", "White",
    ),
    "Texture": ("Smooth", "Rough", "Reflective"),
    "Shape": ("Geometric", "Organic"),
    "Style": ("Realistic", "Impressionistic", "Minimalist"),
    "Material": ("Metallic", "Wooden", "Fabric", "Plastic", "Glass", "Stone", "Paper"),
    "Lighting": ("Natural Light", "Artificial Light", "High Contrast"),
    "Layout": ("Centered", "Rule of Thirds", "Asymmetrical"),
    "Error Types": ("Negation",),
}  # fmt: skip
"""Top-level node, spelt as in `taxonomy.json`, to the 64 properties of the paper."""

NOT_IN_PAPER: tuple[str, ...] = (
    "Composition", "Color Harmony", "Artistic Impact", "Brief", "Moderate", "Extended", "Simple",
    "Intermediate", "Advanced", "Omission", "Pronoun Error", "Word Jumble", "Spelling Errors",
    "Subject-verb disagreement",
)  # fmt: skip
"""Further leaves that the released generator uses; they count in no property."""

_NODE_OF = {
    leaf.replace(" ", "_"): node
    for node, leaves in (*NODES.items(), ("", NOT_IN_PAPER))
    for leaf in leaves
}


def node_of(property_: str) -> str | None:
    """Top-level node of a property as prompt ids spell it, e.g. `Rule_of_Thirds`.

    Empty for a leaf that the paper leaves out; None where it is no leaf.
    """
    return _NODE_OF.get(property_)


MODES: dict[str, str] = {
    "entity_variation": "Entity variation",
    "entity_placement": "Entity placement",
    "subject_property": "Property variation",
}
"""First part of a prompt id to what the paper calls it."""
PROPERTIES = "subject_property"
"""The mode whose prompts each vary one property."""


_PROMPT_FILE = re.compile(r"3_extracted_prompts_([a-z0-9-]+)_([a-z0-9-]+)\.jsonl")


@dataclass(frozen=True)
class Layout:
    """Files and skills of a set, as its card tells them."""

    files: Mapping[str, tuple[str, str]]  # prompt file to its image model and its text model
    images: str  # folder of the images
    skills: tuple[str, ...]  # of properties, in the order of display

    @classmethod
    def of(cls, card: Card) -> Layout:
        """The layout of a card.

        Raises:
            SubmitterError: `invalid_benchmark`: its files are not those of this layout.
        """
        files = {
            file.path: match.groups()
            for file in card.files
            if file.role == "answers"
            and (match := _PROMPT_FILE.fullmatch(PurePosixPath(file.path).name))
        }
        images = [file.path for file in card.files if file.role == "images" and file.folder]
        n_answers = sum(file.role == "answers" for file in card.files)
        models = {(image, text) for image, text in files.values()}
        if not files or len(models) < n_answers or len(images) != 1:
            raise SubmitterError(
                "invalid_benchmark",
                f"The card of {card.name} declares {n_answers} files of role answers, of which "
                f"{len(models)} are prompt files with models of their own, and {len(images)} "
                "folders of images.",
                "A prompt file is called 3_extracted_prompts_<image model>_<text model>.jsonl, both "
                "in small letters, digits and -; the images lie in one folder.",
            )
        named = {path: (image, text) for path, (image, text) in files.items()}
        return cls(named, images[0], tuple(card.skills))

    @property
    def text_models(self) -> tuple[str, ...]:
        """The language models that wrote the prompts, in the order of the files."""
        return tuple(dict.fromkeys(text for _, text in self.files.values()))


@dataclass(frozen=True)
class CrocSynAnswers(Answers):
    """Prompt pairs, each with the same number K of images of either prompt.

    `layout` says which language models there are, and which skills.

    `pair_ids` go prompt by prompt as in `prompts`; within one, first the K images of the original,
    then the K of the contrast; each image with the original, then with the contrast text. So the
    scores of a metric have the shape (len(prompts), 2 sides, K images, 2 texts).
    """

    # one row per prompt pair of one image model: `cluster` (int, position in `clusters`: prompt id
    # and original prompt), `group` (int, 0..G-1: image model, text model and cluster; what one
    # comparison is made in), `mode` (str, key of MODES), `image_model` (str), `text_model` (str),
    # `property` (str, as in the prompt id; empty but for property variation), `skill` (str, that of
    # the property, may be empty), `length` (str, one of `croc.measures.LENGTHS`)
    prompts: pd.DataFrame
    images_per_prompt: int  # K
    # prompt pairs left out because a text is empty (the language model's answer could not be read)
    dropped: int
    layout: Layout

    def counts(self) -> dict[str, int]:
        """Images and prompt pairs, in all and by mode; what was left out."""
        modes = Counter(self.prompts.drop_duplicates("cluster")["mode"])
        return {
            "images": 2 * self.images_per_prompt * len(self.prompts),
            "images per prompt": self.images_per_prompt,
            "prompt pairs": len(self.clusters),
            "prompt pairs times image models": len(self.prompts),
            "dropped for an empty text": self.dropped,
            **{f"{mode}: prompt pairs": modes[mode] for mode in MODES},
        }


SEPARATOR = "|||"
SIDES: tuple[tuple[str, str], ...] = (("prompts", "prompt"), ("contrast_prompts", "contrast"))
"""Folder of the images of a side, and the word in their names."""
_LONGEST_LINE = 1 << 24


@dataclass(frozen=True, slots=True)
class PromptPair:
    """Prompt pair of one prompt file."""

    image_model: str  # e.g. `flux`
    text_model: str  # e.g. `ds`
    prompt_id: str  # parts joined by `|||`
    number: int  # place in the lists of its line, from 0; part of the image names
    prompt: str  # the original T_O; empty where it could not be read
    contrast: str  # the contrast T_C; empty where it could not be read
    skill: str  # of the property that it varies; empty where there is none

    @property
    def is_whole(self) -> bool:
        """Whether both texts are there; otherwise nobody made its images."""
        return bool(self.prompt.strip() and self.contrast.strip())

    @property
    def cluster(self) -> str:
        """Its prompt id and original prompt: what is resampled together."""
        digest = hashlib.blake2b(self.prompt.encode(), digest_size=6).hexdigest()
        return f"{self.prompt_id}{SEPARATOR}{digest}"

    @property
    def parts(self) -> list[str]:
        """Mode, subject, property and so on, as far as the prompt has them."""
        return self.prompt_id.split(SEPARATOR)

    def image_ids(self, side: int, n_images: int) -> list[str]:
        """Path of each image below the folder of images, without `.png`; side 0 is the original."""
        folder, word = SIDES[side]
        stem = f"{self.prompt_id.replace(SEPARATOR, '_____')}_{word}_{self.number}"
        place = f"{self.image_model}/{self.text_model}/{folder}/{stem}_image_"
        return [f"{place}{k}" for k in range(n_images)]

    def text_id(self, text: str) -> str:
        """Id of one of its texts; `text` as in TEXTS."""
        stem = f"{self.image_model}/{self.text_model}/{self.prompt_id}/{self.number}"
        return f"{stem}|{text}"


def load_answers(folder: DataFolder, n_images: int, layout: Layout) -> CrocSynAnswers:
    """Read the prompt files."""
    table = _Table()
    pair_ids: list[str] = []
    dropped = 0
    bare = {models: path for path, models in layout.files.items()}
    for pair in prompt_pairs(folder, layout):
        if not pair.is_whole:
            dropped += 1
            continue
        table.add(pair)
        bare.pop((pair.image_model, pair.text_model), None)
        for side in range(len(SIDES)):
            pair_ids += [f"{i}|{text}" for i in pair.image_ids(side, n_images) for text in TEXTS]
    needed = folder.expected("prompt files with prompt pairs") or 1
    if len(layout.files) - len(bare) < needed:
        raise folder.malformed(
            next(iter(bare.values())),
            f"holds no prompt pair with both texts; {needed} such prompt files are needed",
        )
    last = tuple(layout.files)[-1]
    folder.check_count(last, "prompt pairs", len(table.clusters))
    return CrocSynAnswers(
        pair_ids=tuple(pair_ids),
        clusters=tuple(table.clusters.values()),
        prompts=table.frame(),
        images_per_prompt=n_images,
        dropped=dropped,
        layout=layout,
        sources=folder.verified(),
    )


def prompt_pairs(folder: DataFolder, layout: Layout) -> Iterator[PromptPair]:
    """All prompt pairs of the prompt files in their order, one line in memory at a time."""
    for path, models in layout.files.items():
        seen: set[str] = set()
        with folder.path(path).open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if line.strip():
                    yield from _Line(folder, layout, path, number, line).pairs(*models, seen)


def whole_pairs(folder: DataFolder, layout: Layout) -> Iterator[PromptPair]:
    """The prompt pairs that have both texts."""
    return (pair for pair in prompt_pairs(folder, layout) if pair.is_whole)


class _Table:
    """The columns of `CrocSynAnswers.prompts`, filled row by row."""

    def __init__(self) -> None:
        self.clusters: dict[tuple[str, str], str] = {}
        self._positions: dict[tuple[str, str], int] = {}
        self._groups: dict[tuple[str, str, int], int] = {}
        self._rows: list[tuple[int, int, str, str, str, str, str, str]] = []

    def add(self, pair: PromptPair) -> None:
        key = (pair.prompt_id, pair.prompt)
        if key not in self.clusters:
            self.clusters[key] = pair.cluster
        cluster = self._positions.setdefault(key, len(self._positions))
        # The same text twice under one id is one group with twice the images, as for the authors.
        group = self._groups.setdefault(
            (pair.image_model, pair.text_model, cluster), len(self._groups)
        )
        mode = pair.parts[0]
        leaf = pair.parts[2] if mode == PROPERTIES else ""
        self._rows.append(
            (
                cluster,
                group,
                mode,
                pair.image_model,
                pair.text_model,
                leaf,
                pair.skill,
                length_split(pair.prompt),
            )
        )

    def frame(self) -> pd.DataFrame:
        names = ["mode", "image_model", "text_model", "property", "skill", "length"]
        frame = pd.DataFrame(self._rows, columns=["cluster", "group", *names])
        return frame.astype(dict.fromkeys(names, "category"))


class _Line:
    """Line of a prompt file; every error names the line."""

    def __init__(
        self, folder: DataFolder, layout: Layout, path: str, number: int, line: bytes
    ) -> None:
        self._folder, self._layout, self._path, self._number = folder, layout, path, number
        if len(line) == _LONGEST_LINE:
            raise self._error(f"is longer than {_LONGEST_LINE} bytes")
        try:
            self._record = parse_json(line)
        except ValueError as error:
            raise self._error(f"is not JSON ({error})") from error
        if not isinstance(self._record, dict):
            raise self._error("is no JSON object")

    def pairs(self, image_model: str, text_model: str, seen: set[str]) -> Iterator[PromptPair]:
        prompt_id = self._prompt_id()
        if prompt_id in seen:  # its images would have the names of the earlier ones
            raise self._error(f"repeats prompt_id {prompt_id!r}; expected each once in a file")
        seen.add(prompt_id)
        skill = self._skill(prompt_id.split(SEPARATOR))
        prompts, contrasts = self._texts("prompts"), self._texts("contrast_prompts")
        if len(prompts) != len(contrasts):
            raise self._error(
                f"has {len(prompts)} prompts and {len(contrasts)} contrast_prompts; expected as "
                "many of both"
            )
        for number, (prompt, contrast) in enumerate(zip(prompts, contrasts, strict=True)):
            yield PromptPair(image_model, text_model, prompt_id, number, prompt, contrast, skill)

    def _prompt_id(self) -> str:
        prompt_id, mode = self._field("prompt_id", str), self._field("mode", str)
        parts = prompt_id.split(SEPARATOR)
        if mode not in MODES:
            raise self._error(f"has mode {mode!r}; expected one of {', '.join(MODES)}")
        if parts[0] != mode or "/" in prompt_id or "\0" in prompt_id:
            raise self._error(
                f"has prompt_id {prompt_id[:80]!r}; expected {mode} and further parts joined by "
                f"{SEPARATOR}, without a slash, since images are named after it"
            )
        return str(prompt_id)

    def _skill(self, parts: list[str]) -> str:
        """Skill of the property that a prompt varies: as the line says, or the authors' taxonomy."""
        if parts[0] != PROPERTIES:
            return ""
        said = self._record.get("skill")
        skill = node_of(parts[2]) if len(parts) > 2 and said is None else said
        if len(parts) < 3 or skill is None:
            raise self._error(
                f"has prompt_id {SEPARATOR.join(parts)[:80]!r}; expected its third part to be a "
                "property of the authors' taxonomy, such as Rule_of_Thirds, or a field skill"
            )
        if skill and skill not in self._layout.skills:
            raise self._error(
                f"has skill {str(skill)[:80]!r}; expected one of {', '.join(self._layout.skills)}"
            )
        return str(skill)

    def _texts(self, name: str) -> list[str]:
        texts = self._field(name, list)
        if not all(isinstance(text, str) for text in texts):
            raise self._error(f"has something else than text in {name}")
        return list(texts)

    def _field(self, name: str, kind: type) -> Any:
        value = self._record.get(name)
        if not isinstance(value, kind):
            what = "no" if name not in self._record else f"a {type(value).__name__} as"
            raise self._error(f"has {what} {name}; expected a {kind.__name__}")
        return value

    def _error(self, what: str) -> Exception:
        return self._folder.malformed(self._path, f"line {self._number} {what}")


class ImageFiles(Mapping[str, Callable[[], bytes]]):
    """Readers of images by id, made when they are asked for."""

    def __init__(self, folder: Path, ids: list[str]) -> None:
        self._folder = folder
        self._ids = dict.fromkeys(ids)

    def __getitem__(self, image_id: str) -> Callable[[], bytes]:
        if image_id not in self._ids:
            raise KeyError(image_id)
        return (self._folder / f"{image_id}.png").read_bytes

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def load_questions(folder: DataFolder, n_images: int, layout: Layout) -> Questions:
    """Every image with both texts of its prompt pair."""
    place = folder.path(layout.images)
    texts: dict[str, str] = {}
    pairs: list[Pair] = []
    ids: list[str] = []
    for pair in whole_pairs(folder, layout):
        text_ids = {text: pair.text_id(text) for text in TEXTS}
        texts |= dict(zip(text_ids.values(), (pair.prompt, pair.contrast), strict=True))
        for side in range(len(SIDES)):
            for image in pair.image_ids(side, n_images):
                ids.append(image)
                pairs += [Pair(f"{image}|{text}", image, text_ids[text]) for text in TEXTS]
    _check_complete(place, ids, layout)
    return Questions(ImageFiles(place, ids), texts, tuple(pairs))


def _check_complete(place: Path, ids: list[str], layout: Layout) -> None:
    folders = [
        f"{image}/{text}/{side}" for image, text in layout.files.values() for side, _ in SIDES
    ]
    there = {
        f"{name}/{file.name}"
        for name in folders
        if (place / name).is_dir()
        for file in (place / name).iterdir()
    }
    missing = [image for image in ids if f"{image}.png" not in there]
    if missing:
        raise SubmitterError(
            "images_missing",
            f"{place} lacks {len(missing)} of the {len(ids)} images of {place.parent.name}, the "
            f"first is {missing[0] + '.png'!r}.",
            "The names are described in benchmarks/croc_syn/FORMAT.md.",
        )


def load_prompts(folder: DataFolder, layout: Layout) -> pd.DataFrame:
    """Originals and contrasts, each text once under the id of its first appearance."""
    found: dict[str, tuple[str, str, str, str]] = {}
    for pair in whole_pairs(folder, layout):
        for text, said in zip(TEXTS, (pair.prompt, pair.contrast), strict=True):
            if said not in found:
                found[said] = (pair.text_id(text), said, pair.parts[0], pair.skill)
    return pd.DataFrame(found.values(), columns=["prompt_id", "prompt", "split", "skills"])


MODELS = tuple((image, text) for image in ("flux", "sd") for text in ("ds", "qwen"))
"""Image models and text models of the paper, as file names abbreviate them."""
_SIDES = {"prompts": "orig", "contrast_prompts": "contrast"}
_COLUMNS = {"prompts": "img_paths_prompts", "contrast_prompts": "img_paths_contrast"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def read_shards(folder: Path, models: Iterable[tuple[str, str]] = MODELS) -> pd.DataFrame:
    """Scores in a folder of the authors' runner, by pair id; NaN where a cell is empty.

    The runner writes `<image model>_<text model>/part<0..9>_scores.tsv`; a row holds one image of
    the original and one of the contrast prompt, and four scores per metric.
    """
    parts = []
    for image_model, text_model in models:
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
    return concatenate_files(parts)


@app.command()
def convert(
    folder: Annotated[Path, typer.Argument(help="Folder with flux_ds, flux_qwen, sd_ds, sd_qwen.")],
    out: Annotated[Path, typer.Option("--out", help="Scores file to write (.parquet or .csv).")],
    force: ForceOption = False,
) -> None:
    """Make one scores file of the shards that the CROC runner wrote for CROC_syn.

    Example: python -m benchmarks.croc_syn.load outputs/scores --out scores.parquet
    """
    write_converted(read_shards, folder, "*/*.tsv", out, force=force)


if __name__ == "__main__":
    sys.exit(run(app))
