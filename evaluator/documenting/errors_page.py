"""`docs/reference/errors.md`: every error code."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.documenting.error_codes import ErrorCode
from evaluator.documenting.markdown import code, page, table, text

_SAID_AT_MOST = 3

_INTRODUCTION = """\
An error has a code, which stays the same from release to release and is meant for programs, a
sentence that says what is wrong and where, and a sentence that says what to do. A command prints all
three to standard error, as `error [code]: ...`; with `--json`, the page and `/v1` give them as fields.

| whose fault | exit code of a command | what becomes of a submission |
| --- | --- | --- |
| yours | 1 | it is rejected or fails, with the reason; your quota is not charged |
| the world's | 3 | it is tried again; nothing is lost |
| ours | 3 | it fails with the reason, is not charged, and an operator may `rerun` it |
| noted | 0 of `health`, or 3 where nothing works | nothing failed: `/health` and `doctor` tell the operator |

An unknown command or option ends with exit code 2 and has no code of its own. In the sentences below
`…` stands for what varies; where one code has several, the first few are listed."""


def errors_page(codes: Sequence[ErrorCode]) -> str:
    """The document.

    Args:
        codes: all of them.
    """
    rows = (
        [code(one.code), ", ".join(one.whose), _listed(one.says), _listed(one.remedies)]
        for one in codes
    )
    heads = ("code", "whose fault", "says", "what to do")
    count = f"There are {len(codes)} codes."
    return page("Error codes", _INTRODUCTION, count, table(heads, rows))


def _listed(said: Sequence[str]) -> str:
    return "<br>".join(text(one) for one in said[:_SAID_AT_MOST])
