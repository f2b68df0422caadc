"""Arrows point one way: benchmarks <- leaderboard <- evaluator <- app."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
MAY_IMPORT = {
    "benchmarks": {"benchmarks"},
    "leaderboard": {"benchmarks", "leaderboard"},
    "evaluator": {"benchmarks", "leaderboard", "evaluator"},
}
OURS = {"benchmarks", "leaderboard", "evaluator", "app", "tests", "benchmarks_perf"}


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names & OURS


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_from_below(package: str) -> None:
    files = sorted((REPOSITORY / package).rglob("*.py"))
    assert files
    wrong = {
        str(file.relative_to(REPOSITORY)): imported(file) - MAY_IMPORT[package]
        for file in files
        if imported(file) - MAY_IMPORT[package]
    }
    assert wrong == {}
