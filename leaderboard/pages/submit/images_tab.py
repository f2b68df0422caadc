"""The third way in: the images that a model drew of a prompt set."""

from __future__ import annotations

from typing import Any

import gradio as gr

from leaderboard.accounts import Account
from leaderboard.desk import Advance, Tell
from leaderboard.pages.page import Context
from leaderboard.pages.shown.markup import page
from leaderboard.pages.shown.widgets import html
from leaderboard.pages.submit.fields import PRIVATE, SENDING, SIGNED
from leaderboard.pages.submit.guide import IMAGES_GUIDE
from leaderboard.pages.submit.images import ImagesForm, check_images, send_images
from leaderboard.pages.submit.submitting import standing_of
from leaderboard.pages.visitors import as_visitor

_FILES = [".zip", ".tar", ".gz", ".tgz", ".parquet"]
_TELLING: dict[str, Any] = {**SENDING, "show_progress": "full"}


def images_tab(context: Context, visitor: gr.HTML) -> tuple[gr.Dropdown, *tuple[Any, ...]]:
    """Build the tab; gives the choice of prompt sets, and what only those may use who may submit.

    Args:
        context: what the page may use.
        visitor: shows who is signed in and what is left to them.
    """
    with gr.Row(elem_classes="as-form"):
        with gr.Column(scale=3, min_width=300):
            file = gr.File(
                label="Archive (.zip, .tar, .tar.gz) or .parquet", file_types=_FILES,
                type="filepath", height=150, interactive=False,
            )  # fmt: skip
            repository = gr.Textbox(
                label="or a dataset of the Hub", max_length=300,
                placeholder="owner/name@revision",
                info="Fetched as everyone may read it, and recorded with its commit.",
                interactive=False,
            )  # fmt: skip
            with gr.Accordion("Parquet without assay.toml: what is in it", open=False):
                prompt_set = gr.Dropdown([], label="Prompt set", value=None)
                with gr.Row():
                    name = gr.Textbox(label="Name of the model", max_length=64)
                    version = gr.Textbox(label="Version", placeholder="1", max_length=32)
            submitter = gr.Textbox(**SIGNED)
            private = gr.Checkbox(**PRIVATE)
            with gr.Row():
                check = gr.Button("Check", interactive=False)
                send = gr.Button("Submit generations", variant="primary", interactive=False)
            result = html(elem_classes=["as-result"])
        with gr.Column(scale=2, min_width=300):
            html(f'<div class="as-guide"><h2>What is sent</h2>{IMAGES_GUIDE}</div>')

    def checked(account: Account | None, *fields: Any) -> str:
        return check_images(context, account, ImagesForm(*fields), _telling())

    def sent(account: Account | None, *fields: Any) -> tuple[str, str]:
        answer = send_images(context, account, ImagesForm(*fields), _telling())
        return answer, page([standing_of(context, account)])

    fields = [file, repository, name, version, prompt_set]
    check.click(as_visitor(context, checked), fields, result, **_TELLING)
    send.click(
        as_visitor(context, sent), [*fields, submitter, private], [result, visitor], **_TELLING
    )
    return prompt_set, file, repository, check, send


def _telling() -> Tell:
    """Shows on the page how far the event is in which it is called."""
    progress = gr.Progress()

    def tell(now: Advance) -> None:
        left = f", about {now.eta_s:,.0f} s left" if now.eta_s else ""
        progress((now.done, now.total), desc=f"Looking at images{left}", unit="images")

    return tell
