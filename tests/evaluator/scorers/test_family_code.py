"""Code of families: what decides a score, and only that."""

from __future__ import annotations

import pytest

from benchmarks.errors import PlatformError
from evaluator.scorers.family_code import code_digest, modules_of, statements
from evaluator.scorers.registry import load_rows

FAMILIES = sorted({row.family for row in load_rows().values()})


@pytest.mark.parametrize(
    ("family", "decide", "leave"),
    [
        ("dual_encoder", {"models.dual_towers"}, {"models.blip", "questions.metric", "registry"}),
        ("question_answering", {"questions.metric", "answering"}, {"checkpoints", "loading"}),
    ],
)
def test_the_code_of_a_family_is_what_its_scores_come_from(
    family: str, decide: set[str], leave: set[str]
) -> None:
    found = {name.removeprefix("evaluator.scorers.") for name in modules_of(family)}
    assert {f"families.{family}", "evaluator.scoring.images"} | decide <= found
    assert not leave & found


def test_the_graph_of_questions_decides_the_scores_of_what_asks_them() -> None:
    assert "benchmarks.accumulation.question_scores" in modules_of("question_answering")


@pytest.mark.parametrize(
    "families", [FAMILIES[:3], pytest.param(FAMILIES, marks=pytest.mark.slow)], ids=len
)
def test_families_differ_and_one_that_is_not_there_is_said(families: list[str]) -> None:
    assert len({code_digest(family) for family in families}) == len(families)
    with pytest.raises(PlatformError, match="nobody"):
        code_digest("nobody")


PLAIN = """def half(x: float) -> str:
    return f"# {x / 2}"
LIMIT = 3
"""
COMMENTED = '''"""A module."""

# A remark.
def half(x: float) -> str:  # of a number
    """Half
    of it."""

    return f"# {x / 2}"
LIMIT = 3
"""Of something."""
'''


def test_only_statements_count() -> None:
    assert statements(COMMENTED) == statements(PLAIN) == PLAIN.rstrip()
    assert statements(PLAIN.replace("2", "3")) != statements(PLAIN)
