"""What `python -m benchmarks.rethinking` prints can be read at any width, and through a pipe."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.commands.common import Listing, packed, print_blocks, table_or_lines
from benchmarks.rethinking.__main__ import main

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?%?")
_POSITIONS = frozenset({"first", "second"})
_PERCENT = frozenset({"value", "mean", "largest", "spread", "difference"})
_SHARES = frozenset({"stable_share", "identical_share"})
_P_VALUES = frozenset({"p_value", "p_corrected", "wilcoxon_p", "chi_square_p", "permutation_p"})
_DECIMALS = {"wilcoxon_w": 1, "effect": 2, "t": 2, "tau": 2, "tau_mean": 2, "tau_min": 2}
_DECIMALS |= {"effect_low": 2, "effect_high": 2, "chi_square": 2, "swapped": 0}


def scores_file(folder: Path, scale: float = 1.0, models: tuple[str, ...] = ("A", "B", "C")) -> str:
    """Three seeds and eight prompts, with what makes a number hard to print: signs and spread."""
    rng = np.random.default_rng(5)
    lines = ["metric,model,seed,prompt_id,score,perturbed_score"]
    for i, model in enumerate(models):
        for seed in (42, 3407, 9):
            for prompt in range(8):
                score = scale * (rng.normal() + 0.3 * i)
                changed = score + scale * 0.01 * rng.normal()
                lines.append(f"vqascore,{model},{seed},p{prompt},{score!r},{changed!r}")
    path = folder / "scores.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def run(monkeypatch: pytest.MonkeyPatch, width: int, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["benchmarks.rethinking", *arguments, "--resamples", "30"])
    monkeypatch.setenv("COLUMNS", str(width))
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)


def shown(value: float, name: str, around: str) -> str:
    """How a number of the JSON is written, by its field and that around it."""
    if isinstance(value, int):
        return str(value)
    if name in ("low", "high"):
        name = around
    if name in ("ci_low", "ci_high") or name in _PERCENT:
        return f"{100 * value + 0.0:.2f}"
    if name in _SHARES:
        return f"{value:.0%}"
    return f"{value:.2g}" if name in _P_VALUES else f"{value + 0.0:.{_DECIMALS.get(name, 3)}f}"


def numbers(found: object, name: str = "", around: str = "") -> Iterator[str]:
    """Every number of the JSON that is no position, as it must appear in the text."""
    if isinstance(found, dict):
        for key, entry in found.items():
            yield from numbers(entry, key, name)
    elif isinstance(found, list):
        for entry in found:
            yield from numbers(entry, name, around)
    elif isinstance(found, int | float) and not isinstance(found, bool) and name not in _POSITIONS:
        yield shown(found, name, around)


@pytest.mark.parametrize("width", [60, 80, 120, 300])
def test_every_number_of_the_json_is_whole_in_the_text_and_no_line_is_too_long(
    width: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = scores_file(tmp_path)
    assert run(monkeypatch, width, path, "--json") == 0
    expected = Counter(numbers(json.loads(capsys.readouterr().out)))
    assert run(monkeypatch, width, path) == 0
    text = capsys.readouterr().out
    assert sum(expected.values()) > 400
    # Counted, so that a number elsewhere hardly stands in for one that is lost; the text has more
    # of them, in its names and heads.
    assert expected - Counter(_NUMBER.findall(text)) == Counter()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_long_names_are_broken_and_numbers_beside_them_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = ("long-" * 20, "name-" * 20)
    path = scores_file(tmp_path, models=models)
    assert run(monkeypatch, 60, path, "--json") == 0
    expected = Counter(numbers(json.loads(capsys.readouterr().out)))
    assert run(monkeypatch, 60, path) == 0
    text = capsys.readouterr().out
    assert expected - Counter(_NUMBER.findall(text)) == Counter()
    assert max(map(len, text.splitlines())) <= 60
    assert all(model in re.sub(r"\s", "", text) for model in models)


@pytest.mark.parametrize("scale", [1e-9, 1e40])
def test_very_small_and_very_large_scores_keep_their_leading_digits(
    scale: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = scores_file(tmp_path, scale)
    assert run(monkeypatch, 60, path, "--json") == 0
    found = json.loads(capsys.readouterr().out)["comparisons"][0]["difference"]
    assert run(monkeypatch, 60, path) == 0
    text = capsys.readouterr().out
    assert f"difference x 100 {100 * found:.2g}" in text
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_who_closes_the_pipe_is_no_error(
    options: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    end, start = os.pipe()
    os.close(end)
    with os.fdopen(start, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert run(monkeypatch, 80, scores_file(tmp_path), *options) == 0
    # Leaving the block flushed what was left: nothing fails at the end, either.
    assert capfd.readouterr().err == ""


def printed(listing: Listing, width: int, capsys: pytest.CaptureFixture[str]) -> str:
    print_blocks(table_or_lines(listing, width), Console(width=width))
    return capsys.readouterr().out


def test_a_listing_is_a_table_where_it_fits_and_else_a_block_for_each_entry(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listing = Listing("T", ("who", "how", "p"), [("a", "", "0.25"), ("b", "[well]", "1")], 1)
    assert "│ b   │ [well] │ 1    │" in printed(listing, 26, capsys)
    assert printed(listing, 20, capsys) == "T\nwho a\n  p 0.25\nwho b\n  how [well], p 1\n\n"


@given(st.lists(st.text("ab 1", min_size=1, max_size=30)), st.integers(1, 40))
def test_packed_facts_are_all_there_in_their_order_and_none_is_broken(
    facts: list[str], width: int
) -> None:
    lines = packed(facts, width).split("\n") if facts else []
    assert ", ".join(line.removesuffix(",") for line in lines) == ", ".join(facts)
    assert all(len(line) <= width or line.removesuffix(",") in facts for line in lines)
