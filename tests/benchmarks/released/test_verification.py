"""Agreement of a metric with released scores, pair by pair, and the record of what was verified."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.released import verification
from benchmarks.released.bundle import released_table
from benchmarks.released.verification import (
    Agreement,
    PairDifference,
    Reference,
    State,
    Verification,
    compare,
    record,
    references,
    share_text,
    verification_status,
    verifications,
)
from tests.kit.refusals import refused

NAN = math.nan
NAME, DIGEST, CODE, COMMIT = "clipscore-ts2", "a" * 64, "f" * 64, "b" * 40


def reference(**fields: Any) -> Reference:
    given = {"tolerance": 0.1, "share": 1.0, **fields}
    return Reference(
        scorer=NAME, table="ts2/scores.parquet", column="clipscore", needs=(), why="", **given
    )


def series(*values: float) -> pd.Series:
    return pd.Series(values, index=[f"p{n}" for n in range(len(values))], dtype=float)


def compared(ours: pd.Series, theirs: pd.Series, **fields: Any) -> tuple[Agreement, list[str]]:
    agreement, outside = compare(ours, theirs, reference(**fields))
    return agreement, [one.pair_id for one in outside]


def test_the_same_scores_agree_whatever_the_order_and_number_of_released_ones() -> None:
    ours = series(0.1, 0.5, 0.3, 0.9)
    theirs = pd.concat([ours[::-1], pd.Series({"another": 7.0})])
    found, outside = compare(ours, theirs, reference())
    assert outside == ()
    assert [found.plcc, found.srcc] == pytest.approx([1.0, 1.0])
    rest = found.model_dump(exclude={"plcc", "srcc"})
    assert rest == {
        "pairs": 4, "unscored": 0, "unreleased": 0, "largest": 0.0, "within": 4, "share": 1.0,
        "agrees": True,
    }  # fmt: skip


def test_pairs_that_differ_are_named_in_the_order_of_the_benchmark_with_both_values() -> None:
    ours = series(0.1, 0.5, NAN, 0.9, 0.2)
    theirs = series(0.1, 0.8, 0.4, 0.4, NAN)
    found, outside = compare(ours, theirs, reference(share=0.25))
    assert outside == (
        PairDifference(pair_id="p1", score=0.5, ours=0.5, released=0.8, difference=0.5 - 0.8),
        PairDifference(pair_id="p2", score=None, ours=None, released=0.4, difference=None),
        PairDifference(pair_id="p3", score=0.9, ours=0.9, released=0.4, difference=0.5),
    )
    assert (found.pairs, found.unscored, found.unreleased, found.within) == (3, 1, 1, 1)
    assert (found.share, found.largest, found.agrees) == (0.25, 0.5, True)
    assert compared(ours, theirs, share=0.26)[0].agrees is False


@pytest.mark.parametrize(
    ("conversion", "ours", "theirs"),
    [
        pytest.param({"factor": 2.5, "low": 0.0}, (0.2, -0.2, 0.4), (0.5, 0.0, 1.0), id="clamped"),
        pytest.param({"factor": 100.0}, (0.25, 0.31), (25.0, 31.0), id="times 100"),
        pytest.param({"min_max": True}, (13.0, 42.0, 27.5), (0.0, 1.0, 0.5), id="0 to 1"),
        pytest.param({"min_max": True}, (13.0, 27.5), (0.2, 0.8), id="a part of 0 to 1"),
        pytest.param({"min_max": True}, (2.0, 2.0), (2.0, 2.0), id="constant"),
    ],
)
def test_scores_are_compared_on_the_released_scale(
    conversion: dict[str, Any], ours: tuple[float, ...], theirs: tuple[float, ...]
) -> None:
    found, outside = compared(series(*ours), series(*theirs), tolerance=1e-9, **conversion)
    assert (outside, found.agrees) == ([], True)


def test_a_score_of_ours_that_is_missing_stays_so_when_it_is_converted() -> None:
    found, outside = compared(series(NAN, 0.5), series(0.0, 0.5), low=0.0, min_max=True)
    assert (found.pairs, found.unscored, outside) == (1, 1, ["p0"])


def test_what_is_off_by_the_tolerance_itself_is_within() -> None:
    found, _ = compared(series(0.3, 0.7), series(0.31, 0.69), tolerance=0.01)
    assert found.within == 2


def test_nothing_to_compare_never_agrees() -> None:
    for ours, theirs in ((series(NAN, NAN), series(0.1, 0.2)), (series(0.1), series(NAN))):
        found, _ = compared(ours, theirs, min_max=True)
        assert (found.pairs, found.agrees, found.largest, found.plcc) == (0, False, None, None)
    constant, _ = compared(series(1.0, 1.0), series(1.0, 1.0))
    assert (constant.plcc, constant.srcc, constant.agrees) == (None, None, True)


@pytest.mark.parametrize("one", references().values(), ids=lambda one: one.scorer)
def test_a_reference_is_a_column_that_ships_of_files_that_its_benchmark_declares(
    one: Reference,
) -> None:
    column = released_table(one.table)[one.column]
    assert np.isfinite(column.to_numpy(dtype=float)).all()
    card = load_registry()[one.benchmark].card
    assert set(one.needs) <= {file.path for file in card.files}
    assert card.counts["images"] == len(column)
    assert one.file.licence and one.file.commit
    if one.min_max:
        assert (column.min(), column.max()) == (0.0, 1.0)


# The record


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "verified.toml"
    place.write_text("# A comment.\n")
    monkeypatch.setattr(verification, "RECORDS", place)
    yield place


def found(scorer: str = NAME, **fields: Any) -> Verification:
    given: dict[str, Any] = {
        "scorer": scorer, "row_sha256": DIGEST, "code_sha256": CODE, "benchmark": "ts2",
        "revision": "93ebf89",
        "table": "ts2/scores.parquet", "column": "clipscore", "on": date(2026, 12, 1),
        "device": 'cuda (a "GPU")', "dtype": "float32", "pairs": 2839, "unscored": 1,
        "plcc": 0.9999, "srcc": None, "largest": 0.0125, "tolerance": 0.015, "share": 0.9999,
        "wanted_share": 0.95, "agrees": True,
        "weights": {"model": {"id": "openai/clip-vit-base-patch16", "commit": COMMIT}},
        "packages": {"torch": "2.9", "open_clip_torch": "3.3"},
    }  # fmt: skip
    return Verification.model_validate(given | fields)


def test_a_record_is_read_as_it_was_written_and_replaces_the_one_before(records: Path) -> None:
    record(found("b"))
    record(found("a", plcc=None))
    record(found("b", share=0.5, agrees=False))
    assert verifications() == {"a": found("a", plcc=None), "b": found("b", share=0.5, agrees=False)}
    text = records.read_text()
    assert text.startswith("# A comment.\n") and text.index('"a"') < text.index('"b"')


def test_what_is_known_of_a_metric_follows_its_row_and_its_weights(records: Path) -> None:
    now = (NAME, DIGEST, CODE, {"model": COMMIT})
    assert verification_status("bvqa", DIGEST, CODE, {}).state is State.NONE_KNOWN
    assert verification_status(*now).state is State.NOT_YET
    record(found())
    verified = verification_status(*now)
    assert (verified.state, verified.record) == (State.VERIFIED, found())
    for part in ("> 99.9 %", "2,840", "0.015", "0.9999", "0.0125", COMMIT[:12], "torch 2.9"):
        assert part in verified.text
    assert verification_status(NAME, DIGEST, CODE, {}).state is State.VERIFIED
    assert verification_status(NAME, DIGEST, "e" * 64, {}).state is State.EARLIER
    assert verification_status(NAME, "c" * 64, CODE, {}).state is State.EARLIER
    assert verification_status(NAME, DIGEST, CODE, {"model": "d" * 40}).state is State.EARLIER
    record(found(agrees=False, share=0.2))
    assert verification_status(*now).state is State.DIFFERS
    assert verification_status(NAME, "c" * 64, CODE, {}).state is State.EARLIER


@pytest.mark.parametrize(
    "text", ["verified = 1", "[[verified]]\nscorer = 1", "=", "twice"], ids=lambda text: text[:9]
)
def test_a_damaged_record_is_an_error(records: Path, text: str) -> None:
    if text == "twice":
        record(found())
        text = 2 * records.read_text()
    records.write_text(text)
    with refused("invalid_verification"):
        verifications()


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100 %"), (0.99999, "> 99.9 %"), (0.5, "50 %"), (0.123, "12.3 %")]
)
def test_a_share_is_never_rounded_to_all(share: float, text: str) -> None:
    assert share_text(share) == text
