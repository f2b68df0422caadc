"""Folder of a run: what is in it, and that it can be trusted after any cut."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from PIL import Image, ImageDraw, ImageFont

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import IMAGES
from benchmarks.sources.output import DRAFT, LOCK, alone_in, append_lines, replace_durably
from evaluator.generation.manifest import (
    TABLE,
    GenerationsManifest,
    ImageRow,
    differences,
    encoded,
    in_order,
    manifest_text,
    parse_generations,
    read_rows,
)
from evaluator.generation.prompts import ChosenPrompts, Job
from evaluator.manifest import FILE

T = TypeVar("T")

MAX_PROMPTS = 8
MAX_SEEDS = 6
_TILE = 192
_GAP = 10
_CAPTION = 230
_HEAD = 52
_LINES = 7
_INK, _FAINT, _PAPER, _EMPTY = "#1d2430", "#667085", "#ffffff", "#e4e7ec"


def contact_sheet(folder: Path, rows: Sequence[ImageRow], title: str) -> Image.Image | None:
    """A grid: prompts down, seeds across, captions on the left."""
    prompts = spread(list(dict.fromkeys(row.prompt_id for row in rows)), MAX_PROMPTS)
    seeds = list(dict.fromkeys(row.seed for row in rows))[:MAX_SEEDS]
    if not prompts:
        return None
    step = _TILE + _GAP
    width = _CAPTION + len(seeds) * step + _GAP
    sheet = Image.new("RGB", (width, _HEAD + len(prompts) * step), _PAPER)
    draw = ImageDraw.Draw(sheet)
    _line(draw, (_GAP, 8), title, 16, width - 2 * _GAP)
    for column, seed in enumerate(seeds):
        _line(draw, (_CAPTION + column * step, 30), f"seed {seed}", 12, _TILE, ink=_FAINT)
    by_key = {row.key: row for row in rows}
    for number, prompt_id in enumerate(prompts):
        top = _HEAD + number * step
        found = [by_key[prompt_id, seed] for seed in seeds if (prompt_id, seed) in by_key]
        _caption(draw, top, prompt_id, next((r.prompt for r in found if r.prompt), ""))
        for column, seed in enumerate(seeds):
            place = (_CAPTION + column * step, top)
            sheet.paste(_thumbnail(folder, by_key.get((prompt_id, seed))), place)
    return sheet


def clipped(text: str, most: int) -> str:
    """Text that is safe to draw: one line, without control characters, of so many characters."""
    plain = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text[: 4 * most])
    plain = " ".join(plain.split())
    return plain if len(plain) <= most else f"{plain[: most - 1].rstrip()}…"


def spread(values: Sequence[T], most: int) -> Sequence[T]:
    """So many of the values at most, evenly from the first to the last."""
    if len(values) <= most:
        return values
    return [values[i * (len(values) - 1) // (most - 1)] for i in range(most)]


def _thumbnail(folder: Path, row: ImageRow | None) -> Image.Image:
    tile = Image.new("RGB", (_TILE, _TILE), _EMPTY)
    path = folder / row.file if row is not None and row.file else None
    if path is None or not path.is_file():
        said = f"withheld: {row.problem}" if row is not None and row.problem else "not yet"
        ImageDraw.Draw(tile).text((12, _TILE // 2 - 8), said, fill=_FAINT, font=_font(13))
        return tile
    with Image.open(path, formats=("PNG",)) as image:
        scale = min(_TILE / image.width, _TILE / image.height)
        # Tiny images keep their pixels apart, large ones are averaged.
        how = Image.Resampling.NEAREST if scale >= 2 else Image.Resampling.LANCZOS
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        small = image.convert("RGB").resize(size, how)
    tile.paste(small, ((_TILE - size[0]) // 2, (_TILE - size[1]) // 2))
    return tile


def _caption(draw: ImageDraw.ImageDraw, top: int, prompt_id: str, prompt: str) -> None:
    room = _CAPTION - 2 * _GAP
    _line(draw, (_GAP, top), clipped(prompt_id, 60), 12, room, ink=_FAINT)
    lines = _wrapped(clipped(prompt, 220), 13, room)
    for number, line in enumerate(lines[:_LINES]):
        last = number == _LINES - 1 and len(lines) > _LINES
        _line(draw, (_GAP, top + 20 + 18 * number), f"{line}…" if last else line, 13, room)


def _wrapped(text: str, size: int, room: int) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _font(size).getlength(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _line(
    draw: ImageDraw.ImageDraw,
    place: tuple[int, int],
    text: str,
    size: int,
    room: int,
    *,
    ink: str = _INK,
) -> None:
    """One line, shortened until it fits."""
    font = _font(size)
    shown = clipped(text, 200)
    while len(shown) > 1 and font.getlength(shown) > room:
        shown = f"{shown[:-2]}…"
    draw.text(place, shown, fill=ink, font=font)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    # Pillow's own font: the same on every machine.
    return ImageFont.load_default(size)


CONTACT_SHEET = "contact_sheet.png"
_STREAMS = ".streams"


@dataclass(frozen=True)
class RunFolder:
    """A folder that `generate` writes."""

    path: Path

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder and keep every other run out of it."""
        self._check_ours()
        with alone_in(self.path):
            make_folder(self.path / IMAGES)
            for draft in (self.path / IMAGES).glob(f"*{DRAFT}"):
                draft.unlink()
            yield

    def _check_ours(self) -> None:
        if not self.path.exists() or (self.path / FILE).exists():
            return
        if not self.path.is_dir():
            raise SubmitterError("cannot_write", f"{self.path} is no folder.", "Name a folder.")
        others = {path.name for path in self.path.iterdir()} - {LOCK, IMAGES}
        if others or any((self.path / IMAGES).glob("*")):
            raise SubmitterError(
                "folder_not_empty",
                f"{self.path} holds other files, and no {FILE} of an earlier run.",
                "Name a new folder.",
            )

    def manifest(self) -> GenerationsManifest | None:
        """The manifest of an earlier run."""
        path = self.path / FILE
        return parse_generations(path.read_bytes()) if path.is_file() else None

    def rows(self) -> list[ImageRow]:
        """What the table says, the latest of each image."""
        return read_rows(self.path)

    def is_whole(self, row: ImageRow) -> bool:
        """Whether the file of a row is as it was written; a withheld image has none."""
        if row.file is None:
            return row.problem is not None
        path = self.path / row.file
        if not path.is_file() or row.sha256 is None:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == row.sha256

    def write_image(self, file: str, image: Image.Image) -> str:
        """Write a PNG without metadata, whole; returns the SHA-256 of its bytes."""
        buffer = io.BytesIO()
        image.save(buffer, format="PNG")
        data = buffer.getvalue()
        replace_durably(self.path / file, data)
        return hashlib.sha256(data).hexdigest()

    def keep_noise(self, seed: int, position: int, state: bytes) -> None:
        """Keep the noise from which the image at a position goes on."""
        folder = self.path / _STREAMS
        folder.mkdir(exist_ok=True)
        value = {"position": position, "state": base64.b64encode(state).decode()}
        replace_durably(folder / f"{seed}.json", json.dumps(value).encode())

    def kept_noise(self, seeds: Iterable[int]) -> dict[int, tuple[int, bytes]]:
        """Seed to position and state."""
        found = {}
        for seed in seeds:
            path = self.path / _STREAMS / f"{seed}.json"
            if not path.is_file():
                continue
            try:
                value = json.loads(path.read_bytes())
                found[seed] = int(value["position"]), base64.b64decode(value["state"])
            except (ValueError, KeyError, TypeError):
                # Damaged: this stream begins anew, which costs time and changes no image.
                continue
        return found


