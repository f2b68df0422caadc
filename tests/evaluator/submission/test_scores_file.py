"""Scores files before they are sent: the page, the terminal and the intake say the same of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.problems import problem_kinds, problems_of
from leaderboard.submission_service import ScoresForm
from tests.evaluator.commands.submitting import typed
from tests.kit.refusals import refused
from tests.kit.worker import ADA, SCORES, Rig

WRONG = "pair_id,m\na,two\na,1\nd,3\n"
FORM = ScoresForm("toy", version="a b\n")


def test_the_check_lists_what_the_intake_refuses_and_keeps_nothing(rig: Rig) -> None:
    path, heads = rig.scores(WRONG), (rig.store.public.head(), rig.store.private.head())
    seen = rig.desk.examine_scores(path, FORM, ADA)
    with pytest.raises(SubmitterError) as caught:
        rig.desk.submit_scores(path, ScoresForm("toy", version=FORM.version), account=ADA)
    assert seen.kinds == problem_kinds(problems_of(caught.value))
    assert {kind.code: kind.count for kind in seen.kinds} == {
        "bad_version": 1, "duplicate_pairs": 1, "unknown_pairs": 1, "missing_pairs": 2,
        "not_numeric": 1,
    }  # fmt: skip
    assert seen.plan is None
    assert (rig.store.public.head(), rig.store.private.head()) == heads


def test_a_file_without_most_scores_is_refused_by_the_check_and_by_the_intake(rig: Rig) -> None:
    path = rig.scores("pair_id,m\na,1\nb,\nc,\n")
    (problem,) = rig.desk.examine_scores(path, ScoresForm("toy", "mine"), ADA).problems
    with refused("mostly_missing"):
        rig.desk.submit_scores(path, ScoresForm("toy"), account=ADA)
    assert problem.code == "mostly_missing"


def test_a_check_that_passes_says_which_board_it_enters_and_how_it_is_marked(rig: Rig) -> None:
    seen = rig.desk.examine_scores(rig.scores(SCORES), ScoresForm("toy", "mine"), ADA)
    assert (seen.problems, seen.name, seen.benchmarks) == ((), "mine", ("toy",))
    assert seen.plan is not None and seen.plan.pairs == {"toy": 3}
    assert "not re-run" in seen.plan.marks[0]


def test_what_an_account_would_be_refused_is_a_problem_of_its_check(rig: Rig) -> None:
    rig.send_scores(SCORES, name="mine")
    path, form = rig.scores(SCORES.replace("1", "9")), ScoresForm("toy", "mine")
    again = rig.desk.examine_scores(path, form, ADA)
    assert [problem.code for problem in again.problems] == ["version_taken"]
    assert rig.desk.examine_scores(path, form, None).problems == ()
    same = rig.desk.examine_scores(rig.scores(SCORES), form, ADA)
    assert same.problems == () and "same before" in same.notes[-1]


def test_the_terminal_lists_every_kind_with_its_number_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("pair_id,m\nx,two\nx,1\n")
    done = typed("check", path, "--benchmark", "demo_ts2")
    assert done.exit_code == 1
    for code in ("duplicate_pairs", "unknown_pairs", "missing_pairs", "not_numeric"):
        assert f"[{code}]" in done.output
    assert typed("check", path).exit_code == 2  # It needs its benchmark.
