"""The command of the document that rents machines by the job, typed as it stands there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.isolation.bubblewrap.backend import Bubblewrap
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.hub import creating
from leaderboard.store.hub.hub_store import HubParts, hub_store
from tests.evaluator.launching.test_job_process import (
    JOB_TOKEN,
    NAME,
    OPERATOR,
    REPOSITORY,
    image,
    send,
)
from tests.hub.accounts import Account
from tests.hub.server import HubServer, running_hub
from tests.processes import finished

LAUNCH = """
export ASSAY_JOB_TOKEN=hf_...
python -m evaluator worker --store hub:OWNER/NAME --launcher jobs --job-image IMAGE \
    --job-flavor l4x1 --job-hours 6 --jobs-at-once 4
"""
"""As docs/gpu-and-cluster.md has it."""

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        server.enroll(OPERATOR, Account("op", orgs={"lab": "write"}))
        rights = {"requests": "write", "submissions": "write", "scores": "read", "results": "read"}
        only = {f"{NAME}-{part}": right for part, right in rights.items()}
        server.enroll(JOB_TOKEN, Account("job", only=only))
        yield server


def test_the_documented_command_rents_a_machine_and_judges_what_comes_back(
    bubblewrap: Bubblewrap, hub: HubServer, tmp_path: Path
) -> None:
    parts = HubParts(NAME, tmp_path / "making", endpoint=hub.endpoint, token=OPERATOR)
    list(creating.create(parts))
    store = hub_store(
        NAME, tmp_path / "cache", endpoint=hub.endpoint, token=OPERATOR, fresh_for_s=0.0
    )
    sent = send(store, tmp_path).submission
    hub.jobs.hook = image(tmp_path)
    command = LAUNCH.strip().splitlines()[1]
    words = command.replace("OWNER/NAME", NAME).replace("IMAGE", "lab/assay:1").split()[1:]
    known = {**hub.environment(OPERATOR), "ASSAY_JOB_TOKEN": JOB_TOKEN}
    done = finished(
        [sys.executable, *words, "--once"],
        cwd=tmp_path,
        env={**os.environ, **known, "PYTHONPATH": str(REPOSITORY)},
        within_s=280,
    )
    assert done.returncode == 0, done.stderr
    (job,) = hub.jobs.all.values()
    assert (job.spec["flavor"], job.spec["timeoutSeconds"]) == ("l4x1", 6 * 3600)
    assert job.labels["assay-submission"] == sent.submission_id
    assert Ledger(store).status(sent.submission_id).state is State.PUBLISHED, done.stderr
    assert JOB_TOKEN not in done.stdout + done.stderr
