"""The control of what a score is about, in words: its verdict and its figures."""

from __future__ import annotations

from benchmarks.statistics.prompt_effect import BLIND_BELOW, CHANCE, Verdict
from leaderboard.text import MISSING, count, interval, number, signed
from leaderboard.trust import AreaFigures, PromptControl

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
    empty = f"{control.n_empty_missing:,} of {control.n_empty:,} with an empty prompt"
    sizes = f"{count(control.n_prompts, 'prompt')} with {count(control.n_images, 'image')}"
    found = [("Scored", f"{sizes}; {missing}, {empty}")]
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
        ("Mean change under an empty prompt", _signed(control.empty_change)),
        *found,
    ]


def _signed(figure: float | None) -> str:
    return MISSING if figure is None else signed(figure)


def _area(area: AreaFigures | None) -> str:
    if area is None:
        return MISSING
    return f"{number(area.value)}, one-sided 95% limits {interval(area.low, area.high)}"
