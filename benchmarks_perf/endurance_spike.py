"""Commits of a spike of submissions on the test Hub: `python -m benchmarks_perf.endurance_spike`.

Worker processes with separate stores share the commits that the Hub allows in an hour; the Hub's
hours pass quickly. Every submission is checked to be published once.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.endurance.crew import launching
from tests.endurance.spike_on_hub import spike
from tests.endurance.verdict import undisturbed


def main() -> None:
    """Run one spike and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rate", type=float, default=120.0, help="hours of the Hub in an hour")
    given = parser.parse_args()
    accounts = [f"hub:u{n % 7}" for n in range(given.submissions)]
    with TemporaryDirectory() as folder, launching() as launcher:
        place = Path(folder)
        (place / "plain").mkdir()
        alone = undisturbed(place / "plain", accounts[:3])
        came = spike(
            launcher,
            place,
            accounts,
            alone,
            workers=given.workers,
            rate=given.rate,
            within_s=3600.0,
        )
    print(came)


if __name__ == "__main__":
    main()
