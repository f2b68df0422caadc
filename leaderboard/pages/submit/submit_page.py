"""Three ways in: a scoring module, a file of scores, or the images of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from leaderboard.accounts import Account
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.markup import page
from leaderboard.pages.shown.widgets import html, on_load
from leaderboard.pages.submit.answers import gate_notice, worker_banner
from leaderboard.pages.submit.fields import PRIVATE, SENDING, SIGNED
from leaderboard.pages.submit.guide import ARCHIVE_GUIDE, SCORES_GUIDE
from leaderboard.pages.submit.images_tab import images_tab
from leaderboard.pages.submit.submitting import (
    ModuleForm,
    ScoresForm,
    check_metric,
    may_send,
    send_metric,
    send_scores,
    standing_of,
)
from leaderboard.pages.visitors import as_visitor, sign_in_row

_ARCHIVES = [".zip", ".tar", ".gz", ".tgz"]
_TABLES = [".csv", ".parquet", ".npz"]


def _build(context: Context) -> None:
    banner = html()
    visitor = sign_in_row(context)
    with gr.Tabs(elem_classes="as-tabs"):
        with gr.Tab("Scoring module", id="metric"):
            gate, *fields = _metric_tab(context, visitor)
        with gr.Tab("Scores file", id="scores"):
            benchmark, *others = _scores_tab(context, visitor)
        with gr.Tab("Generations", id="generations"):
            prompt_set, *drawn = images_tab(context, visitor)
    usable = [*fields, *others, *drawn]

    def open_page(account: Account | None) -> tuple[Any, ...]:
        choices = _choices(context, context.desk.score_benchmarks())
        sets = _choices(context, context.desk.prompt_set_names())
        allowed = gr.update(interactive=may_send(context, account))
        about_workers, about_code = warnings(context)
        return (
            page(["<h1>Submit a metric or a model</h1>", about_workers]),
            page([standing_of(context, account)]),
            about_code,
            gr.update(choices=choices),
            gr.update(choices=sets),
            *(allowed for _ in usable),
        )

    on_load(as_visitor(context, open_page), [banner, visitor, gate, benchmark, prompt_set, *usable])


def warnings(context: Context) -> tuple[str, str]:
    """What stands in the way of all that is sent, and of code; nothing where nothing is taken."""
    if context.sign_in.closed:
        return "", ""
    workers = worker_banner(context.live.pulses(), context.clock())
    return workers, gate_notice(context.desk.gate())


def _metric_tab(context: Context, visitor: gr.HTML) -> tuple[gr.HTML, *tuple[Any, ...]]:
    gate = html()
    with gr.Row(elem_classes="as-form"):
        with gr.Column(scale=3, min_width=300):
            file = gr.File(
                label="Archive (.zip, .tar, .tar.gz)", file_types=_ARCHIVES, type="filepath",
                height=150, interactive=False,
            )  # fmt: skip
            repository = gr.Textbox(
                label="or a repository of the Hub", max_length=300,
                placeholder="owner/name@revision",
                info="Or datasets/owner/name@revision. Fetched as everyone may read it, and "
                "recorded with its commit.",
                interactive=False,
            )  # fmt: skip
            receipt = gr.File(
                label="Receipt of your own check (.json, optional)", file_types=[".json"],
                type="filepath", height=76, elem_classes="as-small", interactive=False,
            )  # fmt: skip
            submitter = gr.Textbox(**SIGNED)
            private = gr.Checkbox(**PRIVATE)
            with gr.Row():
                check = gr.Button("Check", interactive=False)
                send = gr.Button("Submit module", variant="primary", interactive=False)
            result = html(elem_classes=["as-result"])
        with gr.Column(scale=2, min_width=300):
            html(f'<div class="as-guide"><h2>What goes into the archive</h2>{ARCHIVE_GUIDE}</div>')

    def checked(account: Account | None, path: str | None, repository: str | None) -> str:
        return check_metric(context, account, ModuleForm(path, repository=repository))

    def sent(account: Account | None, *fields: Any) -> tuple[str, str]:
        answer = send_metric(context, account, ModuleForm(*fields))
        return answer, page([standing_of(context, account)])

    check.click(as_visitor(context, checked), [file, repository], result, **SENDING)
    fields = [file, receipt, submitter, private, repository]
    send.click(as_visitor(context, sent), fields, [result, visitor], **SENDING)
    return gate, file, repository, receipt, check, send


def _scores_tab(context: Context, visitor: gr.HTML) -> tuple[gr.Dropdown, *tuple[Any, ...]]:
    with gr.Row(elem_classes="as-form"):
        with gr.Column(scale=3, min_width=300):
            file = gr.File(
                label="Scores (.csv, .parquet; .npz where masks are asked for)",
                file_types=_TABLES,
                type="filepath",
                height=150,
                interactive=False,
            )
            benchmark = gr.Dropdown([], label="Benchmark", value=None)
            with gr.Row():
                submitter = gr.Textbox(**SIGNED)
                name = gr.Textbox(label="Name", placeholder="Of the file; may stay empty")
                version = gr.Textbox(label="Version", placeholder="May stay empty")
            description = gr.Textbox(label="Description", lines=2)
            lower = gr.Textbox(
                label="Lower-is-better columns", placeholder="Names, with commas between them"
            )
            private = gr.Checkbox(**PRIVATE)
            send = gr.Button("Submit scores", variant="primary", interactive=False)
            result = html(elem_classes=["as-result"])
        with gr.Column(scale=2, min_width=300):
            html(f'<div class="as-guide"><h2>What the file holds</h2>{SCORES_GUIDE}</div>')

    def sent(account: Account | None, *fields: Any) -> tuple[str, str]:
        answer = send_scores(context, account, ScoresForm(*fields))
        return answer, page([standing_of(context, account)])

    fields = [file, benchmark, submitter, name, version, description, lower, private]
    send.click(as_visitor(context, sent), fields, [result, visitor], **SENDING)
    return benchmark, file, send


def _choices(context: Context, names: Sequence[str]) -> list[tuple[str, str]]:
    """Titles and names, for a field to choose from."""
    sets = context.models.prompt_sets if context.models else {}
    cards = {**{name: one.card for name, one in sets.items()}, **context.cards}
    return [(cards[name].title if name in cards else name, name) for name in names]


PAGE = Page("Submit", "submit", 20, _build)
