"""Parts of the page of a metric that are there to be copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.schema import Card
from leaderboard.pages.metric.hub_results import FILE, hub_results
from leaderboard.pages.shown.copying import copyable
from leaderboard.pages.shown.markup import (
    scroll_box,
    text,
)
from leaderboard.records import Status
from leaderboard.views.metric import OnBoard, Shown, benchmark_bibtex, commands_for, entry_bibtex


@dataclass(frozen=True)
class Around:
    """What the page is given beside the boards.

    Attributes:
        statuses: all submissions.
        moved: benchmark to the address of what moved since its last revision.
        url: address of this page as the visitor sees it; empty where that is not known.
    """

    statuses: Sequence[Status]
    moved: Mapping[str, str]
    url: str = ""


def provenance(shown: Shown, found: Sequence[OnBoard]) -> str:
    """What rows are computed from, and the commands that do it again."""
    entry = shown.entry
    rows, commands = [], []
    for one in found:
        of = next((e for e in shown.entries if e.entry_id == one.entry_id), entry)
        stated = of.provenance.get(one.card.name)
        if stated is not None:
            rows.append(
                f'<tr><th scope="row">{text(one.card.title)}</th><td>{text(one.card.revision)}</td>'
                f"<td>{one.card.protocol}</td><td>{stated.seed}</td><td>{stated.n_resamples:,}</td>"
                f"<td><code>{text(stated.plan, limit=80) or '—'}</code></td>"
                f'<td class="as-m-versions">{text(stated.versions, limit=300)}</td></tr>'
            )
        own = shown.status if of is entry else None
        how = commands_for(of, one.card, own)
        lines = how.from_store
        if how.from_file:
            lines = f"{lines}\n# the same from its published scores alone, {how.scores} of the store:\n{how.from_file}"
        commands.append(
            f"<h3>{text(one.card.title)}</h3>{_withheld(one.card)}"
            f"{copyable(lines, f'Commands for {one.card.title}')}"
        )
    heads = ("Benchmark", "Revision", "Protocol", "Seed", "Resamples", "Plan", "Versions")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    table = (
        f'{scroll_box("Provenance")}<table class="as-table as-m-again"><caption class="as-sr">What '
        f"figures are computed from</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}"
        "</tbody></table></div>"
    )
    return (
        "<p>Every row follows from published scores, the revision of the data and the seed. With "
        "<code>ASSAY_STORE</code> naming this store and <code>ASSAY_DATA</code> the data, this "
        f"computes them again and says where they differ:</p>{''.join(commands)}{table}"
    )


def _withheld(card: Card) -> str:
    if card.answers_public:
        return ""
    return (
        '<p class="as-muted">The answers of this benchmark are withheld, so only those who have '
        "them can compute its rows again.</p>"
    )


def citation(shown: Shown, found: Sequence[OnBoard], around: Around) -> str:
    """BibTeX of the results and of the benchmarks."""
    cards = [one.card for one in found]
    authors = shown.status.submission.authors if shown.status else ()
    own = entry_bibtex(shown.entry, cards, authors, around.url)
    works = "\n\n".join(dict.fromkeys(benchmark_bibtex(card) for card in cards))
    return (
        f"<h3>These results</h3>{copyable(own, 'BibTeX of these results')}"
        f"<h3>The benchmarks behind them</h3>{copyable(works, 'BibTeX of the benchmarks')}"
    )


def hub(shown: Shown, found: Sequence[OnBoard], around: Around) -> str:
    """Evaluation results for the repository of a model."""
    cells = [(one.card, one.headline) for one in found if one.headline is not None]
    ready = hub_results(shown.entry, cells, around.url)
    left = "; ".join(f"{text(name)}: {why}" for name, why in ready.left_out.items())
    rest = f'<p class="as-legend">Left out: {left}.</p>' if left else ""
    if not ready.content:
        return f'<p class="as-muted">None of its benchmarks is a dataset of the Hub.</p>{rest}'
    return (
        f"<p>Put this at <code>{FILE}</code> of the repository of the metric’s model, and its page "
        "shows the headline results.</p>"
        f"{copyable(ready.content, 'Evaluation results for the Hub')}{rest}"
    )
