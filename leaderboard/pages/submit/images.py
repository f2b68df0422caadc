"""Buttons of the generations tab. The account is checked first, always."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import SubmitterError
from leaderboard.accounts import Account
from leaderboard.desk import SaidOfImages, Tell
from leaderboard.pages.page import Context
from leaderboard.pages.submit.answers import accepted, examined
from leaderboard.pages.submit.submitting import answer, ban_of, chosen_source
from leaderboard.pages.visitors import required


@dataclass(frozen=True)
class ImagesForm:
    """The fields of the generations tab, as they were filled in."""

    path: str | None
    repository: str | None = None
    """A dataset of the Hub, in place of a file."""
    name: str | None = None
    version: str | None = None
    prompt_set: str | None = None
    submitter: str | None = None
    private: bool = False

    @property
    def source(self) -> Path | str:
        """The file, or the name of the dataset.

        Raises:
            SubmitterError: `two_sources` where both are given, `no_file` where neither is.
        """
        found = chosen_source(self.path, self.repository)
        if isinstance(found, str) and not found.removeprefix("hub:").startswith("datasets/"):
            return f"datasets/{found.removeprefix('hub:')}"
        return found

    @property
    def said(self) -> SaidOfImages:
        """The manifest of Parquet without one; empty fields say nothing."""
        name, version, prompt_set = (
            (given or "").strip() for given in (self.name, self.version, self.prompt_set)
        )
        return SaidOfImages(name, version, prompt_set)


def check_images(
    context: Context, account: Account | None, form: ImagesForm, tell: Tell | None = None
) -> str:
    """Look at every image without keeping any, and list everything that is wrong."""

    def act() -> str:
        sender = required(context, account)
        source = form.source
        if ban := ban_of(context, sender):
            raise SubmitterError("banned", f"You may not submit here: {ban.reason}")
        return examined(context.desk.examine_generations(source, form.said, tell))

    return answer(act)


def send_images(
    context: Context, account: Account | None, form: ImagesForm, tell: Tell | None = None
) -> str:
    """Hand the images of a model in."""

    def act() -> str:
        sender = required(context, account)
        return accepted(
            context.desk.submit_generations(
                form.source,
                account=sender,
                submitter=(form.submitter or "").strip(),
                private=form.private,
                said=form.said,
                tell=tell,
            )
        )

    return answer(act)
