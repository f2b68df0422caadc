"""Figures against their limits, times of sides that run in turns, and names of measurements."""

from __future__ import annotations

import ast
import math
from itertools import count
from pathlib import Path

import pytest

from benchmarks_perf.__main__ import main, table_of
from benchmarks_perf.measuring import (
    MODULES,
    Figure,
    Outcome,
    Times,
    alone,
    interleaved,
    measure,
    parse_sizes,
    written,
)

FOLDER = Path(__file__).parents[2] / "benchmarks_perf"


@pytest.mark.parametrize(
    ("figure", "holds"),
    [
        (Figure("no limit", 1.0), None),
        (Figure("at the limit", 2.0, at_least=2.0), True),
        (Figure("below it", 1.9, at_least=2.0), False),
        (Figure("above it", 2.1, at_most=2.0), False),
        (Figure("not measured", math.nan, at_least=2.0), False),
        (Figure("exactly", 4, at_least=4, at_most=4), True),
    ],
)
def test_a_figure_is_held_to_its_limit(figure: Figure, holds: bool | None) -> None:
    assert figure.holds is holds


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    times = Times({"plain": [10.0, 30.0, 20.0], "ours": [1.0, 1.0, 10.0]})
    assert times.ratio("plain", "ours") == 10.0
    assert times.scaled("ours", 0.5).ratio("plain", "ours") == 20.0
    assert times.compared("speed", "plain", "ours", at_least=11).holds is False


def test_every_round_begins_with_another_side() -> None:
    order: list[str] = []
    sides = {name: lambda n=name: order.append(n) for name in "abc"}
    clock = count()
    times = interleaved(sides, 2, lambda: float(next(clock)))
    assert order == ["a", "b", "c", "b", "c", "a"]
    assert times.seconds == {"a": [1.0, 1.0], "b": [1.0, 1.0], "c": [1.0, 1.0]}


def test_every_name_is_a_function_whose_sizes_have_defaults() -> None:
    for name, module in MODULES.items():
        tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
        [found] = [
            node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        assert len(found.args.args) == len(found.args.defaults), name
        assert None not in found.args.kw_defaults, name


def test_a_size_has_the_type_of_its_default() -> None:
    found = parse_sizes("ts2_protocol", ["rounds=3", "data=somewhere", "images=4"])
    assert found == {"rounds": 3, "data": Path("somewhere")}


@pytest.mark.parametrize("word", ["no_such_name", "rouns=3"])
def test_a_word_that_nothing_takes_is_an_error(word: str) -> None:
    with pytest.raises(SystemExit):
        main(["ts2_protocol", word] if "=" in word else [word])


def test_a_function_runs_in_a_process_of_its_own() -> None:
    assert alone(written, 1234.5) == "1,234"


def test_what_was_left_out_misses_no_limit_and_what_failed_does() -> None:
    left_out = Outcome("agreement", (), 0.1, left_out="it is not installed")
    failed = Outcome("agreement", (), 0.1, failed="OSError: no space")
    assert (left_out.passed, failed.passed) == (True, False)
    assert table_of(left_out).row_count == table_of(failed).row_count == 1


def test_an_error_ends_one_measurement_alone() -> None:
    found = measure("archive_memory", {"no_such_size": 1})
    assert "no_such_size" in found.failed
