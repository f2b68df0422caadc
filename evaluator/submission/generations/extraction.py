"""From whatever was sent to what is kept: manifest, images, and everything that is wrong, at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.problems import Problem, problems_of
from benchmarks.prompt_sets.prompt_set import PromptSet, find_prompt_set
from benchmarks.schema import Benchmark
from evaluator.generation.check import GenerationsReport
from evaluator.generation.manifest import TABLE, GenerationsManifest, manifest_text
from evaluator.generation.prompts import Choice, benchmark_prompts
from evaluator.manifest import FILE, manifest_reading, nearest
from evaluator.scoring.progress import Listener
from evaluator.submission.generations.archive import write
from evaluator.submission.generations.checking import (
    Check,
    Hashes,
    RequestedImages,
    wanted_by_table,
)
from evaluator.submission.generations.sources import GenerationsLimits, Source
from leaderboard.records import ImagesSeen
from leaderboard.submission_service import ManifestOverrides


@dataclass(frozen=True)
class Target:
    """What was to be drawn."""

    name: str  # of the prompt set; empty for prompts of one's own
    revision: str  # of it
    # prompt id to text, in the order of the set; None: those that the table names
    texts: Mapping[str, str | None] | None
    least_side: int = 1  # of an image, in pixels
    most_side: int | None = None  # likewise; None: any


@dataclass(frozen=True)
class PromptSets:
    """Finds a manifest's prompt set: what a submission must be of."""

    known: Mapping[str, PromptSet]  # prompt sets by name
    data: Path | None  # folder of benchmark data, if there is one

    def __call__(self, manifest: GenerationsManifest, source: Source) -> Target:
        """Look it up."""
        if not manifest.benchmark:
            raise SubmitterError(
                "no_prompt_set",
                f"{FILE} of {source.name} does not say which prompt set was drawn.",
                f'Write benchmark = "NAME". Prompt sets: {", ".join(self.known)}.',
            )
        try:
            found = find_prompt_set(self.known, manifest.benchmark)
        except SubmitterError as error:
            hint = f"{nearest(manifest.benchmark, self.known)}{error.hint}"
            raise SubmitterError(error.code, error.message, hint) from error
        texts = {one.prompt_id: one.text for one in found.set_prompts(self.data)}
        drawing = found.drawing
        return Target(found.name, found.card.revision, texts, drawing.least_side, drawing.most_side)


@dataclass(frozen=True)
class AnyPrompts:
    """Finds the prompts of whatever can be drawn: also of benchmarks of metrics, or one's own."""

    sets: PromptSets  # prompt sets
    registry: Mapping[str, Benchmark]  # benchmarks of metrics

    def __call__(self, manifest: GenerationsManifest, source: Source) -> Target:
        """Look it up."""
        name = manifest.benchmark
        if name in self.registry and name not in self.sets.known:
            prompts = benchmark_prompts(self.registry[name], self.sets.data, Choice())
            texts = {one.prompt_id: one.text for one in prompts.prompts}
            return Target(name, prompts.revision, texts)
        if not name:
            return Target("", manifest.benchmark_revision, None)
        return self.sets(manifest, source)


MOST_SIZES = 50
"""Sizes that are told one by one."""
HINTS: Mapping[str, str] = {
    "missing": 'Draw it, or say in its row why it is not there: "file": null, "problem": "nsfw".',
    "extra": "Leave it out.",
    "corrupt": "Draw or copy it again.",
    "blank": 'Draw it again, or withhold it: "file": null, "problem": "black".',
    "duplicate": "Draw each prompt and seed by itself; does the model read the seed?",
    "wrong_size": "Draw it again, at a size that is allowed.",
    "wrong_prompt": "Draw the prompt as the set has it.",
    "bad_row": f"Correct that line of {TABLE}.",
    "unsafe_name": "Rename that file with letters, digits and . _ - only.",
}
"""Kind of problem, which is the code of its error, to what to do."""

Resolve = Callable[[GenerationsManifest, Source], Target]
"""Finds what a manifest's prompts are; raises SubmitterError where there are none."""


@dataclass(frozen=True)
class AcceptedImages:
    """What came out of a submission of generations."""

    # what is wrong, manifest first; of very many the first that were found
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]  # kind of problem to the number of them, all of them
    manifest: GenerationsManifest | None = None  # as it is kept; None where it could not be read
    report: GenerationsReport | None = None  # on the images; None where they were not looked at
    images: ImagesSeen | None = None  # what they are; None likewise
    content_sha256: str = ""  # of manifest and images; empty where anything is wrong
    wanted: RequestedImages | None = None  # what was asked for
    hashes: Hashes | None = None  # to know the images again


