"""All HTML of the page of a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.schema import Card
from leaderboard.pages.metric.copied import Around, citation, hub, provenance
from leaderboard.pages.metric.tables import (
    benchmark_table,
    measure_table,
    profile_table,
    skill_table,
)
from leaderboard.pages.shown.downloads import download_links, metric_data
from leaderboard.pages.shown.flags import flag_badges, flags_legend, origin_badge
from leaderboard.pages.shown.history import moment
from leaderboard.pages.shown.markup import badge, link, page, paragraphs, section, submitted, text
from leaderboard.pages.shown.signatures import signature
from leaderboard.pages.shown.states_shown import chip, kind_of
from leaderboard.pages.shown.version_links import version_links
from leaderboard.pages.trust.cards import checks_of, costs_of, findings_of
from leaderboard.publication.flags import flags_of, is_trained_on, origin
from leaderboard.publication.reader import View
from leaderboard.publication.skill_names import skills_of
from leaderboard.records import Kind
from leaderboard.text import count
from leaderboard.views.addresses import metric_address, skills_address
from leaderboard.views.index import SIMULATED
from leaderboard.views.metric import OnBoard, Shown, on_boards, profile
from leaderboard.views.skill_choice import DECLARED, GIGA, NOT_DECLARED, gigaflops_text

_LONGEST_DESCRIPTION = 4000


def metric_view(shown: Shown, view: View, around: Around) -> str:
    """Everything about a metric that stands on a board."""
    found = on_boards(shown, view)
    cards = {name: board.card for name, board in view.boards.items()}
    data = download_links(metric_data(shown.entry.entry_id), "results") if found else ""
    parts = [
        _head(shown, cards),
        _contents(),
        section("Results on every benchmark", _results(found, shown), aside=data,
                ident="results"),
        section("Profile over skills", _profile(found, view), ident="profile"),
        section("Trust checks", _trust(shown, cards), ident="trust"),
        section("Cost", _costs(shown, cards), ident="cost"),
        section("Versions and history", _history(shown, around), ident="history"),
        section("Computed again", provenance(shown, found), ident="again"),
        section("Citation", citation(shown, found, around), ident="cite"),
        section("Results for the Hub", hub(shown, found, around), ident="hub"),
    ]  # fmt: skip
    return page(parts)


def _head(shown: Shown, cards: Mapping[str, Card]) -> str:
    entry = shown.entry
    by = signature(entry.submitter, entry.account, limit=80)
    kind = origin_badge(entry) or badge(kind_of(entry.kind))
    trained = "".join(
        badge("trained on " + card.title, "warn", "Its author says so, of all or a part of it.")
        for card in cards.values()
        if is_trained_on(entry, card)
    )
    version = f' <span class="as-version">{submitted(entry.version, limit=40)}</span>'
    flags = flags_of(shown.entries)
    legend = "".join(f"<p class='as-legend'>{line}</p>" for line in flags_legend(shown.entries))
    return (
        f"<h1>{submitted(entry.metric, limit=120)}{version if entry.version else ''}</h1>"
        f'<p class="as-intro">{f"published by {by}" if entry.released_with else f"by {by}"} <span class="as-badges">{kind}{trained}'
        f"{flag_badges(flags)}</span></p>{legend}"
        f'<div class="as-described">{paragraphs(entry.description[:_LONGEST_DESCRIPTION])}</div>'
        f'<dl class="as-facts">{_facts(shown)}</dl>'
    )


def _facts(shown: Shown) -> str:
    entry, own = shown.entry, shown.status.submission if shown.status else None
    queue = f"./queue?submission={text(entry.submission_id)}"
    facts = [
        ("Submission", f'<a href="{queue}"><code>{text(entry.submission_id)}</code></a>'),
        (
            "Published",
            f"{moment(entry.published_at)} UTC, received {moment(entry.received_at)} UTC",
        ),
    ]
    if entry.released_with:
        facts.append(("Released with", text(entry.released_with)))
    if entry.trained_on:
        facts.append(("Trained on", ", ".join(submitted(name) for name in entry.trained_on)))
    if own is not None:
        links = ", ".join(link(to, name) for name, to in own.links.items())
        models = ", ".join(f"<code>{text(model, limit=200)}</code>" for model in own.models)
        source = f"<code>{text(own.source, limit=300)}</code>" if own.source else ""
        authors = ", ".join(submitted(name) for name in own.authors)
        facts += [("Authors", authors), ("Licence", text(own.licence, limit=100)),
                  ("Links", links), ("Models it needs", models), ("Taken from", source)]  # fmt: skip
    return "".join(f"<dt>{name}</dt><dd>{said}</dd>" for name, said in facts if said)


def _contents() -> str:
    places = (("results", "Results"), ("profile", "Profile"), ("trust", "Trust"), ("cost", "Cost"),
              ("history", "History"), ("again", "Recompute"), ("cite", "Cite"), ("hub", "Hub"))  # fmt: skip
    # Not a plain fragment: the page's base address is the root of the site.
    links = "".join(f'<li><a href="#{to}" data-place="{to}">{name}</a></li>' for to, name in places)
    return f'<nav aria-label="On this page"><ul class="as-contents">{links}</ul></nav>'


def _results(found: Sequence[OnBoard], shown: Shown) -> str:
    if not found:
        return '<p class="as-muted">It has no values on the boards of now.</p>'
    folded = "".join(_one_board(one) for one in found)
    return (
        f'{benchmark_table(found, shown.entry)}<p class="as-legend">Values with 95 % intervals; a '
        "rank range holds the places it takes in 95 % of the resamples. Tiers are tested for the "
        f"headline; for other measures the board makes them.</p>{folded}"
    )


def _one_board(one: OnBoard) -> str:
    skills = skill_table(one)
    by_skill = (
        f"<details><summary>{text(one.card.title)}: {count(len(one.skills), 'skill')}</summary>"
        f"{skills}</details>"
        if skills
        else ""
    )
    return (
        f'<div class="as-m-more">{by_skill}<details><summary>{text(one.card.title)}: every '
        f"measure, {count(len(one.cells), 'row')}</summary>{measure_table(one)}"
        "</details></div>"
    )


def _profile(found: Sequence[OnBoard], view: View) -> str:
    rows = profile(found, view)
    if not rows:
        return (
            '<p class="as-muted">No benchmark gives it a value by skill that can be rescaled.</p>'
        )
    simulated = all(one.card.simulated for one in found)
    ratings = SIMULATED if simulated else ""
    links = {
        skill.title: skills_address(key, ratings=ratings)
        for key, skill in skills_of(view.group(simulated=simulated).boards).items()
    }
    other = any(not row.own_scale for row in rows)
    mixed = (
        " Where a skill is measured by something else, its own chance and best value are used."
        if other
        else ""
    )
    return (
        '<p class="as-lead">Rescaled so that 0 (dashes) is a guess and 1 (dots) the ceiling of the '
        f"benchmark’s headline.{mixed}</p>{profile_table(rows, links)}"
        '<p class="as-legend">Dot: this metric, with its 95 % interval. Stroke: the median of all '
        "metrics with a rank there. Diamond: the best of them, which is the luckiest too.</p>"
    )


def _trust(shown: Shown, cards: Mapping[str, Card]) -> str:
    if shown.entry.kind is Kind.SCORES:
        what = origin(shown.entry).partition(",")[0].replace("scores ", "")
        said = f"Scores {what}: no code was run, so nothing was checked."
        return f'<p class="as-muted">{said}</p>'
    checks = checks_of(shown.entry, cards)
    found = findings_of(shown.entry, cards)
    layers = dict.fromkeys(shown.entry.isolation.values())
    walls = "".join(
        f"<p class='as-muted'>Isolation: {', '.join(text(one, limit=80) for one in of)}.</p>"
        for of in layers
        if of
    )
    items = f"<h3>Items</h3>{found}" if found else "<p>No item was found wanting.</p>"
    return checks + items + walls


def _costs(shown: Shown, cards: Mapping[str, Card]) -> str:
    found = costs_of(shown.entry, cards)
    flops = shown.entry.flops_per_pair
    said = NOT_DECLARED if flops is None else f"{gigaflops_text(flops / GIGA)}, {DECLARED}"
    declared = f'<p class="as-legend">FLOPs per pair: {said}.</p>'
    if not found:
        return '<p class="as-muted">No run of it is recorded: nothing was run here.</p>' + declared
    return f"{found}<p class='as-legend'>On the hardware of the worker that ran it.</p>{declared}"


def _history(shown: Shown, around: Around) -> str:
    entry, status = shown.entry, shown.status
    others = "".join(
        f'<li><a href="{text(metric_address(other.entry_id))}">{submitted(other.metric)} '
        f"{submitted(other.version, limit=40)}</a> in {text(other.submission_id)}, "
        f"{moment(other.published_at)} UTC</li>"
        for other in shown.others
    )
    siblings = (
        f'<h3>The same metric elsewhere</h3><ul class="as-history">{others}</ul>' if others else ""
    )
    moved = ", ".join(f'<a href="{text(to)}">{text(name)}</a>' for name, to in around.moved.items())
    since = f"<p>What moved since earlier revisions: {moved}.</p>" if moved else ""
    state = (
        f"<p>{chip(status.state)} since {moment(status.since)} UTC. "
        f'<a href="./queue?submission={text(entry.submission_id)}">Everything that happened</a></p>'
        if status
        else ""
    )
    versions = version_links(status, around.statuses) if status else ""
    none = (
        "" if versions or siblings else '<p class="as-muted">There is no other version of it.</p>'
    )
    return f"{state}{versions}{siblings}{none}{since}"
