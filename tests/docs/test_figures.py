"""The committed figures are what the command makes of today's code."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.markdown_text import REPOSITORY
from tools.figures.__main__ import FIGURES, make

COMMITTED = REPOSITORY / "docs" / "figures"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
ABOUT = 1.5
"""Places differ by less than this of a width of 480, and percentages likewise, whatever rounds."""
TRAINED_ANEW = "training"
"""Its losses hang on how a processor rounds: only what it is made of is compared."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figures")
    make(folder)
    return folder


def test_every_figure_is_committed_and_no_other() -> None:
    assert {path.stem for path in COMMITTED.glob("*.svg")} == set(FIGURES)


@pytest.mark.nightly
def test_committed_figures_are_those_that_the_command_makes(made: Path) -> None:
    for name in FIGURES:
        old, new = ((folder / f"{name}.svg").read_text() for folder in (COMMITTED, made))
        again = f"{name}: run `python -m tools.figures` and look at it"
        assert NUMBER.sub("#", old) == NUMBER.sub("#", new), again
        pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
        close = all(abs(float(a) - float(b)) <= ABOUT for a, b in pairs)
        assert close or name == TRAINED_ANEW, again


@pytest.mark.nightly
def test_figures_say_what_they_show_and_stay_inside_their_frame(made: Path) -> None:
    space = "{http://www.w3.org/2000/svg}"
    for path in made.glob("*.svg"):
        root = ElementTree.parse(path).getroot()
        assert len(root.findtext(f"{space}title") or "") > 40, path.stem
        width, height = (float(root.get(side, "0")) for side in ("width", "height"))
        for part in root.iter():
            for name, limit in (("x", width), ("x1", width), ("x2", width), ("cx", width)):
                assert 0 <= float(part.get(name, "0")) <= limit, (path.stem, part.attrib)
            for name in ("y", "y1", "y2", "cy"):
                assert 0 <= float(part.get(name, "0")) <= height, (path.stem, part.attrib)
        text = path.read_text()
        assert "prefers-color-scheme:dark" in text
        assert "nan" not in text
