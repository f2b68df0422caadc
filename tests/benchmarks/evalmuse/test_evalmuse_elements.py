"""Element keys are taken apart as the released lists write them, dirt included."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evalmuse.load import SKILLS, parse_element_key

RAW_TYPES = {
    "attribute": 185, "object": 154, "activity": 87, "human": 60, "other": 55, "location": 51,
    "animal": 45, "Color": 36, "Material": 36, "Counting": 30, "spatial": 27, "color": 24,
    "food": 17, "other-perspective": 17, "Other-writing&symbol": 16,
    "object-cloth&accessories": 16, "object-other": 15, "counting": 14, "material": 13,
    "attribute-style-artist/works": 12, "Other-weather": 12, "Other-time": 12, "Spatial": 10,
    "object-vehicle": 9, "object-household goods": 6, "object-electronic": 5, "animal/human": 3,
    "shape": 1, "comparison": 1, "time": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "text", "kind", "skill"),
    [
        ("two cups (counting)", "two cups", "counting", "counting"),
        ("Violet (Color) ", "Violet", "Color", "color"),
        ("gelatinous (Material) ", "gelatinous", "Material", "material"),
        ("cup ( object ) ", "cup", "object", "object"),
        ("A(B) cat (animal)", "A(B) cat", "animal", "a./h."),
        ("soldiers (human)", "soldiers", "human", "a./h."),
        ("rider (animal/human)", "rider", "animal/human", "a./h."),
        ("hat (object-cloth&accessories)", "hat", "object-cloth&accessories", "object"),
        ("by Klimt (attribute-style-artist/works)", "by Klimt", "attribute-style-artist/works",
         "attribute"),
        ("from above (other-perspective)", "from above", "other-perspective", "other"),
        ("taller (comparison)", "taller", "comparison", "other"),
        ("noon (Other-time)", "noon", "Other-time", "other"),
        ("0 (Counting)", "0", "Counting", "counting"),
    ],
)  # fmt: skip
def test_a_key_is_a_text_and_a_type_with_a_skill(
    key: str, text: str, kind: str, skill: str
) -> None:
    found = parse_element_key(key)
    assert (found.text, found.kind, found.skill) == (text, kind, skill)


@pytest.mark.parametrize("key", ["cup", "", "(object)", "  (object)"])
def test_a_key_without_text_or_type_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="type in brackets"):
        parse_element_key(key)


@pytest.mark.slow
@given(
    st.text(min_size=1).filter(lambda t: bool(t.strip())),
    st.sampled_from(SKILLS[:5]),
    st.sampled_from(["", "-other", "-Household goods"]),
    st.text(" )", max_size=3),
)
def test_the_text_before_the_last_bracket_survives(
    text: str, skill: str, sub: str, dirt: str
) -> None:
    found = parse_element_key(f"{text} ({skill.title()}{sub}){dirt}")
    assert found.text == text.strip()
    assert found.skill == skill


@pytest.mark.paper
def test_all_970_released_ranking_elements_have_the_stated_types(assay_data: Path) -> None:
    """prompt_t2i.json of DY-Evalab/EvalMuse: 199 prompts."""
    content = (assay_data / "evalmuse" / "prompt_t2i.json").read_text(encoding="utf-8")
    entries = json.loads(content).values()
    keys = [key for entry in entries for key in entry["element_score"]]
    found = [parse_element_key(key) for key in keys]
    assert len(found) == 970
    assert Counter(element.kind for element in found) == RAW_TYPES
    # Two types are written with a space after the bracket, wherever they have a capital.
    spaced = Counter(parse_element_key(key).kind for key in keys if key.endswith(" "))
    assert spaced == {"Color": 36, "Material": 36}
    skills = Counter(element.skill for element in found)
    assert skills == {
        "attribute": 197, "object": 205, "activity": 87, "a./h.": 108, "location": 51,
        "color": 60, "material": 49, "counting": 44, "spatial": 37, "food": 17, "shape": 1,
        "other": 114,
    }  # fmt: skip
    assert all(element.text for element in found)
