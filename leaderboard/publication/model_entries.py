"""Model entries: the generations on the boards, in one file that every page of models reads."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import PlatformError
from leaderboard.records import ImagesSeen, JudgeRun, ModelCard, RunResult, Submission
from leaderboard.store.interface import NotFoundError, Repository

PATH = "models.json"
log = logging.getLogger(__name__)


class ModelEntry(BaseModel):
    """One model's images of one prompt set, as the boards show them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    submission_id: str
    model: str
    """Its name, as its developer gives it."""
    version: str = ""
    submitter: str
    account: str = ""
    description: str = ""
    authors: tuple[str, ...] = ()
    licence: str = ""
    links: dict[str, str] = Field(default_factory=dict)
    card: ModelCard = ModelCard()
    images: ImagesSeen
    judges: dict[str, JudgeRun] = Field(default_factory=dict)
    """Entry id of a metric (`<submission>/<metric>`) to its run on these images."""
    pictures: int = 0
    """Files of pictures that are published with it (`leaderboard.models.pictures`)."""
    same_content_as: tuple[str, ...] = ()
    received_at: AwareDatetime
    published_at: AwareDatetime
    since: AwareDatetime
    """When the last event of its submission was; its result is read again only after a later one."""

    @property
    def prompt_set(self) -> str:
        """Whose prompts it drew."""
        return self.images.prompt_set

    @property
    def title(self) -> str:
        """Name and version, as it is called on the pages."""
        return f"{self.model} {self.version}".strip()


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = 1
    entries: tuple[ModelEntry, ...] = ()


@dataclass(frozen=True)
class ModelTrack:
    """All models on the boards."""

    # submission id to entry, oldest first
    entries: Mapping[str, ModelEntry] = field(default_factory=dict)

    def of(self, prompt_set: str, revision: str | None = None) -> tuple[ModelEntry, ...]:
        """The models that drew a prompt set."""
        return tuple(
            one
            for one in self.entries.values()
            if one.prompt_set == prompt_set and revision in (None, one.images.revision)
        )


def entry_of(submission: Submission, result: RunResult, since: AwareDatetime) -> ModelEntry | None:
    """The entry of a published submission; None where it is none of generations."""
    if submission.images is None:
        return None
    return ModelEntry(
        submission_id=submission.submission_id,
        model=submission.name,
        version=submission.version,
        submitter=submission.submitter,
        account=submission.account,
        description=submission.description,
        authors=submission.authors,
        licence=submission.licence,
        links=submission.links,
        card=submission.model_card or ModelCard(),
        images=submission.images,
        judges=result.judges,
        pictures=result.pictures,
        same_content_as=submission.same_content_as,
        received_at=submission.received_at,
        published_at=result.judged_at,
        since=since,
    )


def track_bytes(track: ModelTrack) -> bytes:
    """The file."""
    return _File(entries=tuple(track.entries.values())).model_dump_json().encode()


def parse_track(content: bytes) -> ModelTrack:
    """The inverse of `track_bytes`."""
    try:
        entries = _File.model_validate_json(content).entries
    except ValidationError as error:
        first = error.errors()[0]
        what = ".".join(map(str, first["loc"])) + f" {first['msg']}"
        raise PlatformError(
            "models_damaged",
            f"The models in {PATH} cannot be read: {what.strip()[:200]}.",
            "Build them again from the results: python -m evaluator doctor --repair",
        ) from error
    return ModelTrack({one.submission_id: one for one in entries})


def read_track(public: Repository) -> ModelTrack:
    """The models on the boards of a store; none where there is no such file."""
    try:
        return parse_track(public.read(PATH))
    except NotFoundError:
        return ModelTrack()


def readable_track(public: Repository) -> ModelTrack:
    """The same for those who only save work by it: none where the file is damaged."""
    try:
        return read_track(public)
    except PlatformError as error:
        log.warning("%s is passed over: %s", PATH, error)
        return ModelTrack()
