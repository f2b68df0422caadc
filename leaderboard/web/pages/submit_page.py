"""Three forms with a check before anything is sent; own submissions, their progress and the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from leaderboard.accounts import Account
from leaderboard.records import Kind
from leaderboard.rendering import render
from leaderboard.submission_service import CheckProgress, Tell
from leaderboard.views.submit import SubmitQuery
from leaderboard.web.page import Context, Page
from leaderboard.web.submission_controls import SubmissionControls, head, submit_parts
from leaderboard.web.submitting import (
    FileForm,
    Form,
    ImagesForm,
    ModuleForm,
    check,
    may_send,
    send,
    titles_of,
)
from leaderboard.web.visitors import as_visitor, sign_in_button
from leaderboard.web.widgets import QUIET, html, on_load, or_as_before

_ARCHIVES = [".zip", ".tar", ".gz", ".tgz"]
_TABLES = [".csv", ".parquet", ".npz"]
_IMAGES = [*_ARCHIVES, ".parquet"]
_SENDING: dict[str, Any] = {"api_visibility": "private", "show_progress": "full"}
_ADDRESS = """(id) => {
  if (!id) return;
  const query = new URLSearchParams(location.search);
  query.set('id', id);
  history.replaceState(null, '', `${location.pathname}?${query}`);
}"""
"""Puts what was sent into the address, so that the page opened again shows it."""


class _SubmitPage:
    """Joins the page to its components."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._query = gr.State(SubmitQuery())
        self._sent = gr.Textbox(visible="hidden", elem_classes=["as-state"])
        self._head = html(elem_classes=["as-submit-top"])
        sign_in_button(context)
        with gr.Row(elem_classes=["as-submit"]):
            with gr.Column(elem_classes=["as-submit-forms"], min_width=280):
                self._forms = {
                    Kind.METRIC: self._module_form(),
                    Kind.SCORES: self._scores_form(),
                    Kind.GENERATIONS: self._images_form(),
                }
            with gr.Column(elem_classes=["as-submit-beside"], min_width=280):
                self._controls = SubmissionControls(
                    context,
                    lambda account, query: submit_parts(context, account, query),
                    self._query,
                    lambda query: str(query.submission_id),
                )
                self._controls.build(before=2, after=2)
        on_opening: list[Any] = []
        for form in self._forms.values():
            self._connect(form)
            on_opening += form.on_opening
        on_load(
            as_visitor(context, self._open, query=True),
            [self._query, self._head, *on_opening, *self._controls.outputs],
        )

    def _open(self, account: Account | None, params: Mapping[str, str]) -> tuple[Any, ...]:
        query = SubmitQuery.from_params(params)
        usable = may_send(self._context, account)
        return (
            query,
            head(self._context, account, query.kind),
            *(
                update
                for kind, form in self._forms.items()
                for update in form.opened(self._context, shown=kind is query.kind, usable=usable)
            ),
            *self._controls.render_all(account, query),
        )

    def _on_check(self, form: Callable[..., Form]) -> Callable[..., Any]:
        """A handler that checks what a form holds, and opens its other button where it passed."""

        def handler(account: Account | None, *fields: Any) -> tuple[Any, Any]:
            answer = check(self._context, account, form(*fields))
            return answer.html, gr.update(interactive=answer.passed)

        return as_visitor(self._context, handler)

    def _on_send(self, form: Callable[..., Form]) -> Callable[..., Any]:
        """A handler that sends what a form holds, and then follows what was sent."""

        def handler(account: Account | None, query: SubmitQuery, *fields: Any) -> tuple[Any, ...]:
            answer = send(self._context, account, form(*fields))
            now = replace(query, submission_id=answer.submission_id or query.submission_id)
            # What was sent is said, whether or not the rest can be read anew.
            anew = or_as_before(self._controls.render_all, len(self._controls.outputs))
            closed = gr.update(interactive=not answer.submission_id)
            return answer.html, closed, answer.submission_id, now, *anew(account, now)

        return as_visitor(self._context, handler)

    def _connect(self, form: _Form) -> None:
        """Join a form's buttons to what they do; whatever is changed has to be checked again."""
        page_state = [self._query, *form.fields]
        filled = [form.result, form.send, self._sent, self._query, *self._controls.outputs]
        form.check.click(
            self._on_check(form.made), form.fields, [form.result, form.send], **_SENDING
        )
        form.send.click(self._on_send(form.made), page_state, filled, **_SENDING).then(
            None, self._sent, js=_ADDRESS, api_visibility="private"
        )
        for field in form.fields:
            field.change(lambda: gr.update(interactive=False), None, form.send, **QUIET)

    def _module_form(self) -> _Form:
        with gr.Column(visible=False, elem_classes=["as-panel", "as-form"]) as column:
            file = _file("Archive (.zip, .tar, .tar.gz)", _ARCHIVES)
            repository = gr.Textbox(
                label="or a repository of the Hub", max_length=300,
                placeholder="owner/name@revision, or datasets/owner/name@revision",
                info="Fetched as everyone may read it, and recorded with its commit.",
                interactive=False,
            )  # fmt: skip
            receipt = _file("Receipt of your own check (.json, optional)", [".json"], small=True)
            submitter, private = _signed(), _private()
            buttons = _buttons("Submit module")
        fields = [file, repository, receipt, submitter, private]
        guarded = [file, repository, receipt]
        return _Form(Kind.METRIC, column, fields, buttons, made=ModuleForm, guarded=guarded)

    def _scores_form(self) -> _Form:
        with gr.Column(visible=False, elem_classes=["as-panel", "as-form"]) as column:
            file = _file("Scores (.csv, .parquet; .npz where masks are asked for)", _TABLES)
            with gr.Row():
                benchmark = gr.Dropdown([], label="Benchmark", value=None)
                name = gr.Textbox(
                    label="Name", placeholder="That of the file if empty",
                    info="Names the metric where its column is called score; others keep the "
                    "names of their columns.",
                )  # fmt: skip
            with gr.Row():
                version = gr.Textbox(label="Version", placeholder="May stay empty")
                lower = gr.Textbox(
                    label="Lower-is-better columns", placeholder="Names, with commas between them"
                )
            with gr.Row():
                description = gr.Textbox(label="Description", placeholder="One sentence")
                submitter = _signed()
            private = _private()
            buttons = _buttons("Submit scores")
        fields = [file, benchmark, name, version, description, lower, submitter, private]
        return _Form(
            Kind.SCORES, column, fields, buttons, made=FileForm, guarded=[file],
            chooser=benchmark, choices=lambda context: context.desk.score_benchmarks(),
        )  # fmt: skip

    def _images_form(self) -> _Form:
        with gr.Column(visible=False, elem_classes=["as-panel", "as-form"]) as column:
            file = _file("Archive (.zip, .tar, .tar.gz) or .parquet", _IMAGES)
            repository = gr.Textbox(
                label="or a dataset of the Hub", max_length=300, placeholder="owner/name@revision",
                info="Fetched as everyone may read it, and recorded with its commit.",
                interactive=False,
            )  # fmt: skip
            with gr.Accordion("Parquet without assay.toml: what is in it", open=False):
                prompt_set = gr.Dropdown([], label="Prompt set", value=None)
                with gr.Row():
                    name = gr.Textbox(label="Name of the model", max_length=64)
                    version = gr.Textbox(label="Version", placeholder="1", max_length=32)
            submitter, private = _signed(), _private()
            buttons = _buttons("Submit images")
        fields = [file, repository, name, version, prompt_set, submitter, private]
        return _Form(
            Kind.GENERATIONS, column, fields, buttons,
            made=lambda *given: replace(ImagesForm(*given), tell=_telling()),
            guarded=[file, repository],
            chooser=prompt_set, choices=lambda context: context.desk.prompt_set_names(),
        )  # fmt: skip


