"""Editions: what two results must share to stand on one board."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from leaderboard.records import Cost, RunResult
from leaderboard.reevaluation.editions import CONTRACT, Edition, is_current, scores_stand
from leaderboard.store.paths import check_path
from tests.benchmarks.toy import Toy

CARD = Toy.card


def result(
    revision: str = "1", protocol: int = 1, contract: int | None = CONTRACT, *, ran: bool = True
) -> RunResult:
    return RunResult(
        submission_id="grey-0123456789",
        benchmark="toy",
        revision=revision,
        protocol=protocol,
        contract=contract,
        rows=(),
        resampling_seed=1,
        n_resamples=1,
        isolation=(),
        versions={},
        cost=Cost(pairs=1, images=1, seconds=1.0, pairs_per_s=1.0) if ran else None,
        judged_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_a_result_is_current_only_in_its_own_revision_protocol_and_contract() -> None:
    assert is_current(result(), CARD)
    assert not is_current(result("2"), CARD)
    assert not is_current(result(protocol=2), CARD)
    assert not is_current(result(contract=CONTRACT + 1), CARD)


def test_results_of_scores_as_submitted_fit_any_contract() -> None:
    assert is_current(result(contract=None, ran=False), CARD)
    assert Edition(revision="1", contract=None).fits(Edition(revision="1", contract=99))


def test_results_older_than_contracts_are_of_the_first() -> None:
    assert Edition.of_result(result(contract=None)) == Edition.of_result(result(contract=2))


def test_scores_stand_for_the_same_revision_and_for_those_a_card_names() -> None:
    later = CARD.model_copy(update={"revision": "2", "same_questions_as": ("1",)})
    assert scores_stand(Edition(revision="1", protocol=7), CARD)
    assert scores_stand(Edition(revision="1"), later)
    assert not scores_stand(Edition(revision="0"), later)
    assert not scores_stand(Edition(revision="1", contract=CONTRACT - 1), CARD)


@pytest.mark.parametrize("revision", ["r1", "2024-12-01", "8e37050-7330119", "arxiv_2412.18150"])
def test_the_tag_of_an_ordinary_revision_is_the_revision(revision: str) -> None:
    assert Edition(revision=revision).tag == revision


@pytest.mark.parametrize(
    "revision", ["../../etc", "", "a/b", "ü", "r1~p2", "x" * 300, ".hidden", "a b", "\u202ex"]
)
def test_the_tag_of_any_revision_is_one_plain_part_of_a_path(revision: str) -> None:
    tag = Edition(revision=revision).tag
    assert "/" not in tag
    assert tag.isascii()
    assert check_path(f"boards/toy/{tag}.parquet")
    assert tag != revision


def test_editions_that_differ_have_tags_that_differ() -> None:
    editions = [
        Edition(revision=revision, protocol=protocol, contract=contract)
        for revision in ("1", "1~p2", "1 ", "2")
        for protocol in (1, 2)
        for contract in (2, 3)
    ]
    assert len({edition.tag for edition in editions}) == len(editions)
