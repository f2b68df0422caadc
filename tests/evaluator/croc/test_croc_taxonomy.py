"""Taxonomies of CROC: read with all faults at once, and drawn from as the paper or the code does."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator.croc.requests import DRAWN, MODES, draw_requests, properties_of
from evaluator.croc.taxonomy import EXAMPLE, Taxonomy, read_taxonomy
from tests.evaluator.scorers.common import refusal


def own(folder: Path, **changes: Any) -> Path:
    file = folder / "taxonomy.json"
    file.write_text(json.dumps({**json.loads(EXAMPLE.read_text()), **changes}))
    return file


def test_a_name_that_stands_twice_has_its_owner_in_brackets() -> None:
    found = read_taxonomy(EXAMPLE)
    assert [one.name for one in found.entities] == [
        "Bowl (Kitchens)", "Knife", "Shed", "Bowl (Gardens)", "Bicycle",
    ]  # fmt: skip
    assert [one.key for one in found.subjects] == ["Kitchens", "Gardens", "Streets"]
    assert {one.name: one.skill for one in found.properties} == {
        "Red": "Color", "Blue": "Color", "Wooden": "Material", "Left-of": "Place",
    }  # fmt: skip
    ids = [one.prompt_id for one in draw_requests(found, MODES)]
    assert len(ids) == len(set(ids))


def node(name: str, *classes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "x", "classes": list(classes), **more}


def thing(name: str) -> dict[str, str]:
    return {"name": name, "description": "x"}


@pytest.mark.parametrize(
    ("classes", "faults"),
    [
        ([], ["'Subject Matter'", "no subject"]),
        ([node("Red")], ["'Subject Matter'", "no subject"]),
        ([node("Subject Matter")], ["no subject"]),
        ([node("Red"), node("Subject Matter", node("A/B")), node("Blue|||")], ["'A/B'", "'Blue|||'"]),
        ([node("Red"), node("Subject Matter", node("A"), node("a"))], ["subject 'a' 2 times"]),
        (
            [node("Red", entities=[thing("X")]), node("Subject Matter", node("A", entities=[thing("X"), thing("x")]))],
            ["'Red' is a property", "entity 'x' 2 times"],
        ),
        (
            [node("Red"), node("Subject Matter", node("X", node("S"), entities=[thing("lost")]))],
            ["'X' has classes and entities"],
        ),
        ([{"name": "Red"}, node("Subject Matter", {"name": "", "description": "x"})], ["Red > description", "name: String"]),
        ("Red", ["classes"]),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_is_told_at_once(
    tmp_path: Path, classes: Any, faults: list[str]
) -> None:
    with refusal("bad_taxonomy", *faults):
        read_taxonomy(own(tmp_path, classes=classes))


@pytest.mark.parametrize(
    ("properties", "subjects", "faults"),
    [
        (["Red"], {"A": ["Child"], "B": ["Child"], "C": ["Child (A)"]}, ["entity come out as 'child_(a)'"]),
        (["Red", "Far     off"], {"A": []}, ["'Far     off'"]),
        (["Red", "_Blue", "Wet|"], {"A": ["x_"]}, ["'_Blue'", "'Wet|'", "'x_'"]),
        (["Red"], {"A B": [], "A_B": []}, ["subject 'a_b' 2 times"]),
    ],
)  # fmt: skip
def test_names_that_would_not_tell_requests_apart_are_refused(
    tmp_path: Path, properties: list[str], subjects: dict[str, list[str]], faults: list[str]
) -> None:
    owners = [node(one, entities=[*map(thing, things)]) for one, things in subjects.items()]
    classes = [*map(node, properties), node("Subject Matter", *owners)]
    with refusal("bad_taxonomy", *faults):
        read_taxonomy(own(tmp_path, classes=classes))


def test_two_requests_of_one_id_are_refused() -> None:
    taxonomy = read_taxonomy(EXAMPLE)
    red = taxonomy.properties[0]
    twice = replace(taxonomy, properties=(red, replace(red, name=red.name.upper())))
    with refusal("bad_taxonomy", "prompt ids", "|||red"):
        draw_requests(twice, MODES)


@pytest.mark.parametrize("content", [b"{", b"[" * 9999, b'{"name": 1, "name": 2}', b"\xff"])
def test_what_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "taxonomy.json").write_bytes(content)
    with refusal("bad_taxonomy"):
        read_taxonomy(tmp_path / "taxonomy.json")


def test_classes_without_end_are_refused(tmp_path: Path) -> None:
    deep = node("x")
    for _ in range(50):
        deep = node("x", deep)
    with refusal("bad_taxonomy", "deep"):
        read_taxonomy(own(tmp_path, classes=[deep]))


def test_draws_depend_on_seed_and_entity_alone(tmp_path: Path) -> None:
    found = read_taxonomy(many_subjects(tmp_path))
    first, again, other = (
        [one.prompt_id for one in draw_requests(found, MODES, "paper", seed)] for seed in (1, 1, 2)
    )
    assert first == again != other
    values = json.loads(many_subjects(tmp_path).read_text())
    values["classes"][1]["classes"][3]["entities"].append(thing("New"))
    kept = [
        one.prompt_id
        for one in draw_requests(read_taxonomy(own(tmp_path, **values)), MODES, "paper", 1)
    ]
    assert [one for one in kept if "New" not in one] == first


def many_subjects(folder: Path, count: int = 12) -> Path:
    subjects = [node(f"S{n}", entities=[thing(f"E{n}"), thing(f"F{n}")]) for n in range(count)]
    return own(folder, classes=[node("Red"), node("Subject Matter", *subjects)])


def of_mode(taxonomy: Taxonomy, mode: Any, draws: Any) -> dict[str, list[Any]]:
    """Entity to its requests."""
    found: dict[str, list[Any]] = {}
    for one in draw_requests(taxonomy, [mode], draws):
        found.setdefault(one.entity.name, []).append(one)  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("count", [12, 120])
def test_the_paper_draws_ten_subjects_and_ten_pairs_for_each_entity(
    tmp_path: Path, count: int
) -> None:
    taxonomy = read_taxonomy(many_subjects(tmp_path, count))
    for requests in of_mode(taxonomy, "entity_variation", "paper").values():
        assert len({one.subject for one in requests}) == DRAWN
    placed = of_mode(taxonomy, "entity_placement", "paper")
    for requests in placed.values():
        assert len({frozenset((one.subject, one.alt_subject)) for one in requests}) == DRAWN
        assert all(one.subject != one.alt_subject for one in requests)
    assert placed["E0"] != placed["F0"]


def test_the_code_draws_the_node_above_and_others_once_for_each_owner(tmp_path: Path) -> None:
    taxonomy = read_taxonomy(many_subjects(tmp_path))
    for requests in of_mode(taxonomy, "entity_variation", "released").values():
        names = [one.subject.name for one in requests]
        assert (names[-1], len(set(names))) == ("Subject Matter", DRAWN)
    placed = of_mode(taxonomy, "entity_placement", "released")
    for number in range(12):
        others = [[one.alt_subject for one in placed[f"{kind}{number}"]] for kind in "EF"]
        assert others[0] == others[1]
        assert {one.subject.name for one in placed[f"E{number}"]} == {f"S{number}"}


@pytest.mark.paper
def test_the_released_taxonomy_has_the_sizes_of_the_paper(assay_data: Path) -> None:
    """taxonomy.json of the CROC repository at a44214c."""
    found = read_taxonomy(assay_data / "croc" / "taxonomy.json")
    assert (len(found.subjects), len(found.properties), len(found.entities)) == (51, 78, 158)
    assert len(properties_of(found, "paper")) == 64
    assert sum(len(one.parts) for one in found.entities) == 782
    doubled = [one.name for one in found.entities if "(" in one.name]
    assert doubled == ["Child (Portraits)", "Child (Home and Family)"]
    for draws, varied in (("paper", 51 * 64), ("released", 51 * 78)):
        requests = draw_requests(found, MODES, draws)  # type: ignore[arg-type]
        assert len({one.prompt_id for one in requests}) == len(requests)
        assert Counter(one.mode for one in requests) == {
            "subject_property": varied, "entity_variation": 1580, "entity_placement": 1580,
        }  # fmt: skip
