"""Images that raters kept, as a benchmark in the layout in which CROC_hum was released."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

import pandas as pd

from benchmarks.croc.load import METADATA, SHARED
from benchmarks.croc.protocol import card_text
from benchmarks.errors import SubmitterError
from benchmarks.sources.output import finite, new_folder
from evaluator.croc.agreement import Agreement, Votes
from evaluator.croc.review import Review
from evaluator.croc.review_set import REVIEW_SIDES, ReviewPair, ReviewSet

Rule = Literal["majority", "all", "any"]
Fate = Literal["kept", "dropped", "tied", "undecided"]
FATES: tuple[Fate, ...] = get_args(Fate)


def fate_of(said: Mapping[str, bool], rule: Rule) -> Fate:
    """What becomes of an image, by what its raters said; a tied one stays out."""
    keep, drop = sum(said.values()), sum(not stays for stays in said.values())
    if not said:
        return "undecided"
    if rule == "all":
        return "dropped" if drop else "kept"
    if rule == "any":
        return "kept" if keep else "dropped"
    if keep == drop:
        return "tied"
    return "kept" if keep > drop else "dropped"


@dataclass(frozen=True)
class KeptImages:
    """What stays of a review, and what does not."""

    rule: Rule
    raters: tuple[str, ...]
    images: Mapping[tuple[str, str], Fate]  # by key of the pair and path
    # category to side to how many images met which fate
    counts: Mapping[str, Mapping[str, Mapping[Fate, int]]]
    without: Mapping[str, tuple[str, ...]]  # side to the pairs none of whose images of it is kept
    missing: tuple[str, ...]  # listed images that are not in the folder

    @property
    def left_out(self) -> tuple[str, ...]:
        """Pairs of which no image is kept at all."""
        first, second = (self.without[side] for side in REVIEW_SIDES)
        return tuple(pair for pair in first if pair in second)

    def total(self, fate: Fate) -> int:
        """Images that met a fate."""
        return sum(one == fate for one in self.images.values())


def kept_images(images: ReviewSet, votes: Votes, rule: Rule) -> KeptImages:
    """Apply a rule to what raters said.

    Raises:
        SubmitterError: `nothing_kept`.
    """
    fates: dict[tuple[str, str], Fate] = {}
    counts = {
        category: {side: Counter(dict.fromkeys(FATES, 0)) for side in REVIEW_SIDES}
        for category in images.properties
    }
    without: dict[str, list[str]] = {side: [] for side in REVIEW_SIDES}
    for pair in images.pairs:
        for side, of_side in zip(REVIEW_SIDES, pair.images, strict=True):
            found = {
                image.path: fate_of(votes.get((pair.key, image.path), {}), rule)
                for image in of_side
            }
            fates |= {(pair.key, path): fate for path, fate in found.items()}
            counts[pair.category][side].update(found.values())
            if "kept" not in found.values():
                without[side].append(pair.id)
    raters = tuple(sorted({rater for said in votes.values() for rater in said}))
    kept = KeptImages(
        rule, raters, fates, counts, {s: tuple(ids) for s, ids in without.items()}, images.missing
    )
    if not kept.total("kept"):
        raise SubmitterError(
            "nothing_kept",
            f"No image is kept by the rule {rule!r}: {kept.total('dropped')} are dropped, "
            f"{kept.total('tied')} tied, {kept.total('undecided')} undecided.",
            "Review more images (`croc review`), or choose another --rule.",
        )
    return kept


def report_of(kept: KeptImages, agreement: Agreement, review: Review) -> dict[str, Any]:
    """Everything of an export, for programs; null where a figure is undefined.

    `review`: what `kept` was made of; it knows which decisions do not count.
    """
    told = {
        "rule": kept.rule,
        "raters": kept.raters,
        "images": {fate: kept.total(fate) for fate in FATES},
        "properties": kept.counts,
        "pairs_without_kept": kept.without,
        "pairs_left_out": kept.left_out,
        "missing_images": kept.missing,
        "decisions_unread": len(review.log.unread),
        "decided_images_gone": review.n_gone,
        "decided_images_unhashed": review.n_unhashed,
        "agreement": asdict(agreement),
    }
    return {key: finite(value) for key, value in told.items()}


def export(
    images: ReviewSet,
    kept: KeptImages,
    out: Path,
    named: tuple[str, str],
    report: Mapping[str, Any],
) -> None:
    """Write a benchmark with the kept images: card, table, images and report.

    `out`: a new folder; `named`: name and title of the benchmark; `report`: see `report_of`.

    Raises:
        SubmitterError: `folder_exists`, `cannot_write`.
    """
    left_out = set(kept.left_out)
    pairs = [pair for pair in images.pairs if pair.id not in left_out]
    with new_folder(out) as part:
        for pair in pairs:
            for side, of_side in enumerate(pair.images):
                for image in of_side:
                    if kept.images[pair.key, image.path] == "kept":
                        place = part / pair.place(side, image)
                        place.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copyfile(images.root / image.path, place)
        table = pd.DataFrame([_row(pair, kept) for pair in pairs]).to_csv(sep="\t", index=False)
        (part / PurePosixPath(METADATA).name).write_text(table, "utf-8")
        categories = dict.fromkeys(pair.category for pair in pairs)
        skills = {key: images.properties[key].title for key in categories}
        revision = hashlib.sha256(table.encode()).hexdigest()[:12]
        card = card_text(*named, skills, revision=revision, **_card_texts(kept, len(pairs)))
        (part / "card.toml").write_text(card, "utf-8")
        (part / "report.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def _row(pair: ReviewPair, kept: KeptImages) -> dict[str, object]:
    """A row of the table as released; images that contrast with a negated prompt have a column of theirs."""
    first, second = (
        [
            f"images/{pair.place(side, image)}"
            for image in of_side
            if kept.images[pair.key, image.path] == "kept"
        ]
        for side, of_side in enumerate(pair.images)
    )
    shared = pair.category == SHARED
    return {
        "id": pair.id,
        "prompt": pair.texts[0],
        "contrast": pair.texts[1],
        "prompt_paths": first,
        "contrast_paths": [] if shared else second,
        "alt_contrast_paths": second if shared else [],
        "category_name": pair.category,
        "num": pair.id.removeprefix(f"{pair.category}_"),
    }


def _card_texts(kept: KeptImages, n_pairs: int) -> dict[str, str]:
    """What the card says of the data."""
    n, people = kept.total("kept"), len(kept.raters)
    raters = "one rater" if people == 1 else f"{people} raters"
    return {
        "summary": f"{n_pairs} contrasting prompt pairs with {n} images that {raters} kept: does the "
        "metric prefer the prompt that fits the image, and the image that fits the prompt?",
        "description": f"Images of contrasting prompt pairs were looked through by {raters}, who dropped "
        f"what misses the tested property. Rule for several raters: {kept.rule}. Kept {n}, dropped "
        f"{kept.total('dropped')}, tied {kept.total('tied')}, undecided {kept.total('undecided')} images; "
        f"{len(kept.left_out)} prompt pairs without any kept image are left out. Measured as CROC_hum.",
    }
