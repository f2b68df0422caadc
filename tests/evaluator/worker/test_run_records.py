"""What is stored of a run: its cost, findings and output, and how its author's check compares."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from evaluator.scoring.asking import Finding
from evaluator.scoring.column import RunVerdict, ScoreColumn
from evaluator.submission.archives.archive import taken_in
from evaluator.submission.dry_run import USUAL_PAIRS, Drawn, agreement
from evaluator.submission.receipts import environment_versions, written
from evaluator.submission.runs import MOST_EXAMPLES, findings_record
from evaluator.worker.worker import LOG_CHARS, output_end
from leaderboard.publication.results import scores_sha256
from leaderboard.records import Cost, Receipt, Status
from leaderboard.states import State
from leaderboard.submission_service import SubmissionReceipt
from tests.kit.refusals import refused
from tests.kit.worker import ADA, Rig


def column_of(findings: list[Finding]) -> ScoreColumn:
    return ScoreColumn(
        overall=pd.Series(dtype="float64"),
        elements=None,
        cost=Cost(pairs=2, images=1, seconds=3.0, pairs_per_s=4.0),
        answers=None,
        findings=tuple(findings),
        environment={"device": "cpu"},
        verdict=RunVerdict(9, 4, {"no_score": 5}, {}),
    )


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 90)))
def test_examples_are_few_and_no_frequent_finding_hides_a_rare_one(counts: dict[str, int]) -> None:
    findings = [
        Finding(code, "pair", f"{code}{n}", "It is so.", scored=False)
        for code, many in counts.items()
        for n in range(many)
    ]
    record = findings_record(column_of(findings))
    assert record.counts == counts
    assert len(record.examples) == min(MOST_EXAMPLES, len(findings))
    shown = {code: sum(e.code == code for e in record.examples) for code in counts}
    assert all(n >= min(counts[code], MOST_EXAMPLES // len(counts)) for code, n in shown.items())
    assert (record.pairs, record.scored, record.unscored) == (9, 4, {"no_score": 5})
    assert record.environment == {"device": "cpu"}


def test_of_a_long_output_the_end_is_shown_and_how_much_is_left_out() -> None:
    assert output_end("") == ""
    assert output_end("x" * LOG_CHARS) == "x" * LOG_CHARS
    told, shown = output_end("start" + "é" * (LOG_CHARS + 1_000)).split("\n")
    assert "1,005" in told
    assert shown == "é" * LOG_CHARS


# The author's own check -----------------------------------------------------------------------


def sent(rig: Rig, **other: object) -> SubmissionReceipt:
    """A module that is sent with a receipt of its check, in which something is otherwise."""
    module = rig.module()
    with taken_in(module) as content:
        sha256 = content.sha256
    as_the_rig_scores = pd.Series([0.0, 1.0, 2.0], index=["toy/a", "toy/b", "toy/c"])
    receipt = Receipt(
        content_sha256=sha256,
        versions=environment_versions(),
        isolation=("fake",),
        benchmark="toy",
        pairs=3,
        scores_sha256=scores_sha256(as_the_rig_scores),
        checked_at=rig.clock(),
    )
    written_one = written(receipt.model_copy(update=other))
    return rig.desk.submit_metric(module, account=ADA, receipt=written_one)


def finished(rig: Rig, **other: object) -> Status:
    name = sent(rig, **other).status.submission.submission_id
    assert rig.worker().run_next()
    assert rig.state(name) is State.PUBLISHED
    return rig.status(name)


def test_a_receipt_that_fits_is_kept_and_nothing_is_said(rig: Rig) -> None:
    accepted = sent(rig)
    assert accepted.status.submission.receipt is not None
    assert (accepted.notes, accepted.status.reason) == ((), "")


def test_other_versions_are_said_to_the_author_and_kept_with_the_submission(rig: Rig) -> None:
    accepted = sent(rig, versions={**environment_versions(), "numpy": "0.1"})
    (note,) = accepted.notes
    assert "numpy 0.1" in note
    queued = rig.ledger.events(accepted.status.submission.submission_id)[-1]
    assert (queued.state, queued.reason) == (State.QUEUED, note)


@pytest.mark.parametrize(
    ("change", "code"),
    [({"content_sha256": "0" * 64}, "receipt_mismatch"), ({"pairs": -1}, "bad_receipt")],
)
def test_a_receipt_of_something_else_is_refused(
    rig: Rig, change: dict[str, object], code: str
) -> None:
    with refused(code):
        sent(rig, **change)
    assert rig.ledger.statuses() == ()


@pytest.mark.parametrize(("more", "said"), [(0.0, "same scores"), (1.0, "other scores")])
def test_whether_scores_agree_with_the_authors_check_is_a_finding_and_no_failure(
    rig: Rig, more: float, said: str
) -> None:
    rig.backend.score = lambda brightness, _: brightness + more
    assert said in finished(rig).reason


@pytest.mark.parametrize("other", [{"pairs": 2}, {"benchmark": "toy+elsewhere"}])
def test_of_a_check_whose_pairs_are_not_known_nothing_is_said(
    rig: Rig, other: dict[str, object]
) -> None:
    assert finished(rig, **other).reason == ""


@pytest.mark.parametrize("share", [None, USUAL_PAIRS // 2])
def test_the_pairs_of_a_check_of_the_demo_are_drawn_again(share: int | None) -> None:
    registry = load_registry()
    names = ("demo_croc", "demo_gecko")
    every = {
        name: ScoreTable(pd.DataFrame({"m": range(len(pairs))}, index=pairs, dtype=float))
        for name in names
        if (pairs := [p.pair_id for p in registry[name].questions(None).pairs])
    }
    drawn = [Drawn(registry[name], None, share) for name in names]
    asked = [
        every[one.name]
        .overall["m"]
        .loc[[p.pair_id for p in one.questions(None).pairs]]
        .add_prefix(f"{one.name}/")
        for one in drawn
    ]
    receipt = Receipt(
        content_sha256="0" * 64,
        versions={},
        isolation=(),
        benchmark="+".join(names),
        pairs=sum(one.n_pairs for one in drawn),
        scores_sha256=scores_sha256(pd.concat(asked)),
        checked_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert "same scores" in agreement(receipt, every, registry, None)
    other = {name: ScoreTable(table.overall * 1.001) for name, table in every.items()}
    assert "other scores" in agreement(receipt, other, registry, None)