def take(
    source: Source,
    resolve: Resolve,
    *,
    said: ManifestOverrides | None = None,
    target: Path | None = None,
    listener: Listener | None = None,
    threads: int | None = None,
    limits: GenerationsLimits | None = None,
) -> AcceptedImages:
    """Check all of a submission, and write what is kept of it."""
    try:
        content = _manifest_content(source, said)
    except SubmitterError as error:
        return _refused([*problems_of(error)])
    if isinstance(content, Problem):
        return _refused([content])
    reading = manifest_reading(content, GenerationsManifest)
    problems = list(reading.problems)
    if reading.manifest is None or reading.wrong & {"benchmark", "seeds", "images"}:
        return _refused(problems, reading.manifest)
    given = reading.manifest
    try:
        found = resolve(given, source)
        wanted = _requested(found, given, source, (limits or GenerationsLimits()).entries)
    except SubmitterError as error:
        return _refused([*problems, *problems_of(error)], given)
    if given.benchmark_revision not in ("", found.revision):
        problems.append(
            Problem(
                "other_revision",
                f"The images were drawn for revision {given.benchmark_revision[:80]} of {found.name}, "
                f"and here it is at {found.revision}.",
                "Draw the prompts that changed, then name the new revision.",
                file=FILE,
            )
        )
    manifest = given.model_copy(
        update={
            "images": TABLE,
            "seeds": wanted.seeds,
            "benchmark_revision": found.revision,
        }
    )
    check = Check(source, wanted, threads=threads, listener=listener)
    stream = check.stream(given.images)
    try:
        if target is None or problems:
            for _ in stream:
                pass
        else:
            with _room():
                write(target, manifest, stream)
    except SubmitterError as error:
        # What was found up to there is told as well.
        problems.extend(problems_of(error))
    return _taken(problems, manifest, check, found)


def _taken(
    problems: list[Problem], manifest: GenerationsManifest, check: Check, found: Target
) -> AcceptedImages:
    report = check.report()
    if report.complete and report.n_withheld == report.wanted:
        none = "Every image is withheld, so that there is none to be judged."
        problems.append(Problem("no_images", none, "Draw at least some of them."))
    counts = _counted(problems, report.counts)
    listed = (*problems, *_listed(report))
    sha256 = "" if listed else check.content_sha256(manifest_text(manifest))
    images = ImagesSeen(
        prompt_set=found.name,
        revision=found.revision,
        seeds=check.wanted.seeds,
        wanted=report.wanted,
        present=report.usable,
        withheld=dict(report.withheld),
        n_bytes=check.n_bytes,
        sizes=_sizes(check.sizes),
    )
    return AcceptedImages(
        listed, counts, manifest, report, images, sha256, check.wanted, check.hashes()
    )


def _manifest_content(source: Source, said: ManifestOverrides | None) -> bytes | Problem:
    content = source.manifest()
    told = said.manifest_keys() if said else {}
    if content is not None and told:
        return Problem(
            "said_twice",
            f"There is an {FILE}, and {', '.join(told)} {'is' if len(told) == 1 else 'are'} given "
            "beside it.",
            f"Write it into {FILE}.",
        )
    if content is None and not told:
        return Problem(
            "no_manifest",
            f"{source.name} holds no {FILE}.",
            f'{FILE} begins with: kind = "generations", name = "my-model", benchmark = "PROMPT_SET".'
            " Beside a Parquet file, name and prompt set may be given instead.",
        )
    return content if content is not None else tomlkit.dumps(told).encode()


def _requested(
    found: Target, manifest: GenerationsManifest, source: Source, most: int
) -> RequestedImages:
    seeds, texts = manifest.seeds, found.texts
    if not seeds or texts is None:
        named, drawn = wanted_by_table(source, manifest.images)
        seeds, texts = seeds or drawn, named if texts is None else texts
    if not seeds or not texts:
        raise SubmitterError(
            "no_images",
            f"{manifest.images} names no image{'' if manifest.benchmark else f', and {FILE} no prompt set'}.",
            "Write a line of prompt_id, seed and file for each image.",
        )
    wanted = RequestedImages(texts, tuple(sorted(set(seeds))), found.least_side, found.most_side)
    wanted.check_number(most)
    return wanted


def _listed(report: GenerationsReport) -> Iterator[Problem]:
    for problem in report.problems:
        message = f"{problem.message[:1].upper()}{problem.message[1:]}."
        yield Problem(problem.kind, message, HINTS[problem.kind], file=problem.where)


def _refused(
    problems: list[Problem], manifest: GenerationsManifest | None = None
) -> AcceptedImages:
    return AcceptedImages(tuple(problems), _counted(problems, {}), manifest)


def _counted(problems: list[Problem], further: Mapping[str, int]) -> dict[str, int]:
    codes = [problem.code for problem in problems]
    return {**{code: codes.count(code) for code in dict.fromkeys(codes)}, **further}


def _sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    """The most frequent sizes, and all others as one."""
    ranked = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(n for _, n in ranked[MOST_SIZES:])
    return {**dict(ranked[:MOST_SIZES]), **({"other": rest} if rest else {})}


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TransientError(
            "no_room",
            f"The images could not be kept: {error.strerror}.",
            "Free space in the folder for temporary files, then try again.",
        ) from error
