"""The health of an installation as HTML: a verdict, what is wrong and what to do, the figures."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from leaderboard.pages.shown.markup import (
    Tone,
    ago,
    badge,
    notice,
    page,
    scroll_box,
    section,
    submitted,
    text,
)
from leaderboard.service.health import Health, Level, Problem, Worker
from leaderboard.text import count, duration, rate

MOST_WORKERS = 50
_VERDICTS: dict[Level, tuple[str, Tone]] = {
    Level.OK: ("Everything works.", "good"),
    Level.DEGRADED: ("It works, and somebody should look at it.", "warn"),
    Level.DOWN: ("It cannot do its work at the moment. What was submitted is kept.", "bad"),
}
_BLAME = {"submitter": "by the submission", "world": "by the world", "platform": "by our own fault"}
_GIB = 2**30


def status_view(health: Health) -> str:
    """The page.

    Args:
        health: of the installation, judged.
    """
    verdict, tone = _VERDICTS[health.status]
    parts = [
        "<h1>Status</h1>",
        notice(
            f"<p><b>{verdict}</b> Looked at {health.at:%Y-%m-%d %H:%M} UTC.</p>",
            tone,
            role="status",
        ),
    ]
    if health.problems:
        parts.append(section("What is wrong", "".join(map(_problem, health.problems))))
    if health.store is not None:
        parts += [
            section("Submissions", _facts(_submissions(health))),
            section("Workers", _workers(health.workers, health.at)),
        ]
    parts += [section("Boards and store", _facts(_kept(health))), _elsewhere()]
    return page(parts)


def _problem(problem: Problem) -> str:
    tone: Tone = "bad" if problem.level is Level.DOWN else "warn"
    return notice(
        f"<p><b>{text(problem.message, limit=400)}</b></p>"
        f'<p class="as-hint">For operators: {text(problem.remedy, limit=400)} '
        f"<code>{text(problem.code)}</code></p>",
        tone,
    )


def _submissions(health: Health) -> Iterable[tuple[str, str]]:
    waits = f", the oldest for {duration(health.oldest_wait_s)}" if health.queue_length else ""
    yield "Waiting", f"{health.queue_length:,}{waits}"
    if health.retrying:
        yield "Of them after a fault of the world", f"{health.retrying:,}, tried again by itself"
    yield "In work", f"{health.in_work:,}"
    yield "Ended within a day", f"{health.ended_last_day:,}{_failed(health)}"
    yield "Ever received", f"{health.received:,}, of them scored {health.scored:,}"


def _failed(health: Health) -> str:
    told = ", ".join(
        f"{n:,} {text(_BLAME.get(fault, 'for a reason that is not known'))} "
        f"({health.failure_rate.get(fault, 0.0):.0%})"
        for fault, n in sorted(health.failed_last_day.items())
    )
    return f"; failed: {told}" if told else ""


def _kept(health: Health) -> Iterable[tuple[str, str]]:
    if health.snapshot is not None:
        behind = health.snapshot.behind_s
        late = f", {duration(behind)} behind the newest result" if behind >= 60.0 else ""
        yield "Boards built", f"{ago(health.snapshot.built_at, health.at)}{late}"
    elif health.store is not None:
        yield "Boards built", "never: nothing was published so far"
    if health.store is not None:
        if health.store.changed_at is not None:
            yield "Last line of the ledger", ago(health.store.changed_at, health.at)
        if health.store.commits_left is not None:
            yield "Commits left in this hour", f"{health.store.commits_left:,}"
        yield "Version of the store", f"<code>{text(health.store.version, limit=12)}</code>"
    if health.disk is not None:
        free, whole = health.disk.free_bytes / _GIB, health.disk.total_bytes / _GIB
        yield "Disk", f"{free:,.0f} GiB free of {whole:,.0f} GiB"


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    return f'<dl class="as-facts">{listed}</dl>'


def _workers(workers: tuple[Worker, ...], now: datetime) -> str:
    if not workers:
        return '<p class="as-muted">No worker was ever seen.</p>'
    newest = sorted(workers, key=lambda worker: (worker.heartbeat_age_s, worker.name))
    rows = "".join(_worker(worker, now) for worker in newest[:MOST_WORKERS])
    beyond = len(workers) - MOST_WORKERS
    more = f'<p class="as-legend">And {count(beyond, "other worker")}.</p>' if beyond > 0 else ""
    heads = "".join(
        f'<th scope="col">{head}</th>'
        for head in ("Worker", "Last seen", "Doing", "Strangers' code", "Pairs a second")
    )
    return (
        f'{scroll_box("Workers")}<table class="as-table"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more}"
    )


def _worker(worker: Worker, now: datetime) -> str:
    doing = "at work" if worker.working else "waits for work"
    seen = ago(now - timedelta(seconds=worker.heartbeat_age_s), now)
    does = doing if worker.alive else badge("silent", "warn", "Others take over what it held.")
    return (
        f'<tr><th scope="row">{submitted(worker.name, limit=100)}</th><td>{seen}</td>'
        f"<td>{does}</td><td>{'isolated' if worker.isolation_ok else 'not run'}</td>"
        f"<td>{rate(worker.rate_per_s) if worker.alive and worker.working else '–'}</td></tr>"
    )


def _elsewhere() -> str:
    return (
        '<p class="as-legend">The same for programs: <a href="./health">health as JSON</a>, '
        '<a href="./metrics">metrics for Prometheus</a>. Every submission: '
        '<a href="./queue">queue</a>. Everything that was done: <a href="./ledger">ledger</a>.</p>'
    )
