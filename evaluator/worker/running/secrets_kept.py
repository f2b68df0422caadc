"""Keeps secrets out of what is written down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Self

HIDDEN = "[secret]"
_SHORTEST = 8
"""What is shorter would hide ordinary words."""
_NAMES = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIAL", re.IGNORECASE)
_NOT_SECRET = re.compile(r"_(PATH|FILE|DIR|URL|ENDPOINT)$|^HF_HUB_DISABLE_", re.IGNORECASE)
_FORMS = (
    re.compile(r"\bhf_[A-Za-z0-9_]{16,}"),
    re.compile(r"(?<=bearer )\s*[^\s\"',]+", re.IGNORECASE),
    re.compile(r"(?<=x-webhook-secret)[\"']?\s*[:=]\s*[\"']?[^\s\"',]+", re.IGNORECASE),
    # The signature of a link to a file is as good as a token while it lasts.
    re.compile(r"(?<=[?&])((?:X-Amz-\w+|Signature|Policy|Key-Pair-Id|token)=)[^&\s\"']+", re.I),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)


class SecretsKept:
    """Puts `[secret]` where a text has a secret.

    Args:
        secrets: known by their value; others are known by their form.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Knows what an environment calls token, secret, password or key."""
        return cls(
            value
            for name, value in environment.items()
            if _NAMES.search(name) and not _NOT_SECRET.search(name)
        )

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for form in _FORMS:
            text = form.sub(HIDDEN, text)
        return text
