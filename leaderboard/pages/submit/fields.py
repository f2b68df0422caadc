"""Fields and events that the ways in have in common."""

from __future__ import annotations

from typing import Any

SENDING: dict[str, Any] = {"api_visibility": "private", "show_progress": "minimal"}
SIGNED = {"label": "Signed as", "placeholder": "Your name or your team's; else your account's"}
PRIVATE = {
    "label": "Keep private until I publish it",
    "info": "The public pages show neither its name nor yours, and no results.",
}
