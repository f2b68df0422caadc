"""Taxonomy of properties, subjects and entities, in the form that the authors of CROC released."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.croc_syn.load import SEPARATOR, node_of
from benchmarks.errors import SubmitterError
from benchmarks.parsing import parse_json

EXAMPLE = Path(__file__).with_name("taxonomy.json")
"""A small one of our own."""
SUBJECTS = "Subject Matter"
"""Node whose leaves are the subjects; every other leaf is a property."""
RELEASED = "fine_grained_t2i_judgement"
"""Root of the authors' file, of whose properties the paper leaves some out."""
_LARGEST = 8 << 20
_DEEPEST = 32
_HOW = (
    "Classes with name, description and classes of their own; subjects lie inside "
    f"{SUBJECTS!r} and have entities."
)
_UNSAFE = re.compile(rf"[/\\\x00-\x1f\x7f]|{re.escape(SEPARATOR)}|_____|^[|_]|[|_]$")
"""What would change ids, or names of image files, in a name as prompt ids spell it."""


@dataclass(frozen=True, slots=True)
class Term:
    """A subject or a property: its name in prompt ids, and what it means."""

    name: str  # with what it belongs to in brackets, where several have the name
    definition: str
    skill: str = (
        ""  # node above a property that skills of a board are named for; empty for subjects
    )

    @property
    def key(self) -> str:
        """Name as prompt ids spell it."""
        return key_of(self.name)


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing that images show."""

    name: str  # as of `Term`
    definition: str
    owner: str  # name of its subject
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Taxonomy:
    """What prompts are written about."""

    root: str  # name of the topmost node
    above_subjects: Term  # the node `SUBJECTS` itself
    subjects: tuple[Term, ...]
    properties: tuple[Term, ...]
    entities: tuple[Entity, ...]
    digest: str  # SHA-256 of the file


def key_of(name: str) -> str:
    """A name as prompt ids spell it."""
    return name.replace(" ", "_")


class _Entity(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1, max_length=100)
    description: str = Field(min_length=1, max_length=2000)
    parts: tuple[str, ...] = ()


class _Node(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1, max_length=100)
    description: str = Field(min_length=1, max_length=2000)
    classes: tuple[_Node, ...] = ()
    entities: tuple[_Entity, ...] = ()


@dataclass(frozen=True, slots=True)
class _Leaf:
    node: _Node
    above: tuple[str, ...]  # names of the nodes above it, the root first


def read_taxonomy(file: Path) -> Taxonomy:
    """Read a taxonomy: nested `{name, description, classes, entities}`.

    Raises:
        SubmitterError: `bad_taxonomy`, with everything that is wrong.
    """
    try:
        content = file.read_bytes()
        if len(content) > _LARGEST:
            raise ValueError(f"it has {len(content):,} bytes; at most {_LARGEST:,} are read")
        given = parse_json(content)
        _check_depth(given)
        root = _Node.model_validate(given)
    except ValidationError as error:
        told = (f"{_place(given, one['loc'])}: {one['msg']}" for one in error.errors())
        raise _bad(file, "; ".join(told)) from error
    except (OSError, ValueError) as error:
        raise _bad(file, str(error)) from error
    leaves = list(_leaves(root, ()))
    subjects = [leaf for leaf in leaves if SUBJECTS in leaf.above]
    properties = [leaf for leaf in leaves if SUBJECTS not in leaf.above]
    if faults := list(_faults(root, subjects, properties)):
        raise _bad(file, "; ".join(faults))
    in_subjects = _names([(leaf.node.name, leaf.above[-1]) for leaf in subjects])
    in_properties = _names([(leaf.node.name, leaf.above[-1]) for leaf in properties])
    owned = [
        (entity, owner)
        for leaf, owner in zip(subjects, in_subjects, strict=True)
        for entity in leaf.node.entities
    ]
    in_entities = _names([(entity.name, owner) for entity, owner in owned])
    named = {"subject": in_subjects, "property": in_properties, "entity": in_entities}
    if faults := list(_faults_of_names(named)):
        raise _bad(file, "; ".join(faults))
    above = next(node for node in _nodes(root) if node.name == SUBJECTS)
    return Taxonomy(
        root=root.name,
        above_subjects=Term(above.name, above.description),
        subjects=tuple(
            Term(name, leaf.node.description)
            for name, leaf in zip(in_subjects, subjects, strict=True)
        ),
        properties=tuple(
            Term(name, leaf.node.description, _skill(leaf))
            for name, leaf in zip(in_properties, properties, strict=True)
        ),
        entities=tuple(
            Entity(name, entity.description, owner, entity.parts)
            for name, (entity, owner) in zip(in_entities, owned, strict=True)
        ),
        digest=hashlib.sha256(content).hexdigest(),
    )


def _check_depth(given: Any) -> None:
    level = [given]
    for _ in range(_DEEPEST):
        level = [
            inner
            for node in level
            if isinstance(node, dict) and isinstance(node.get("classes"), list)
            for inner in node["classes"]
        ]
        if not level:
            return
    raise ValueError(f"its classes are nested more than {_DEEPEST} deep")


def _place(given: Any, loc: Sequence[int | str]) -> str:
    """Where a fault is, by the names of the nodes around it."""
    told: list[str] = []
    at: Any = given
    for part in loc:
        if isinstance(at, dict):
            told += [name[:80]] if isinstance(name := at.get("name"), str) else []
            at = at.get(str(part))
        elif isinstance(at, list) and isinstance(part, int):
            at = at[part]
    return " > ".join([*told, str(loc[-1])]) if loc else "the file"


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for inner in node.classes:
        yield from _nodes(inner)


def _leaves(node: _Node, above: tuple[str, ...]) -> Iterator[_Leaf]:
    if not node.classes:
        yield _Leaf(node, above)
    for inner in node.classes:
        yield from _leaves(inner, (*above, node.name))


def _faults(root: _Node, subjects: Sequence[_Leaf], properties: Sequence[_Leaf]) -> Iterator[str]:
    if Counter(node.name for node in _nodes(root))[SUBJECTS] != 1 or not root.classes:
        yield f"exactly one class inside the file is to be called {SUBJECTS!r}"
    if not subjects:
        yield f"there is no subject, which is a class inside {SUBJECTS!r} without classes"
    if not properties:
        yield f"there is no property, which is a class outside of {SUBJECTS!r} without classes"
    for node in _nodes(root):
        if node.classes and node.entities:
            yield f"{node.name!r} has classes and entities; only a class without classes has entities"
    for leaf in properties:
        if leaf.node.entities:
            yield f"{leaf.node.name!r} is a property, and has entities"
    if root.classes:
        yield from _doubles("subject", [(one.node.name, one.above[-1]) for one in subjects])
        yield from _doubles("property", [(one.node.name, one.above[-1]) for one in properties])
    for leaf in subjects:
        yield from _doubles("entity", [(e.name, leaf.node.name) for e in leaf.node.entities])
    named = [leaf.node.name for leaf in (*subjects, *properties)]
    named += [entity.name for leaf in subjects for entity in leaf.node.entities]
    yield from _unsafe(named)


def _unsafe(names: Iterable[str]) -> Iterator[str]:
    for name in dict.fromkeys(names):
        if _UNSAFE.search(key_of(name)) or name != name.strip():
            yield (
                f"{name!r} names images, so it has no slash, line break, {SEPARATOR} or _____, and "
                "no space, _ or | at its ends"
            )


def _faults_of_names(named: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What is wrong with names that have their owners behind them."""
    for what, names in named.items():
        for name, count in Counter(map(_folded, names)).items():
            if count > 1:
                yield f"{count} of the kind {what} come out as {name!r}; give one another name"
        yield from _unsafe(names)


def _doubles(what: str, named: Sequence[tuple[str, str]]) -> Iterator[str]:
    counts = Counter((_folded(name), owner) for name, owner in named)
    for (name, owner), count in counts.items():
        if count > 1:
            yield f"{owner!r} has the {what} {name!r} {count} times"


def _folded(name: str) -> str:
    return key_of(name).casefold()


def _names(named: Sequence[tuple[str, str]]) -> list[str]:
    """Names, with their owners in brackets where several are alike."""
    counts = Counter(_folded(name) for name, _ in named)
    return [
        f"{name} ({owner})".replace("/", "-") if counts[_folded(name)] > 1 else name
        for name, owner in named
    ]


def _skill(leaf: _Leaf) -> str:
    """The paper's node of a property where it is above it, else the node right above it."""
    of_paper = node_of(key_of(leaf.node.name))
    return of_paper if of_paper and of_paper in leaf.above else leaf.above[-1]


def _bad(file: Path, told: str) -> SubmitterError:
    return SubmitterError("bad_taxonomy", f"{file.name}: {told}.", _HOW)
