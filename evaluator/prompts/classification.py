"""Classification of prompts by a language model, in the dimensions that a balanced set needs."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from benchmarks.errors import SubmitterError
from benchmarks.parsing import parse_json
from benchmarks.sources.output import append_lines, write_whole
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.questions.writers import TRIES, ask_again, lines_of
from evaluator.scoring.progress import Listener, Tracker

if TYPE_CHECKING:
    from evaluator.scorers.models.text_models import TextModel

DIMENSIONS = Path(__file__).with_name("dimensions.toml")
"""EvalMuse's."""
WORDING = "assay-1"
"""Changes with the text of the instruction."""
_INSTRUCTION = """\
Sort the description of a picture into categories. For each line below, name all categories of that line \
that fit, in the words given, with ; between them, or say none. Judge by what the description says.

{dimensions}

Answer with exactly these lines and nothing else:
{form}

Description: {prompt}
"""
_MOST_TOKENS = 256
RESERVED = frozenset({"prompt_id", "prompt", "labelled_by"})
"""Columns of a file of labels that are no dimensions."""
_HOPELESS = 3
"""Batches at the start without any label; then the model is not asked further."""
_BATCH = 16
"""Prompts that are asked about together, and kept together."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Categories(_Strict):
    """A dimension: its name, what it asks, and what may be answered."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)
    asks: str = Field(pattern=r"^[^\n]+$", max_length=200)
    categories: tuple[str, ...] = Field(min_length=2, max_length=100)

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if name in RESERVED:
            raise ValueError(f"{name} is another column")
        return name

    @field_validator("categories")
    @classmethod
    def _told_apart(cls, categories: tuple[str, ...]) -> tuple[str, ...]:
        stripped = tuple(one.strip() for one in categories)
        folded = {one.casefold() for one in stripped}
        if len(folded) < len(stripped) or folded & {"", "none"}:
            raise ValueError("categories are told apart, and none is empty or called none")
        if any(set(";\n\r") & set(one) or one.endswith(".") for one in stripped):
            raise ValueError("a category has no ; or line break, and no full stop at its end")
        return stripped


class _File(_Strict):
    dimension: tuple[Categories, ...] = Field(min_length=1)


def read_dimensions(file: Path = DIMENSIONS) -> tuple[Categories, ...]:
    """The dimensions of a TOML file with a table `[[dimension]]` for each.

    Raises:
        SubmitterError: `bad_dimensions`.
    """
    try:
        found = _File.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))).dimension
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()
        )
        raise _bad(file, told) from error
    except (OSError, ValueError) as error:
        raise _bad(file, str(error)) from error
    if len({one.name for one in found}) < len(found):
        raise _bad(file, "a dimension stands there twice")
    return found


def _bad(file: Path, told: str) -> SubmitterError:
    return SubmitterError(
        "bad_dimensions",
        f"{file.name}: {told}.",
        "Each [[dimension]] has a name, what it asks, and categories.",
    )


@dataclass
class Classified:
    """What came of a run."""

    written: int = 0  # prompts that were labelled now
    kept: int = 0  # prompts that an earlier run had labelled
    changed: int = 0  # lines of earlier runs whose prompt has another text now; they are taken out
    # prompt ids without labels, with what was wrong; the next run tries again
    failed: dict[str, str] = field(default_factory=dict)


def classify(
    prompts: Mapping[str, str],
    dimensions: Sequence[Categories],
    model: TextModel,
    out: Path,
    *,
    by: str,
    listener: Listener | None = None,
) -> Classified:
    """Label what the file lacks; each batch is on disk before the next is asked about.

    Args:
        prompts: id to text.
        dimensions: what is asked of each.
        model: answers.
        out: JSON Lines to write, or to go on with: `prompt_id`, `prompt`, a list of labels for each
            dimension, and `labelled_by`. At the end its lines are in the order of the prompts, with
            those of other prompts after them.
        by: names model, commit and wording in `labelled_by`, to which a hash of the dimensions is
            added.
        listener: is told how far it is.

    Raises:
        SubmitterError: `bad_labels`, `other_labels`: the file is of something else.
            `nothing_labelled`: none of the first prompts got labels.
    """
    asked = json.dumps([one.model_dump(mode="json") for one in dimensions], sort_keys=True)
    by = f"{by}, {hashlib.sha256(asked.encode()).hexdigest()[:8]}"
    there, changed = _there(out, prompts, dimensions, by)
    left = [(name, text) for name, text in prompts.items() if name not in there]
    result = Classified(kept=len(prompts) - len(left), changed=changed)
    tracker = Tracker(len(prompts), listener, already_done=result.kept, stage="classifying")
    for start in range(0, len(left), _BATCH):
        batch = left[start : start + _BATCH]
        lines: list[str] = []
        for (name, text), found in zip(
            batch, labels_of([text for _, text in batch], dimensions, model), strict=True
        ):
            if isinstance(found, str):
                result.failed[name] = found
                continue
            line = {"prompt_id": name, "prompt": text, **found, "labelled_by": by}
            lines.append(json.dumps(line, ensure_ascii=False))
        append_lines(out, "".join(f"{line}\n" for line in lines).encode())
        result.written += len(lines)
        tracker.advance(len(batch))
        if not (result.written or result.kept) and start // _BATCH + 1 == _HOPELESS:
            raise nothing_labelled(next(iter(result.failed.values())))
    if result.written or result.kept:
        _put_in_order(out, prompts)
    return result


