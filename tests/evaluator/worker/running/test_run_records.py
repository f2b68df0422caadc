"""What the engine counted and found, as it is stored."""

from __future__ import annotations

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from evaluator.scoring.asking import Finding
from evaluator.scoring.column import Cost, RunVerdict, ScoreColumn
from evaluator.worker.running.run_records import MOST_EXAMPLES, cost_record, findings_record


def column_of(findings: list[Finding]) -> ScoreColumn:
    return ScoreColumn(
        overall=pd.Series(dtype="float64"),
        elements=None,
        cost=Cost(1, 2, 3.0, 4.0, 5, 6, 7, 8, 9, 10),
        answers=None,
        findings=tuple(findings),
        environment={"device": "cpu"},
        verdict=RunVerdict(9, 4, {"no_score": 5}, {}),
    )


def test_every_figure_of_the_cost_is_stored() -> None:
    record = cost_record(column_of([]).cost)
    assert record.model_dump() == {
        "images": 1,
        "pairs": 2,
        "seconds": 3.0,
        "pairs_per_s": 4.0,
        "peak_memory_bytes": 5,
        "calls": 7,
        "images_decoded": 8,
        "images_encoded": 9,
        "texts_encoded": 10,
    }


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
