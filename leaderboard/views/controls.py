"""The controls of what a score is about, in words: their verdicts and their figures."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.statistics.content_effect import LIMIT, ChangeVerdict
from benchmarks.statistics.prompt_effect import BLIND_BELOW, CHANCE, Verdict
from leaderboard.text import MISSING, count, interval, number, signed
from leaderboard.trust import (
    CHANGES,
    AreaFigures,
    ChangeFigures,
    ChangeName,
    ContentControl,
    PromptControl,
)

SENTENCES: dict[Verdict, str] = {
    "uses_the_prompt": "It uses the prompt: of one image, the right prompt scores above wrong ones "
    f"clearly more often than by chance ({CHANCE:g}).",
    "undecided": "Undecided: how often the right prompt of an image scores above wrong ones is "
    f"neither clear of chance ({CHANCE:g}) nor surely below {BLIND_BELOW:g}.",
    "blind": "Blind to the prompt: of one image, the right prompt scores above less than "
    f"{100 * BLIND_BELOW:g}% of wrong ones, where chance is {100 * CHANCE:g}%.",
}
"""What a verdict means."""
NO_FIGURES = "Undecided: not measured, since "


def prompt_sentence(control: PromptControl) -> str:
    """What the control says, in one sentence."""
    return f"{NO_FIGURES}{control.why_not}." if control.why_not else SENTENCES[control.verdict]


def prompt_figures(control: PromptControl) -> list[tuple[str, str]]:
    """What was found, title and figure; none where nothing was asked, or figures are withheld."""
    if not control.n_cells:
        return []
    missing = f"{control.n_missing:,} of {control.n_cells:,} scores missing"
    if control.n_empty:  # a metric that compares two images is asked none
        missing += f", {control.n_empty_missing:,} of {control.n_empty:,} with an empty prompt"
    sizes = f"{count(control.n_prompts, 'prompt')} with {count(control.n_images, 'image')}"
    found = [("Scored", f"{sizes}; {missing}")]
    if control.centred is None:
        return found
    shares = control.image_share, control.prompt_share, control.both_share
    image, prompt, both = (MISSING if one is None else f"{100 * one:.0f}%" for one in shares)
    return [
        ("AUC, right against wrong prompts, centred", _area(control.centred)),
        ("AUC of the raw scores", _area(control.raw)),
        *([("AUC within skills, centred", _area(control.within))] if control.within else []),
        ("Match effect", f"{_signed(control.match)} (standard error {number(control.match_se)})"),
        ("Variance explained", f"image alone {image}, prompt alone {prompt}, both {both}"),
        *(
            [("Mean change under an empty prompt", _signed(control.empty_change))]
            if control.n_empty
            else []
        ),
        *found,
    ]


def _signed(figure: float | None) -> str:
    return MISSING if figure is None else signed(figure)


def _area(area: AreaFigures | None) -> str:
    if area is None:
        return MISSING
    return f"{number(area.value)}, one-sided 95% limits {interval(area.low, area.high)}"


CHANGE_TITLES: dict[ChangeName, str] = {
    "brightness": "Brightness",
    "saturation": "Saturation",
    "jpeg": "JPEG",
    "resize": "Size",
    "border": "Border",
    "watermark": "Watermark",
    "length": "Prompt length",
}
"""What is changed."""
CHANGE_WORDS: dict[ChangeVerdict, str] = {
    "moved": "moves it",
    "undecided": "undecided",
    "steady": "moves it little",
}
"""What a verdict says of a change."""
CHANGE_SENTENCES: dict[ChangeVerdict, str] = {
    "moved": f"More than content moves it: by more than {LIMIT:g} of its spread over right and wrong "
    "pairs",
    "undecided": f"Undecided: not every change that leaves the content is surely below {LIMIT:g} of "
    "its spread over right and wrong pairs, and none is surely above.",
    "steady": f"Changes that leave the content move it by less than {LIMIT:g} of its spread over right "
    "and wrong pairs.",
}
"""What a verdict means."""


@dataclass(frozen=True)
class ChangeRow:
    """One change, as it is shown."""

    title: str
    done: str  # to images or prompts
    verdict: ChangeVerdict
    effect: str
    interval: str
    scored: str  # images with both scores, of all
    figures: ChangeFigures


def content_sentence(control: ContentControl) -> str:
    """What the control says, in one sentence."""
    if control.why_not:
        return f"{NO_FIGURES}{control.why_not}."
    if control.verdict != "moved":
        return CHANGE_SENTENCES[control.verdict]
    by = "; ".join(CHANGES[name] for name in control.moved_by)
    return f"{CHANGE_SENTENCES['moved']}{f' ({by})' if by else ''}."


def change_rows(control: ContentControl) -> list[ChangeRow]:
    """What was found of every change; none where nothing was asked, or figures are withheld."""
    return [
        ChangeRow(
            CHANGE_TITLES[one.name],
            CHANGES[one.name],
            one.verdict,
            _signed(one.value),
            MISSING if one.low is None or one.high is None else interval(one.low, one.high, 2),
            f"{one.n_images} of {one.n_images + one.n_missing}",
            one,
        )
        for one in control.changes
    ]
