"""Every error code there is: whose fault it is, what it says and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.documenting.error_calls import HIDDEN, Found, errors_in
from evaluator.isolation.supervising.failures import HINTS as OF_SCORERS
from evaluator.submission.generations.taking import HINTS as OF_GENERATIONS
from leaderboard.ledger.redaction import BANNED

PACKAGES = ("benchmarks", "leaderboard", "evaluator")
_NAMED_BY = "evaluator/hub/faults.py"
_AT_HUB = "benchmarks/sources/faults.py"

VARYING: Mapping[tuple[str, str], Mapping[str, str]] = {
    (_NAMED_BY, "wording.code"): dict.fromkeys(
        ("checkpoint_missing", "model_missing", "repository_missing"), ""
    ),
    (_AT_HUB, "*text"): {
        "offline": "Unset HF_HUB_OFFLINE.",
        "gated_repository": "Accept the terms on the page of the repository, and set HF_TOKEN.",
        "unknown_repository": "Look whether its page exists; set HF_TOKEN if it is not public.",
        "disabled_repository": "See the page of the repository.",
        "unknown_revision": "Compare the benchmark's card and pins.json with its history.",
        "not_in_repository": "The benchmark's card names the expected file.",
    },
    ("evaluator/commands/compare_choice.py", "f'unknown_{name}'"): {
        f"unknown_{name}": "Choose one of those that are listed."
        for name in ("variant", "split", "facet")
    },
    ("evaluator/isolation/supervising/failures.py", "str(code)"): {
        str(code): hint for code, hint in OF_SCORERS.items()
    },
    ("evaluator/scorers/questions/table.py", "f'duplicate_{value}s'"): {
        "duplicate_answers": "Keep one answer to each question about an image.",
        "duplicate_scores": "Keep one score of each image and prompt.",
    },
    ("evaluator/submission/generations/taking.py", "problem.kind"): OF_GENERATIONS,
    ("evaluator/worker/claims/claiming.py", "BANNED"): {BANNED: "Ask the operator."},
}
"""Place and expression to the codes that it stands for, each with what to do."""

PASSED_ON = frozenset({"error", "error.code", "only.code", "HTTPStatus.NOT_FOUND"})
"""Expressions for the code of an error that was made elsewhere."""
_FINDINGS = frozenset(
    {
        ("evaluator/submission/generations/checking.py", "kind"),
        ("evaluator/submission/generations/rows_read.py", "kind"),
    }
)
"""What becomes an error in `generations/taking.py`."""


@dataclass(frozen=True)
class ErrorCode:
    """One code.

    Attributes:
        code: stable identifier.
        whose: fault it is, of each place that uses it: `yours`, `ours`, `the world's`.
        says: messages, with `…` for what varies; without any where only its name is fixed.
        remedies: what to do, likewise.
        modules: files that make it.
    """

    code: str
    whose: tuple[str, ...]
    says: tuple[str, ...]
    remedies: tuple[str, ...]
    modules: tuple[str, ...]


def error_codes(root: Path) -> list[ErrorCode]:
    """All of them, by name.

    Args:
        root: of the repository.

    Raises:
        PlatformError: `undeclared_code`, where the source makes an error whose code can be read
            neither there nor in `VARYING`.
    """
    by_code: dict[str, list[Found]] = {}
    for found in _all(errors_in(root, PACKAGES)):
        by_code.setdefault(found.code or "", []).append(found)
    return [_joined(code, by_code[code]) for code in sorted(by_code)]


def _all(places: Iterable[Found]) -> Iterator[Found]:
    for place in places:
        if place.code is not None:
            yield place
            continue
        key = (place.module, place.said)
        if key not in VARYING and key not in _FINDINGS and place.said not in PASSED_ON:
            raise PlatformError(
                "undeclared_code",
                f"{place.module}, line {place.line}: nobody can tell which codes "
                f"{place.said} stands for.",
                "Write the code as text, or declare it in evaluator/documenting/error_codes.py.",
            )
        for code, hint in VARYING.get(key, {}).items():
            yield Found(code, place.whose, "", hint, place.module, place.line, place.said)


def _joined(code: str, found: list[Found]) -> ErrorCode:
    def each(values: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v for v in values if v.strip(HIDDEN + " .")))

    return ErrorCode(
        code,
        each(one.whose for one in found) or ("yours",),
        each(one.message for one in found),
        each(one.hint for one in found),
        each(one.module for one in found),
    )
