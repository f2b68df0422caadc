"""A plain process: FOR THE SCORERS BUNDLED WITH THIS PROJECT ONLY, NEVER FOR A STRANGER'S CODE.

What runs here can read every file of the worker's user, reach the network and start processes
that outlive the job. It shares runner and protocol with a real box, so that bundled scorers work
on a machine without an isolation tool, and gets an empty environment and limits for good order.
Who calls it decides that the code is ours; no setting, file or request may decide it.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from evaluator.isolation.backend import Probe
from evaluator.isolation.job import Job
from evaluator.isolation.layout import BUNDLE_FOLDER, Interpreter, runner_arguments
from evaluator.isolation.session import ScorerSession, SessionBox

_NO_HOME = "/nonexistent"


@dataclass(frozen=True)
class PlainProcess:
    """A process without walls, for our own scorers; its probe never says ok."""

    name: str = "plain"

    def probe(self) -> Probe:
        """Always refuses strangers' code, so that no list of backends can choose it by mistake."""
        return Probe(
            ok=False,
            layers=("process",),
            reason="A plain process does not isolate.",
            remedy="Install bubblewrap (apt install bubblewrap).",
        )

    def start(self, job: Job) -> ScorerSession:
        """Start one of OUR scorers; see `Backend.start`."""
        interpreter = Interpreter.running()
        words = runner_arguments(
            submission=str(job.folder.resolve()),
            entry_point=job.entry_point,
            weights=job.weights,
            device=job.device,
            site=interpreter.site,
            models={m.repo: str(m.folder.resolve() / "snapshots" / m.revision) for m in job.models},
        )
        process = subprocess.Popen(  # noqa: S603 - every word of it is ours
            interpreter.command(str(BUNDLE_FOLDER), "runner", words),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=interpreter.environment(threads=job.limits.threads, home=_NO_HOME),
            cwd="/",
            start_new_session=True,
        )
        return ScorerSession(SessionBox(process), job.limits).await_box()
