"""Numbers from log-probabilities, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from evaluator.scorers import reduce

LOGITS = st.lists(st.floats(-30, 30), min_size=3, max_size=8)
LOGPROBS = st.lists(st.floats(-40, 0), min_size=1, max_size=5)


@given(LOGITS)
def test_p_yes_norm_is_the_sigmoid_of_the_logits_difference(logits: list[float]) -> None:
    import torch

    values = torch.tensor(logits, dtype=torch.float64)
    yes, no = torch.log_softmax(values, dim=0)[:2].numpy()

    found = reduce.p_yes_norm([yes], [no])

    assert_allclose(found, torch.sigmoid(values[0] - values[1]).item(), rtol=1e-9)
    assert_allclose(found + reduce.p_yes_norm([no], [yes]), 1)


@given(LOGITS)
def test_p_diff_is_the_difference_over_the_whole_vocabulary(logits: list[float]) -> None:
    import torch

    shares = torch.softmax(torch.tensor(logits, dtype=torch.float64), dim=0)
    yes, no = shares[:2].log().numpy()

    assert_allclose(reduce.p_diff([yes], [no]), float(shares[0] - shares[1]), atol=1e-12)


@given(st.integers(1, 4), st.integers(0, 99))
def test_geo_mean_is_exp_of_the_negative_loss(n: int, seed: int) -> None:
    import torch

    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, 7, generator=generator, dtype=torch.float64)
    label = torch.randint(7, (n,), generator=generator)
    logprobs = torch.log_softmax(logits, dim=-1)[torch.arange(n), label]

    loss = torch.nn.functional.cross_entropy(logits, label)

    assert_allclose(reduce.geo_mean_with_eos(logprobs), torch.exp(-loss).item())


@given(st.lists(LOGPROBS, min_size=1, max_size=5))
def test_shares_of_choices_sum_to_one(choices: list[list[float]]) -> None:
    shares = [reduce.choice_norm(choices, k) for k in range(len(choices))]

    weights = np.exp([sum(one) - max(map(sum, choices)) for one in choices])
    assert_allclose(shares, weights / weights.sum())
    assert_allclose(sum(shares), 1)


@given(LOGPROBS)
def test_one_token_answers_have_one_probability(logprobs: list[float]) -> None:
    first = logprobs[:1]

    assert reduce.p_first(logprobs) == reduce.p_whole(first) == reduce.geo_mean_with_eos(first)
    assert reduce.p_whole(logprobs) <= reduce.p_first(logprobs)


def test_ranges_hold_where_an_answer_is_impossible() -> None:
    assert reduce.p_first([-np.inf]) == 0
    assert reduce.p_yes_norm([0.0], [-np.inf]) == 1
    assert reduce.p_diff([-np.inf], [0.0]) == -1


def test_an_answer_without_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        reduce.p_first([])
