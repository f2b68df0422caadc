"""Images of contrasting prompt pairs that people look through, from a folder laid out as CROC data are."""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from benchmarks.croc.load import METADATA, Layout, read_pairs, root_of_images
from benchmarks.croc.protocol import CARD as HUM_CARD
from benchmarks.croc.protocol import CrocHum
from benchmarks.croc_syn.load import MODES, PROPERTIES, SIDES, whole_pairs
from benchmarks.croc_syn.load import Layout as SynLayout
from benchmarks.croc_syn.load import PromptPair as SynPair
from benchmarks.croc_syn.protocol import CARD as SYN_CARD
from benchmarks.croc_syn.protocol import CrocSyn
from benchmarks.errors import SubmitterError
from benchmarks.families import load_any_card
from benchmarks.schema import Card
from benchmarks.sources.folder import DataFolder

REVIEW_SIDES: tuple[str, str] = ("prompt", "contrast")
"""Sides of a pair, as file names of CROC_hum have them."""
_ASKED: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("properties.toml").read_text("utf-8")
)
_GENERATORS = {"sd": "stable_diffusion"}
"""Image models of CROC_syn to how names in CROC_hum tell them."""
_LOST = re.compile(r"[^\w\s()-]")
"""Signs that a category lacks, and that may be all that tells a property from another one."""
_NUMBERED = re.compile(r"(?P<name>.+)_[0-9]+")
_SYN_IMAGE = re.compile(r"(?P<stem>.+)_image_(?P<k>\d+)\.png")


@dataclass(frozen=True)
class TestedProperty:
    """What a prompt pair tests."""

    title: str
    asks: str  # what an image must show, in a sentence

    @classmethod
    def of(cls, key: str, title: str = "", asks: str = "") -> TestedProperty:
        """By its key, where it has one of `properties.toml`; else by the words given."""
        known = _ASKED.get(key, {})
        plain = key.replace("_", " ").capitalize()
        usual = "The image shows what the marked words say."
        return cls(title or known.get("title", plain), asks or known.get("asks", usual))


@dataclass(frozen=True, slots=True)
class ReviewImage:
    """Image of one side of a prompt pair."""

    path: str  # below `ReviewSet.root`
    generator: str = ""  # who made it, where CROC_syn tells it
    number: int | None = None  # among those of its prompt, from 1; None where CROC_hum names it


@dataclass(frozen=True)
class ReviewPair:
    """Prompt pair with the images of both sides."""

    id: str  # `<category>_<num>`, as ids of CROC_hum are
    key: str  # names it in decisions, whatever else comes into the folder
    category: str
    texts: tuple[str, str]  # original and contrast
    images: tuple[tuple[ReviewImage, ...], ...]  # of either side

    @property
    def rows(self) -> int:
        """Images of the side that has more of them."""
        return max(map(len, self.images))

    def place(self, side: int, image: ReviewImage) -> str:
        """Path of an image in the layout of CROC_hum, where it may have been already."""
        if image.number is None:
            return image.path
        word = REVIEW_SIDES[side]
        maker = _GENERATORS.get(image.generator, image.generator)
        stem = f"{self.id}___{word}___{maker}___image{image.number}"
        return f"{self.category}/{word}/{stem}{PurePosixPath(image.path).suffix}"


@dataclass(frozen=True)
class ReviewSet:
    """All that is looked through."""

    root: Path  # folder of the images, which no path of them leaves
    pairs: tuple[ReviewPair, ...]
    properties: Mapping[str, TestedProperty]  # by category, in the order of their first pair
    missing: tuple[str, ...]  # listed images that are not there, or lie elsewhere

    @cached_property
    def categories(self) -> Mapping[str, str]:
        """Key of a pair to its category."""
        return {pair.key: pair.category for pair in self.pairs}

    @cached_property
    def texts(self) -> Mapping[str, tuple[str, str]]:
        """Key of a pair to its texts."""
        return {pair.key: pair.texts for pair in self.pairs}

    @cached_property
    def known(self) -> frozenset[tuple[str, str]]:
        """Key of the pair and path of every image."""
        return frozenset(
            (pair.key, image.path) for pair in self.pairs for side in pair.images for image in side
        )

    @property
    def n_images(self) -> int:
        """Images of all pairs; one that several pairs list counts for each."""
        return len(self.known)


