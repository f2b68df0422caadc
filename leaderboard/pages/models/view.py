"""All HTML of the models page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from benchmarks.schema import Card
from leaderboard.models.board_types import ModelBoard
from leaderboard.models.reading import ModelReader
from leaderboard.pages.models.disagreements import disagreements_section
from leaderboard.pages.models.facts import facts_table
from leaderboard.pages.models.forms import (
    asking_form,
    judge_field,
    models_field,
    seed_field,
    set_field,
    skill_field,
    split_field,
    words_field,
)
from leaderboard.pages.models.judges_view import judges_section
from leaderboard.pages.models.table import models_in_order, models_table
from leaderboard.pages.shown.copying import copyable
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.markup import link, notice, page, paragraphs, section, text
from leaderboard.publication.measure_names import skill_title
from leaderboard.text import count
from leaderboard.views.addresses import prompt_address, seeds_address, with_state
from leaderboard.views.models import Choice

SIMULATED = (
    "<b>The models of this board are simulated.</b> Their images are drawn by programs that make "
    "mistakes at known rates; the board shows how models are judged, not how good one is."
)
INTRO = (
    "Text-to-image models compared on the same prompts, skill by skill: by people’s ratings where "
    "people rated them, and by the metrics that earned it on the boards of metrics."
)


def nothing_here() -> str:
    """The page of an installation without prompt sets."""
    said = notice("This installation has no prompt sets, so no models are compared here.")
    return page(["<h1>Models</h1>", said])


def models_view(
    choice: Choice,
    board: ModelBoard | None,
    reader: ModelReader,
    further: Sequence[str] = (),
    cards: Mapping[str, Card] | None = None,
    *,
    people: str = "",
    rated: Collection[str] = (),
) -> str:
    """The page.

    Args:
        choice: what is looked at.
        board: the models; None where there are none, or no prompts to compare them on.
        reader: of the models, for the list of prompt sets.
        further: sections below those of the board, as HTML.
        cards: of the boards of metrics, by name, to name what judges rest on.
        people: the section on people's ratings, as HTML; empty where there are none.
        rated: prompt sets that have such a section.
    """
    parts = [head(choice), form(choice, reader, rated)]
    if board is None or not board.skills or not board.entries:
        return page([*parts, people, *_left_out(board), empty(choice), *further])
    parts += [_filters(choice), _board(board, choice), *_left_out(board), people]
    order = [board.entries[one] for one in models_in_order(board)]
    parts += [disagreements_section(board, choice), judges_section(board, choice, cards or {})]
    parts.append(section("What is known of the models", facts_table(order), ident="facts"))
    return page([*parts, *further])


def head(choice: Choice, title: str = "") -> str:
    """Title, what the prompt set is, and remarks.

    Args:
        choice: what is looked at.
        title: of the page; empty: the models of the prompt set.
    """
    card = choice.card
    parts = [f"<h1>{text(title or f'Models on {card.title}')}</h1>"]
    if not title:
        parts.append(f'<p class="as-intro">{INTRO}</p>{_about(card)}')
    parts += [notice(SIMULATED, "warn")] if card.simulated else []
    parts += [notice(text(remark), "info", role="status") for remark in choice.remarks]
    return "".join(parts)


def _about(card: Card) -> str:
    """The prompt set, folded: what its prompts are, whose, and under which licence."""
    links = " · ".join(link(url, label) for label, url in card.links.items())
    said = "".join(
        f"<p><b>{label}:</b> {value}</p>"
        for label, value in (
            ("Revision", text(card.revision)), ("Licence", text(card.licence)),
            ("Citation", text(card.citation)), ("Links", links),
        )
        if value
    )  # fmt: skip
    return (
        f'<details class="as-unfold as-about-set" data-keep="about-set"><summary>{text(card.summary)}'
        f"</summary>{paragraphs(card.description)}{said}</details>"
    )


def form(choice: Choice, reader: ModelReader, rated: Collection[str] = ()) -> str:
    """The choosers of the board."""
    fields = [set_field(reader, choice, rated)]
    if choice.entries:
        fields += [*skill_field(choice), *split_field(choice), words_field(choice.query.words)]
        fields += [*judge_field(choice, "Those that earned it"), *seed_field(choice)]
        fields += models_field(choice)
    return asking_form("models", "Choose models", fields, {})


def empty(choice: Choice) -> str:
    """Why there is nothing to see, and what to do."""
    card = choice.card
    if not choice.entries:
        commands = (
            f"python -m evaluator generate --benchmark {card.name} --model OWNER/NAME --out images\n"
            "python -m evaluator check images\n"
            "python -m evaluator submit images --kind generations"
        )
        said = (
            f"<h2>No submitted models yet</h2><p>Nobody has submitted images of the prompts of "
            f"{text(card.title)}. Draw them with your model, several seeds each, and submit them. "
            f"<code>python -m benchmarks prompts {text(card.name)}</code> gives the prompts to draw "
            f"them in another way.</p>{copyable(commands, 'the commands')}"
            '<p><a class="as-button as-strong" href="./submit">Submit images</a></p>'
        )
    elif not choice.prompts:
        said = (
            f"<h2>The prompts are not here</h2><p>The files of {text(card.title)} are not on this "
            "machine, so its models cannot be compared here.</p>"
        )
    elif not choice.judges:
        said = (
            "<h2>Not scored yet</h2><p>No metric has scored the images of these models so far. "
            'The <a href="./queue">queue</a> says what is in work.</p>'
        )
    else:
        back = text(choice.query.to_link(words="", split="", skill="", models=()))
        said = (
            "<h2>Nothing left to compare</h2><p>No prompt is kept by these filters.</p>"
            f'<p><a class="as-button" href="{back}">Remove the filters</a></p>'
        )
    return f'<div class="as-empty">{said}</div>'


def _filters(choice: Choice) -> str:
    """What is not looked at, each with a link that takes it back."""
    query, card = choice.query, choice.card
    named = {
        "skill": f"skill: {skill_title(card, query.skill)}",
        "split": f"split: {card.splits.get(query.split, query.split)}",
        "words": f"words: {query.words}",
        "judge": f"only {choice.judges.get(query.judge, query.judge)}",
        "seed": f"seed no. {query.seed}",
        "models": f"{len(query.models)} of {count(len(choice.entries), 'model')}",
    }
    chips = "".join(
        f'<a class="as-chip-off" href="{text(_without(choice, name))}"'
        f' aria-label="Remove {text(said, limit=80)}">{text(said, limit=80)} '
        '<span aria-hidden="true">×</span></a>'
        for name, said in named.items()
        if getattr(query, name)
    )
    if not chips:
        return ""
    kept = count(len(choice.places), "prompt")
    return (
        f'<p class="as-chips" role="group" aria-label="Filters">{chips}'
        f'<span class="as-muted">{kept}; ranks are among these models on these prompts.</span></p>'
    )


def _without(choice: Choice, name: str) -> str:
    return (
        choice.query.to_link(models=())
        if name == "models"
        else (choice.query.to_link(**{name: ""}))
    )


def _board(board: ModelBoard, choice: Choice) -> str:
    query, name = choice.query, choice.card.name
    notes = dict.fromkeys(of.note for of in board.skills.values() if of.note)
    told = "".join(f"<li>{_whose(note, board)}: {text(note)}</li>" for note in notes)
    listed = notice(f'<ul class="as-notes">{told}</ul>', "warn") if told else ""
    unranked = _unranked(board)
    links = [
        f'<a href="{text(seeds_address(name, judge=query.judge))}">How they vary over seeds</a>'
    ]
    order = models_in_order(board)
    if len(order) > 1:
        pair = with_state(query.to_link("model-pair"), a=order[0], b=order[1])
        links.append(f'<a href="{text(pair)}">Compare two models</a>')
    if choice.prompts:
        places = choice.places
        first = choice.prompts[places[0] if places else 0].prompt_id
        one = prompt_address(name, first, judge=query.judge, skill=query.skill)
        links.append(f'<a href="{text(one)}">Prompt by prompt</a>')
    title = "By skill" if not query.skill else f"By {skill_title(choice.card, query.skill)}"
    return section(
        title,
        f"{models_table(board, choice)}<p>{' · '.join(links)}</p>{listed}{unranked}",
        aside=f"<span>{count(len(order), 'model')}</span>{download_links(query.to_data())}",
        ident="board",
    )


def _whose(note: str, board: ModelBoard) -> str:
    """The skills that a note is about."""
    titles = [of.title for of in board.skills.values() if of.note == note]
    return (
        "<b>All skills</b>"
        if len(titles) == len(board.skills) > 1
        else (f"<b>{text(', '.join(titles))}</b>")
    )


def _unranked(board: ModelBoard) -> str:
    """Why models have no rank, where any has none."""
    first = next(iter(board.skills.values()))
    lines = "".join(
        f"<li>{text(board.entries[one].title, limit=60)}: {text(standing.unranked)}</li>"
        for one, standing in first.standings.items()
        if standing.unranked and one in board.entries
    )
    return f'<p><b>Without a rank:</b></p><ul class="as-notes">{lines}</ul>' if lines else ""


def _left_out(board: ModelBoard | None) -> list[str]:
    if board is None or not board.left_out:
        return []
    names = ", ".join(text(one, limit=60) for one in board.left_out)
    return [notice(f"Left out, since they drew an earlier revision of the prompts: {names}.")]
