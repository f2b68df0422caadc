"""`describe --facts`: no number is cut, whatever the width."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest

from benchmarks.__main__ import main
from tests.benchmarks.toy import Toy

MODELS = ("DALLE_3", "SDXL_Turbo", "DeepFloyd_I_XL_v1", "Midjourney_6")
COLUMNS = ("t", "t_p", "w", "w_p", "a_wins", "b_wins")
PAIRS = pd.DataFrame(
    [
        (a, b, -17.5684 - n, 1.3e-119 * (n + 1), 154780.5 + n, 2.4e-87, 0.6294, 0.1831)
        for n, (a, b) in enumerate((a, b) for a in MODELS for b in MODELS if a < b)
    ],
    columns=["a", "b", *COLUMNS],
)
NAMES_ONLY = pd.DataFrame({"rater": ["anna", "bob"], "[group]": ["one [x]", "two"]})


class Told(Toy):
    """The toy, with facts."""

    def facts(self, answers: Any) -> Mapping[str, pd.DataFrame]:
        return {"Paired tests": PAIRS, "Raters [all]": NAMES_ONLY}


Facts = Callable[[int], str]


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Facts:
    """What follows the card at a width."""
    monkeypatch.setattr("benchmarks.commands.common.load_registry", lambda: {"toy": Told()})
    monkeypatch.setattr("sys.argv", ["benchmarks", "describe", "toy", "--facts"])

    def run(width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        out = capfd.readouterr().out
        return out[out.index("Paired tests") :]

    return run


@pytest.mark.parametrize("width", [*range(30, 200, 13), 80])
def test_no_fact_is_cut_at_any_width(facts: Facts, width: int) -> None:
    text = facts(width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for n in range(len(PAIRS)):
        for number in (f"{-17.5684 - n:.4f}", f"{1.3e-119 * (n + 1):.1e}", f"{154780.5 + n:.4f}"):
            assert len(re.findall(rf"(?<!\S){re.escape(number)}(?!\S)", text)) == 1
    for name in (*COLUMNS, *MODELS, "Raters [all]", "[group]", "one [x]"):
        assert name in text


def test_a_wide_table_is_one_table(facts: Facts) -> None:
    header = next(line for line in facts(200).splitlines() if " a_wins" in line)
    assert header.split() == ["a", "b", *COLUMNS]


def test_a_narrow_table_repeats_what_its_lines_are_about(facts: Facts) -> None:
    headers = [h.split() for h in facts(80).splitlines() if re.match(r" +a +b ", h)]
    assert len(headers) > 1
    assert [name for header in headers for name in header[2:]] == list(COLUMNS)


def test_where_no_column_fits_each_fact_has_a_line(facts: Facts) -> None:
    lines = facts(35).splitlines()
    assert "DALLE_3, SDXL_Turbo" in lines
    assert "  a_wins: 0.6294" in lines
