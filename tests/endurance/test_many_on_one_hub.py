"""Eight processes on one store of the Hub: nothing twice, and within the commits of an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endurance.crew import Launcher
from tests.endurance.spike_on_hub import QUOTA, spike
from tests.endurance.verdict import undisturbed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SUBMISSIONS = 64
"""By default; ASSAY_ENDURANCE=4 makes two hundred and fifty-six of them."""
LIKE_ALONE = 3


def test_eight_processes_publish_a_spike_once_within_the_hubs_commits(
    launcher: Launcher, place: Path, how_long: float
) -> None:
    accounts = [f"hub:u{n % 7}" for n in range(round(SUBMISSIONS * min(how_long, 4.0)))]
    (place / "plain").mkdir()
    alone = undisturbed(place / "plain", accounts[:LIKE_ALONE])
    came = spike(launcher, place, accounts, alone)
    print(f"\n{came}")
    assert came.workers == 8
    assert came.peak <= QUOTA
    assert came.for_each <= 2.5
