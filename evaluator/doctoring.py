"""Diagnostics of an installation: settings, machine, caches, repositories on the Hub, queue, boards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.errors import AssayError, PlatformError, SubmitterError
from benchmarks.released.bundle import read_manifest, released_bytes
from benchmarks.schema import Benchmark, Card
from benchmarks.settings.model import (
    VARIABLES,
    Origin,
    Value,
    settings_file,
    suggestion,
    unknown_variables,
    value_of,
    values,
)
from evaluator.environments.building import PackageSource
from evaluator.environments.cache import EnvironmentCache
from evaluator.folder_cache import bytes_below, cached_folders
from evaluator.hub.model_cache import ModelCache
from evaluator.isolation.backend import LEGEND, IsolationStatus, Layer
from evaluator.worker.disk import OUTBOX, SHARDS, UNPACKED
from evaluator.worker.logs import LOGS, limits_of
from leaderboard.governance.authentication import read_sign_in
from leaderboard.ledger.ledger import Ledger, faults
from leaderboard.publication.publisher import table_schemas
from leaderboard.publication.rebuilding import (
    Difference,
    differences,
    model_differences,
    queue_differences,
    rebuilt,
    repaired,
)
from leaderboard.publication.snapshot import known_and_shown, read_snapshot
from leaderboard.service.health import DISK_FLOOR_BYTES, Health, Level, disk_of
from leaderboard.service.webhooks import checked_secret as checked_webhook
from leaderboard.store.hub.layout import CONTENTS
from leaderboard.store.interface import Store, transact
from leaderboard.store.live.wire import checked_secret as checked_live
from leaderboard.text import duration

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from leaderboard.store.hub.hub_store import HubParts
    from leaderboard.store.hub.layout import Part


class Row(NamedTuple):
    """A part of an installation and how it is."""

    part: str  # what was looked at; two blanks before what belongs to the line above
    state: str  # how it is
    advice: str = ""  # what to do; empty where nothing has to be done
    broken: bool = False  # whether it keeps the installation from working


def settings_rows(environment: Mapping[str, str], os_user: str) -> Iterator[Row]:
    """Of this process."""
    found = values(environment, {})
    yield Row("settings", _origins(found, environment))
    for name in unknown_variables(environment):
        hint = suggestion(name, VARIABLES).strip()
        yield Row(f"  {name}", "is no setting of Assay and changes nothing", hint or "unset it")
    for value in found:
        if value.problem:
            yield Row(f"  {value.setting.variable}", value.problem, "mend it", broken=True)
    yield from _judged("operators", lambda: read_sign_in(environment, os_user))
    yield from _secrets(found, environment)


def _origins(found: tuple[Value, ...], environment: Mapping[str, str]) -> str:
    def count(origin: Origin) -> int:
        return sum(value.origin is origin for value in found)

    # The file's own name is a setting as well, and nobody looks for it in the count.
    file = settings_file(environment)
    from_file = sum(v.origin is Origin.FILE and v.setting.name != "settings" for v in found)
    named = f"{from_file} from {file}" if file else f"no settings file, {from_file} from files"
    return f"{named}, {count(Origin.ENVIRONMENT)} from variables; others are as they come"


def _secrets(found: tuple[Value, ...], environment: Mapping[str, str]) -> Iterator[Row]:
    given = {value.setting.variable: value for value in found if value.setting.secret}
    for variable, check in _CHECKS.items():
        for name in (variable, f"{variable}_OLD"):
            text = environment.get(name, "").strip()
            if text:
                yield from _judged(name, lambda text=text, check=check: check(text))  # type: ignore[misc]
        if environment.get(f"{variable}_OLD", "").strip():
            advice = "take it away when everybody has the new one"
            yield Row(f"  {variable}_OLD", "the secret before is taken as well", advice)
    live, secret = environment.get("ASSAY_LIVE", "").strip(), given["ASSAY_LIVE_SECRET"]
    if live and secret.origin is Origin.DEFAULT:
        yield Row(
            "  ASSAY_LIVE_SECRET",
            f"is missing, so that {live} takes nothing from here",
            "set the one that the site has",
        )
    for value in given.values():
        if value.origin is not Origin.DEFAULT:
            where = f"from {value.file}" if value.file else "from a variable"
            yield Row(f"  {value.setting.variable}", f"set, {where}")


def _judged(what: str, judge: Callable[[], object]) -> Iterator[Row]:
    try:
        judge()
    except SubmitterError as error:
        yield Row(f"  {what}", error.message, error.hint, broken=True)


_CHECKS: Mapping[str, Callable[[str], object]] = {
    "ASSAY_LIVE_SECRET": checked_live,
    "ASSAY_WEBHOOK_SECRET": checked_webhook,
}


def isolation_rows(status: IsolationStatus) -> Iterator[Row]:
    """How code is isolated here."""
    what = "isolation of code"
    if not status.ok or status.backend is None:
        yield Row(what, status.reason, status.remedy)
        for _, probe in status.probes:
            if probe.program:
                yield Row("  program", probe.program)
        return
    yield Row(what, f"by {status.name}")
    for name in status.layers:
        known = name in set(Layer)
        yield Row(f"  {name}", LEGEND[Layer(name)] if known else "holds", _advice(name))
    for note in status.notes:
        yield Row("  note", note)


def benchmark_rows(registry: Mapping[str, Benchmark], data: Path | None) -> Iterator[Row]:
    """Which benchmarks can be measured here."""
    for name, benchmark in sorted(registry.items()):
        images = "with images" if benchmark.has_questions(data) else "scores files only"
        if benchmark.has_answers(data):
            yield Row(f"benchmark {name}", images)
        else:
            yield _without_answers(benchmark, data)


def _without_answers(benchmark: Benchmark, data: Path | None) -> Row:
    try:
        benchmark.answers(data)
    except SubmitterError as error:
        if error.code != "data_missing":
            return Row(f"benchmark {benchmark.name}", error.message, error.hint)
    said = "give their folder with --data or ASSAY_DATA"
    return Row(f"benchmark {benchmark.name}", "its data files are not here", said)


def released_rows() -> Iterator[Row]:
    """Whether the released results that ship with Assay are as their manifest names them."""
    files = read_manifest().files
    whole = True
    for file in files:
        try:
            released_bytes(file.path)
        except SubmitterError as error:
            whole = False
            yield Row("released results", error.message, error.hint, broken=True)
    if whole:
        yield Row("released results", f"{len(files)} tables, as their manifest names them")


def disk_rows(places: Mapping[str, Path]) -> Iterator[Row]:
    """What is free where things are kept."""
    for what, folder in places.items():
        disk = disk_of(folder)
        if disk is None:
            yield Row(f"disk of {what}", f"{folder} cannot be asked", "see whether it is mounted")
            continue
        full = disk.free_bytes < DISK_FLOOR_BYTES
        yield Row(
            f"disk of {what}",
            f"{mib(disk.free_bytes)} of {mib(disk.total_bytes)} free, {folder}",
            "make room; workers begin nothing here" if full else "",
            broken=full,
        )


def model_rows(cache: ModelCache) -> Iterator[Row]:
    """Which models of the Hub are kept here."""
    models = cache.models()
    used = sum(one.in_use for one in models)
    size = mib(sum(one.n_bytes for one in models))
    yield Row("models", f"{len(models)} kept, {used} in use, {size}, {cache.folder}")


def environment_rows(cache: EnvironmentCache) -> Iterator[Row]:
    """Which environments of modules are kept here, and whether more can be built."""
    kept = cached_folders(cache.folder)
    size = mib(sum(one.n_bytes for one in kept))
    nothing = cache.source == PackageSource()
    yield Row(
        "environments",
        f"{len(kept)} kept, {size}, {cache.folder}",
        "none are built: set ASSAY_WHEELS or ASSAY_PACKAGE_INDEX" if nothing else "",
    )


def _advice(layer: str) -> str:
    if layer == Layer.MEMORY_WATCHDOG:
        return "for a hard bound, give the worker a cgroup with the memory controller"
    if layer == Layer.CPU_NICENESS:
        return "for a hard bound, give the worker a cgroup with the cpu controller"
    return ""


_GIVEN_UP = "given up where the disk is short"
_SCRATCH = {
    UNPACKED: f"unpacked modules; {_GIVEN_UP}",
    SHARDS: f"finished shards; {_GIVEN_UP} and their submission is over",
    OUTBOX: "finished and not published yet; never given up",
}


def cache_rows(
    folder: Path, scratch: Path, environment: Mapping[str, str], *, on_hub: bool
) -> Iterator[Row]:
    """Sizes and limits."""
    try:
        limits = limits_of(environment)
        cache = round(value_of("hub_cache_gib", environment) * 2**30)
    except SubmitterError as error:
        yield Row("kept here", error.message, error.hint, broken=True)
        return
    yield Row("kept here", f"scratch in {scratch}")
    days = f"{limits.seconds / 86400:g} days"
    most = mib(2 * limits.n_bytes * limits.most)
    yield Row(
        "  logs",
        f"{mib(bytes_below(scratch / LOGS))}; at most {most}, of {limits.most} submissions "
        f"and {days}",
    )
    for name, what in _SCRATCH.items():
        yield Row(f"  {name}", f"{mib(bytes_below(scratch / name))} of {what}")
    if on_hub:
        size = mib(bytes_below(folder / CONTENTS))
        yield Row("  cache of the Hub", f"{size}; at most {mib(cache)}, {folder / CONTENTS}")


def mib(n_bytes: int) -> str:
    """A size as people read it."""
    return f"{n_bytes / 2**20:.1f} MiB" if n_bytes < 2**30 else f"{n_bytes / 2**30:.1f} GiB"


MOST_SKEW_S = 30.0
_WRITERS = frozenset({"admin", "write"})
_WRITE = "repo.write"
_NO_HUB = "not_a_hub"


def hub_rows(parts: HubParts, cards: Mapping[str, Card]) -> Iterator[Row]:
    """Everything, as far as it can be reached; `cards` are those of the benchmarks known here."""
    # Only here: the command line starts without the Hub's client.
    from leaderboard.store.hub.layout import Part  # noqa: PLC0415

    row, told = _token(parts)
    yield row
    for part in Part:
        yield _repository(parts, part, told)
    yield from _clock(parts)
    yield from _pins(parts)
    yield from _dataset_cards(parts, cards)


def may_write(told: Mapping[str, Any], repositories: tuple[str, ...]) -> bool | None:
    """Whether a token may write repositories of one owner, by what the Hub tells of it."""
    owner = repositories[0].partition("/")[0]
    token = told.get("auth", {}).get("accessToken", {})
    role = token.get("role")
    if role == "fineGrained":
        return _scoped(token.get("fineGrained", {}).get("scoped"), owner, repositories)
    if role != "write":
        return False if role == "read" else None
    if told.get("name") == owner:
        return True
    orgs = {org.get("name"): org.get("roleInOrg") for org in told.get("orgs", ())}
    return orgs[owner] in _WRITERS if owner in orgs else None


def _scoped(scopes: object, owner: str, repositories: tuple[str, ...]) -> bool | None:
    if not isinstance(scopes, list):
        return None
    open_to = {
        str(scope.get("entity", {}).get("name")).removeprefix("datasets/")
        for scope in scopes
        if isinstance(scope, dict) and _WRITE in scope.get("permissions", ())
    }
    return owner in open_to or set(repositories) <= open_to


def _identify(
    api: HfApi, repositories: tuple[str, ...]
) -> tuple[Mapping[str, Any], str, bool | None]:
    """What the Hub tells of a token; in it, whose it is, and whether it may write."""
    try:
        told = api.whoami()
        role = told.get("auth", {}).get("accessToken", {}).get("role", "no role is told")
        return told, f"of {told.get('name')}, {role}", may_write(told, repositories)
    except (AttributeError, TypeError, JSONDecodeError) as error:
        raise PlatformError(
            _NO_HUB,
            f"{api.endpoint} does not answer like a Hub.",
            "Look at HF_ENDPOINT, and at what stands between this machine and the Hub.",
        ) from error


def _token(parts: HubParts) -> tuple[Row, Mapping[str, Any]]:
    """The token, and what the Hub tells of it."""
    from leaderboard.store.hub.faults import HubRequest  # noqa: PLC0415
    from leaderboard.store.hub.layout import Part  # noqa: PLC0415

    names = tuple(parts.name.of(part) for part in Part)
    try:
        asked = HubRequest("ask whose token this is", names[0])
        told, who, writes = parts.client.call(asked, lambda api: _identify(api, names), ())
    except AssayError as error:
        advice = "set HF_TOKEN to a token that may write the store's repositories"
        if error.code == _NO_HUB:
            advice = error.hint
        return Row("token", error.message, advice, broken=True), {}
    if writes is False:
        wrong = f"{who}: it may not write"
        return Row("token", wrong, "give it the right to write", broken=True), told
    return Row("token", who if writes else f"{who}: whether it may write is not told"), told


def _repository(parts: HubParts, part: Part, told: Mapping[str, Any]) -> Row:
    """One repository: that it is answered for shows that the token may read it."""
    from leaderboard.store.hub.faults import HubRequest  # noqa: PLC0415
    from leaderboard.store.hub.layout import Part  # noqa: PLC0415

    name = parts.name.of(part)
    try:
        info = parts.client.call(
            HubRequest("read the settings", name), lambda api: api.dataset_info(name)
        )
    except AssayError as error:
        return Row(f"  {name}", error.message, error.hint, broken=True)
    if part is Part.SUBMISSIONS and not info.private:
        return Row(
            f"  {name}",
            "open to everyone, though it holds what was uploaded",
            "make it private in its settings",
            broken=True,
        )
    seen = "private" if info.private else "open"
    may = {True: "; may be read and written", False: "; may be read, not written", None: ""}
    right = may[may_write(told, (name,))] if told else ""
    return Row(f"  {name}", f"{seen}, at {str(info.sha)[:12]}{right}")


def _clock(parts: HubParts) -> Iterator[Row]:
    """This machine's clock against the Hub's, as far as its answers have told."""
    try:
        ahead = (datetime.now(UTC) - parts.client.clock()).total_seconds()
    except AssayError:
        return  # It is told of the repositories already that they cannot be reached.
    wrong = abs(ahead) > MOST_SKEW_S
    words = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the Hub's"
    advice = "set it (NTP): leases go by the Hub's, logs and signed links by this one"
    yield Row("  clock", words if wrong else "as the Hub's", advice if wrong else "")


def _pins(parts: HubParts) -> Iterator[Row]:
    from leaderboard.store.hub.client import LAST  # noqa: PLC0415
    from leaderboard.store.hub.faults import VersionGoneError  # noqa: PLC0415
    from leaderboard.store.hub.multi_repository import unmigrated  # noqa: PLC0415

    results = parts.public.results
    try:
        pins = parts.public.version(parts.public.fresh_head()).pins
        results.entries_at([LAST], pins.results)
        main = results.fresh_head()
    except VersionGoneError:
        yield Row(
            "  pin of results",
            f"{pins.results[:12]} is gone: {results.name} was deleted and made again, or its "
            "history rewritten by hand",
            "put the repository back; without that commit its files cannot be read",
            broken=True,
        )
        return
    except AssayError as error:
        yield Row("  pins", error.message, error.hint, broken=True)
        return
    moved = "" if main == pins.results else f"; its branch is at {main[:12]}, which nobody reads"
    yield Row("  pin of results", f"{pins.results[:12]}{moved}")
    if pins.scores is not None:
        refused = unmigrated(parts.public.decisive.name)
        yield Row("  release", refused.message, refused.hint, broken=True)
    if pins.frozen_until is not None:
        yield Row("  squash", f"under way, until {pins.frozen_until:%H:%M:%S} UTC at most")


def _dataset_cards(parts: HubParts, cards: Mapping[str, Card]) -> Iterator[Row]:
    from leaderboard.store.hub.maintenance import stale_cards  # noqa: PLC0415

    try:
        stale = stale_cards(parts, known_and_shown(parts.public, cards), table_schemas())
    except AssayError:
        return  # It is told of the repositories and the pins already what cannot be reached.
    if stale:
        yield Row(
            "  dataset cards",
            f"out of date: {', '.join(stale)}; `load_dataset` lacks tables",
            f"python -m evaluator store cards hub:{parts.name.text}",
        )
    else:
        yield Row("  dataset cards", "name every table")


def health_rows(health: Health, name: str) -> Iterator[Row]:
    """The figures and the problems of an installation."""
    store = health.store
    if store is not None:
        yield Row(f"store {name}", _states(health))
        yield Row("  version", f"{store.version}{_changed(store.age_s)}")
        if store.commits_left is not None:
            yield Row("  commits left", f"{store.commits_left} within this hour, by this machine")
        yield Row("queue", _queue(health))
        yield Row("failures", _failures(health))
        yield from _workers(health)
    if health.snapshot is not None:
        yield Row("boards", f"built {duration(health.snapshot.age_s)} ago")
    for problem in health.problems:
        yield Row(
            f"problem {problem.code}",
            problem.message,
            problem.remedy,
            broken=problem.level is Level.DOWN,
        )


def broken_record_rows(ledger: Ledger) -> Iterator[Row]:
    """The submissions that wait or are in work and that workers pass over."""
    for name, error in faults(ledger):
        yield Row(f"submission {name}", error.message, error.hint, broken=True)


def _states(health: Health) -> str:
    return ", ".join(f"{n} {state}" for state, n in sorted(health.submissions.items())) or "empty"


def _changed(age_s: float | None) -> str:
    return "" if age_s is None else f", last changed {duration(age_s)} ago"


def _queue(health: Health) -> str:
    if not health.queue_length:
        return f"nobody waits, {health.in_work} in work"
    oldest = duration(health.oldest_wait_s)
    return f"{health.queue_length} wait, the oldest for {oldest}; {health.in_work} in work"


def _failures(health: Health) -> str:
    shares = ", ".join(
        f"{n} by the {fault} ({health.failure_rate[fault]:.0%})"
        for fault, n in sorted(health.failed_last_day.items())
    )
    return f"of {health.ended_last_day} that ended within a day: {shares or 'none'}"


def _workers(health: Health) -> Iterator[Row]:
    if not health.workers:
        yield Row("workers", "none has ever beaten, or not within a day")
    for worker in health.workers:
        doing = f"works at {worker.rate_per_s:.1f} pairs/s" if worker.working else "waits"
        beat = f"beat {duration(worker.heartbeat_age_s)} ago"
        yield Row(f"worker {worker.name}", f"{doing}, {beat}" if worker.alive else f"gone, {beat}")


_SHOWN = 20


def boards_rows(
    store: Store, cards: Mapping[str, Card], now: datetime, *, repair: bool
) -> Iterator[Row]:
    """What queue and boards show, against what they would show if they were built now."""
    found = (
        *_queue_differences(store),
        *_board_differences(store, cards, now),
        *_model_differences(store),
    )
    if not found:
        yield Row("queue and boards", "as events and results add up to")
        return
    for difference in found[:_SHOWN]:
        yield Row(f"  {difference.where}", difference.what)
    if len(found) > _SHOWN:
        yield Row("  and more", f"{len(found) - _SHOWN} further differences")
    if not repair:
        advice = "write them: python -m evaluator doctor --repair"
        yield Row("queue and boards", f"{len(found)} differences", advice, broken=True)
        return
    transact(store.public, lambda: repaired(store, cards, now), "queue and boards built anew")
    yield Row("queue and boards", f"{len(found)} differences, written anew")


def _queue_differences(store: Store) -> tuple[Difference, ...]:
    try:
        return queue_differences(store)
    except PlatformError as error:  # damaged: nothing of it can be compared
        return (Difference("queue", error.message),)


def _model_differences(store: Store) -> tuple[Difference, ...]:
    try:
        return model_differences(store)
    except PlatformError as error:
        return (Difference("models", error.message),)


def _board_differences(
    store: Store, cards: Mapping[str, Card], now: datetime
) -> tuple[Difference, ...]:
    right = rebuilt(store, cards, now)
    try:
        shown = read_snapshot(store.public)
    except PlatformError as error:
        return (Difference("snapshot", error.message),)
    if shown is None and not right.entries:
        return ()
    return differences(shown, right)
