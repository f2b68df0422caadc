"""Makes the records of submissions from what was checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.released.bundle import ReleasedScores
from benchmarks.schema import Benchmark, ScoreTable
from evaluator.generation.manifest import GenerationsManifest
from evaluator.submission.generations_archive import SUFFIX
from evaluator.submission.manifest import Manifest
from evaluator.submission.receiving.identity import Identity
from evaluator.submission.validate import ScoringModule
from leaderboard.ledger.private_records import private_id
from leaderboard.records import ImagesSeen, Receipt, Submission


@dataclass(frozen=True)
class Envelope:
    """What is said about a submission by whoever sends it, not by its content.

    Attributes:
        identity: of the submission.
        signed: how it is signed on the boards.
        private: whether it stays with its author.
        received_at: the current time.
        same_content_as: see `Submission`.
        receipt: of the author's own check.
        source: see `Submission`.
        private_id: its id if it is private.
    """

    identity: Identity
    signed: str
    private: bool
    received_at: datetime
    same_content_as: tuple[str, ...] = ()
    receipt: Receipt | None = None
    source: str = ""
    private_id: str = field(default_factory=private_id)

    def record(self, *, suffix: str, metrics: tuple[str, ...]) -> Submission:
        """The record as far as the envelope tells it.

        Args:
            suffix: of the file its content is kept in.
            metrics: the entries it makes on the boards.
        """
        identity = self.identity
        return Submission(
            submission_id=self.private_id if self.private else identity.submission_id,
            kind=identity.kind,
            name=identity.name,
            version=identity.version,
            metrics=metrics,
            benchmarks=(),
            submitter=self.signed,
            account=identity.account,
            private=self.private,
            same_content_as=self.same_content_as,
            receipt=self.receipt,
            source=self.source,
            content_sha256=identity.content_sha256,
            archive=f"uploads/{identity.content_sha256}{suffix}",
            received_at=self.received_at,
        )


def module_record(
    envelope: Envelope, module: ScoringModule, benchmarks: tuple[str, ...]
) -> Submission:
    """The record of a scoring module.

    Args:
        envelope: who sends it and how.
        module: as it was checked.
        benchmarks: it will be run on.
    """
    manifest = module.manifest
    lower = manifest.direction == "lower_is_better"
    return envelope.record(suffix=".zip", metrics=(manifest.name,)).model_copy(
        update={
            "benchmarks": benchmarks,
            "description": manifest.description,
            "authors": manifest.authors,
            "licence": manifest.licence,
            "links": manifest.links,
            "lower_is_better": (manifest.name,) if lower else (),
            "trained_on": manifest.trained_on,
            "flops_per_pair": manifest.flops_of_metrics,
            "models": manifest.models,
            "entry_point": manifest.entry_point,
            "weights": manifest.weights,
            "template": module.template,
        }
    )


def scores_record(
    envelope: Envelope,
    table: ScoreTable,
    *,
    suffix: str,
    description: str,
    released: ReleasedScores | None = None,
) -> Submission:
    """The record of a scores file.

    Args:
        envelope: who sends it and how.
        table: the scores.
        suffix: of the file they are kept in.
        description: for the boards.
        released: what is known of scores that authors released; None: somebody sends their own.
    """
    lower = tuple(m for m in table.metrics if table.directions.get(m) == -1)
    return envelope.record(suffix=suffix, metrics=table.metrics).model_copy(
        update={
            "benchmarks": (envelope.identity.benchmark,),
            "description": description,
            "lower_is_better": lower,
            **({} if released is None else _release(released)),
        }
    )


def _release(released: ReleasedScores) -> dict[str, object]:
    file, paper = released.file, released.printed_in
    return {
        "authors": released.authors,
        "licence": file.licence,
        "links": {"paper": paper.url, f"data at {file.commit}": file.source},
        "released_with": paper.citation,
    }


def generations_record(
    envelope: Envelope, manifest: GenerationsManifest, images: ImagesSeen
) -> Submission:
    """The record of a model's images.

    Args:
        envelope: who sends it and how.
        manifest: of the images.
        images: what was found in them.
    """
    return envelope.record(suffix=SUFFIX, metrics=(manifest.name,)).model_copy(
        update={
            "benchmarks": (images.prompt_set,),
            "description": manifest.description,
            "authors": manifest.authors,
            "licence": manifest.licence,
            "links": manifest.links,
            "model_card": manifest.model_card(),
            "images": images,
        }
    )


def benchmarks_of(
    manifest: Manifest, registry: Mapping[str, Benchmark], data: Path | None
) -> tuple[str, ...]:
    """Those a module asks for, or all whose images are here if it asks for none.

    Raises:
        SubmitterError: `images_missing`.
    """
    wanted = manifest.benchmarks or tuple(sorted(registry))
    here = tuple(n for n in wanted if registry[n].has_questions(data))
    if here and (here == wanted or not manifest.benchmarks):
        return here
    absent = [n for n in wanted if n not in here]
    raise SubmitterError(
        "images_missing",
        f"The images of {', '.join(absent)} are not on this machine.",
        "Submit scores computed elsewhere, or name other benchmarks in assay.toml.",
    )