class _Form:
    """One of the three forms on the page."""

    def __init__(
        self,
        kind: Kind,
        column: gr.Column,
        fields: Sequence[Any],
        buttons: tuple[gr.Button, gr.Button],
        *,
        made: Callable[..., Form],
        guarded: Sequence[Any],
        chooser: gr.Dropdown | None = None,
        choices: Callable[[Context], Sequence[str]] = lambda _: (),
    ) -> None:
        self.fields, self.made = list(fields), made
        self.check, self.send = buttons
        self._column, self._guarded = column, list(guarded)
        self._chooser, self._choices = chooser, choices
        self.result = html(elem_classes=["as-result"])
        self._guide = html(elem_classes=["as-guide-part"])
        self._kind = kind

    @property
    def on_opening(self) -> list[Any]:
        """What `opened` fills."""
        chooser = [self._chooser] if self._chooser else []
        return [self._column, self._guide, *self._guarded, self.check, *chooser]

    def opened(self, context: Context, *, shown: bool, usable: bool) -> list[Any]:
        """The form as it is for a visitor."""
        allowed = gr.update(interactive=usable)
        titles = titles_of(context)
        named = [(titles.get(name, name), name) for name in self._choices(context)]
        guide = render(f"submit/guide_{self._kind.value}.html") if shown else ""
        return [
            gr.update(visible=shown),
            guide,
            *(allowed for _ in self._guarded),
            allowed,
            *([gr.update(choices=named)] if self._chooser else []),
        ]


def _file(label: str, types: list[str], *, small: bool = False) -> gr.File:
    classes = ["as-drop-file", *(["as-small"] if small else [])]
    return gr.File(
        label=label, file_types=types, type="filepath", height=76 if small else 116,
        interactive=False, elem_classes=classes,
    )  # fmt: skip


def _signed() -> gr.Textbox:
    return gr.Textbox(
        label="Signed as", placeholder="Your name or your team’s; else your account’s"
    )


def _private() -> gr.Checkbox:
    return gr.Checkbox(
        label="Keep private until I publish it",
        info="The public pages show neither its name nor yours, and no results.",
    )


def _buttons(label: str) -> tuple[gr.Button, gr.Button]:
    with gr.Row(elem_classes=["as-form-buttons"]):
        check_ = gr.Button("Check", variant="primary", interactive=False, scale=0, min_width=110)
        send_ = gr.Button(label, interactive=False, scale=0, min_width=130)
        html(render("submit/opens.html"), elem_classes=["as-form-hint"])
    return check_, send_


def _telling() -> Tell:
    """Shows on the page how far the event is in which it is called."""
    progress = gr.Progress()

    def tell(now: CheckProgress) -> None:
        left = f", about {now.eta_s:,.0f} s left" if now.eta_s else ""
        progress((now.done, now.total), desc=f"Checking images{left}", unit="images")

    return tell


PAGE = Page("Submit", "submit", 20, _SubmitPage)
