"""The simulated writer behind an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.evaluator.scorers.chat_server import completion
from tools.figures.croc_writer import reply_for


def served(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same behind an endpoint."""
    said = reply_for(_words(body), body["seed"])
    if said.refusal:
        return completion("", finish_reason=said.refusal)
    return completion(said.text, finish_reason="length" if said.cut else "stop")


def _words(body: Mapping[str, Any]) -> str:
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else str(content[-1]["text"])
