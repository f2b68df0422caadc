"""The reference documents are what the code says: every code, state, measure, record and command."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel

from benchmarks.registry import load_registry
from leaderboard.states import State
from tests.conftest import REPOSITORY as ROOT
from tests.leaderboard.golden.kinds import KINDS
from tools.reference.__main__ import documents
from tools.reference.errors import PACKAGES, VARYING, error_codes, errors_in
from tools.reference.markdown import text
from tools.reference.records import RECORDS, field_words

WRITTEN = ("errata.md", *sorted(f"reference/{p.name}" for p in ROOT.glob("docs/reference/*")))


@cache
def new() -> Mapping[str, str]:
    """The documents as the code says them now."""
    return documents(ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_a_document_is_what_the_code_says(name: str) -> None:
    assert set(WRITTEN) == set(new()), "run `make docs` and commit what it writes"
    there = (ROOT / "docs" / name).read_text("utf-8")
    assert there == new()[name], "run `make docs` and commit what it writes"


def test_states_measures_and_records_are_all_there_and_explained() -> None:
    states, measures = new()["reference/states.md"], new()["reference/measures.md"]
    assert all(f"| `{state.value}` |" in states for state in State)
    for benchmark in load_registry().values():
        for name, info in benchmark.card.measures.items():
            assert f"| `{name}` | {text(info.title)} |" in measures
    documented = {model.__name__ for model in RECORDS}
    versioned = {kind.model.__name__ for kind in KINDS.values()}
    # What passes between workers, and inbox and queue, which hold records and events.
    assert versioned - documented == {"Received", "ScoreBundle", "Status"}
    lines = new()["reference/records.md"].splitlines()
    assert [line for line in lines if line.startswith("| `") and line.endswith("|  |")] == []


def expected_codes(tree: ast.AST) -> set[str]:
    """Codes that a test compares with an error's, or gives to a helper called `refused`."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=[ast.Constant(str(code)), *_]):
                if ast.unparse(left).endswith("value.code"):
                    found.add(code)
            case ast.Call(func=ast.Name("refused"), args=[ast.Constant(str(code)), *_]):
                found.add(code)
    return found


@pytest.mark.slow
def test_every_code_that_a_test_expects_is_documented() -> None:
    known = {one.code for one in error_codes(ROOT)}
    expected = set[str]()
    for path in (ROOT / "tests").rglob("test_*.py"):
        source = path.read_text("utf-8")
        if "value.code" in source or "refused(" in source:
            expected |= expected_codes(ast.parse(source))
    assert len(expected) > 100
    assert expected - known == set()


@pytest.mark.slow
def test_what_stands_for_several_codes_is_still_in_the_source() -> None:
    places = {(one.module, one.said) for one in errors_in(ROOT, PACKAGES) if one.code is None}
    assert set(VARYING) <= places
    for (module, said), codes in VARYING.items():
        assert codes, (module, said)


def sources(root: Path, **texts: str) -> Path:
    """A tiny project."""
    for package in PACKAGES:
        (root / package).mkdir()
    for package, source in texts.items():
        (root / package / "one.py").write_text(source)
    return root


def test_a_code_that_only_a_running_program_knows_must_be_declared(tmp_path: Path) -> None:
    source = 'raise SubmitterError(f"bad_{kind}", "It is bad.", "Mend it.")\n'
    with pytest.raises(ValueError, match="nobody"):
        error_codes(sources(tmp_path, benchmarks=source))


def test_what_is_told_is_what_the_source_says(tmp_path: Path) -> None:
    source = (
        "WHY = 'why'\n"
        "def f(n, big):\n"
        "    raise TransientError('full' if big else 'low', f'{n} are ' 'too many.', WHY)\n"
        "class Gone(PlatformError):\n"
        "    def __init__(self):\n"
        "        super().__init__('gone', 'It is gone.')\n"
        "class Far(TransientError): pass\n"
        "class Farther(Far): pass\n"
        "raise Farther('far', 'It is far.')\n"
    )
    codes = {one.code: one for one in error_codes(sources(tmp_path, evaluator=source))}
    assert {code: one.whose for code, one in codes.items()} == {
        "full": ("the world's",),
        "low": ("the world's",),
        "gone": ("ours",),
        "far": ("the world's",),
    }
    assert (codes["low"].says, codes["low"].remedies) == (("… are too many.",), ("why",))


def test_what_is_data_is_no_markup() -> None:
    assert text("`a_b|c` d_e") == r"`a_b\|c` d\_e"
    assert text("a|b <i>*x*</i>\n[l](u)") == r"a\|b \<i\>\*x\*\</i\> \[l\](u)"


class _Model(BaseModel):
    """A model.

    Attributes:
        first: of two,
            on two lines.
        second: in the docstring.

    Raises:
        Nothing: ever.
    """

    first: int
    second: int
    third: int
    """Below `it`."""
    fourth: int


def test_the_words_of_a_field_stand_in_the_docstring_or_below_it() -> None:
    assert field_words(_Model) == {
        "first": "of two, on two lines.",
        "second": "in the docstring.",
        "third": "Below `it`.",
    }