def read_review_set(folder: Path, definitions: Mapping[str, str] | None = None) -> ReviewSet:
    """The prompt pairs and images of a folder in the layout of CROC_hum or CROC_syn.

    `definitions`: property, as prompt ids of CROC_syn spell it, to what it means.

    Raises:
        SubmitterError: `no_croc_data`: it holds neither; `nothing_to_review`: no image is there;
            what the loaders of both raise.
    """
    benchmark = _benchmark_in(folder)
    files = benchmark.folder(None)
    if isinstance(benchmark, CrocHum):
        root, pairs, properties = _of_hum(files, benchmark.card)
    else:
        root, pairs, properties = _of_syn(files, benchmark.card, definitions or {})
    found, missing = _there(root, pairs)
    if not any(pair.rows for pair in found):
        raise SubmitterError(
            "nothing_to_review",
            f"{folder} holds {len(pairs)} prompt pairs, and none of their images.",
            "Generate the images first, or unpack them beside the prompts.",
        )
    return ReviewSet(root, tuple(found), properties, tuple(missing))


def _benchmark_in(folder: Path) -> CrocHum | CrocSyn:
    """The benchmark of a card, or of a layout without one."""
    names = {PurePosixPath(path).name for path in SynLayout.of(SYN_CARD).files}
    if (folder / "card.toml").is_file():
        found = load_any_card(folder / "card.toml")
        if isinstance(found, CrocHum | CrocSyn):
            return found
    elif (folder / PurePosixPath(METADATA).name).is_file():
        return CrocHum(_beside(HUM_CARD), folder)
    elif any((folder / name).is_file() for name in names):
        return CrocSyn(_beside(SYN_CARD), folder)
    raise SubmitterError(
        "no_croc_data",
        f"{folder} is no folder of CROC data.",
        f"It needs {PurePosixPath(METADATA).name} or prompt files such as {min(names)}, or a card of "
        "family croc or croc_syn.",
    )


def _beside(card: Card) -> Card:
    """A released card whose files may be anybody's and lie in one folder."""
    files = [one.model_copy(update={"beside": True, "sha256": ""}) for one in card.files]
    return card.model_copy(update={"files": tuple(files), "counts": {}})


_Read = tuple[Path, list[ReviewPair], dict[str, TestedProperty]]


def _of_hum(files: DataFolder, card: Card) -> _Read:
    layout = Layout.of(card)
    pairs, paths = read_pairs(files, layout)
    root = root_of_images(files, layout) or files.beside(layout.metadata)
    found = []
    for pair in pairs:
        sides = (pair.original_images, pair.contrast_images)
        images = (tuple(ReviewImage(paths[name]) for name in side) for side in sides)
        texts = pair.prompt, pair.contrast
        found.append(ReviewPair(pair.id, pair.id, pair.category, texts, tuple(images)))
    categories = dict.fromkeys(pair.category for pair in found)
    return root, found, {key: TestedProperty.of(key, card.skills[key]) for key in categories}


