"""Instructions to the language model that writes prompt pairs.

Texts of our own with the structure of CROC: what is contrasted with its definition, a contrast prompt
that keeps the wording of the prompt, for entities a varied definition first, a guide to the image
model, and JSON to answer with.
"""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

from evaluator.croc.requests import Mode, PairRequest
from evaluator.scorers.questions.metric import filled

GUIDES = Path(__file__).with_name("guides.toml")
OTHER = "other"
"""Guide to every image model that has none of its own."""
PROMPT, CONTRAST, VARIED = "prompt", "contrast_prompt", "varied_definition"
"""Fields of a reply."""

_PROPERTY = """\
Subject: {subject}. {subject_definition}
Property: {property}. {property_definition}

1. Write a prompt for a picture of this subject in which the property is plain to see. Invent the scene; \
another scene than the first that comes to mind.
2. Write the contrast prompt: the same words, but for those that carry the property. There the property is \
absent, or is its opposite or another value of its kind, so that no picture fits both prompts.
"""
_VARIATION = """\
Subject of the scene: {subject}. {subject_definition}
Entity: {entity}. {entity_definition} It has, among others: {parts}.

1. Write a varied definition of the entity: change one or a few of its features, for example how many of a \
part it has, or the shape, place, size or colour of one, so that anyone sees that it is no longer usual.
2. Write a prompt for a picture with the entity in a scene of the subject. Where the varied definition \
changes a feature, say how that feature is by the usual definition.
3. Write the contrast prompt: the same words, but for those that tell the feature, which is now as in the \
varied definition, so that no picture fits both prompts.
"""
_PLACEMENT = """\
First scene: {subject}. {subject_definition}
Second scene: {alt_subject}. {alt_definition}
Entity: {entity}. {entity_definition} It has, among others: {parts}.

1. Write a prompt for a picture with the entity in the first scene.
2. Write the contrast prompt: the same words about the entity, but in the second scene, so that no picture \
fits both prompts.
"""
_TASKS: dict[Mode, str] = {
    "subject_property": _PROPERTY,
    "entity_variation": _VARIATION,
    "entity_placement": _PLACEMENT,
}
_WHOLE = """\
You write prompts for an image model, to test whether a judge of images can tell two prompts apart that \
differ in one point.

{task}
About the image model: {guide}

Each prompt has at most {words} words, is complete without the other, and speaks only of what can be seen.
You may think first. End with one JSON object, its texts in double quotes and without line breaks, and \
write nothing after it:
{form}
"""


def guide_to(image_model: str, file: Path = GUIDES) -> str:
    """What is said of an image model."""
    guides = tomllib.loads(file.read_text(encoding="utf-8"))
    return str(guides.get(image_model, guides[OTHER])).strip()


def fields_of(mode: Mode) -> tuple[str, ...]:
    """Fields that a reply has."""
    return (VARIED, PROMPT, CONTRAST) if mode == "entity_variation" else (PROMPT, CONTRAST)


def instruction_for(request: PairRequest, guide: str, most_words: int) -> str:
    """What a language model is told."""
    terms = {"subject": request.subject, "property": request.varied, "alt": request.alt_subject}
    parts = {key: term.name for key, term in terms.items() if term is not None}
    parts |= {f"{key}_definition": term.definition for key, term in terms.items() if term}
    if request.alt_subject is not None:
        parts["alt_subject"] = request.alt_subject.name
    if request.entity is not None:
        entity = request.entity
        parts |= {"entity": entity.name, "entity_definition": entity.definition}
        parts["parts"] = ", ".join(entity.parts) or "what its name says"
    form = ", ".join(f'"{name}": "..."' for name in fields_of(request.mode))
    return filled(
        _WHOLE,
        task=filled(_TASKS[request.mode], **parts),
        guide=guide,
        words=str(most_words),
        form=f"{{{form}}}",
    )


def wording(guide: str) -> str:
    """What tells apart what was asked for in other words: 12 digits of their SHA-256."""
    return hashlib.sha256("\n".join([_WHOLE, *_TASKS.values(), guide]).encode()).hexdigest()[:12]
