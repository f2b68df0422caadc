"""Trust checks of each metric, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks.schema import Card
from leaderboard.pages.shown.flags import flag_badges, flags_legend
from leaderboard.pages.shown.markup import badge, page, scroll_box, section, text
from leaderboard.pages.shown.signatures import signature
from leaderboard.publication.flags import flags_of
from leaderboard.publication.identities import latest_entries
from leaderboard.publication.snapshot import Entry
from leaderboard.records import Cost, Findings, Kind
from leaderboard.text import MISSING, count, number, rate
from leaderboard.trust import TITLES, Check, TrustReport

_LEAD = (
    "A metric is a function of one image and one prompt. Before it may rank, the same pairs are "
    "asked again: repeated, in another order, in other batches, each alone, as another file of the "
    "same pixels, and in the run itself. Where a score moves by more than rounding, the metric keeps its values and "
    "gets no rank. How far scores move when every channel value is raised by one (Re-Thinking), "
    "which nobody sees, is measured beside it."
)
_FILES = "Scores files hold what their authors computed; nothing was run, so nothing was checked."
_NOTHING = "No metric has been run yet."
_OLD = "Scored before there were trust checks."


PER_PAGE = 25
"""Metrics; the tables of five hundred are four megabytes."""


def trust_page(entries: Iterable[Entry], cards: Mapping[str, Card], wanted: int = 1) -> str:
    """The HTML of the page: one part per metric whose code was run, those that failed first.

    Args:
        entries: of all boards.
        cards: the benchmarks.
        wanted: which page of them, from 1; the last one where it lies beyond.
    """
    latest = [e for e in latest_entries(entries).values() if e.kind is Kind.METRIC]
    latest.sort(key=lambda entry: (not _failed(entry), entry.metric.casefold()))
    parts = [f"<h1>Trust and cost</h1><p class='as-intro'>{_LEAD}</p>"]
    pages = max(1, -(-len(latest) // PER_PAGE))
    at = min(max(wanted, 1), pages)
    shown = latest[(at - 1) * PER_PAGE : at * PER_PAGE]
    parts += [_metric(entry, cards) for entry in shown]
    parts.append(_pager(at, pages, len(latest)))
    if not latest:
        parts.append(f"<p class='as-muted'>{_NOTHING}</p>")
    parts.append(f"<p class='as-muted'>{' '.join((_FILES, *flags_legend(latest)))}</p>")
    return page(parts)


def _pager(at: int, pages: int, metrics: int) -> str:
    """The way to the other pages; nothing where there is one."""
    if pages == 1:
        return ""
    before = _step(at - 1, "Before", "prev") if at > 1 else ""
    after = _step(at + 1, "After", "next") if at < pages else ""
    return (
        f'<nav class="as-pager" aria-label="Pages">{before}<span>Page {at:,} of {pages:,}, '
        f"{count(metrics, 'metric')}; those that failed a check first</span>{after}</nav>"
    )


def _step(page_: int, label: str, rel: str) -> str:
    return f'<a class="as-button" rel="{rel}" href="./trust?page={page_}">{label}</a>'


def _reports(entry: Entry) -> tuple[TrustReport, ...]:
    """One report stands for all benchmarks of a run; it names the one its pairs are of."""
    return tuple(
        {r.benchmark: entry.trust.get(r.benchmark, r) for r in entry.trust.values()}.values()
    )


def _failed(entry: Entry) -> bool:
    return any(report.failed for report in entry.trust.values())


def checks_of(entry: Entry, cards: Mapping[str, Card]) -> str:
    """What came of the checks of a metric, and what was asked again, unfolded where one failed."""
    body = "".join(_report(report, cards) for report in _reports(entry))
    body = body or f"<p class='as-muted'>{_OLD}</p>"
    return (
        f"{_verdicts(entry, cards)}<details{' open' if _failed(entry) else ''}>"
        f"<summary>What was asked again</summary>{body}</details>"
    )


def costs_of(entry: Entry, cards: Mapping[str, Card]) -> str:
    """What the runs of a metric used; empty where none is recorded."""
    return _costs(entry, cards)


def findings_of(entry: Entry, cards: Mapping[str, Card]) -> str:
    """What was found about the items of each benchmark; empty where all went well."""
    return _findings(entry, cards)


def _metric(entry: Entry, cards: Mapping[str, Card]) -> str:
    name = f"{entry.metric} {entry.version}".strip()
    checks = _verdicts(entry, cards)
    folded = checks_of(entry, cards).removeprefix(checks)
    return section(
        name,
        checks + _costs(entry, cards) + _findings(entry, cards) + folded,
        aside=f"{flag_badges(flags_of([entry]))} {signature(entry.submitter, entry.account)}",
    )


def _verdicts(entry: Entry, cards: Mapping[str, Card]) -> str:
    """One line per report: what came of it, and how far one step of the pixels moves a score."""
    reports = _reports(entry)
    return "".join(
        f"<p>{_verdict(report)} <span class='as-muted'>{_title(report.benchmark, cards)}"
        f"{_one_pixel(report)}</span></p>"
        for report in reports
    )


def _title(benchmark: str, cards: Mapping[str, Card]) -> str:
    return text(cards[benchmark].title if benchmark in cards else benchmark)


def _verdict(report: TrustReport) -> str:
    if report.failed:
        return badge(f"not ranked: {report.why_not}", "bad")
    if not report.n_pairs:
        return badge("nothing could be checked", "warn")
    return badge("passed every check", "good")


def _one_pixel(report: TrustReport) -> str:
    found = next((check for check in report.checks if check.name == "one_pixel"), None)
    if found is None:
        return ""
    return (
        f"; one-pixel change {_of_spread(found.mean, report)} on average, "
        f"{_of_spread(found.largest, report)} at most"
    )


def _report(report: TrustReport, cards: Mapping[str, Card]) -> str:
    env = " · ".join(f"{text(k)} {text(v, limit=80)}" for k, v in report.environment.items())
    rows = "".join(_check(check, report) for check in report.checks)
    return (
        f"<p class='as-muted'>{count(report.n_pairs, 'pair')} of "
        f"{count(report.n_images, 'image')} of {_title(report.benchmark, cards)}; scores spread by "
        f"{number(report.spread)} (sd), and {100 * report.limit:g} % of that is put down to "
        f"rounding.</p>"
        f'{scroll_box("Trust checks")}<table class="as-table as-trust"><thead><tr>'
        '<th scope="col" class="as-c-metric">Asked again</th><th scope="col">Verdict</th>'
        '<th scope="col">Mean change</th><th scope="col">Largest</th>'
        f'<th scope="col">Where it shows</th></tr></thead><tbody>{rows}</tbody></table></div>'
        + (f'<p class="as-muted">{env}</p>' if env else "")
    )


def _check(check: Check, report: TrustReport) -> str:
    verdict = {
        True: badge("same", "good"),
        False: badge("differs", "bad"),
        None: badge("measured", "plain"),
    }[check.passed]
    return (
        f'<tr><th scope="row">{TITLES[check.name]}</th><td>{verdict}</td>'
        f"<td>{_of_spread(check.mean, report)}</td><td>{_of_spread(check.largest, report)}</td>"
        f"<td>{_example(check)}</td></tr>"
    )


def _of_spread(value: float, report: TrustReport) -> str:
    """A change as a share of the spread of scores, which is what orders images."""
    if value == 0.0:
        return "0"
    if report.spread == 0.0:
        return f"{value:.1g}"
    share = 100 * value / report.spread
    shown = "&lt;0.01" if share < 0.01 else f"{share:.2g}" if share < 100 else f"{share:,.0f}"
    return f'<span title="{value:.3g} in units of the score">{shown} % of sd</span>'


def _example(check: Check) -> str:
    one = check.example
    if one is None or check.passed:
        return MISSING
    lost = f", {count(check.n_lost, 'score')} lost or gained" if check.n_lost else ""
    return (
        f"<code>{text(one.pair_id, limit=60)}</code>: {number(one.before)} → "
        f"{number(one.after)}{lost}"
    )


def _costs(entry: Entry, cards: Mapping[str, Card]) -> str:
    if not entry.cost:
        return ""
    rows = "".join(_cost(_title(name, cards), cost) for name, cost in sorted(entry.cost.items()))
    return (
        f'{scroll_box("Costs")}<table class="as-table as-trust"><thead><tr>'
        '<th scope="col" class="as-c-metric">Benchmark</th><th scope="col">Pairs</th>'
        '<th scope="col">Images</th><th scope="col">Calls</th><th scope="col">Seconds</th>'
        '<th scope="col">Pairs/s</th><th scope="col">Seconds per 1,000 pairs</th>'
        '<th scope="col">Peak memory</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cost(title: str, cost: Cost) -> str:
    per_thousand = 1000 * cost.seconds / cost.pairs if cost.pairs else None
    memory = f"{cost.peak_memory_bytes / 2**30:.2f} GiB" if cost.peak_memory_bytes else MISSING
    return (
        f'<tr><th scope="row">{title}</th><td>{cost.pairs:,}</td><td>{cost.images:,}</td>'
        f"<td>{f'{cost.calls:,}' if cost.calls else MISSING}</td><td>{number(cost.seconds, 1)}</td>"
        f"<td>{rate(cost.pairs_per_s)}</td><td>{number(per_thousand, 1)}</td><td>{memory}</td></tr>"
    )


def _findings(entry: Entry, cards: Mapping[str, Card]) -> str:
    """What was found about the items of each benchmark; nothing where all went well."""
    return "".join(
        _finding(_title(name, cards), found)
        for name, found in sorted(entry.findings.items())
        if found.counts or found.scored < found.pairs
    )


def _finding(title: str, found: Findings) -> str:
    lost = found.pairs - found.scored
    said = ", ".join(f"{n:,} × {_word(code)}" for code, n in sorted(found.counts.items()))
    mark = badge(f"{lost:,} of {found.pairs:,} without a score", "warn") if lost else ""
    examples = "".join(
        f"<li>{text(one.item)} <code>{text(one.item_id, limit=60)}</code>: "
        f"{text(one.message, limit=200)}</li>"
        for one in found.examples
    )
    listed = f"<ul class='as-muted'>{examples}</ul>" if examples else ""
    return f"<p>{title}: {mark} <span class='as-muted'>{said}</span></p>{listed}"


def _word(code: str) -> str:
    return text(code.replace("_", " "))
