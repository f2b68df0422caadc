"""Names and signatures of submissions: untrusted text, made fit for the boards."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.scores import RESERVED_NAMES
from evaluator.isolation.supervising.text import plain_text
from leaderboard.accounts import ASSAY, Account
from leaderboard.records import Submission

MAX_SUBMITTER = 80
MAX_DESCRIPTION = 4000
OWN_NAME = "Assay"
"""Signs what is part of Assay itself; nobody else may."""
SPECIAL_SUFFIXES = frozenset({".npz"})
"""Formats some benchmarks take beside tables, e.g. scores with masks."""

_SUBMITTER = re.compile(r"[\w .@'+-]{1,80}")
_VERSION = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._+-]{0,31})?")


def owner_of(submission: Submission) -> str:
    """Key of the account that owns a submission; empty where it is older than accounts."""
    if submission.account:
        return submission.account
    return ASSAY.key if submission.submitter == OWN_NAME else ""


def checked_signature(signature: str, account: Account, shown: Iterable[Submission]) -> str:
    """How a submission is signed on the boards: as its sender wishes, but as nobody else.

    Args:
        signature: what they typed; empty: the name of their account.
        account: who sends it.
        shown: what everyone can see, and whatever the account itself sent before.

    Raises:
        SubmitterError: `bad_submitter`, `reserved_submitter`, `signature_taken`.
    """
    if account.key == ASSAY.key:
        return OWN_NAME
    name = " ".join(signature.split()) or account.name
    if not _SUBMITTER.fullmatch(name):
        raise SubmitterError(
            "bad_submitter",
            "The submitter's name is too long or holds odd characters.",
            f"Use letters, digits, spaces and . _ @ ' + - (at most {MAX_SUBMITTER}).",
        )
    if _alike(name) == _alike(OWN_NAME):
        raise SubmitterError(
            "reserved_submitter",
            f"The submitter's name {name!r} stands for what is part of {OWN_NAME} itself.",
            "Sign with your own name or your team's.",
        )
    _check_not_anothers(name, account, tuple(shown))
    return name


def _check_not_anothers(name: str, account: Account, shown: tuple[Submission, ...]) -> None:
    own = {_alike(s.submitter) for s in shown if s.account == account.key}
    if _alike(name) in {_alike(account.name), *own}:
        return
    for other in shown:
        # Older than accounts: nobody can say whose signature that is.
        if other.account in ("", account.key):
            continue
        if _alike(name) in (_alike(other.submitter), _alike(other.account.partition(":")[2])):
            raise SubmitterError(
                "signature_taken",
                f"The submitter's name {name!r} is that of another account.",
                f"Sign with {account.name!r} or with a name of your own.",
            )


def checked_version(version: str) -> str:
    """The version of a scores file; it may be empty.

    Raises:
        SubmitterError: `bad_version`.
    """
    found = version.strip()
    if not _VERSION.fullmatch(found):
        raise SubmitterError(
            "bad_version",
            "The version is too long or holds odd characters.",
            "Use letters, digits and . _ + - (at most 32), for example 1.2.",
        )
    return found


def checked_description(description: str) -> str:
    """A text for the boards, without characters that cannot be seen.

    Raises:
        SubmitterError: `bad_description`.
    """
    try:
        data = description.encode()
    except UnicodeEncodeError as error:
        raise SubmitterError(
            "bad_description",
            f"The description holds half a character at position {error.start + 1}.",
            "Type that character again.",
        ) from error
    return plain_text(data)[:MAX_DESCRIPTION]


def kept_suffix(path: Path, content: bytes) -> str:
    """What kind of file is kept; a stranger's own ending is used only where it is a known one."""
    if content[:4] == b"PAR1":
        return ".parquet"
    given = path.suffix.lower()
    return given if given in SPECIAL_SUFFIXES else ".csv"


def name_from(stem: str) -> str:
    """A name made from a file's, which nobody chose with our rules in mind."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", stem).strip("-._+")[:64]
    return "scores" if not name or name in RESERVED_NAMES else name


def _alike(name: str) -> str:
    """Names that look the same on the boards are the same here: letters of other widths too."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
