"""Diagnostics of the settings: their origins, which are wrong, which secrets are weak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from benchmarks.errors import SubmitterError
from benchmarks.settings.model import VARIABLES, Origin, Value, suggestion, unknown_variables
from benchmarks.settings.sources import settings_file, values
from evaluator.doctoring.rows import Row
from leaderboard.governance.signing_in import read_sign_in
from leaderboard.service.webhooks import checked_secret as checked_webhook
from leaderboard.store.live.wire import checked_secret as checked_live


def settings_rows(environment: Mapping[str, str], os_user: str) -> Iterator[Row]:
    """Of this process.

    Args:
        environment: with files adopted.
        os_user: name of the operating system's user.
    """
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
