"""Identity of visitors, for every handler that changes something or shows what is private."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import gradio as gr

from leaderboard.accounts import Account
from leaderboard.governance.signing_in import SignIn, Visit, Way, not_signed_in
from leaderboard.pages.page import Context
from leaderboard.pages.shown.markup import badge, notice, submitted, text
from leaderboard.pages.shown.widgets import html


class Request(Protocol):
    """What is read of a request."""

    @property
    def client(self) -> Any:
        """The other end of the connection."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the request."""


def account_of(
    sign_in: SignIn, request: Request, profile: Mapping[str, Any] | None
) -> Account | None:
    """The account a request acts for; None for a guest.

    Args:
        sign_in: how visitors are told apart here.
        request: as Gradio hands it to a handler.
        profile: the Hub's profile out of the signed session, as Gradio hands it to a handler.
    """
    peer = getattr(request.client, "host", None) or ""
    headers = {name.lower(): value for name, value in request.headers.items()}
    username = str(profile["preferred_username"]) if profile else None
    return sign_in.account(Visit(peer, headers, username))


def required(context: Context, account: Account | None) -> Account:
    """The account, if there is one.

    Raises:
        SubmitterError: `not_signed_in`.
    """
    if account is None:
        raise not_signed_in(context.sign_in)
    return account


def as_visitor(
    context: Context, handler: Callable[..., Any], *, query: bool = False
) -> Callable[..., Any]:
    """A handler as Gradio calls it, for one that takes the visitor's account before its inputs.

    Args:
        context: says how visitors are told apart.
        handler: is given the account or None; with `query`, the address's query after it.
        query: whether it wants that.
    """

    def called(request: gr.Request, profile: Mapping[str, Any] | None, inputs: Any) -> Any:
        account = account_of(context.sign_in, request, profile)
        asked = (dict(request.query_params),) if query else ()
        return handler(account, *asked, *inputs)

    # Gradio fills in arguments by their annotations, and takes a profile only where it has OAuth.
    def from_hub(request: gr.Request, profile: gr.OAuthProfile | None, *inputs: Any) -> Any:
        return called(request, profile, inputs)

    def without_hub(request: gr.Request, *inputs: Any) -> Any:
        return called(request, None, inputs)

    return from_hub if context.sign_in.way is Way.HUB else without_hub


def sign_in_row(context: Context) -> gr.HTML:
    """A line that says who is signed in, and the button for it where there is one."""
    with gr.Row(elem_classes="as-visitor"):
        line = html()
        if context.sign_in.way is Way.HUB:
            gr.LoginButton(
                "Sign in with Hugging Face", "Sign out ({})",
                size="sm", min_width=240, scale=0, elem_classes="as-sign-in",
            )  # fmt: skip
    return line


def who(sign_in: SignIn, account: Account | None) -> str:
    """Who is signed in, or how a guest can be."""
    if sign_in.closed:
        return notice(
            f"<b>Nothing can be sent from here.</b> {text(sign_in.closed)}", role="status"
        )
    if account is None:
        return notice(f"<b>You are not signed in.</b> {text(sign_in.invitation)}", role="status")
    role = (
        f" {badge('operator', 'info', 'May act on what others submitted')}"
        if (account.operator)
        else ""
    )
    how = (
        '<span class="as-muted">(of this machine; there is nothing to sign out of)</span>'
        if sign_in.way is Way.LOCAL
        else ""
    )
    return (
        f'<p class="as-who">Signed in as <b>{submitted(account.name)}</b> '
        f"<code>{text(account.key)}</code>{role} {how}</p>"
    )