def _of_syn(files: DataFolder, card: Card, definitions: Mapping[str, str]) -> _Read:
    layout = SynLayout.of(card)
    root = files.path(layout.images)
    there = _images_by_stem(root)
    numbers = Counter[str]()
    properties: dict[str, TestedProperty] = {}
    found = []
    pairs = list(whole_pairs(files, layout))
    categories = categories_of(_tested(pair) for pair in pairs)
    for pair in pairs:
        category = categories[_tested(pair)]
        properties.setdefault(category, _tested_property(*_tested(pair), definitions))
        numbers[category] += 1
        stems = (pair.image_ids(side, 1)[0].removesuffix("_image_0") for side in range(len(SIDES)))
        images = (
            tuple(ReviewImage(path, pair.image_model, k + 1) for k, path in there.get(stem, ()))
            for stem in stems
        )
        name = f"{category}_{numbers[category]}"
        key = "/".join((pair.image_model, pair.text_model, pair.prompt_id, str(pair.number)))
        texts = (pair.prompt, pair.contrast)
        found.append(ReviewPair(name, key, category, texts, tuple(images)))
    return root, found, properties


Tested = tuple[str, str]
"""Mode of a prompt of CROC_syn, and its property as prompt ids spell it; empty where it has none."""


def categories_of(tested: Iterable[Tested]) -> dict[Tested, str]:
    """Category of each in the layout of CROC_hum: its property, or its mode; no two are the same.

    A property has a hash behind its name where the name alone would be that of another category, lacks
    signs, or would be read as something else: an id `size_4` is of the category `size_4` if there is one,
    and `images/` is cut out of paths.
    """
    names = {(mode, leaf): _name(leaf) if leaf else mode for mode, leaf in dict.fromkeys(tested)}
    counts = Counter([*MODES, *(name for (_, leaf), name in names.items() if leaf)])

    def is_clear(name: str) -> bool:
        numbered = _NUMBERED.fullmatch(name)
        return counts[name] == 1 and not (numbered and numbered["name"] in counts)

    return {
        (mode, leaf): name if not leaf or is_clear(name) else f"{name}_{_hash(leaf)}"
        for (mode, leaf), name in names.items()
    }


def _name(leaf: str) -> str:
    """A property in small letters, digits and _."""
    composed = unicodedata.normalize("NFC", leaf)
    name = re.sub(r"[\W_]+", "_", composed.casefold()).strip("_")
    if name and not _LOST.search(composed) and not name.endswith("images"):
        return name
    return f"{name or PROPERTIES}_{_hash(leaf)}"


def _hash(leaf: str) -> str:
    return f"x{hashlib.sha256(leaf.encode()).hexdigest()[:8]}"


def _tested(pair: SynPair) -> Tested:
    mode, *_ = parts = pair.parts
    return mode, parts[2] if mode == PROPERTIES else ""


def _tested_property(mode: str, leaf: str, definitions: Mapping[str, str]) -> TestedProperty:
    if not leaf:
        return TestedProperty.of(mode)
    usual = TestedProperty.of(PROPERTIES).asks
    return TestedProperty(leaf.replace("_", " "), definitions.get(leaf, "") or usual)


def _images_by_stem(root: Path) -> Mapping[str, list[tuple[int, str]]]:
    """Name of an image without its number, below the root, to numbers and images."""
    numbered: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for place in root.rglob("*.png"):
        name = place.relative_to(root).as_posix()
        if match := _SYN_IMAGE.fullmatch(name):
            numbered[match["stem"]].append((int(match["k"]), name))
    return {stem: sorted(images) for stem, images in numbered.items()}


def _there(root: Path, pairs: list[ReviewPair]) -> tuple[list[ReviewPair], list[str]]:
    """The pairs with the images that are there, and the listed ones that are not."""
    base = root.resolve()
    listed = {image.path for pair in pairs for side in pair.images for image in side}
    missing = sorted(path for path in listed if not is_inside(base, path))
    gone = set(missing)
    kept = [
        replace(
            pair, images=tuple(tuple(i for i in side if i.path not in gone) for side in pair.images)
        )
        for pair in pairs
    ]
    return kept, missing


def is_inside(base: Path, name: str) -> bool:
    """Whether a file is there, and a link does not lead out of the folder `base`, which is resolved."""
    place = (base / name).resolve()
    return place.is_relative_to(base) and place.is_file()
