"""Limits of submitted modules, as an operator sets them."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from benchmarks.errors import SubmitterError
from evaluator.isolation.job import MIB, Limits, scorer_limits


@pytest.mark.parametrize(
    ("variables", "changed"),
    [
        ({}, {}),
        ({"START_S": "30"}, {"start_s": 30.0}),
        ({"BATCH_S": "7.5"}, {"batch_s": 7.5}),
        ({"JOB_S": "3600"}, {"job_s": 3600.0}),
        ({"JOB_S": "604800"}, {"job_s": 604_800.0, "cpu_s": 1_209_600}),
        ({"MEMORY_MIB": "512"}, {"memory_bytes": 512 * MIB}),
        ({"PROCESSES": "40"}, {"processes": 40}),
    ],
)
def test_each_limit_is_a_setting(variables: dict[str, str], changed: dict[str, float]) -> None:
    found = scorer_limits({f"ASSAY_SCORER_{name}": text for name, text in variables.items()})
    assert asdict(found) == asdict(Limits()) | changed


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"START_S": "0"}, "ASSAY_SCORER_START_S"),
        ({"BATCH_S": "soon"}, "ASSAY_SCORER_BATCH_S"),
        ({"JOB_S": "nan"}, "ASSAY_SCORER_JOB_S"),
        ({"MEMORY_MIB": "1"}, "ASSAY_SCORER_MEMORY_MIB"),
        ({"PROCESSES": "2.5"}, "ASSAY_SCORER_PROCESSES"),
        ({"BATCH_S": "100", "JOB_S": "50", "START_S": "10"}, "limits.scorer_batch_s (100)"),
        ({"JOB_S": "120"}, "limits.scorer_start_s (180)"),
    ],
)
def test_a_limit_that_cannot_be_is_refused_by_its_name(
    variables: dict[str, str], named: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        scorer_limits({f"ASSAY_SCORER_{name}": text for name, text in variables.items()})
    assert caught.value.code == "bad_setting"
    assert named in str(caught.value)
