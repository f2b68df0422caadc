"""Reader of CROC_syn: prompt files, taxonomy, images on demand, and the score shards of the authors' runner."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import pandas as pd
import typer

from benchmarks.command_line import run
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
from benchmarks.schema import Answers, Pair, Questions
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


IMAGE_MODELS: tuple[str, ...] = ("flux", "sd")
TEXT_MODELS: dict[str, str] = {"ds": "DeepSeek-R1-Distill-Qwen-14B", "qwen": "QwQ-32B"}
"""The language models that wrote the prompts, as file names abbreviate them."""
MODES: dict[str, str] = {
    "entity_variation": "Entity variation",
    "entity_placement": "Entity placement",
    "subject_property": "Property variation",
}
"""First part of a prompt id to what the paper calls it."""
PROPERTIES = "subject_property"
"""The mode whose prompts each vary one property."""


@dataclass(frozen=True)
class CrocSynAnswers(Answers):
    """Prompt pairs, each with the same number K of images of either prompt.

    `pair_ids` go prompt by prompt as in `prompts`; within one, first the K images of the original,
    then the K of the contrast; each image with the original, then with the contrast text. So the
    scores of a metric have the shape (len(prompts), 2 sides, K images, 2 texts).
    """

    # one row per prompt pair of one image model: `cluster` (int, position in `clusters`: prompt id
    # and original prompt), `group` (int, 0..G-1: image model, text model and cluster; what one
    # comparison is made in), `mode` (str, key of MODES), `image_model` (str), `text_model` (str),
    # `property` (str, as in the prompt id; empty but for property variation), `skill` (str, top-
    # level node of the property, may be empty), `length` (str, one of `croc.measures.LENGTHS`)
    prompts: pd.DataFrame
    images_per_prompt: int  # K
    # prompt pairs left out because a text is empty (the language model's answer could not be read)
    dropped: int

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


FILES: dict[str, tuple[str, str]] = {
    f"croc_syn/3_extracted_prompts_{image}_{text}.jsonl": (image, text)
    for image in IMAGE_MODELS
    for text in TEXT_MODELS
}
"""Prompt file to its image model and its text model."""
SEPARATOR = "|||"
SIDES: tuple[tuple[str, str], ...] = (("prompts", "prompt"), ("contrast_prompts", "contrast"))
"""Folder of the images of a side, and the word in their names."""
_LONGEST_LINE = 1 << 24


@dataclass(frozen=True, slots=True)
class PromptPair:
    """Prompt pair of one prompt file."""

    image_model: str  # `flux` or `sd`
    text_model: str  # `ds` or `qwen`
    prompt_id: str  # parts joined by `|||`
    number: int  # place in the lists of its line, from 0; part of the image names
    prompt: str  # the original T_O; empty where it could not be read
    contrast: str  # the contrast T_C; empty where it could not be read

    @property
    def is_whole(self) -> bool:
        """Whether both texts are there; otherwise nobody made its images."""
        return bool(self.prompt.strip() and self.contrast.strip())

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


def load_answers(folder: DataFolder, n_images: int) -> CrocSynAnswers:
    """Read the four prompt files."""
    table = _Table()
    pair_ids: list[str] = []
    dropped = 0
    bare = {models: path for path, models in FILES.items()}
    for pair in prompt_pairs(folder):
        if not pair.is_whole:
            dropped += 1
            continue
        table.add(pair)
        bare.pop((pair.image_model, pair.text_model), None)
        for side in range(len(SIDES)):
            pair_ids += [f"{i}|{text}" for i in pair.image_ids(side, n_images) for text in TEXTS]
    needed = folder.expected("prompt files with prompt pairs") or 1
    if len(FILES) - len(bare) < needed:
        raise folder.malformed(
            next(iter(bare.values())),
            "holds no prompt pair with both texts; each of the four prompt files is needed",
        )
    last = next(reversed(FILES))
    folder.check_count(last, "prompt pairs", len(table.clusters))
    return CrocSynAnswers(
        pair_ids=tuple(pair_ids),
        clusters=tuple(table.clusters.values()),
        prompts=table.frame(),
        images_per_prompt=n_images,
        dropped=dropped,
        sources=folder.verified(),
    )


def prompt_pairs(folder: DataFolder) -> Iterator[PromptPair]:
    """All prompt pairs of the four files in their order, one line in memory at a time."""
    for path, models in FILES.items():
        seen: set[str] = set()
        with folder.path(path).open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if line.strip():
                    yield from _Line(folder, path, number, line).pairs(*models, seen)


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
            digest = hashlib.blake2b(pair.prompt.encode(), digest_size=6).hexdigest()
            self.clusters[key] = f"{pair.prompt_id}{SEPARATOR}{digest}"
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
                (node_of(leaf) or "") if leaf else "",
                length_split(pair.prompt),
            )
        )

    def frame(self) -> pd.DataFrame:
        names = ["mode", "image_model", "text_model", "property", "skill", "length"]
        frame = pd.DataFrame(self._rows, columns=["cluster", "group", *names])
        return frame.astype(dict.fromkeys(names, "category"))


class _Line:
    """Line of a prompt file; every error names the line."""

    def __init__(self, folder: DataFolder, path: str, number: int, line: bytes) -> None:
        self._folder, self._path, self._number = folder, path, number
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
        prompts, contrasts = self._texts("prompts"), self._texts("contrast_prompts")
        if len(prompts) != len(contrasts):
            raise self._error(
                f"has {len(prompts)} prompts and {len(contrasts)} contrast_prompts; expected as "
                "many of both"
            )
        for number, (prompt, contrast) in enumerate(zip(prompts, contrasts, strict=True)):
            yield PromptPair(image_model, text_model, prompt_id, number, prompt, contrast)

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
        if mode == PROPERTIES and (len(parts) < 3 or node_of(parts[2]) is None):
            raise self._error(
                f"has prompt_id {prompt_id[:80]!r}; expected its third part to be a property of "
                "the taxonomy, such as Rule_of_Thirds"
            )
        return str(prompt_id)

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


IMAGES = "croc_syn/images"


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


def load_questions(folder: DataFolder, n_images: int) -> Questions:
    """Every image with both texts of its prompt pair."""
    place = folder.path(IMAGES)
    texts: dict[str, str] = {}
    pairs: list[Pair] = []
    ids: list[str] = []
    for pair in filter(lambda p: p.is_whole, prompt_pairs(folder)):
        text_ids = {text: pair.text_id(text) for text in TEXTS}
        texts |= dict(zip(text_ids.values(), (pair.prompt, pair.contrast), strict=True))
        for side in range(len(SIDES)):
            for image in pair.image_ids(side, n_images):
                ids.append(image)
                pairs += [Pair(f"{image}|{text}", image, text_ids[text]) for text in TEXTS]
    _check_complete(place, ids)
    return Questions(ImageFiles(place, ids), texts, tuple(pairs))


def _check_complete(place: Path, ids: list[str]) -> None:
    folders = [
        f"{image}/{text}/{side}"
        for image in IMAGE_MODELS
        for text in TEXT_MODELS
        for side, _ in SIDES
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
            f"{place} lacks {len(missing)} of the {len(ids)} images of croc_syn, the first is "
            f"{missing[0] + '.png'!r}.",
            "The names are described in benchmarks/croc_syn/FORMAT.md.",
        )


def load_prompts(folder: DataFolder) -> pd.DataFrame:
    """Originals and contrasts, each text once under the id of its first appearance."""
    found: dict[str, tuple[str, str, str, str]] = {}
    for pair in filter(lambda p: p.is_whole, prompt_pairs(folder)):
        for text, said in zip(TEXTS, (pair.prompt, pair.contrast), strict=True):
            if said not in found:
                found[said] = (pair.text_id(text), said, pair.parts[0], skill_of(pair))
    return pd.DataFrame(found.values(), columns=["prompt_id", "prompt", "split", "skills"])


def skill_of(pair: PromptPair) -> str:
    """Top-level node of the property that a prompt varies; empty for other modes."""
    return (node_of(pair.parts[2]) or "") if pair.parts[0] == PROPERTIES else ""


_SIDES = {"prompts": "orig", "contrast_prompts": "contrast"}
_COLUMNS = {"prompts": "img_paths_prompts", "contrast_prompts": "img_paths_contrast"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def read_shards(folder: Path) -> pd.DataFrame:
    """Scores in a folder of the authors' runner, by pair id; NaN where a cell is empty.

    The runner writes `<image model>_<text model>/part<0..9>_scores.tsv`; a row holds one image of
    the original and one of the contrast prompt, and four scores per metric.
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
    return concatenate_files(parts)


@app.command()
def convert(
    folder: Annotated[Path, typer.Argument(help="Folder with flux_ds, flux_qwen, sd_ds, sd_qwen.")],
    out: Annotated[Path, typer.Option("--out", help="Scores file to write (.parquet or .csv).")],
    force: Annotated[bool, typer.Option("--force", help="Replace --out if it exists.")] = False,
) -> None:
    """Make one scores file of the shards that the CROC runner wrote for CROC_syn.

    Example: python -m benchmarks.croc_syn.load outputs/scores --out scores.parquet
    """
    write_converted(read_shards, folder, "*/*.tsv", out, force=force)


if __name__ == "__main__":
    sys.exit(run(app))
