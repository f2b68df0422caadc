"""Re-evaluation at the start of a worker: what a new installation knows and the store does not."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from benchmarks.schema import Benchmark
from evaluator.bundled import bundled_hashes, bundled_modules
from evaluator.isolation.availability import isolation_gate
from evaluator.scorers.registry import load_rows
from evaluator.submission.archives.archive import content_hash
from evaluator.submission.builtin import is_outdated, source_of
from evaluator.submission.manifest import parse_manifest
from evaluator.submission.service import SubmissionService
from leaderboard.accounts import ASSAY
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import read_policy
from leaderboard.publication.publisher import cards_of
from leaderboard.publication.requeue import Reevaluation, requeue
from leaderboard.records import Status, Submission
from leaderboard.store.interface import Store

MANIFEST = "assay.toml"

log = logging.getLogger(__name__)


def reevaluate_at_start(
    opened: Store, registry: Mapping[str, Benchmark], data: Path | None = None
) -> Reevaluation:
    """Queue what new revisions and versions concern, if the operator's policy says so.

    What the store cannot take now is found again at the next start.
    """
    if not read_policy(opened.public).reevaluate:
        return Reevaluation()
    try:
        send_new_versions(opened, registry, data)
        done = requeue(opened, cards_of(registry))
    except TransientError as error:
        log.warning("Nothing is evaluated again for now: %s", error)
        return Reevaluation()
    for one in done.found:
        log.info("%s: %s", one.submission_id, one.summary)
    return done


def send_new_versions(
    opened: Store, registry: Mapping[str, Benchmark], data: Path | None
) -> tuple[str, ...]:
    """Submit the bundled scorers, and the built-in metrics, whose earlier content stands in the store.

    They are known by their content, or by their row: what changed is a new submission, which takes the
    place of the old one in the commit that publishes it. A store that has none gets none.
    """
    own = [s for s in Ledger(opened).statuses() if s.submission.account == ASSAY.key]
    names = {status.submission.name for status in own if _outdated(status)}
    # Whatever became of it: what failed is sent again by an operator, not by every start.
    known = {status.submission.content_sha256 for status in own}
    new = [folder for folder in bundled_modules() if content_hash(folder) not in known]
    desk = SubmissionService(opened, registry, data, isolation_gate, opened.clock)
    sent = [*renew_builtins(opened, registry, data, outdated_builtins(opened))]
    for folder in new:
        if parse_manifest((folder / MANIFEST).read_bytes()).name not in names:
            continue
        try:
            accepted = desk.submit_metric(folder, account=ASSAY)
        except SubmitterError as error:
            log.warning("The new version of %s is not sent: %s", folder.name, error)
            continue
        sent.append(accepted.status.submission.submission_id)
    return tuple(sent)


def outdated_builtins(opened: Store) -> tuple[Submission, ...]:
    """Built-in metrics on the boards whose row is another now, and was not sent yet."""
    rows = load_rows()
    statuses = Ledger(opened).statuses()
    known = {status.submission.source for status in statuses}
    return tuple(
        status.submission
        for status in statuses
        if status.on_boards
        and is_outdated(status.submission, rows)
        and source_of(rows[status.submission.builtin]) not in known
    )


def renew_builtins(
    opened: Store,
    registry: Mapping[str, Benchmark],
    data: Path | None,
    outdated: Iterable[Submission],
) -> tuple[str, ...]:
    """Send built-in metrics as their rows are now; their ids."""
    desk = SubmissionService(opened, registry, data, isolation_gate, opened.clock)
    return tuple(name for one in outdated for name in _renewed(desk, one))


def _renewed(desk: SubmissionService, outdated: Submission) -> list[str]:
    try:
        return [desk.renew_builtin(outdated).status.submission.submission_id]
    except (SubmitterError, PlatformError) as error:
        log.warning("The new row of %s is not sent: %s", outdated.builtin, error)
        return []


def _outdated(status: Status) -> bool:
    """Whether it is on the boards with other content than the bundled scorers have now."""
    return status.on_boards and status.submission.content_sha256 not in bundled_hashes()
