"""`docs/reference/settings.md`: every setting, from the one model of them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.settings.reference import SettingRow
from evaluator.documenting.markdown import code, page, table, text

_INTRODUCTION = """\
A setting is a variable of the environment, and most may stand in the settings file
(`.assay/settings.toml`, or what `ASSAY_SETTINGS` names). An option of a command comes first, then the
variable, then the file, then the default. `python -m evaluator settings` shows what is in force and
where it came from; [operations](../operations.md#settings) has the rest.

A **secret** is never shown. It may be given as the path of a file that holds it, with `_FILE` behind its
variable or `_file` behind its key."""


def settings_page(rows: Sequence[SettingRow]) -> str:
    """The document.

    Args:
        rows: all settings.
    """
    heads = ("variable", "key in the file", "default", "read by", "what it is")
    return page("Settings", _INTRODUCTION, table(heads, map(_cells, rows)))


def _cells(row: SettingRow) -> list[str]:
    secret = " **Secret.**" if row.secret else ""
    default, said = code(row.default), f"{text(row.text)}{secret}"
    return [code(row.variable), code(row.key), default, text(row.who), said]
