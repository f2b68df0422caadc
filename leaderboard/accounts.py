"""Accounts: who submits, as the sign-in of the Hub or the operating system names them."""

from __future__ import annotations

import re
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, field_validator

_KEY = re.compile(r"(?:hub|local|assay):[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


class Origin(StrEnum):
    """Who vouches for an account's name."""

    HUB = "hub"
    """The Hugging Face Hub, by OAuth or by a token."""
    LOCAL = "local"
    """The operating system of the machine that holds the store."""
    ASSAY = "assay"
    """Assay itself, for what is part of it."""


class Account(BaseModel):
    """Somebody who may submit. Two accounts are one if their keys are equal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    origin: Origin
    name: str
    operator: bool = False
    """Whether it may act on what others submitted. Never stored: asked anew at each visit."""

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}", value):
            raise ValueError("an account's name has letters, digits and . _ - only")
        return value

    @property
    def key(self) -> str:
        """As it is stored: `hub:ada`, `local:root`."""
        return f"{self.origin}:{self.name}"


ASSAY = Account(origin=Origin.ASSAY, name="assay", operator=True)
"""Owns the scorers that are bundled."""


def is_key(text: str) -> bool:
    """Whether a text has the form of an account's key."""
    return _KEY.fullmatch(text) is not None
