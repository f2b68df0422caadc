"""Many submissions at once, received in one commit: for tests of the queue and of many workers."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from evaluator.submission.archives.archive import content_hash
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import private_id, public_record, submission_file
from leaderboard.records import Event, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store
from tests.evaluator.rig import MODULE, submission

SCORER = MODULE["scorer.py"]


def stock(
    store: Store,
    accounts: Sequence[str],
    *,
    private: bool = False,
    benchmarks: tuple[str, ...] = ("toy",),
    scorer: bytes = SCORER,
) -> tuple[str, ...]:
    """Queue one submission for each of these accounts, in their order, a second apart.

    The last of them was received just now; every one has a name and content of its own.

    Returns:
        Their ids.
    """
    ledger = Ledger(store)
    known = len(ledger.statuses())
    start = store.clock() - timedelta(seconds=len(accounts))
    made: dict[str, Submission] = {}
    private_files: dict[str, bytes] = {}
    for n, account in enumerate(accounts, known):
        files = {"assay.toml": f'name = "m{n:03d}"'.encode(), "scorer.py": scorer}
        (digest, content), archive = _packed(files), f"uploads/{n}-{known}.zip"
        name = private_id() if private else f"m{n:03d}-{digest[:10]}"
        private_files[archive] = content
        made[name] = submission(
            f"m{n:03d}",
            submission_id=name,
            benchmarks=benchmarks,
            submitter=account,
            account=account,
            private=private,
            content_sha256=digest,
            archive=archive,
            entry_point="scorer:Scorer",
            received_at=start + timedelta(seconds=n - known),
        )
        if private:
            private_files[f"held/{name}/submission.json"] = made[name].model_dump_json().encode()
    store.private.commit(private_files, parent=store.private.head(), message="uploads")
    ledger.write(lambda: _received(made), f"receive {len(made)}")
    return tuple(made)


def _received(made: Mapping[str, Submission]) -> Batch:
    shown: dict[str, bytes] = {}
    for one in made.values():
        shown |= submission_file(public_record(one))
    states = (State.RECEIVED, State.QUEUED)
    events = {
        name: [Event(at=one.received_at, state=state, by=one.account) for state in states]
        for name, one in made.items()
    }
    return Batch(events=events, records=made, files=lambda _: shown)


def _packed(files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """The hash of a module and its archive."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            (Path(place) / name).write_bytes(content)
            archive.writestr(name, content)
        digest = content_hash(Path(place))
    return digest, buffer.getvalue()
