"""Page of the operators: everybody's submissions, built-in metrics, bans and the policy. Others see nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from leaderboard.accounts import Account
from leaderboard.ledger.policy import MOST_ALLOWED
from leaderboard.rendering import render
from leaderboard.submission_service import BuiltinForm
from leaderboard.views.submit import SubmitQuery
from leaderboard.web.page import Context, Page
from leaderboard.web.submission_controls import (
    DOING,
    SubmissionControls,
    operator_parts,
    operators_head,
)
from leaderboard.web.submitting import (
    KINDS,
    ban,
    bans_list,
    check_builtin,
    queue_builtin,
    set_policy,
)
from leaderboard.web.visitors import as_visitor, sign_in_button
from leaderboard.web.widgets import html, on_load

_FIELDS = (
    "Period (days)", "Modules scored", "Modules at once", "Files scored", "Files at once",
    "Images scored", "Images at once",
)  # fmt: skip


class _OperatorsPage:
    """Joins the page to its components."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ident = gr.State("")
        head = html(elem_classes=["as-submit-top"])
        sign_in_button(context)
        with gr.Column(elem_classes=["as-operators"]):
            self._controls = SubmissionControls(
                context,
                lambda account, ident: operator_parts(context, account, ident),
                self._ident,
                str,
            )
            self._controls.build(before=1, after=1)
            with gr.Column(visible=False, elem_classes=["as-operator"]) as self._panel:
                self._build_builtins()
                self._build_bans()
                self._build_policy()
        on_load(
            as_visitor(context, self._open, query=True),
            [
                self._ident, head, *self._controls.outputs, self._panel, self._bans,
                *self._policy, self._metric, self._machine,
            ],
        )  # fmt: skip

    def _open(self, account: Account | None, params: Mapping[str, str]) -> tuple[Any, ...]:
        ident = SubmitQuery.from_params(params).submission_id
        shown = (
            ident,
            operators_head(self._context, account),
            *self._controls.render_all(account, ident),
        )
        if account is None or not account.operator:
            hidden = (gr.skip() for _ in (*self._policy, self._metric, self._machine))
            return *shown, gr.update(visible=False), "", *hidden
        policy = self._context.reader.policy()
        allowed = [policy.allowances.get(kind) for kind in KINDS]
        both = [n for a in allowed for n in ((a.scored, a.unfinished) if a else (0, 0))]
        numbers = [min(n, MOST_ALLOWED) for n in both]  # what is larger fits no field
        bans = bans_list(self._context)
        desk = self._context.desk
        machines = [("This machine", ""), *((name.upper(), name) for name in desk.machine_names())]
        return (
            *shown, gr.update(visible=True), bans, policy.period_days, *numbers,
            gr.update(choices=list(desk.builtin_names())), gr.update(choices=machines, value=""),
        )  # fmt: skip

    def _build_builtins(self) -> None:
        html(render("submit/heading.html", title="Built-in metrics"))
        with gr.Row(elem_classes="as-choosers"):
            self._metric = gr.Dropdown([], label="Metric", value=None, scale=3)
            self._machine = gr.Dropdown([], label="GPU of the worker", value=None, scale=2)
            self._questions = gr.File(
                label="Questions, for metrics that ask them", file_types=[".jsonl"], type="filepath",
                height=76, scale=3, elem_classes=["as-drop-file", "as-small"],
            )  # fmt: skip
            look = gr.Button("Check metric", size="sm", scale=0, min_width=120)
            put = gr.Button("Queue metric", size="sm", scale=0, min_width=120)
        result = html(elem_classes=["as-result"])

        def checked(account: Account | None, *inputs: str | None) -> str:
            return check_builtin(self._context, account, _builtin_form(*inputs))

        def queued(account: Account | None, *inputs: str | None) -> str:
            return queue_builtin(self._context, account, _builtin_form(*inputs))

        inputs = [self._metric, self._machine, self._questions]
        for button, handler in ((look, checked), (put, queued)):
            button.click(as_visitor(self._context, handler), inputs, result, **DOING)

    def _build_bans(self) -> None:
        html(render("submit/heading.html", title="Bans"))
        self._bans = html()
        with gr.Row(elem_classes="as-choosers"):
            key = gr.Textbox(label="Account", placeholder="hub:NAME or local:NAME", scale=2)
            reason = gr.Textbox(label="Reason, shown to everyone", max_length=500, scale=3)
            put = gr.Button("Ban", size="sm", scale=0, min_width=90)
            lift = gr.Button("Lift ban", size="sm", scale=0, min_width=90)
        result = html(elem_classes=["as-result"])

        def banned(account: Account | None, whose: str, why: str) -> tuple[str, str]:
            return self._banned(account, whose, why, lift=False)

        def lifted(account: Account | None, whose: str, why: str) -> tuple[str, str]:
            return self._banned(account, whose, why, lift=True)

        for button, handler in ((put, banned), (lift, lifted)):
            button.click(
                as_visitor(self._context, handler), [key, reason], [result, self._bans], **DOING
            )

    def _banned(
        self, account: Account | None, whose: str, why: str, *, lift: bool
    ) -> tuple[str, str]:
        acts = self._controls.acts
        said = ban(self._context, acts, account, whose or "", why or "", lift=lift)
        operator = account is not None and account.operator
        return said, bans_list(self._context) if operator else ""

    def _build_policy(self) -> None:
        html(render("submit/heading.html", title="Policy"))
        with gr.Row(elem_classes="as-choosers"):
            self._policy = [gr.Number(label=name, minimum=0, min_width=110) for name in _FIELDS]
        with gr.Row(elem_classes="as-choosers"):
            reason = gr.Textbox(label="Reason, shown to everyone", max_length=500, scale=3)
            put = gr.Button("Set policy", size="sm", scale=0, min_width=110)
        result = html(elem_classes=["as-result"])

        def sent(account: Account | None, *given: Any) -> str:
            *numbers, why = given
            return set_policy(self._context, self._controls.acts, account, numbers, why or "")

        put.click(as_visitor(self._context, sent), [*self._policy, reason], result, **DOING)


def _builtin_form(metric: str | None, machine: str | None, questions: str | None) -> BuiltinForm:
    file = Path(questions) if questions else None
    return BuiltinForm(metric or "", machine or "", questions=file)


PAGE = Page("Operators", "operators", 26, _OperatorsPage, in_navigation=False)
