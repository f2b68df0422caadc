"""Problems of a submission: all kinds at once, each with its number, an example and the remedy."""

from __future__ import annotations

import pickle

from benchmarks.errors import SubmitterError
from benchmarks.problems import Problem, one_error, problem_kinds, problems_of

MISSING = [
    Problem("missing", f"No file (for p{n}).", "Add it.", file=f"p{n}.png") for n in range(76)
]
BLANK = Problem("blank", "It is of one colour.", "Generate it again.", file="x.png")


def test_problems_of_one_code_and_remedy_are_one_kind_in_the_order_they_were_found() -> None:
    missing, blank = problem_kinds([*MISSING, BLANK])
    assert (missing.code, missing.count, missing.example, missing.hint) == (
        "missing", 76, "p0.png", "Add it.",
    )  # fmt: skip
    assert (blank.count, blank.listed) == (1, (BLANK,))
    assert "76 missing" in missing.sentence and "p0.png" in missing.sentence


def test_what_is_counted_but_not_listed_is_in_the_numbers() -> None:
    found = problem_kinds([*MISSING, BLANK], {"missing": 500, "blank": 1, "extra": 3})
    assert [(kind.code, kind.count) for kind in found] == [
        ("missing", 500), ("blank", 1), ("extra", 3),
    ]  # fmt: skip
    assert found[2].listed == () and "3 extra" in found[2].sentence


def test_each_key_of_a_manifest_stands_for_itself() -> None:
    lines = [Problem("bad_manifest", f"{key}: wrong.", "Correct that key.", "assay.toml", 3)
             for key in ("name", "version")]  # fmt: skip
    assert [kind.sentence for kind in problem_kinds(lines)] == [
        "assay.toml:3: name: wrong.", "assay.toml:3: version: wrong.",
    ]  # fmt: skip


def test_a_problem_of_many_rows_names_the_first_and_counts_the_rest() -> None:
    one = Problem("m", "It lacks 7 pairs.", count=7, examples=tuple("abcdefg"))
    assert one.sentence == "It lacks 7 pairs: a, b, c, d, e and 2 more."
    (kind,) = problem_kinds([one])
    assert (kind.count, kind.example, kind.sentence) == (7, "a", one.sentence)


def test_one_error_keeps_the_code_of_one_problem_and_says_every_kind_of_several() -> None:
    single = one_error([BLANK])
    assert (single.code, single.hint, single.problems) == ("blank", BLANK.hint, (BLANK,))
    several = one_error([*MISSING, BLANK])
    assert several.code == "several_problems" and several.message.startswith("77 things")
    assert len(several.message.splitlines()) == 3 and "Add it." in several.message
    assert problems_of(several) == (*MISSING, BLANK)
    again = pickle.loads(pickle.dumps(several))
    assert (again.code, again.message) == (several.code, several.message)
    other = SubmitterError("no_file", "None.", "Choose one.")
    assert problems_of(other) == (Problem("no_file", "None.", "Choose one."),)
