"""Records of a run: the engine's counts and findings, as stored with a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from evaluator.scoring.asking import Finding
from evaluator.scoring.column import Cost, ScoreColumn
from leaderboard import records

MOST_EXAMPLES = 50


def cost_record(cost: Cost) -> records.Cost:
    """What a run used."""
    return records.Cost(
        pairs=cost.pairs,
        images=cost.images,
        seconds=cost.seconds,
        pairs_per_s=cost.pairs_per_s,
        peak_memory_bytes=cost.peak_memory_bytes,
        calls=cost.calls,
        images_decoded=cost.images_decoded,
        images_encoded=cost.images_encoded,
        texts_encoded=cost.texts_encoded,
    )


def findings_record(column: ScoreColumn) -> records.Findings:
    """How much of a run was scored, and what was found on the way: counts and some examples."""
    return records.Findings(
        pairs=column.verdict.pairs,
        scored=column.verdict.scored,
        unscored=dict(column.verdict.unscored),
        counts=dict(Counter(finding.code for finding in column.findings).most_common()),
        examples=tuple(
            records.FindingExample(
                code=finding.code,
                item=finding.item,
                item_id=finding.item_id,
                message=finding.message,
                scored=finding.scored,
            )
            for finding in _examples(column.findings)
        ),
        environment=dict(column.environment),
    )


def _examples(findings: Sequence[Finding]) -> Iterator[Finding]:
    """As many of each code as there is room for, so that a frequent one hides no other."""
    codes = Counter(finding.code for finding in findings)
    room = MOST_EXAMPLES
    for place, (code, n) in enumerate(sorted(codes.items(), key=lambda item: item[1])):
        share = min(n, room // (len(codes) - place))
        room -= share
        yield from [finding for finding in findings if finding.code == code][:share]
