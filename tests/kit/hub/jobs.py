"""Jobs of the test Hub: what was started, how it goes on is up to a hook of the test."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.kit.hub.clock import ServerClock, told
from tests.kit.processes import end, running

ENDED = {"COMPLETED", "CANCELED", "ERROR", "DELETED"}


@dataclass
class Job:
    """A job as it was asked for, and how it stands."""

    job_id: str  # its id
    namespace: str  # where it runs
    spec: Mapping[str, Any]  # what the client sent: image, command, environment, secrets, labels..
    clock: ServerClock  # the server's
    stage: str = "SCHEDULING"  # `SCHEDULING`, `RUNNING` or one of those that end it
    message: str | None = None  # why it ended, where the Hub says so
    created: datetime = field(init=False)
    started: datetime | None = None
    finished: datetime | None = None
    lines: list[tuple[datetime, str]] = field(default_factory=list)  # its log, each with its time
    # set as soon as it has to stop, or has stopped
    ending: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.created = self.clock.now()
        self.labels: dict[str, str] = dict(self.spec.get("labels", {}))
        self._lock = threading.Lock()

    @property
    def command(self) -> list[str]:
        return [*self.spec["command"], *self.spec.get("arguments", [])]

    @property
    def environment(self) -> dict[str, str]:
        """What its process sees, secrets included."""
        known = {"JOB_ID": self.job_id}
        given = {**self.spec.get("environment", {}), **self.spec.get("secrets", {})}
        return known | {name: str(value) for name, value in given.items()}

    def say(self, line: str) -> None:
        """One more line of its log."""
        self.lines.append((self.clock.now(), line))

    def run(self) -> None:
        """It has a machine now."""
        with self._lock:
            if self.stage == "SCHEDULING":
                self.stage, self.started = "RUNNING", self.clock.now()

    def end(self, stage: str, message: str | None = None) -> None:
        """It is over; the first end holds."""
        with self._lock:
            if self.stage not in ENDED:
                self.stage, self.message = stage, message
                self.finished = self.clock.now()
        self.ending.set()

    def told(self) -> dict[str, Any]:
        """As the API tells it: the names of secrets, never their values."""
        facts = dict(self.spec)
        facts.pop("secrets", None)
        facts.pop("timeoutSeconds", None)
        return {
            **facts,
            "id": self.job_id,
            "secrets": dict.fromkeys(self.spec.get("secrets", {}), ""),
            "labels": self.labels,
            "createdAt": told(self.created),
            "startedAt": told(self.started) if self.started else None,
            "finishedAt": told(self.finished) if self.finished else None,
            "status": {"stage": self.stage, "message": self.message},
            "owner": {"id": f"id-of-{self.namespace}", "name": self.namespace, "type": "user"},
            "initiator": {"type": "user", "id": f"id-of-{self.namespace}"},
        }


Hook = Callable[[Job], None]


def completes_at_once(job: Job) -> None:
    """The plainest hook: the job runs and is done."""
    job.run()
    job.end("COMPLETED")


class Jobs:
    """All jobs of the server."""

    def __init__(self, clock: ServerClock) -> None:
        self.hook: Hook = completes_at_once
        self.all: dict[str, Job] = {}
        self._clock = clock
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self, namespace: str, spec: Mapping[str, Any]) -> Job:
        with self._lock:
            job = Job(f"{len(self.all) + 1:024x}", namespace, spec, self._clock)
            self.all[job.job_id] = job
        thread = threading.Thread(target=self.hook, args=(job,), daemon=True)
        self._threads.append(thread)
        thread.start()
        return job

    def of(self, namespace: str) -> list[Job]:
        """Newest first."""
        with self._lock:
            found = [job for job in self.all.values() if job.namespace == namespace]
        return found[::-1]

    def end_all(self) -> None:
        """Stop what still runs, and wait until it has ended."""
        for job in list(self.all.values()):
            job.end("CANCELED")
        for thread in self._threads:
            thread.join(timeout=60)


@dataclass(frozen=True)
class AsProcess:
    """A hook that runs the job's command on this machine, with nothing but its own environment."""

    folder: Path  # where it runs
    # variables of the machine, as an image would set them
    more: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, job: Job) -> None:
        command = [sys.executable if each == "python" else each for each in job.command]
        with running(
            command,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **self.more, **job.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            job.run()
            threading.Thread(target=_stop, args=(job, process), daemon=True).start()
            assert process.stdout is not None
            for line in process.stdout:
                job.say(line.rstrip("\n"))
            status = process.wait()
        job.end("ERROR" if status else "COMPLETED", f"exit code {status}" if status else None)


def _stop(job: Job, process: subprocess.Popen[str]) -> None:
    job.ending.wait()
    end(process, grace_s=0.0)
