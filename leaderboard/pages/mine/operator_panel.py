"""The operators' part of 'My submissions': bans and the policy. Others are shown nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr

from leaderboard.accounts import Account
from leaderboard.governance.acts import Acts
from leaderboard.ledger.bans import Ban, read_bans
from leaderboard.ledger.policy import read_policy
from leaderboard.pages.mine.acts import KINDS, PolicyForm, bar, set_policy
from leaderboard.pages.page import Context
from leaderboard.pages.shown.history import moment
from leaderboard.pages.shown.markup import page, text
from leaderboard.pages.shown.widgets import html
from leaderboard.pages.visitors import as_visitor

_DOING: dict[str, Any] = {"api_visibility": "private", "show_progress": "minimal"}


def bans_list(bans: Mapping[str, Ban]) -> str:
    """The bans in force, with their reasons."""
    if not bans:
        return page(['<p class="as-muted">Nobody is banned.</p>'])
    lines = "".join(
        f"<li><code>{text(ban.account, limit=120)}</code> {moment(ban.at)} "
        f'<span class="as-muted">by {text(ban.by, limit=120)}</span>'
        f'<span class="as-reason">{text(ban.reason)}</span></li>'
        for ban in bans.values()
    )
    return page([f'<ul class="as-history">{lines}</ul>'])


class OperatorPanel:
    """Fields and buttons for operators, inside the page that is being built.

    Args:
        context: what the page may use.
        acts: what its buttons do.
    """

    def __init__(self, context: Context, acts: Acts) -> None:
        self._context = context
        self._acts = acts
        with gr.Column(visible=False, elem_classes="as-operator") as self.group:
            html('<div class="as-page"><h2>For operators</h2></div>')
            with gr.Tabs(elem_classes="as-tabs"):
                with gr.Tab("Bans", id="bans"):
                    self._bans()
                with gr.Tab("Policy", id="policy"):
                    self._policy()

    @property
    def outputs(self) -> list[Any]:
        """What `shown` fills."""
        return [self.group, self.bans, *self.policy]

    def shown(self, account: Account | None) -> tuple[Any, ...]:
        """The panel for operators; hidden and empty for all others."""
        if account is None or not account.operator:
            return gr.update(visible=False), "", *(gr.skip() for _ in self.policy)
        public = self._context.store.public
        policy = read_policy(public)
        allowed = [policy.allowances.get(kind) for kind in KINDS]
        numbers = [n for a in allowed for n in ((a.scored, a.unfinished) if a else (0, 0))]
        return gr.update(visible=True), bans_list(read_bans(public)), policy.period_days, *numbers

    def _bans(self) -> None:
        self.bans = html()
        with gr.Row(elem_classes="as-choosers"):
            key = gr.Textbox(label="Account", placeholder="hub:NAME or local:NAME", scale=2)
            reason = gr.Textbox(label="Reason, shown to everyone", max_length=500, scale=3)
            ban = gr.Button("Ban", elem_classes="as-plain", size="sm", scale=0, min_width=90)
            lift = gr.Button("Lift ban", elem_classes="as-plain", size="sm", scale=0, min_width=90)
        result = html(elem_classes=["as-result"])

        def barred(account: Account | None, whose: str, why: str) -> tuple[str, str]:
            return self._barred(account, whose, why, lift=False)

        def lifted(account: Account | None, whose: str, why: str) -> tuple[str, str]:
            return self._barred(account, whose, why, lift=True)

        for button, handler in ((ban, barred), (lift, lifted)):
            button.click(
                as_visitor(self._context, handler), [key, reason], [result, self.bans], **_DOING
            )

    def _barred(
        self, account: Account | None, whose: str, why: str, *, lift: bool
    ) -> tuple[str, str]:
        said = bar(self._context, self._acts, account, whose or "", why or "", lift=lift)
        operator = account is not None and account.operator
        return said, bans_list(read_bans(self._context.store.public)) if operator else ""

    def _policy(self) -> None:
        fields = (
            "Period (days)", "Modules scored", "Modules at once", "Files scored", "Files at once",
            "Generations scored", "Generations at once",
        )  # fmt: skip
        with gr.Row(elem_classes="as-choosers"):
            self.policy = [
                gr.Number(label=name, precision=0, minimum=0, min_width=110) for name in fields
            ]
        with gr.Row(elem_classes="as-choosers"):
            reason = gr.Textbox(label="Reason, shown to everyone", max_length=500, scale=3)
            send = gr.Button(
                "Set policy", elem_classes="as-plain", size="sm", scale=0, min_width=110
            )
        result = html(elem_classes=["as-result"])

        def sent(account: Account | None, *given: Any) -> str:
            *numbers, why = given
            return set_policy(
                self._context, self._acts, account, PolicyForm(tuple(numbers), why or "")
            )

        send.click(as_visitor(self._context, sent), [*self.policy, reason], result, **_DOING)
