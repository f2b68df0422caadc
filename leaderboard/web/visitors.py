"""Identity of visitors, for every handler that changes something or shows what is private."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import gradio as gr

from leaderboard.accounts import Account
from leaderboard.governance.authentication import (
    Authentication,
    AuthenticationMethod,
    Visit,
    not_signed_in,
)
from leaderboard.web.page import Context


class Request(Protocol):
    """What is read of a request."""

    @property
    def client(self) -> Any:
        """The other end of the connection."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the request."""


def account_of(
    sign_in: Authentication, request: Request, profile: Mapping[str, Any] | None
) -> Account | None:
    """The account a request acts for; None for a guest."""
    peer = getattr(request.client, "host", None) or ""
    headers = {name.lower(): value for name, value in request.headers.items()}
    username = str(profile["preferred_username"]) if profile else None
    return sign_in.account(Visit(peer, headers, username))


def required(context: Context, account: Account | None) -> Account:
    """The account, if there is one."""
    if account is None:
        raise not_signed_in(context.sign_in)
    return account


def as_visitor(
    context: Context, handler: Callable[..., Any], *, query: bool = False
) -> Callable[..., Any]:
    """A handler as Gradio calls it, for one that takes the visitor's account before its inputs."""

    def called(request: gr.Request, profile: Mapping[str, Any] | None, inputs: Any) -> Any:
        account = account_of(context.sign_in, request, profile)
        asked = (dict(request.query_params),) if query else ()
        return handler(account, *asked, *inputs)

    # Gradio fills in arguments by their annotations, and takes a profile only where it has OAuth.
    def from_hub(request: gr.Request, profile: gr.OAuthProfile | None, *inputs: Any) -> Any:
        return called(request, profile, inputs)

    def without_hub(request: gr.Request, *inputs: Any) -> Any:
        return called(request, None, inputs)

    return from_hub if context.sign_in.way is AuthenticationMethod.HUB else without_hub


def sign_in_button(context: Context) -> None:
    """The button to sign in, where there is a way to."""
    if context.sign_in.way is AuthenticationMethod.HUB:
        with gr.Row(elem_classes="as-visitor"):
            gr.LoginButton(
                "Sign in with Hugging Face", "Sign out ({})",
                size="sm", min_width=240, scale=0, elem_classes="as-sign-in",
            )  # fmt: skip
