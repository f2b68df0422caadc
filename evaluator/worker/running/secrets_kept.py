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
        environment: what it calls token, secret, password or key is known too, whenever it is put
            there: secrets are changed while a worker runs.
    """

    def __init__(
        self, secrets: Iterable[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._known: re.Pattern[str] | None = None
        self._environment = environment if environment is not None else {}
        self._learn(secrets)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Knows what an environment calls token, secret, password or key."""
        return cls((), environment)

    def _learn(self, secrets: Iterable[str]) -> None:
        """What was once a secret stays one."""
        found = self._secrets | {s for s in secrets if len(s) >= _SHORTEST}
        if found != self._secrets:
            self._secrets = found
            longest_first = sorted(found, key=len, reverse=True)
            self._known = re.compile("|".join(map(re.escape, longest_first)))

    def _of_environment(self) -> Iterable[str]:
        named = ((name, value) for name, value in list(self._environment.items()))
        return (v for name, v in named if _NAMES.search(name) and not _NOT_SECRET.search(name))

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        self._learn(self._of_environment())
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for form in _FORMS:
            text = form.sub(HIDDEN, text)
        return text
