"""A case as a card of HTML: pictures, what people said, and what each metric made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from urllib.parse import quote

from leaderboard.pages.shown.markup import submitted, text
from leaderboard.publication.measure_names import skill_title
from leaderboard.text import count, number
from leaderboard.views.examples import (
    Came,
    CaseShown,
    Choice,
    Mistake,
    PairShown,
    Scored,
    Tile,
    Verdict,
)

WIDTH = 320
_NUMERALS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")
"""Of prompts: numbers are those of images, letters those of metrics."""
_ALL = {1: "", 2: "both "}


def picture_address(benchmark: str, image_id: str, width: int = WIDTH) -> str:
    """Where the thumbnail of an image is; see `service.picture_routes`."""
    return f"./v1/images/{quote(benchmark, safe='')}/{quote(image_id, safe='')}?w={width}"


def case_card(
    shown: CaseShown, choice: Choice, names: Sequence[str], *, pictures: bool, alone: bool = False
) -> str:
    """One case.

    Args:
        shown: the case.
        choice: what is looked at.
        names: of the metrics, in the order of its verdicts, as submitted.
        pictures: whether images are at hand.
        alone: whether the page shows nothing but this case.
    """
    benchmark = choice.card.name
    tiles = "".join(_tile(tile, shown, benchmark, names, pictures=pictures) for tile in shown.tiles)
    return (
        f'<article class="as-case" aria-label="Case {text(shown.case_id)}">'
        f"{_head(shown, choice, alone=alone)}{_prompts(shown)}"
        f"{_verdicts(shown.verdicts, names)}{_mistake(shown.mistake, shown, names)}"
        f'<ol class="as-tiles">{tiles}</ol>{_more(shown, choice, alone=alone)}</article>'
    )


def mark(came: Came) -> str:
    """How comparisons came out, as a sign and in words: never by colour alone."""
    if not came.compared:
        return _out("none", "–", "not compared")
    for kind, sign, n in (
        ("right", "✓", came.right),
        ("wrong", "✗", came.wrong),
        ("tied", "=", came.tied),
    ):
        if n == came.compared:
            return _out(kind, sign, f"{_ALL.get(n, f'all {n:,} ')}{kind}")
    tied = f", {came.tied:,} tied" if came.tied else ""
    return _out("mixed", "◐", f"{came.right:,} of {came.compared:,} right{tied}")


def _out(kind: str, sign: str, said: str) -> str:
    return f'<span class="as-out as-{kind}"><span aria-hidden="true">{sign}</span> {said}</span>'


def _head(shown: CaseShown, choice: Choice, *, alone: bool) -> str:
    address = choice.query.to_link(case=shown.case_id, page=1)
    name = text(shown.case_id, limit=60)
    title = f"<h2>{name}</h2>" if alone else f'<h3><a href="{text(address)}">{name}</a></h3>'
    skills = "".join(
        f'<span class="as-badge">{text(skill_title(choice.card, skill))}</span>'
        for skill in _leaves(shown.skills)
    )
    return (
        f'<header class="as-case-head">{title}<span class="as-case-skills">{skills}</span></header>'
    )


def _leaves(skills: Sequence[str]) -> list[str]:
    """Without a skill whose sub-skill is named too."""
    return [s for s in skills if not any(other.startswith(f"{s}:") for other in skills)]


def _prompts(shown: CaseShown) -> str:
    if not any(shown.prompts):
        return '<p class="as-prompt as-muted">The prompt is not on this machine.</p>'
    if len(shown.prompts) == 1:
        return f'<p class="as-prompt">{text(shown.prompts[0])}</p>'
    lines = "".join(
        f"<dt>{_NUMERALS[k]}</dt><dd>{text(prompt)}</dd>"
        for k, prompt in enumerate(shown.prompts[: len(_NUMERALS)])
    )
    return f'<dl class="as-prompts">{lines}</dl>'


def _verdicts(verdicts: Sequence[Verdict], names: Sequence[str]) -> str:
    lines = "".join(
        f'<li><span class="as-who-name">{submitted(name, limit=40)}</span> {mark(v.came)}{_lacks(v)}</li>'
        for v, name in zip(verdicts, names, strict=True)
    )
    return f'<ul class="as-verdicts">{lines}</ul>' if lines else ""


def _lacks(verdict: Verdict) -> str:
    if not verdict.n_missing:
        return ""
    return f' <span class="as-badge as-warn">{count(verdict.n_missing, "missing score")}</span>'


def _mistake(mistake: Mistake | None, shown: CaseShown, names: Sequence[str]) -> str:
    """The gravest mistake of the first metric, in a sentence."""
    if mistake is None:
        return ""
    several = len(shown.prompts) > 1

    def told(side: tuple[int, int, str, float]) -> str:
        image, prompt, said, score = side
        with_prompt = f" with prompt {_NUMERALS[prompt]}" if several else ""
        return f"image {image}{with_prompt} ({number(score)}; people: {text(said)})"

    return (
        f'<p class="as-mistake">{submitted(names[0], limit=40)} prefers {told(mistake.above)} to '
        f"{told(mistake.below)}.</p>"
    )


def _tile(
    tile: Tile, shown: CaseShown, benchmark: str, names: Sequence[str], *, pictures: bool
) -> str:
    own = shown.prompts[tile.pairs[0].prompt]
    alt = f"Image {tile.number}: {own}" if own else f"Image {tile.number}"
    label = f'<span class="as-tile-n" aria-hidden="true">{tile.number}</span>'
    if pictures:
        address = picture_address(benchmark, tile.image_id)
        seen = (
            f'<img src="{text(address)}" alt="{text(alt, limit=300)}" loading="lazy" '
            'decoding="async" width="160" height="160">'
        )
    else:
        seen = (
            f'<div class="as-no-picture" role="img" aria-label="{text(alt, limit=300)}">'
            f"<span>not on this machine</span><code>{text(tile.image_id, limit=44)}</code></div>"
        )
    several = len(shown.prompts) > 1
    pairs = "".join(_pair(pair, names, several=several) for pair in tile.pairs)
    return f'<li class="as-tile"><div class="as-picture">{label}{seen}</div>{pairs}</li>'


def _pair(pair: PairShown, names: Sequence[str], *, several: bool) -> str:
    letter = f'<span class="as-letter">{_NUMERALS[pair.prompt]}</span> ' if several else ""
    # One metric alone is named above the images.
    hidden = ' class="as-sr"' if len(names) == 1 else ""
    scores = "".join(
        f'<div><dt{hidden} title="{text(name)}">{submitted(name, limit=40)}</dt>'
        f"<dd>{_score(one)}</dd></div>"
        for one, name in zip(pair.scored, names, strict=True)
    )
    return (
        f'<div class="as-pair"><p class="as-said">{letter}{text(pair.said)}</p>'
        f'<dl class="as-scores">{scores}</dl></div>'
    )


def _score(one: Scored) -> str:
    if math.isnan(one.score):
        return '<span class="as-badge as-warn">no score</span>'
    return f"<b>{number(one.score)}</b> {mark(one.came)}"


def _more(shown: CaseShown, choice: Choice, *, alone: bool) -> str:
    left = shown.n_images - len(shown.tiles)
    if not left:
        return ""
    if alone:
        return f'<p class="as-muted">{count(left, "more image")} of this case not shown.</p>'
    address = text(choice.query.to_link(case=shown.case_id, page=1))
    return (
        f'<p class="as-muted">The {len(shown.tiles)} images that are misjudged most. '
        f'<a href="{address}">All {shown.n_images}</a></p>'
    )
