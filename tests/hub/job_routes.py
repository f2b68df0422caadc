"""What the Hub answers about jobs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.hub.accounts import Account
from tests.hub.clock import told
from tests.hub.jobs import Job
from tests.hub.messages import Reply, Request, error, json_reply

if TYPE_CHECKING:
    from tests.hub.server import HubServer

_JOBS = re.compile(r"/api/jobs/(?P<namespace>[^/]+)(?:/(?P<job>[^/]+)(?:/(?P<what>\w+))?)?")


def answer(state: HubServer, request: Request, account: Account | None) -> Reply:
    """A request about the jobs of a namespace."""
    found = _JOBS.fullmatch(request.path)
    if account is None:
        return error(401, "Invalid username or password.")
    if found is None:
        return Reply(404)
    namespace = found["namespace"]
    if not account.may_create(f"{namespace}/job"):
        return error(403, f"You don't have the rights to run jobs in {namespace}.")
    if found["job"] is None:
        return _of_namespace(state, request, namespace)
    job = state.jobs.all.get(found["job"])
    if job is None or job.namespace != namespace:
        return error(404, "Job not found")
    return _about(request, job, found["what"] or "")


def _of_namespace(state: HubServer, request: Request, namespace: str) -> Reply:
    if request.method == "POST":
        return json_reply(state.jobs.start(namespace, request.json()).told())
    return _listed(state, request, namespace)


def _listed(state: HubServer, request: Request, namespace: str) -> Reply:
    stages = request.query.get("stage", [])
    wanted = dict(each.split("=", 1) for each in request.query.get("label", []))
    found = [
        job
        for job in state.jobs.of(namespace)
        if (not stages or job.stage in stages) and wanted.items() <= job.labels.items()
    ]
    start = int(request.asked("cursor", "0"))
    reply = json_reply([job.told() for job in found[start : start + state.page]])
    if start + state.page < len(found):
        kept = [f"stage={stage}" for stage in stages]
        kept += [f"label={name}%3D{value}" for name, value in wanted.items()]
        query = "&".join([*kept, f"cursor={start + state.page}"])
        reply.headers["Link"] = f'<{state.endpoint}{request.path}?{query}>; rel="next"'
    return reply


def _about(request: Request, job: Job, what: str) -> Reply:
    if what == "logs":
        return _logs(request, job)
    if what == "cancel" and request.method == "POST":
        job.end("CANCELED")
    elif what == "labels" and request.method == "PUT":
        job.labels = dict(request.json()["labels"])
    elif what:
        return Reply(404)
    return json_reply(job.told())


def _logs(request: Request, job: Job) -> Reply:
    lines = list(job.lines)
    tail = int(request.asked("tail", "0"))
    events = [
        "data: " + json.dumps({"timestamp": told(when), "data": line})
        for when, line in (lines[-tail:] if tail else lines)
    ]
    body = "".join(f"{event}\n\n" for event in events).encode()
    return Reply(200, {"Content-Type": "text/event-stream"}, body)
