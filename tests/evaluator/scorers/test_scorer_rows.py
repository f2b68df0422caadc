"""The table of built-in metrics: every row of every family can be used and says what it is."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from benchmarks.errors import PlatformError
from evaluator.scorers.registry import family_of, find_row, load_rows
from tests.evaluator.scorers.common import later, refusal

TABLE = load_rows()
OF_THE_PAPERS = """
    clipscore-hessel clipscore-tm clipscore-ts2 clipscore-ts2-paper clipscore-cos
    clipscore-cos-b32 alignscore alignscore-paper siglip-so400m siglip-so400m-logit
    siglip-so400m-cos siglip-ts2 siglip-b16 siglip-l16 pickscore pickscore-cos hpsv2 hpsv2.1
    blip2-itc eva02-l14-336 coca-l14 metaclip-l14 openclip-h14-laion2b
"""


@pytest.mark.parametrize("name", TABLE)
def test_a_row_fits_its_family_says_what_it_is_and_its_figures_can_be_true(name: str) -> None:
    row = TABLE[name]
    family = family_of(row)
    family.check(row)
    assert all(text.strip() for text in (family.title, row.title, row.formula, row.source))
    assert row.notes
    assert all(text.endswith(".") for text in (row.summary, *row.notes))
    assert len(set(row.granularity)) == len(row.granularity) > 0
    ends = [end for end in (row.low, row.high) if end is not None]
    assert all(math.isfinite(end) for end in ends)
    assert ends == sorted(set(ends))
    for figure in (row.parameters, row.flops_per_pair):
        assert figure is None or figure > 1e6
    for checkpoint in row.checkpoints.values():
        assert checkpoint.id.count("/") <= 1
        assert not checkpoint.revision or len(checkpoint.revision) == 40


def test_no_two_rows_compute_the_same_thing_and_those_of_the_papers_are_there() -> None:
    assert set(TABLE) >= set(OF_THE_PAPERS.split())
    same = Counter(
        (row.family, str(row.checkpoints), str(family_of(row).check(row)), row.dtype)
        for row in TABLE.values()
    )
    assert [each for each, count in same.items() if count > 1] == []


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("clipscore-cos", {"images": "clip"}),
    ("clipscore-cos", {"cleaned": True}),
    ("compare-gpt-4o", {"question": "Which?"}),
    ("compare-gpt-4o", {"second": "a."}),
    ("compare-gpt-4o", {"method": "score"}),
    ("compare-gpt-4o", {"reading": "rating"}),
    ("deqa-score", {"weights": [1.0, 0.0]}),
    ("unifiedreward", {"weights": {}}),
    ("unifiedreward", {"weights": {"": 1.0, "Final Score": 1.0}}),
    ("unifiedreward", {"low": 5.0}),
    ("unifiedreward", {"max_new_tokens": 10**6}),
    ("unifiedreward-pair", {"instruction": "Which?"}),
    ("unifiedreward-pair", {"choices": {}}),
    ("unifiedreward-pair", {"axes": ["Style"]}),
    ("unifiedreward-pair", {"form": "shares"}),
    ("unifiedreward-pair", {"method": "score"}),
    ("unifiedreward-think", {"tag": ""}),
    ("unifiedreward2-pair", {"axes": []}),
    ("unigenbench-qwen-72b", {"instruction": "{prompt} {types}"}),
    ("visionreward", {"checks": []}),
    ("visionreward", {"checks": [{"question": "a"}, {"question": "a"}]}),
    ("visionreward", {"checks": [{"question": "a", "needs": 0}]}),
    ("visionreward", {"checks": [{"question": "a"}, {"question": "b", "needs": 5}]}),
    ("visionreward", {"answers": {"yes": 1.0}}),
    ("visionreward", {"alignment_weight": 0.0}),
    ("visionreward", {"alignment": None}),
    ("vqascore-any", {"question": "no place"}),
    ("vqascore-any", {"reduce": "p_diff"}),
    ("vqascore-any", {"against": "No"}),
    ("vqascore-gpt-4o", {"question": "no place"}),
    ("vqascore-gpt-4o", {"reading": "choice"}),
    ("vqascore-gpt-4o", {"choices": {"good": 1.0}}),
    ("vqascore-gpt-4o", {"reading": "rating", "low": 3.0, "high": 3.0}),
    ("vqascore-gpt-4o", {"reading": "choice", "choices": {"Good": 1.0, "good.": 0.0}}),
]
"""Options that a family cannot follow, or that are at odds with others of the row."""


@pytest.mark.parametrize(("name", "options"), WRONG, ids=str)
def test_options_that_cannot_be_followed_are_refused(name: str, options: dict[str, Any]) -> None:
    row = TABLE[name]
    family_of(row).check(row)
    with pytest.raises(ValidationError):
        family_of(row).check(row.model_copy(update={"options": row.options | options}))


def test_open_clip_knows_every_architecture_and_tag_that_rows_name() -> None:
    open_clip = later("open_clip")
    for row in TABLE.values():
        architecture, tag = row.options.get("architecture"), row.options.get("tag")
        assert not architecture or open_clip.get_model_config(architecture)
        if architecture and tag:
            known = open_clip.get_pretrained_cfg(architecture, tag)["hf_hub"].strip("/")
            assert known == row.checkpoints["model"].id


def test_an_unknown_name_suggests_others() -> None:
    with refusal("unknown_scorer", "clipscore-hessel"):
        find_row("clipscore-hesel", TABLE)
    with refusal("unknown_scorer", "scorers list"):
        find_row("???", TABLE)


ROW = '[[scorer]]\nfamily = "f"\ntitle = "t"\nsummary = "s"\nformula = "f"\nsource = "s"\n'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f'{ROW}name = "a"\n{ROW}name = "b"\n', "b is"),
        (f'{ROW}name = "c"\nformulla = 1\n', "formulla"), ("not toml", ""), ("scorer = 1", ""),
    ],
)  # fmt: skip
def test_a_row_that_is_there_twice_or_has_a_typo_is_a_defect(
    tmp_path: Path, text: str, named: str
) -> None:
    (tmp_path / "one.toml").write_text(f'{ROW}name = "b"\n')
    with pytest.raises(PlatformError, match="'f'"):
        family_of(load_rows(tmp_path)["b"])  # of no family
    (tmp_path / "two.toml").write_text(text)
    with pytest.raises(PlatformError, match=rf"two\.toml.*{named}"):
        load_rows(tmp_path)
