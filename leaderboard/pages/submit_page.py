"""Two ways in: a scoring module, or a file of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gradio as gr

from benchmarks.errors import AssayError, SubmitterError
from leaderboard.pages.answers import (
    ARCHIVE_GUIDE,
    SCORES_GUIDE,
    accepted,
    gate_notice,
    refused,
    worker_banner,
)
from leaderboard.pages.markup import page
from leaderboard.pages.page import Context, Page
from leaderboard.pages.widgets import html, on_load
from leaderboard.records import Status

_ARCHIVES = [".zip", ".tar", ".gz", ".tgz"]
_TABLES = [".csv", ".parquet", ".npz", ".pkl"]
_TITLE = "<h1>Submit a metric</h1>"


def answer(submit: Callable[[], Status]) -> str:
    """Submit, and say what came of it. Defects of ours that no one foresaw are not hidden here."""
    try:
        return accepted(submit())
    except AssayError as error:
        return refused(error)


def send_metric(context: Context, path: str | None, submitter: str) -> str:
    """Hand a scoring module in, if code is taken here."""

    def submit() -> Status:
        gate = context.desk.gate()
        if not gate.ok:
            raise SubmitterError("no_isolation", gate.reason, gate.remedy)
        return context.desk.submit_metric(_given(path, "archive"), submitter=_named(submitter))

    return answer(submit)


@dataclass(frozen=True)
class ScoresForm:
    """The fields of the scores tab, as they were filled in."""

    path: str | None
    benchmark: str | None
    submitter: str
    name: str = ""
    description: str = ""
    lower: str = ""
    """Names of the lower-is-better columns, with commas between them."""


def send_scores(context: Context, form: ScoresForm) -> str:
    """Hand a scores file in."""

    def submit() -> Status:
        file = _given(form.path, "scores file")
        if not form.benchmark:
            raise SubmitterError(
                "no_benchmark", "No benchmark is chosen.", "Choose the one these scores are for."
            )
        return context.desk.submit_scores(
            file,
            benchmark=form.benchmark,
            submitter=_named(form.submitter),
            name=form.name.strip(),
            description=form.description.strip(),
            lower_is_better=tuple(part.strip() for part in form.lower.split(",") if part.strip()),
        )

    return answer(submit)


def _given(path: str | None, what: str) -> Path:
    if not path:
        raise SubmitterError("no_file", f"No {what} is chosen.", "Choose a file, then submit.")
    return Path(path)


def _named(submitter: str) -> str:
    if not submitter.strip():
        raise SubmitterError(
            "no_submitter", "The submitter's name is empty.", "Fill in your name or your team's."
        )
    return submitter.strip()


def _build(context: Context) -> None:
    banner = html()
    with gr.Tabs(elem_classes="as-tabs"):
        with gr.Tab("Scoring module", id="metric"):
            gate = _metric_tab(context)
        with gr.Tab("Scores file", id="scores"):
            benchmark = _scores_tab(context)

    def open_page() -> tuple[str, str, object]:
        now = context.clock()
        names = context.desk.score_benchmarks()
        choices = [(_title(context, name), name) for name in names]
        return (
            page([_TITLE, worker_banner(context.live.pulses(), now)]),
            gate_notice(context.desk.gate()),
            gr.update(choices=choices),
        )

    on_load(open_page, [banner, gate, benchmark])


def _metric_tab(context: Context) -> gr.HTML:
    gate = html()
    with gr.Row(elem_classes="as-form"):
        with gr.Column(scale=3, min_width=300):
            file = gr.File(
                label="Archive (.zip, .tar, .tar.gz)", file_types=_ARCHIVES, type="filepath",
                height=150,
            )  # fmt: skip
            submitter = gr.Textbox(label="Submitter", placeholder="Your name or your team's")
            send = gr.Button("Submit module", variant="primary")
            result = html(elem_classes=["as-result"])
        with gr.Column(scale=2, min_width=300):
            html(f'<div class="as-guide"><h2>What goes into the archive</h2>{ARCHIVE_GUIDE}</div>')
    send.click(
        lambda path, who: send_metric(context, path, who),
        [file, submitter],
        result,
        api_visibility="private",
        show_progress="minimal",
    )
    return gate


def _scores_tab(context: Context) -> gr.Dropdown:
    with gr.Row(elem_classes="as-form"):
        with gr.Column(scale=3, min_width=300):
            file = gr.File(
                label="Scores (.csv, .parquet; .npz where masks are asked for)",
                file_types=_TABLES,
                type="filepath",
                height=150,
            )
            benchmark = gr.Dropdown([], label="Benchmark", value=None)
            with gr.Row():
                submitter = gr.Textbox(label="Submitter", placeholder="Your name or your team's")
                name = gr.Textbox(label="Name", placeholder="Of the file; may stay empty")
            description = gr.Textbox(label="Description", lines=2)
            lower = gr.Textbox(
                label="Lower-is-better columns", placeholder="Names, with commas between them"
            )
            send = gr.Button("Submit scores", variant="primary")
            result = html(elem_classes=["as-result"])
        with gr.Column(scale=2, min_width=300):
            html(f'<div class="as-guide"><h2>What the file holds</h2>{SCORES_GUIDE}</div>')
    send.click(
        lambda *fields: send_scores(context, ScoresForm(*fields)),
        [file, benchmark, submitter, name, description, lower],
        result,
        api_visibility="private",
        show_progress="minimal",
    )
    return benchmark


def _title(context: Context, benchmark: str) -> str:
    card = context.cards.get(benchmark)
    return card.title if card else benchmark


PAGE = Page("Submit", "submit", 20, _build)
