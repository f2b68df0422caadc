"""The settings as rows of a table, for the reference of the documentation."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.settings.fields import Field, fields


class SettingRow(NamedTuple):
    """One setting.

    Attributes:
        variable: of the environment.
        key: in the settings file; empty where it cannot be given there.
        default: where nobody gave one; empty for none.
        who: reads it, with commas.
        secret: whether it is never shown, and may be given as a file.
        text: what it is.
    """

    variable: str
    key: str
    default: str
    who: str
    secret: bool
    text: str


def rows() -> list[SettingRow]:
    """All settings, in the order of the model."""
    return [_row(field) for field in fields()]


def _row(field: Field) -> SettingRow:
    about = field.about
    default = "" if field.default is None else field.as_text(field.default)
    who = ", ".join(about.who)
    return SettingRow(about.variable, about.key, default, who, about.secret, field.text)
