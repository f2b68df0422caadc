"""What the measures of TS2 mean, for column headers and the about page."""

from __future__ import annotations

from benchmarks.schema import MeasureInfo

_PAPER = "Saxon et al. 2024, arXiv:2404.04251"

MEASURES: dict[str, MeasureInfo] = {
    "rank": MeasureInfo(
        title="Rank (Spearman ρ)",
        meaning=(
            "Does the score fall as a picture gets more things wrong? 1: every walk from the "
            "faultless images to the worst is put in the right order; 0: no order at all; "
            "-1: the order is reversed."
        ),
        low=-1.0,
        high=1.0,
        chance=0.0,
        source=f"{_PAPER}, Eqs. 1-2; variant paper: the computation behind Table 2",
    ),
    "sep": MeasureInfo(
        title="Separation (KS)",
        meaning=(
            "How cleanly do the scores of images with different numbers of errors stay apart? "
            "1: no overlap; 0: the scores look the same. It does not ask which group scores "
            "higher, and small groups look apart by luck, so a guessing metric is above 0."
        ),
        low=0.0,
        high=1.0,
        source=f"{_PAPER}, Eqs. 3-4; variant paper: the computation behind Table 2",
    ),
    "delta": MeasureInfo(
        title="Delta (score drop)",
        meaning=(
            "By how much does the mean score drop from one error count to the next, in standard "
            "deviations of the metric over all images? 0: no drop; negative: the scores rise "
            "with the errors."
        ),
        chance=0.0,
        source=f"{_PAPER}, Eq. 5; variant as_printed: the cells of Table 2, see the erratum",
    ),
    "rank_midrank": MeasureInfo(
        title="Rank (ties share ranks)",
        meaning=(
            "Rank with the usual treatment of ties: equal scores share the average of their "
            "ranks. The paper's Eq. 1 gives them the lowest, but its own worked example needs "
            "the average."
        ),
        low=-1.0,
        high=1.0,
        chance=0.0,
        source=f"{_PAPER}, Eq. 2 with the average ranks of the example in Section 6.4",
    ),
}
