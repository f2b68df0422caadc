"""Facts about a model: its card, the findings in its images, and how to make them again."""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.schema import Card
from leaderboard.pages.models.facts import guidance, images_said, parameters, selection
from leaderboard.pages.models.names import judge_name
from leaderboard.pages.shown.copying import copyable
from leaderboard.pages.shown.markup import link, notice, scroll_box, section, submitted, text
from leaderboard.pages.shown.signatures import signature
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.records import JudgeRun
from leaderboard.text import MISSING, count, number
from leaderboard.views.addresses import model_address

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_MOST_SEEDS = 24
_EXAMPLES = 3


def card_section(entry: ModelEntry) -> str:
    """The card of the model, as its developer declares it, and its images as they are."""
    card, seen = entry.card, entry.images
    known = _HUB_ID.fullmatch(card.model)
    hub = link(f"https://huggingface.co/{card.model}", card.model) if known else _code(card.model)
    links = " · ".join(link(url, label) for label, url in entry.links.items())
    rows = (
        ("Model", f"{hub} {_code(card.revision)}".strip()),
        ("Sent by", signature(entry.submitter, entry.account) or MISSING),
        ("Authors", ", ".join(submitted(one, limit=60) for one in entry.authors)),
        ("Licence", text(entry.licence, limit=80) or MISSING),
        ("Links", links),
        ("Parameters", parameters(card.parameters)),
        ("Steps", MISSING if card.steps is None else f"{card.steps:,}"),
        ("Guidance", guidance(card.guidance)),
        ("Drawn on", text(card.drawn_on) or MISSING),
        ("Image taken", selection(card)),
        ("Images", images_said(entry)),
        ("Seeds", _seeds(seen.seeds)),
        ("Published", f"{entry.published_at:%Y-%m-%d}"),
    )
    told = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows if value)
    return section("Card", f'<dl class="as-facts">{told}</dl>', ident="card")


def shared_section(entry: ModelEntry, known: Mapping[str, ModelEntry]) -> str:
    """Who has the same images; empty where nobody has.

    Args:
        entry: the model.
        known: models on the boards, by submission id.
    """
    lines = []
    for one in entry.images.shared:
        examples = ", ".join(
            f"{text(prompt, limit=40)} seed {seed}" for prompt, seed in one.examples[:_EXAMPLES]
        )
        such = f" (for example {examples})" if examples else ""
        lines.append(
            f"{count(one.n_images, 'image')} as in {_other(one.submission_id, known)}{such}"
        )
    lines += [f"the very same files as {_other(one, known)}" for one in entry.same_content_as]
    if not lines:
        return ""
    listed = "".join(f"<li>{line}</li>" for line in lines)
    return notice(
        f"<p><b>Shares images with another submission.</b> A flag, not a verdict:</p><ul>{listed}</ul>",
        "warn",
    )


def runs_section(
    runs: Mapping[str, JudgeRun],
    titles: Mapping[str, str],
    change: Mapping[str, str] | None = None,
) -> str:
    """The run of every metric on these images.

    Args:
        runs: entry id of each metric to its run.
        titles: entry id of each metric to its name.
        change: entry id to what is said of the one-pixel change; may lack some.
    """
    if not runs:
        return section("Runs of the metrics", "<p>No metric has scored these images so far.</p>")
    rows = "".join(
        f'<tr><th scope="row">{judge_name(one, titles.get(one, run.metric))}</th>'
        f"{_run(run, (change or {}).get(one, ''))}</tr>"
        for one, run in runs.items()
    )
    heads = ("Metric", "Scored", "Without a score", "Time", "Memory", "Isolation",
             "One-pixel change")  # fmt: skip
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return section(
        "Runs of the metrics",
        f"{scroll_box('Runs of the metrics')}"
        '<table class="as-table as-m-facts"><caption class="as-sr">Runs of the metrics</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"
        '<p class="as-legend"><b>One-pixel change:</b> how much a score moves when every channel '
        "below 255 is raised by one (Re-Thinking), on average and at most.</p>",
        ident="runs",
    )


