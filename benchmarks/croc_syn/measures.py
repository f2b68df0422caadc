"""What the measures and directions of CROC_syn mean, in words."""

from __future__ import annotations

from benchmarks.croc.protocol import FACETS as CROC_FACETS
from benchmarks.schema import MeasureInfo

TEXT_CHANCE, IMAGE_CHANCE = 5 / 6, 1 / 2
"""What a guess reaches: the best of five matching images has five chances in six to beat the one
score of the other text; the best of five against the best of five has one in two."""

MEASURES: dict[str, MeasureInfo] = {
    "accuracy": MeasureInfo(
        title="Accuracy",
        meaning="Share of prompts for which the metric prefers the matching combination strictly. "
        "Text-based: the image that fits its prompt best by the metric (the first of equally good "
        "ones) scores higher with that prompt than with the other. Image-based: the best image of "
        "the prompt scores higher than the best image of the other prompt. Images without a score "
        "are passed over; a prompt none of whose matching images has one is left out; a missing "
        "score on the other side is a failure. The mean of both language models' prompts; a guess "
        "reaches 5/6 text-based and 1/2 image-based.",
        low=0.0,
        high=1.0,
        source="CROC, CROC_syn evaluation",
    ),
    "scaled_accuracy": MeasureInfo(
        title="Scaled accuracy",
        meaning="Accuracy on a scale on which 0 is a guess, 1 always right and -1 never right; the "
        "sides above and below the guess are stretched each on its own. A guess is taken as 5/6 "
        "text-based and 1/2 image-based, as in the paper; variant exact_chance takes n/(n+1) for "
        "prompts with n images, and its interval keeps that level fixed.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="CROC, CROC_syn evaluation, Table 1",
    ),
}

FACETS: dict[str, str] = dict(CROC_FACETS)