def check_same_run(
    manifest: GenerationsManifest,
    before: GenerationsManifest,
    rows: Iterable[ImageRow],
    jobs: Mapping[tuple[str, int], Job],
) -> None:
    """Refuse to mix images of different settings in a folder.

    More prompts or seeds may be added; what is there must have been made as it would be now.
    """
    if before.made_with is None or manifest.made_with is None:
        raise SubmitterError(
            "other_settings",
            f"The {FILE} there does not say how its images were made.",
            "Name a new folder.",
        )
    found = list(differences(before.made_with, manifest.made_with))
    if (before.benchmark, before.benchmark_revision) != (
        manifest.benchmark,
        manifest.benchmark_revision,
    ):
        there = f"{before.benchmark or 'a file'} {before.benchmark_revision}".strip()
        now = f"{manifest.benchmark or 'a file'} {manifest.benchmark_revision}".strip()
        found.append(f"prompts: of {there} there, of {now} now")
    for row in rows:
        job = jobs.get(row.key)
        if job is not None and row.prompt != job.prompt.text:
            found.append(f"the prompt of {row.prompt_id!r} was another")
        elif job is not None and row.position is not None and row.position != job.position:
            found.append(f"{row.prompt_id!r} was at another place in the stream of noise")
    if found:
        more = f"; and {len(found) - 8} more" if len(found) > 8 else ""
        raise SubmitterError(
            "other_settings",
            f"The folder holds images made otherwise: {'; '.join(found[:8])}{more}.",
            "Name a new folder, or give the settings of the old one.",
        )


