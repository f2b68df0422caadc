"""Report of `check` for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evaluator.commands.check_report import LOG_LINES, headline_rows
from evaluator.commands.check_verdict import Verdict
from evaluator.submission.checking.dry_run import BenchmarkRun, DryRun
from evaluator.submission.checking.projection import Projection
from leaderboard.desk import Examination
from leaderboard.records import Receipt


def examined_record(seen: Examination) -> dict[str, Any]:
    """What was found without running anything."""
    return asdict(seen)


def found_record(
    seen: Examination,
    found: DryRun,
    verdict: Verdict,
    later: Sequence[Projection],
    receipt: Receipt | None,
) -> dict[str, Any]:
    """All that a dry run found."""
    failure = found.failure
    return {
        **examined_record(seen),
        "may_rank": verdict.good,
        "verdict": verdict.said,
        "remarks": list(verdict.remarks),
        "isolation": list(found.layers),
        "error": failure
        and {"code": failure.code, "message": failure.message, "hint": failure.hint},
        "log": found.log.splitlines()[-LOG_LINES:],
        "start_s": found.start_s,
        "can": [one.name.lower() for one in found.capabilities if one.name],
        "peak_memory_bytes": found.peak_memory_bytes,
        "runs": [_run(run) for run in found.runs],
        "trust": found.trust.model_dump(mode="json") if found.trust else None,
        "costs": asdict(found.costs) if found.costs else None,
        "projections": [asdict(one) for one in later],
        "receipt": receipt.model_dump(mode="json") if receipt else None,
    }


def _run(run: BenchmarkRun) -> dict[str, Any]:
    scores = run.scores
    known = scores.dropna()
    return {
        "benchmark": run.drawn.name,
        "pairs": run.drawn.n_pairs,
        "of": run.drawn.n_pairs_whole,
        "missing": int(scores.isna().sum()),
        "lowest": float(known.min()) if len(known) else None,
        "median": float(known.median()) if len(known) else None,
        "highest": float(known.max()) if len(known) else None,
        "findings": run.scored.findings.model_dump(mode="json") if run.scored.findings else None,
        "seconds": run.seconds,
        "testing_s": run.testing_s,
        "asking_s": run.asking_s,
        "measuring_s": run.measuring_s,
        "headline": [row.to_json() for row in headline_rows(run)],
        "rows": [row.to_json() for row in run.rows],
    }