def again_section(entry: ModelEntry, card: Card) -> str:
    """How the images and the figures can be made again."""
    seen, model = entry.images, entry.card
    drawn = _command(entry, card)
    scores = f"results/{entry.submission_id}/{card.name}.scores.parquet"
    facts = (
        ("Submission", _code(entry.submission_id)),
        ("Prompts", f"{text(card.title)}, revision {_code(seen.revision)}"),
        ("Model's revision", _code(model.revision) or MISSING),
        ("Seeds", _seeds(seen.seeds)),
        ("Scores", f"{_code(scores)} in the public repository"),
    )
    told = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    return section(
        "Make it again",
        f'<dl class="as-facts">{told}</dl>{copyable(drawn, "the command that draws the prompts")}',
        ident="again",
    )


def _command(entry: ModelEntry, card: Card) -> str:
    """What draws the prompts again; nothing of a stranger's that a shell could read otherwise."""
    model, seen = entry.card, entry.images
    if not _HUB_ID.fullmatch(model.model):
        return f"python -m benchmarks prompts {card.name}"
    parts = [
        f"python -m evaluator generate --benchmark {card.name} --model {model.model} --out images"
    ]
    parts += [f"--revision {model.revision}"] if _COMMIT.fullmatch(model.revision) else []
    parts += [f"--seeds {','.join(map(str, seen.seeds))}"] if seen.seeds else []
    parts += [f"--steps {model.steps}"] if model.steps is not None else []
    parts += [f"--guidance {model.guidance:g}"] if model.guidance is not None else []
    return " \\\n    ".join(parts)


def _run(run: JudgeRun, change: str) -> str:
    if run.failed:
        return (
            f'<td colspan="6"><span class="as-badge as-bad">failed</span> '
            f"{text(run.failed, limit=300)}</td>"
        )
    cost = run.cost
    lacking = sum(run.unscored.values())
    why = ", ".join(f"{text(code)}: {n:,}" for code, n in run.unscored.items())
    time = (
        f"{cost.seconds:,.0f} s<span class=as-note>{number(cost.seconds / max(cost.images, 1))} s "
        "an image</span>"
        if cost and cost.images
        else MISSING
    )
    memory = (
        f"{cost.peak_memory_bytes / 2**30:.1f} GiB"
        if cost and cost.peak_memory_bytes
        else (MISSING)
    )
    moved = (
        f"{number(run.mean_change, 4)}, at most {number(run.max_change, 4)}"
        f'<span class="as-note">{count(run.perturbed, "image")}</span>'
        if run.perturbed
        else MISSING
    )
    values = (
        ("Scored", f"{cost.pairs:,}" if cost else MISSING),
        ("Without a score", f"{lacking:,}<span class=as-note>{why}</span>" if lacking else "0"),
        ("Time", time),
        ("Memory", memory),
        ("Isolation", text(", ".join(run.isolation), limit=80) or MISSING),
        ("One-pixel change", f"{moved}{f'<span class=as-note>{change}</span>' if change else ''}"),
    )
    return "".join(f'<td data-label="{label}">{value}</td>' for label, value in values)


def _seeds(seeds: tuple[int, ...]) -> str:
    more = f" and {len(seeds) - _MOST_SEEDS:,} more" if len(seeds) > _MOST_SEEDS else ""
    return ", ".join(str(seed) for seed in seeds[:_MOST_SEEDS]) + more


def _code(value: str) -> str:
    return f"<code>{text(value, limit=120)}</code>" if value else ""


def _other(submission_id: str, known: Mapping[str, ModelEntry]) -> str:
    entry = known.get(submission_id)
    if entry is None:
        return _code(submission_id)
    return f'<a href="{text(model_address(submission_id))}">{submitted(entry.title)}</a>'
