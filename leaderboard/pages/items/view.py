"""All HTML of the item browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.schema import Card
from leaderboard.pages.items.case_view import case_card, mark
from leaderboard.pages.items.forms import chooser
from leaderboard.pages.items.summary_view import summary_table
from leaderboard.pages.shown.downloads import download_links, items_data
from leaderboard.pages.shown.markup import notice, page, scroll_box, section, submitted, text
from leaderboard.pages.shown.ranking_marks import SIMULATED
from leaderboard.text import count, number
from leaderboard.views.addresses import board_address, compare_address, metric_address
from leaderboard.views.examples import PER_PAGE, CaseShown, Choice, Share, Summary, Verdict

_TITLES = {
    "failures": "Where it fails, worst first",
    "disagreements": "Where the two disagree, greatest difference first",
    "all": "All cases",
}
_NONE = {
    "failures": "No failure here: this metric orders all of these cases as people do.",
    "disagreements": "These two order every comparison of these cases alike.",
    "all": "No case has this skill and this split.",
}


@dataclass(frozen=True)
class Everyone:
    """How the metrics of a board do on one case.

    Attributes:
        rows: entry id, name and verdict, the worst first.
        n_entries: how many metrics the board has; not all may be looked at.
    """

    rows: tuple[tuple[str, str, Verdict], ...]
    n_entries: int


@dataclass(frozen=True)
class Listed:
    """What a page shows of the cases.

    Attributes:
        shown: the cases of this page.
        total: how many are listed on all pages.
        page: which this is, from 1.
        summaries: of each metric, over the cases with skill and split.
        gap: difference of two metrics.
        everyone: for a case by itself: how all metrics do on it.
    """

    shown: tuple[CaseShown, ...]
    total: int
    page: int
    summaries: tuple[Summary, ...] = ()
    gap: Share | None = None
    everyone: Everyone | None = None

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self.total // PER_PAGE))


@dataclass(frozen=True)
class Names:
    """What entries are called, as submitted."""

    of: dict[str, str] = field(default_factory=dict)

    def __call__(self, entry_id: str) -> str:
        """The name; the id where it is not known."""
        return self.of.get(entry_id, entry_id)


def items_view(
    choice: Choice,
    found: Listed | None,
    names: Names,
    benchmarks: Sequence[tuple[str, str]],
    *,
    pictures: bool,
    absent: Sequence[str] = (),
    public: bool = True,
) -> str:
    """The page.

    Args:
        choice: what is looked at.
        found: the cases; None where the benchmark has none to show.
        names: of the entries.
        benchmarks: title and name of every benchmark.
        pictures: whether images are at hand.
        absent: what could be fetched: prompts, images.
        public: whether the answers of the benchmark are.
    """
    card = choice.card
    parts = [f"<h1>Items of {text(card.title)}</h1>", _intro(choice)]
    parts += [notice(SIMULATED, "warn")] if card.simulated else []
    parts += [notice(text(remark), "info", role="status") for remark in choice.remarks]
    parts.append(chooser(choice, names, benchmarks))
    if found is None:
        return page([*parts, _nothing(card, public=public)])
    parts += _not_here(card, absent)
    labels = [names(entry) for entry in choice.metrics]
    if choice.query.case:
        return page([*parts, _alone(choice, found, labels, pictures=pictures)])
    if not choice.a:
        parts.append(_unscored(card))
    return page(
        [*parts, _sums(choice, found, labels), _list(choice, found, labels, pictures=pictures)]
    )


def _intro(choice: Choice) -> str:
    board = board_address(choice.card.name, skill=choice.query.skill)
    links = [f'<a href="{text(board)}">The board</a>']
    if choice.a:
        links.append(f'<a href="{text(metric_address(choice.a))}">Card of metric A</a>')
    if choice.b:
        against = compare_address(choice.card.name, choice.a, choice.b, skill=choice.query.skill)
        links.append(f'<a href="{text(against)}">Compare A and B</a>')
    return (
        '<p class="as-intro">What people said of each image, and whether a metric orders the images '
        f"as they do.</p><p>{' · '.join(links)}</p>"
    )


def _not_here(card: Card, absent: Sequence[str]) -> list[str]:
    """How to see what is not part of Assay; nothing where all of it is here."""
    if not absent:
        return []
    said = (
        f"The {' and '.join(absent)} of {text(card.title)} are not on this machine. "
        f"<code>python -m benchmarks fetch {text(card.name)}</code> downloads what is public; start "
        "Assay with <code>--data</code> or <code>ASSAY_DATA</code>, and they are shown here."
    )
    return [notice(said, "info")]


def _nothing(card: Card, *, public: bool) -> str:
    if not public:
        why = (
            "<h2>Answers are withheld</h2><p>What people said of these images is not public, so "
            f"nothing of single images of {text(card.title)} is shown: no ratings, no scores, no "
            "pictures. The board has the measures.</p>"
        )
    else:
        why = (
            "<h2>No cases published yet</h2><p>They are published with the next result on "
            f"{text(card.title)}.</p>"
        )
    board = text(board_address(card.name))
    return (
        f'<div class="as-empty">{why}<p><a class="as-button as-strong" href="{board}">'
        "Look at the board</a></p></div>"
    )


def _unscored(card: Card) -> str:
    return notice(
        f"Nobody has been scored on {text(card.title)} so far; shown is what people said.", "info"
    )


def _sums(choice: Choice, found: Listed, labels: Sequence[str]) -> str:
    if not found.summaries:
        return ""
    n_cases = found.summaries[0].n_cases
    table = summary_table(found.summaries, labels, found.gap, choice.card.cluster)
    return section("In all of these", table, aside=f"<span>{count(n_cases, 'case')}</span>")


def _list(choice: Choice, found: Listed, labels: Sequence[str], *, pictures: bool) -> str:
    show = choice.show if choice.a else "all"
    if not found.shown:
        return section(_TITLES[show], f'<div class="as-empty"><p>{_NONE[show]}</p></div>')
    cards = "".join(case_card(one, choice, labels, pictures=pictures) for one in found.shown)
    link = choice.query.to_link(page=1)
    data = download_links(items_data(link[link.index("?") :]))
    aside = f"<span>{count(found.total, 'case')}</span>{data}"
    return section(
        _TITLES[show], f'<div class="as-cases">{cards}</div>{_pager(choice, found)}', aside=aside
    )


def _pager(choice: Choice, found: Listed) -> str:
    if found.pages == 1:
        return ""

    def step(to: int, label: str, rel: str) -> str:
        if not 1 <= to <= found.pages:
            return ""
        address = text(choice.query.to_link(page=to))
        return f'<a class="as-button" rel="{rel}" href="{address}">{label}</a>'

    return (
        f'<nav class="as-pager" aria-label="Pages">{step(found.page - 1, "Previous", "prev")}'
        f"<span>Page {found.page:,} of {found.pages:,}</span>"
        f"{step(found.page + 1, 'Next', 'next')}</nav>"
    )


def _alone(choice: Choice, found: Listed, labels: Sequence[str], *, pictures: bool) -> str:
    back = text(choice.query.to_link(case=""))
    cards = "".join(
        case_card(one, choice, labels, pictures=pictures, alone=True) for one in found.shown
    )
    everyone = _everyone(choice, found.everyone) if found.everyone else ""
    way_back = f'<p class="as-way-back"><a class="as-button" href="{back}">Back to the list</a></p>'
    return f"{way_back}{cards}{everyone}"


def _everyone(choice: Choice, everyone: Everyone) -> str:
    """Which metrics failed here."""
    rows = "".join(_metric_row(choice, *row) for row in everyone.rows)
    if not rows:
        return ""
    left = everyone.n_entries - len(everyone.rows)
    note = (
        f'<p class="as-legend">The {len(everyone.rows)} metrics that rank first on the board; '
        f"{left:,} more are not looked at.</p>"
        if left > 0
        else ""
    )
    heads = ("Metric", "Comparisons", "Share right", "Missing scores")
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return section(
        "Which metrics failed here",
        f'{scroll_box("All metrics on this case")}<table class="as-table as-item-everyone">'
        '<caption class="as-sr">How every metric does on this case, the worst first</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>{note}",
    )


def _metric_row(choice: Choice, entry_id: str, name: str, verdict: Verdict) -> str:
    looked_at = entry_id in choice.metrics
    address = text(choice.query.to_link(a=entry_id, b="" if entry_id == choice.b else choice.b))
    label = submitted(name, limit=40)
    named = label if entry_id == choice.a else f'<a href="{address}">{label}</a>'
    missing = (
        f'<span class="as-badge as-warn">{verdict.n_missing:,}</span>' if verdict.n_missing else "0"
    )
    return (
        f'<tr{" class=as-marked" if looked_at else ""}><th scope="row" class="as-name">{named}</th>'
        f"<td>{mark(verdict.came)}</td>"
        f"<td>{number(verdict.came.share, 2)}</td><td>{missing}</td></tr>"
    )