class RunTable:
    """The rows of a run, those of earlier starts and its own, and the files that show them."""

    def __init__(self, folder: RunFolder, jobs: Sequence[Job]) -> None:
        self._folder, self._jobs = folder, jobs
        self._rows: dict[tuple[str, int], ImageRow] = {}

    def take_over(self, manifest: GenerationsManifest, before: GenerationsManifest | None) -> int:
        """Write the manifest and keep the rows of earlier starts whose files are whole.

        Returns:
            How many were not.

        Raises:
            SubmitterError: `other_settings`, and nothing was changed.
        """
        rows = self._folder.rows()
        if before is not None:
            check_same_run(manifest, before, rows, {job.key: job for job in self._jobs})
        replace_durably(self._folder.path / FILE, manifest_text(manifest))
        self._rows = {row.key: row for row in rows if self._folder.is_whole(row)}
        self._write()
        return len(rows) - len(self._rows)

    @property
    def finished(self) -> frozenset[tuple[str, int]]:
        """What need not be drawn."""
        return frozenset(self._rows)

    @property
    def requested_rows(self) -> list[ImageRow]:
        """The rows there are of what is wanted, in the order of drawing."""
        return [self._rows[job.key] for job in self._jobs if job.key in self._rows]

    @property
    def withheld(self) -> dict[str, int]:
        """Problem to how many of the wanted images have none for it."""
        problems = [row.problem for row in self.requested_rows if row.problem]
        return {problem: problems.count(problem) for problem in dict.fromkeys(problems)}

    def add(self, rows: Sequence[ImageRow]) -> None:
        """Append rows whose images are written."""
        append_lines(self._folder.path / TABLE, encoded(rows))
        self._rows |= {row.key: row for row in rows}

    def finish(self, title: str) -> None:
        """Put the table in order, and draw the contact sheet."""
        self._write()
        sheet = contact_sheet(self._folder.path, self.requested_rows, title=title)
        if sheet is not None:
            self._folder.write_image(CONTACT_SHEET, sheet)

    def _write(self) -> None:
        order = in_order(self._rows.values(), (job.key for job in self._jobs))
        replace_durably(self._folder.path / TABLE, encoded(order))


def default_name(model: str) -> str:
    """A name for boards, from a Hub id or a folder's name."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", model.rsplit("/", 1)[-1])[:64]
    return re.sub(r"^[^A-Za-z0-9]+", "", name) or "model"


def of_prompts(
    base: GenerationsManifest,
    prompts: ChosenPrompts,
    seeds: Sequence[int],
    *,
    name: str,
    licence: str,
) -> GenerationsManifest:
    """A manifest with the prompts and seeds of a run added, and a name and licence if given."""
    return base.model_copy(
        update={
            "name": name or base.name,
            "licence": licence or base.licence,
            "benchmark": prompts.benchmark,
            "benchmark_revision": prompts.revision,
            "seeds": tuple(dict.fromkeys([*base.seeds, *seeds])),
        }
    )


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, where it is not there.

    Raises:
        SubmitterError: `cannot_write`.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SubmitterError(
            "cannot_write", f"{path} cannot be written: {error}.", "Choose another folder."
        ) from error


BYTES_PER_PIXEL = 1.5  # Of a PNG of a generated photograph, about; drawings take less


def image_bytes(
    folder: RunFolder, rows: Sequence[ImageRow], arguments: Mapping[str, object]
) -> float | None:
    """Bytes of one image: the mean of those that are there, else about that of its pixels."""
    paths = [folder.path / row.file for row in rows if row.file]
    sizes = [path.stat().st_size for path in paths if path.is_file()]
    if sizes:
        return sum(sizes) / len(sizes)
    width, height = arguments.get("width"), arguments.get("height")
    if isinstance(width, int) and isinstance(height, int):
        return BYTES_PER_PIXEL * width * height
    return None
