"""The one-pixel change beside what models differ by."""

from __future__ import annotations

import numpy as np
import pytest

from leaderboard.models.board_types import BoardQuery
from leaderboard.models.robustness import robustness
from tests.leaderboard.models.made_up_models import World, prompt_set, prompts_of, trusting

VQA, CLIP = "vqa/vqa", "clip/clip"
QUERY = BoardQuery("drawn")


def test_the_change_is_set_against_spread_and_smallest_gap() -> None:
    rng = np.random.default_rng(1)
    made = World(prompt_set(prompts_of(100)), trusting(VQA))
    scores = [mean + 0.05 * rng.standard_normal((1, 100)) for mean in (0.2, 0.5, 0.6)]
    for i, of in enumerate(scores):
        run = {"perturbed": 10 * (i + 1), "mean_change": 0.01 * (i + 1), "max_change": 0.1 * i}
        made.add(f"m{i}", {VQA: of, CLIP: of * 0}, runs={VQA: run})
    by_judge = {one.judge.entry_id: one for one in robustness(made.reader, made.view, QUERY)}
    one = by_judge[VQA]
    assert one.n_images == 60
    assert one.mean_change == pytest.approx((10 * 0.01 + 20 * 0.02 + 30 * 0.03) / 60)
    assert one.max_change == pytest.approx(0.2)
    assert one.spread == pytest.approx(np.concatenate(scores, axis=None).std(ddof=1))
    assert one.smallest_gap == pytest.approx(scores[2].mean() - scores[1].mean())
    assert one.in_gaps == pytest.approx((one.mean_change or 0.0) / (one.smallest_gap or 1.0))
    silent = by_judge[CLIP]
    assert silent.n_images == 0 and silent.mean_change is None
    assert silent.smallest_gap is None and silent.in_spreads is None
