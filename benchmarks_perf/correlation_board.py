"""A whole board of resampled correlations: CPU seconds and memory, each in a process of its own.

See `benchmarks_perf.correlations`, which prints this.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
from scipy import stats

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.correlation import resampled_pearson, resampled_spearman
from benchmarks.statistics.kendall_forms import KendallForms, Ties
from benchmarks.statistics.pairwise import tie_calibrated
from benchmarks_perf.made_up_ratings import (
    N_BLOCKS,
    N_IMAGES,
    N_METRICS,
    N_PROMPTS,
    N_RESAMPLES,
    N_SKILLS,
    Material,
    all_draws,
    seconds_of,
    skills,
)

BOARD_MIB = 500
BOARD_RATIO = 50.0
"""Least gain of the board of Spearman's rho over index and spearmanr in each resample."""
MODULE = "benchmarks_perf.correlations"


def _board_of(measure: str, data: Material, draws: FloatArray, chosen: list[IntArray]) -> None:
    """One coefficient of all metrics, on all images and on each skill, in all draws."""
    if measure == "kendall":
        labels = Ties.of(data.labels, data.prompts, N_PROMPTS)
        slices = [np.arange(N_PROMPTS), *chosen]
        pairs = [labels.among(part).untied_pairs(draws[:, part]) for part in slices]
        for column in data.scores.T:
            forms = KendallForms.of(column, data.labels, data.prompts, N_PROMPTS, labels)
            for part, of_labels in zip(slices, pairs, strict=True):
                forms.among(part).tau_b(draws[:, part], of_labels)
        return
    resampled = resampled_spearman if measure == "spearman" else resampled_pearson
    resampled(data.scores, data.labels, draws, data.prompts)
    for part in chosen:
        inside = np.isin(data.prompts, part)
        own = data.prompts[inside]
        resampled(data.scores[inside], data.labels[inside], draws, own)


def board(quick: bool) -> bool:
    """CPU seconds and memory of the whole board."""
    cells = (1 + N_SKILLS / 4) * N_PROMPTS * N_IMAGES * N_METRICS * (N_RESAMPLES + 2 * N_BLOCKS)
    print(f"\nBoard: {N_METRICS} metrics x (all + {N_SKILLS} skills) x 1,500 draws")
    print(f"{'':12}{'CPU s':>9}{'ns/cell':>9}{'MiB above start':>17}{'scipy / ours':>14}")
    passed = True
    for measure in ("pearson", "spearman", "kendall"):
        seconds, mib, plain = in_own_process(measure, "--quick" if quick else "")
        ratio = plain * cells / seconds
        print(
            f"{measure:12}{seconds:9.2f}{1e9 * seconds / cells:9.2f}{mib:17.0f}{ratio:14.0f}",
            flush=True,
        )
        passed &= mib < BOARD_MIB and (measure != "spearman" or ratio >= BOARD_RATIO)
    print(f"Spearman {BOARD_RATIO:.0f} times scipy's speed, each below {BOARD_MIB} MiB: ", end="")
    print("yes" if passed else "NO")
    return passed


class _Memory:
    """The peak of memory from now on, above what is held now."""

    def __init__(self) -> None:
        # The peak that getrusage gives starts at the parent's, and never falls.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._start = self._mib("VmRSS")

    @property
    def peak(self) -> float:
        """MiB."""
        return self._mib("VmHWM") - self._start

    @staticmethod
    def _mib(field: str) -> float:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def in_own_process(*arguments: str) -> tuple[float, float, float]:
    """What `measure_alone` prints: CPU seconds, MiB above the data's, scipy's seconds by cell."""
    command = [sys.executable, "-m", MODULE, "--only", *filter(None, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, mib, plain = map(float, done.stdout.split())
    return seconds, mib, plain


def measure_alone(measure: str, quick: bool) -> None:
    """Print seconds, the peak of memory in MiB above the data's, and scipy's seconds by cell."""
    data = Material.made_up()
    if measure == "flat":
        memory = _Memory()
        seconds = seconds_of(lambda: tie_calibrated(data.scores[:, 10].copy(), data.labels))
        print(seconds, memory.peak, 0.0)
        return
    draws, chosen = all_draws(), skills()
    memory = _Memory()
    if not quick:
        seconds = seconds_of(lambda: _board_of(measure, data, draws, chosen))
        print(seconds, memory.peak, _scipy_by_cell(measure, data))
        return
    few = Material(data.scores[:, ::3], data.labels, data.prompts)
    whole = seconds_of(lambda: _board_of(measure, few, draws, []))
    part = seconds_of(lambda: _board_of(measure, few, draws, chosen[:4])) - whole
    seconds = 3 * (whole + N_SKILLS / 4 * part)
    print(seconds, memory.peak, _scipy_by_cell(measure, data))


def _scipy_by_cell(measure: str, data: Material) -> float:
    """Seconds of scipy's coefficient for one resample of one metric, by item."""
    functions = {
        "pearson": stats.pearsonr,
        "spearman": stats.spearmanr,
        "kendall": stats.kendalltau,
    }
    drawn = np.random.default_rng(4).integers(0, data.labels.size, data.labels.size)
    x, y = data.scores[drawn, 10], data.labels[drawn]
    return median(seconds_of(lambda: functions[measure](x, y)) for _ in range(9)) / y.size
