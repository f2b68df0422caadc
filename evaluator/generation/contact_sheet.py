"""Contact sheet: a few prompts by all seeds, so that people see what was made."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from evaluator.generation.rows import ImageRow

MAX_PROMPTS = 8
MAX_SEEDS = 6
_TILE = 192
_GAP = 10
_CAPTION = 230
_HEAD = 52
_LINES = 7
_INK, _FAINT, _PAPER, _EMPTY = "#1d2430", "#667085", "#ffffff", "#e4e7ec"


def contact_sheet(folder: Path, rows: Sequence[ImageRow], title: str) -> Image.Image | None:
    """A grid: prompts down, seeds across, captions on the left.

    Args:
        folder: of the images.
        rows: what to choose from; prompts are taken evenly over their order.
        title: of the sheet, e.g. the model.

    Returns:
        None where there is no row.
    """
    prompts = _spread(list(dict.fromkeys(row.prompt_id for row in rows)), MAX_PROMPTS)
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
            sheet.paste(_tile(folder, by_key.get((prompt_id, seed))), place)
    return sheet


def clipped(text: str, most: int) -> str:
    """Text that is safe to draw: one line, without control characters, of so many characters."""
    plain = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text[: 4 * most])
    plain = " ".join(plain.split())
    return plain if len(plain) <= most else f"{plain[: most - 1].rstrip()}…"


def _spread(names: list[str], most: int) -> list[str]:
    if len(names) <= most:
        return names
    return [names[i * (len(names) - 1) // (most - 1)] for i in range(most)]


def _tile(folder: Path, row: ImageRow | None) -> Image.Image:
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