def nothing_labelled(why: str) -> SubmitterError:
    """The error for a model that labels nothing."""
    return SubmitterError(
        "nothing_labelled",
        f"The model has labelled no prompt: {why}.",
        "Use another language model, or one that does not think aloud.",
    )


def labels_of(
    prompts: Sequence[str], dimensions: Sequence[Categories], model: TextModel
) -> list[Mapping[str, list[str]] | str]:
    """Of each prompt its labels by dimension, or why there are none after `TRIES` answers."""
    asked = [_instruction_for(prompt, dimensions) for prompt in prompts]
    found: dict[int, Mapping[str, list[str]] | str] = {
        place: "the prompt is too long for the model"
        for place, one in enumerate(asked)
        if not model.fits(one, _MOST_TOKENS)
    }
    left = [place for place in range(len(asked)) if place not in found]
    faults: dict[int, list[str]] = {}
    for _ in range(TRIES):
        again = [faults.get(place, []) for place in left]
        replies = ask_again(model, [asked[place] for place in left], again, _MOST_TOKENS)
        going_on: list[int] = []
        for place, before, reply in zip(left, again, replies, strict=True):
            labels, faults[place] = read_labels(reply, dimensions)
            found[place] = "; ".join(faults[place]) if faults[place] else labels
            if not reply.strip():
                found[place] = "the model refused, or its reply was cut"
            elif faults[place] and faults[place] != before:
                going_on.append(place)
        if not (left := going_on):
            break
    return [found[place] for place in range(len(asked))]


def read_labels(
    reply: str, dimensions: Sequence[Categories]
) -> tuple[dict[str, list[str]], list[str]]:
    """Read lines `subject: People; Arts`, one for each dimension, and everything that is wrong."""
    said: dict[str, str] = {}
    faults: list[str] = []
    known = {one.name for one in dimensions}
    for line in lines_of(reply):
        name, colon, value = line.partition(":")
        if not colon or name.strip().casefold() not in known:
            faults.append(f"line {line[:80]!r} is not of the form asked for")
        elif name.strip().casefold() in said:
            faults.append(f"{name.strip()} stands there twice")
        else:
            said[name.strip().casefold()] = value
    labels: dict[str, list[str]] = {}
    for one in dimensions:
        if one.name not in said:
            faults.append(f"the line of {one.name} is missing")
            continue
        places = {category.casefold(): category for category in one.categories}
        cells = said[one.name].strip().rstrip(".").split(";")
        parts = [part.strip() for part in cells if part.strip()] or [""]
        if [part.casefold() for part in parts] == ["none"]:
            labels[one.name] = []
            continue
        if strange := [part for part in parts if part.casefold() not in places]:
            faults.append(f"{one.name} has no category {strange[0][:80]!r}")
        labels[one.name] = list(dict.fromkeys(places.get(part.casefold(), "") for part in parts))
    return labels, faults


def _instruction_for(prompt: str, dimensions: Sequence[Categories]) -> str:
    told = "\n".join(f"{one.name} ({one.asks}): {'; '.join(one.categories)}" for one in dimensions)
    form = "\n".join(f"{one.name}: <categories, or none>" for one in dimensions)
    return filled(_INSTRUCTION, dimensions=told, form=form, prompt=prompt)


def _there(
    out: Path, prompts: Mapping[str, str], dimensions: Sequence[Categories], by: str
) -> tuple[set[str], int]:
    """Ids that the file has labels of, and how many lines of changed prompts were taken out."""
    if not out.exists():
        return set(), 0
    content = out.read_bytes()
    end = content.rfind(b"\n") + 1
    wanted = {*RESERVED, *(one.name for one in dimensions)}
    found: dict[str, bytes] = {}
    changed = 0
    lines = content[:end].splitlines()
    for number, (line, text) in enumerate(zip(_records(out, lines), lines, strict=True), start=1):
        if set(line) != wanted or line["labelled_by"] != by:
            raise SubmitterError(
                "other_labels",
                f"{out.name}, line {number}: this prompt was not labelled by {by} in these dimensions.",
                "Write to another file.",
            )
        name = str(line["prompt_id"])
        if prompts.get(name, line["prompt"]) == line["prompt"]:
            found[name] = text
        else:
            changed += 1
    if end < len(content) and not lines and not content.startswith(b'{"prompt_id": '):
        raise SubmitterError("bad_labels", f"{out.name} is no file of labels.", "Name another.")
    kept = b"".join(text + b"\n" for text in found.values())
    if kept != content:
        write_whole(out, lambda path: path.write_bytes(kept))
    return set(found), changed


def _put_in_order(out: Path, prompts: Mapping[str, str]) -> None:
    """The lines in the order of the prompts, as vectors made of these are; the others at the end."""
    places = {name: place for place, name in enumerate(prompts)}
    lines = out.read_bytes().splitlines(keepends=True)
    names = [str(line["prompt_id"]) for line in _records(out, lines)]
    order = sorted(range(len(lines)), key=lambda n: places.get(names[n], len(places)))
    if order != list(range(len(lines))):
        content = b"".join(lines[n] for n in order)
        write_whole(out, lambda path: path.write_bytes(content))


def _records(out: Path, lines: Sequence[bytes]) -> Iterator[dict[str, object]]:
    for number, text in enumerate(lines, start=1):
        line = None
        with suppress(ValueError):
            line = parse_json(text)
        if not isinstance(line, dict):
            raise SubmitterError(
                "bad_labels", f"{out.name}, line {number} is no line of labels.", "Mend it."
            )
        yield line
