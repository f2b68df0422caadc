"""`python -m benchmarks.rethinking`: tables at any width, JSON for programs, clear refusals."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.commands.common import Listing, packed, print_blocks, table_or_lines
from benchmarks.rethinking.__main__ import main
from tests.kit.checks import Command

Capture = pytest.CaptureFixture[str]
HEADER = "metric,model,seed,prompt_id,score,perturbed_score\n"


class Rethinking(Command):
    """The command with these lines in its file, few resamples and a terminal of this width."""

    folder: Path

    def read(self, lines: list[str], *options: object, width: int = 260) -> int:
        self.monkeypatch.setenv("COLUMNS", str(width))
        path = self.folder / "scores.csv"
        path.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
        return self(path, "--resamples", "30", *options)

    def json(self, lines: list[str]) -> Any:
        assert self.read(lines, "--json") == 0
        assert "NaN" not in self.out
        assert "Infinity" not in self.out
        return json.loads(self.out)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Rethinking:
    command = Rethinking(main, monkeypatch, capsys)
    command.folder = tmp_path
    return command


def two_models() -> list[str]:
    """A perturbation moves every score by 0.01; SD3 is the better one with both seeds."""
    return [
        f"vqascore,{model},{seed},p{i},{step * i + shift:.2f},{step * i + shift + 0.01:.2f}"
        for model, step, shift in (("SD3", 0.1, 0.3), ("SD-1.5", 0.08, 0.1))
        for seed in (42, 3407)
        for i in range(5)
    ]


def noisy(scale: float = 1.0, models: Iterable[str] = ("A", "B", "C")) -> list[str]:
    """Three seeds and eight prompts, with what makes a number hard to print: signs and spread."""
    rng = np.random.default_rng(5)
    places = [
        (i, m, seed, p) for i, m in enumerate(models) for seed in (42, 7, 9) for p in range(8)
    ]
    scores = [scale * (rng.normal() + 0.3 * i) for i, *_ in places]
    return [
        f"vqascore,{model},{seed},p{prompt},{score!r},{score + scale * 0.01 * rng.normal()!r}"
        for score, (_, model, seed, prompt) in zip(scores, places, strict=True)
    ]


def board(models: int = 3, seeds: int = 2, prompts: int = 4, score: str | None = None) -> list[str]:
    """Lines with `score` for all, or made-up ones."""
    return [
        f"m,M{i},{s},p{p},{score or (7 * i + 3 * s + 5 * p * (i + 1)) % 11},"
        for i in range(models)
        for s in range(seeds)
        for p in range(prompts)
    ]


def test_tables_and_json_tell_ranks_stability_change_and_significance(run: Rethinking) -> None:
    found = run.json(two_models())
    assert found["scores"][0]["value"] == pytest.approx(0.5)
    assert found["stability"][0]["over_seeds"]["stable"] is True
    assert found["perturbation"][0]["largest"] == pytest.approx(0.01)
    assert found["comparisons"][0]["relation"] == ">"
    assert run.read(two_models()) == 0
    for shown in ("50.00", "0 of 1", "SD3 > SD-1.5", "1.00", " image ", " prompt "):
        assert shown in run.out
    told = "Trust the prompt lines"
    assert told in run.out
    assert run.read([], "--help") == 0
    assert told in run.out


def test_names_are_shown_as_they_are_whatever_they_contain(run: Rethinking) -> None:
    assert run.read(["m,SD[/v1],[red],p,1,", "m,B,[red],p,2,"]) == 0
    assert "SD[/v1] = B" in run.out
    assert "[red]" in run.out


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (board(models=1), "m: one model"),
        (board(seeds=1), "m: one seed"),
        (board(prompts=1), "m: one prompt"),
        (board(score="0.5"), "m: every"),
        (["m,A,1,p,,"], "m: no score"),
        (["m,A,1,p,,", "m,B,1,p,,"], "m: no score"),
    ],
)
def test_what_cannot_be_said_is_noted(lines: list[str], said: str, run: Rethinking) -> None:
    assert any(note.startswith(said) for note in run.json(lines)["notes"])
    assert run.read(lines) == 0
    assert said in run.out


def test_what_cannot_be_used_is_refused_with_its_line(run: Rethinking) -> None:
    assert run.read([*board(), "m,M0,0,p9,0.5"]) == 1
    assert run.out == ""
    assert "[uneven_lines]" in run.err
    assert "line 26" in run.err


def test_a_constant_gain_is_infinite_and_becomes_null_in_json(run: Rethinking) -> None:
    lines = [f"m,{m},1,p{i},{i + gain}," for m, gain in (("A", 1), ("B", 0)) for i in (1, 2)]
    [found] = run.json(lines)["comparisons"]
    assert (found["difference"], found["p_value"], found["relation"]) == (1.0, 0.0, ">")
    assert (found["t"], found["effect"], found["effect_low"]) == (None, None, None)


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?%?")
_POSITIONS = frozenset({"first", "second"})
_PERCENT = frozenset({"value", "mean", "largest", "spread", "difference", "ci_low", "ci_high"})
_SHARES = frozenset({"stable_share", "identical_share"})
_P_VALUES = frozenset(
    {"p_value", "p_corrected", "wilcoxon_p", "wilcoxon_p_rounded", "chi_square_p", "permutation_p"}
)
_DECIMALS = {"wilcoxon_w": 1, "effect": 2, "t": 2, "tau": 2, "tau_mean": 2, "tau_min": 2}
_DECIMALS |= {"effect_low": 2, "effect_high": 2, "chi_square": 2, "swapped": 0}


def shown(value: float, name: str) -> str:
    """How a number of the JSON is written, by its field."""
    if isinstance(value, int):
        return str(value)
    if name in _PERCENT:
        return f"{100 * value + 0.0:.2f}"
    if name in _SHARES:
        return f"{value:.0%}"
    return f"{value:.2g}" if name in _P_VALUES else f"{value + 0.0:.{_DECIMALS.get(name, 3)}f}"


def numbers(found: object, name: str = "") -> Iterator[str]:
    """Every number of the JSON that is no position, as it must appear in the text."""
    if isinstance(found, dict):
        for key, entry in found.items():
            yield from numbers(entry, name if key in ("low", "high") else key)
    elif isinstance(found, list):
        for entry in found:
            yield from numbers(entry, name)
    elif isinstance(found, int | float) and not isinstance(found, bool) and name not in _POSITIONS:
        yield shown(found, name)


LONG = ("long-" * 20, "name-" * 20)


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("width", "models"), [*((width, ("A", "B", "C")) for width in (60, 80, 120, 300)), (60, LONG)]
)
def test_every_number_of_the_json_is_whole_in_the_text(
    width: int, models: tuple, run: Rethinking
) -> None:
    expected = Counter(numbers(run.json(noisy(models=models))))
    assert sum(expected.values()) > 150
    assert run.read(noisy(models=models), width=width) == 0
    # Counted, so that a number elsewhere hardly stands in for one that is lost; the text has more
    # of them, in its names and heads.
    assert expected - Counter(_NUMBER.findall(run.out)) == Counter()
    assert max(map(len, run.out.splitlines())) <= width
    assert "…" not in run.out
    assert all(model in re.sub(r"\s", "", run.out) for model in models)


@pytest.mark.parametrize("scale", [1e-9, 1e40])
def test_tiny_and_huge_scores_keep_their_leading_digits(scale: float, run: Rethinking) -> None:
    difference = run.json(noisy(scale))["comparisons"][0]["difference"]
    assert run.read(noisy(scale), width=60) == 0
    assert f"difference x 100 {100 * difference:.2g}" in run.out
    assert max(map(len, run.out.splitlines())) <= 60


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_who_closes_the_pipe_is_no_error(
    options: tuple[str, ...], run: Rethinking, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, start = os.pipe()
    os.close(end)
    with os.fdopen(start, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert run.read(noisy(), *options) == 0
    # Leaving the block flushed what was left: nothing fails at the end, either.
    assert run.err == ""


def printed(listing: Listing, width: int, capsys: Capture) -> str:
    print_blocks(table_or_lines(listing, width), Console(width=width))
    return capsys.readouterr().out


def test_a_listing_is_a_table_or_a_block_each(capsys: Capture) -> None:
    listing = Listing("T", ("who", "how", "p"), [("a", "", "0.25"), ("b", "[well]", "1")], 1)
    assert "│ b   │ [well] │ 1    │" in printed(listing, 26, capsys)
    assert printed(listing, 20, capsys) == "T\nwho a\n  p 0.25\nwho b\n  how [well], p 1\n\n"


@given(st.lists(st.text("ab 1", min_size=1, max_size=30)), st.integers(1, 40))
def test_packed_facts_are_in_order_and_none_is_broken(facts: list[str], width: int) -> None:
    lines = packed(facts, width).split("\n") if facts else []
    assert ", ".join(line.removesuffix(",") for line in lines) == ", ".join(facts)
    assert all(len(line) <= width or line.removesuffix(",") in facts for line in lines)
