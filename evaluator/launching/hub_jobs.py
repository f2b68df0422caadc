"""Jobs on the Hub: started, listed, read and cancelled with its own client."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from huggingface_hub import HfApi, JobInfo, Volume
from huggingface_hub.errors import HfHubHTTPError, JobNotFoundError

from benchmarks.errors import PlatformError, TransientError
from benchmarks.sources.client import httpx, limit_waiting
from benchmarks.sources.remote import TRANSIENT_STATUS
from evaluator.launching.planning import (
    LIVE,
    QUESTIONS_AT,
    SUBMISSION_LABEL,
    WORKER_LABEL,
    JobRequest,
    JobSettings,
    SeenJob,
    store_label,
)

LINES_READ = 40
_MAY_HAVE_HAPPENED = frozenset({*TRANSIENT_STATUS, 409}) - {429}

log = logging.getLogger(__name__)


class StartUnansweredError(TransientError):
    """A job was asked for, and whether it was started is not known yet."""


@dataclass(frozen=True)
class HubJobs:
    """The jobs of one store."""

    api: HfApi  # the Hub's client, with the operator's token
    settings: JobSettings  # how jobs are run

    @classmethod
    def on_the_hub(cls, settings: JobSettings, api: HfApi | None = None) -> HubJobs:
        """With a client whose calls all end some day."""
        limit_waiting()
        return cls(api or HfApi(), settings)

    def start(self, request: JobRequest) -> SeenJob:
        """Start a job; where the answer is lost, find it by its labels."""
        try:
            started = self._run(request)
        except (HfHubHTTPError, httpx.HTTPError) as error:
            if isinstance(error, HfHubHTTPError) and _status(error) not in _MAY_HAVE_HAPPENED:
                raise _translated(error, "start a job") from error
            found = self._looked_for(request.worker)
            if found is None:
                raise StartUnansweredError(
                    "job_start_unknown",
                    f"Whether a job for {request.submission_id} was started is not known yet.",
                ) from error
            log.info("The start of job %s was not answered; it is there.", found.job_id)
            return found
        return self._seen(started)

    def live(self) -> tuple[SeenJob, ...]:
        """The jobs of this store that wait for a machine or run."""
        return self._listed(store_label(self.settings), sorted(LIVE))

    def of_submission(self, submission_id: str) -> tuple[SeenJob, ...]:
        """All jobs ever started for a submission, as far as the Hub remembers, oldest first."""
        labels = {**store_label(self.settings), SUBMISSION_LABEL: submission_id}
        return tuple(sorted(self._listed(labels, None), key=lambda job: job.created_at))

    def of_worker(self, worker: str) -> SeenJob | None:
        """The job a worker is in; None where the Hub knows of none."""
        found = self._listed({**store_label(self.settings), WORKER_LABEL: worker}, None)
        return min(found, key=lambda job: job.created_at) if found else None

    def cancel(self, job: SeenJob) -> None:
        """End a job; harmless where it is gone already."""
        with _in_words("cancel a job"):
            try:
                self.api.cancel_job(job_id=job.job_id, namespace=self.settings.namespace)
            except JobNotFoundError:
                log.info("Job %s was gone already.", job.job_id)

    def lines(self, job: SeenJob) -> tuple[str, ...]:
        """The end of a job's log; nothing where it cannot be had: it only explains."""
        try:
            with _in_words("read the log of a job"):
                told = self.api.fetch_job_logs(
                    job_id=job.job_id, namespace=self.settings.namespace, tail=LINES_READ
                )
                return tuple(deque(told, maxlen=LINES_READ))
        except (TransientError, PlatformError) as error:
            log.warning("The log of job %s cannot be had: %s", job.job_id, error)
            return ()

    def _looked_for(self, worker: str) -> SeenJob | None:
        """As `of_worker`; None too where the Hub cannot be asked."""
        try:
            return self.of_worker(worker)
        except TransientError as error:
            log.info("Jobs cannot be listed now: %s", error)
            return None

    def _run(self, request: JobRequest) -> JobInfo:
        settings = self.settings
        volumes = [
            Volume(
                type="dataset", source=settings.questions, mount_path=QUESTIONS_AT, read_only=True
            )
        ]
        return self.api.run_job(
            image=settings.image,
            command=request.command(settings),
            env=request.environment(settings),
            secrets=dict(settings.secrets),
            flavor=settings.flavor,
            timeout=settings.timeout_s,
            name=f"assay-{request.submission_id}",
            labels=request.labels(settings),
            volumes=volumes if settings.questions else None,
            namespace=settings.namespace,
        )

    def _listed(self, labels: dict[str, str], stages: list[str] | None) -> tuple[SeenJob, ...]:
        with _in_words("list jobs"):
            found = self.api.list_jobs(
                labels=labels, status=stages, namespace=self.settings.namespace
            )
            return tuple(self._seen(job) for job in found if _is_ours(job))

    def _seen(self, job: JobInfo) -> SeenJob:
        labels = job.labels or {}
        stage = str(getattr(job.status.stage, "value", job.status.stage))
        return SeenJob(
            job_id=job.id,
            submission_id=labels.get(SUBMISSION_LABEL, ""),
            worker=labels.get(WORKER_LABEL, ""),
            stage=stage,
            message=job.status.message or "",
            created_at=job.created_at or datetime.min.replace(tzinfo=UTC),
        )


def _is_ours(job: JobInfo) -> bool:
    return bool(job.labels and {SUBMISSION_LABEL, WORKER_LABEL} <= job.labels.keys())


@contextmanager
def _in_words(doing: str) -> Iterator[None]:
    """Turn what the client raises into the project's errors."""
    try:
        yield
    except JobNotFoundError as error:
        raise PlatformError("job_gone", f"The Hub knows no such job ({error}).") from error
    except (HfHubHTTPError, httpx.HTTPError) as error:
        raise _translated(error, doing) from error


def _translated(error: Exception, doing: str) -> TransientError | PlatformError:
    status = _status(error)
    if status and status not in TRANSIENT_STATUS and status != 409:
        said = str(error).strip().splitlines()
        return PlatformError(
            "jobs_refused",
            f"The Hub refused to {doing} ({status}: {said[0][:200] if said else 'no reason'}).",
            "Look at the settings of the jobs, the rights of HF_TOKEN and the credits left.",
        )
    why = f"it answered {status}" if status else type(error).__name__
    return TransientError("hub_unreachable", f"The Hub could not {doing} ({why}).")


def _status(error: Exception) -> int:
    return error.response.status_code if isinstance(error, HfHubHTTPError) else 0
