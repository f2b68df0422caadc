"""`demo_ts2`: semantic error graphs, made by adding known errors one after the other.

The root of a graph is a scene without errors; a node of level n has n of them. There are several
nodes on a level (`1a`, `1b`), each with errors of its own, and several pictures of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pandas as pd

from benchmarks.schema import Pair, Questions
from benchmarks.ts2.load import Ts2Answers
from tools.demo_split import scenes
from tools.demo_split.language import prompt
from tools.demo_split.models import spoil
from tools.demo_split.pictures import chance, later
from tools.demo_split.scenes import Aspect, Chance, Scene, aspects, with_group

GRAPHS_PER_SKILL = 5
_SIMPLE_PER_SKILL = 3

Nodes = dict[str, Scene]


@dataclass(frozen=True)
class Shot:
    """One picture of a node: the stem of its file, the node's label and what it shows."""

    stem: str
    label: str
    drawn: Scene

    @property
    def level(self) -> int:
        """How many errors the picture has."""
        return int(self.label[0])


@dataclass(frozen=True)
class Graph:
    """One semantic error graph."""

    id: str  # its number, from `0`
    skill: str  # kind of its errors, one of SKILLS
    split: str  # `simple`, or `complex` (in a place, up to level 3)
    asked: Scene  # what the prompt says
    shots: tuple[Shot, ...]  # the pictures, by level


def answers() -> Ts2Answers:
    """The answer side."""
    rows = [(s.stem, g.id, s.label, s.level, g.split, g.skill) for g in graphs() for s in g.shots]
    columns = ["pair_id", "graph", "label", "level", "split", "skill"]
    nodes = pd.DataFrame(rows, columns=columns)
    return Ts2Answers(tuple(nodes["pair_id"]), tuple(g.id for g in graphs()), nodes)


def questions() -> Questions:
    """The question side; pictures are rendered when they are asked for."""
    shots = [(g.id, shot) for g in graphs() for shot in g.shots]
    return Questions(
        images={shot.stem: later(shot.drawn, f"ts2/{shot.stem}") for _, shot in shots},
        texts={g.id: prompt(g.asked) for g in graphs()},
        pairs=tuple(Pair(shot.stem, shot.stem, graph) for graph, shot in shots),
    )


@lru_cache(maxsize=1)
def graphs() -> tuple[Graph, ...]:
    """All graphs, skill by skill."""
    plan = [(skill, k) for skill in SKILLS for k in range(GRAPHS_PER_SKILL)]
    return tuple(_graph(number, skill, k) for number, (skill, k) in enumerate(plan))


def _graph(number: int, skill: str, k: int) -> Graph:
    rng = chance("ts2", number)
    hard = k >= _SIMPLE_PER_SKILL
    asked, nodes = SKILLS[skill](rng)
    if hard:
        place = rng.pick(scenes.PLACES)
        asked = replace(asked, place=place)
        nodes = {label: replace(drawn, place=place) for label, drawn in nodes.items()}
    else:
        nodes = {label: drawn for label, drawn in nodes.items() if label[0] != "3"}
    labelled = _with_roots(asked, nodes, two=k % GRAPHS_PER_SKILL in (1, 4))
    shots: list[Shot] = []
    for label, drawn in labelled.items():
        for _ in range(rng.between(1, 2) if label[0] != "0" else 2):
            shots.append(Shot(f"{number:03d}-{len(shots):02d}", label, drawn))
    split = "complex" if hard else "simple"
    return Graph(str(number), skill, split, asked, tuple(shots))


def _with_roots(asked: Scene, nodes: Nodes, *, two: bool) -> Nodes:
    """One root, or two: different sets of pictures without an error."""
    roots = {"0a": asked, "0b": asked} if two else {"0": asked}
    return {**roots, **dict(sorted(nodes.items()))}


def _adding_errors(scene: Scene, candidates: Sequence[Aspect], rng: Chance) -> Nodes:
    """Two nodes of one error, two of two and one of three, out of three claims."""
    a, b, c = rng.sample(candidates, 3)
    steps = {"1a": (a,), "1b": (b,), "2a": (a, b), "2b": (b, c), "3": (a, b, c)}
    return {label: _spoilt(scene, scene, errors, rng) for label, errors in steps.items()}


def _spoilt(drawn: Scene, asked: Scene, errors: Sequence[Aspect], rng: Chance) -> Scene:
    for aspect in errors:
        drawn = spoil(drawn, aspect, rng, asked)
    return drawn


def _claims(scene: Scene, *skills: str) -> list[Aspect]:
    return [aspect for aspect in aspects(scene) if aspect.skill in skills]


def _colours(rng: Chance) -> tuple[Scene, Nodes]:
    scene = scenes.three_shapes(rng)
    return scene, _adding_errors(scene, _claims(scene, "color"), rng)


def _shapes(rng: Chance) -> tuple[Scene, Nodes]:
    scene = scenes.three_shapes(rng)
    return scene, _adding_errors(scene, _claims(scene, "shape"), rng)


def _counting(rng: Chance) -> tuple[Scene, Nodes]:
    """Every thing too few or too many is one error."""
    group = replace(scenes.sample_group(rng), count=rng.between(4, 6))
    scene = Scene((group,))
    steps = {"1a": -1, "1b": 1, "2a": -2, "2b": 2, "3": -3}
    return scene, {
        label: with_group(scene, 0, replace(group, count=group.count + step))
        for label, step in steps.items()
    }


def _spatial(rng: Chance) -> tuple[Scene, Nodes]:
    """First the relation goes wrong, in two ways, then one thing and then the other as well."""
    beside, over = scenes.SPATIAL[:2], scenes.SPATIAL[2:4]
    relation, across = rng.pick([(r, over) for r in beside] + [(r, beside) for r in over])
    scene = Scene(scenes.sample_groups(rng, 2), relation=relation)
    turned = replace(scene, relation=scenes.OPPOSITE[relation])
    one, other = _claims(scene, "shape")
    return scene, {
        "1a": turned,
        "1b": replace(scene, relation=rng.pick(across)),
        "2a": spoil(turned, one, rng, scene),
        "2b": spoil(turned, other, rng, scene),
        "3": _spoilt(turned, scene, (one, other), rng),
    }


def _parts(rng: Chance) -> tuple[Scene, Nodes]:
    kind = rng.pick([kind for kind, parts in scenes.PARTS.items() if len(parts) > 2])
    parts, colours = rng.sample(scenes.PARTS[kind], 3), rng.sample(scenes.COLOURS, 3)
    scene = Scene((scenes.Group(kind, parts=tuple(zip(parts, colours, strict=True))),))
    return scene, _adding_errors(scene, _claims(scene, "part"), rng)


def _mixed(rng: Chance) -> tuple[Scene, Nodes]:
    """Errors of three different kinds."""
    scene = replace(scenes.detailed(rng), place=None)
    by_skill = {aspect.skill: aspect for aspect in rng.shuffled(aspects(scene))}
    return scene, _adding_errors(scene, list(by_skill.values()), rng)


SKILLS: dict[str, Callable[[Chance], tuple[Scene, Nodes]]] = {
    "color": _colours,
    "shape": _shapes,
    "counting": _counting,
    "spatial": _spatial,
    "parts": _parts,
    "mixed": _mixed,
}
"""Kind of error to a function that invents a scene and the nodes of its graph."""
