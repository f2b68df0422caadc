"""The structural problems that EvalMuse annotates, and the question asked about each.

The names are the paper's (section 9.3), written as keys. The words that its question puts in for
a label are not published; those here are ours and stand in unless an operator gives others.
"""

from __future__ import annotations

from dataclasses import dataclass

QUESTION = (
    "Does this generated image have any structural problems? Specifically, {cls_prompt}? "
    "Please answer yes or no only."
)
"""The paper's question."""


@dataclass(frozen=True)
class Label:
    """What a question is about.

    Attributes:
        category: `animal`, `object` or `human`, the three for which accuracy is reported.
        title: the paper's name.
        cls_prompt: our words for it in the question.
    """

    category: str
    title: str
    cls_prompt: str


def _human(title: str, words: str) -> Label:
    return Label("human", title, f"does a person in it have {words}")


CATEGORIES: dict[str, str] = {"animal": "Animal", "object": "Object", "human": "Human"}
"""Category key to display name."""

CATEGORY_LABELS: dict[str, Label] = {
    "animal": Label("animal", "Animal", "is the body of an animal in it malformed"),
    "object": Label("object", "Object", "is the shape of an object in it malformed"),
    "human_body": Label("human", "Human Body", "is the body of a person in it malformed"),
}
"""Labels whose question is asked of an image whether or not it has the problem."""

_HUMAN_PARTS: dict[str, Label] = {
    "face_missing_extra": _human(
        "Face-Missing/Extra Feature", "a face with a missing or an extra feature"
    ),
    "face_distorted": _human("Face-Distorted/Exaggerated", "a distorted or exaggerated face"),
    "limb_missing_extra": _human("Limb-Missing/Extra Limbs", "a missing or an extra limb"),
    "limb_distorted": _human("Limb-Distorted/Deformed", "a distorted or deformed limb"),
    "limb_disproportionate": _human("Limb-Disproportionate", "limbs out of proportion"),
    "palm_shapeless": _human("Palm-Shapeless", "a hand without a clear shape"),
    "palm_missing_extra": _human("Palm-Missing/Extra Finger", "a missing or an extra finger"),
    "palm_deformed": _human("Palm-Deformed", "a deformed hand"),
    "palm_overlapping": _human("Palm-Overlapping", "hands or fingers that run into one another"),
}

PROBLEM_LABELS: dict[str, Label] = {
    "animal": CATEGORY_LABELS["animal"],
    "object": CATEGORY_LABELS["object"],
    **_HUMAN_PARTS,
}
"""The eleven labels of annotated problems."""

LABELS: dict[str, Label] = {**CATEGORY_LABELS, **_HUMAN_PARTS}

SKILLS: dict[str, str] = {
    **CATEGORIES,
    **{f"human:{key}": label.title for key, label in _HUMAN_PARTS.items()},
}
"""Skill keys of rows, by category and by part of the human body."""


def problem_skill(label: str) -> str:
    """Skill key of a problem: `animal`, `object` or e.g. `human:palm_deformed`."""
    return f"human:{label}" if label in _HUMAN_PARTS else LABELS[label].category
