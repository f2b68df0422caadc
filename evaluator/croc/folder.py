"""Folder of CROC data: what was asked, every reply, and the benchmark that comes of it.

    card.toml, 3_extracted_prompts_<image model>_<text model>.jsonl, images/    the benchmark
    writing/<image model>_<text model>.json, .jsonl                             settings and replies
    drawing/<image model>_<text model>/                                         runs of the image engine
    report.json                                                                 what was kept and dropped

The benchmark is made from settings and replies alone, so it comes out the same however often a run
was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.croc_syn.protocol import IMAGES, IMAGES_PER_PROMPT, card_text, prompt_file
from benchmarks.errors import SubmitterError
from benchmarks.parsing import parse_json
from benchmarks.sources.output import LOCK, alone_in, append_lines, write_whole
from evaluator.croc.replies import Reason, WrittenPair, read_pair
from evaluator.croc.requests import Draws, Mode, PairRequest
from evaluator.croc.taxonomy import key_of
from leaderboard.records import ModelCard

CARD, REPORT = "card.toml", "report.json"
_WRITING, _DRAWING = "writing", "drawing"
_LONGEST_NAME = 60
ModelKey = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WritingRun(_Strict):
    """Settings of one prompt file."""

    order: int  # of the file in the folder: of equal pairs, that of the first file is kept
    image_model: ModelKey
    text_model: ModelKey
    model: str  # Hub id with its commit, or id at an endpoint
    taxonomy: str  # SHA-256 of its file
    draws: Draws
    seed: int
    modes: tuple[Mode, ...]
    completions: int
    most_words: int
    max_tokens: int
    sampling: dict[str, float]
    wording: str
    requests: int
    skills: dict[str, str]  # property, as prompt ids spell it, to its skill

    @property
    def key(self) -> str:
        """Its name in the folder."""
        return f"{self.image_model}_{self.text_model}"


class KeptReply(_Strict):
    """A reply of the language model."""

    prompt_id: str
    mode: Mode
    subject: str
    property: str | None
    alt_subject: str | None
    entity: str | None
    number: int  # of the completion, from 0
    reply: str  # its end, where it is long
    cut: bool = False
    refusal: str = ""  # why there is none

    @classmethod
    def of(cls, request: PairRequest, **more: object) -> KeptReply:
        """A reply to a request."""
        named = {
            "property": request.varied,
            "alt_subject": request.alt_subject,
            "entity": request.entity,
        }
        return cls.model_validate(
            {
                "prompt_id": request.prompt_id,
                "mode": request.mode,
                "subject": request.subject.name,
                **{key: one and one.name for key, one in named.items()},
                **more,
            }
        )


@dataclass
class ReadRequest:
    """All completions of a request: a pair each, or why there is none."""

    run: WritingRun
    about: KeptReply  # the first of its replies
    found: list[WrittenPair | Reason] = field(default_factory=list)

    @property
    def skill(self) -> str:
        """Skill of its property; empty for other modes."""
        return self.run.skills.get(key_of(self.about.property or ""), "")

    def stem(self, number: int, side: str) -> str:
        """Beginning of the names of the images of a prompt; `side` is `prompt` or `contrast`."""
        return f"{self.about.prompt_id.replace('|||', '_____')}_{side}_{number}"

    def line(self) -> str:
        """Its line of the prompt file."""
        pairs = [one if isinstance(one, WrittenPair) else WrittenPair("", "") for one in self.found]
        about = self.about.model_dump(
            include={"mode", "subject", "property", "alt_subject", "entity"}
        )
        values = {
            **about,
            "prompts": [one.prompt for one in pairs],
            "contrast_prompts": [one.contrast for one in pairs],
            "model_name": self.run.image_model,
            "prompt_id": self.about.prompt_id,
        }
        if self.about.mode == "subject_property":
            values["skill"] = self.skill
        if self.about.mode == "entity_variation":
            values["varied_definitions"] = [one.varied_definition for one in pairs]
        return json.dumps(values, ensure_ascii=False)


@dataclass(frozen=True)
class CrocFolder:
    """A folder that `croc` writes."""

    path: Path

    @property
    def name(self) -> str:
        """Of the benchmark: as its card says, else from that of the folder.

        A hash stands behind a name that lost letters, so that those of two folders differ.

        Raises:
            SubmitterError: `bad_croc_folder`: the card says none.
        """
        card = self.path / CARD
        if card.is_file():
            try:
                named = tomllib.loads(card.read_text("utf-8"))["name"]
            except (ValueError, KeyError) as error:
                raise self._bad(f"{CARD} has no name") from error
            if not isinstance(named, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_]{0,59}", named):
                raise self._bad(f"{CARD} has a name that is not of a-z, 0-9 and _")
            return named
        of_folder = unicodedata.normalize("NFC", self.path.absolute().name.lower())
        plain = re.sub(r"[^a-z0-9]+", "_", of_folder).strip("_")
        if plain and of_folder.isascii() and len(plain) <= _LONGEST_NAME:
            return plain
        digest = hashlib.sha256(of_folder.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        return f"{plain[: _LONGEST_NAME - 9] or 'croc'}_{digest}"

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder, and keep every other command out of it."""
        others = {one.name for one in self.path.iterdir()} if self.path.is_dir() else set()
        if others - {LOCK} and _WRITING not in others:
            raise SubmitterError(
                "folder_not_empty", f"{self.path} holds other files.", "Name a new folder."
            )
        with alone_in(self.path):
            (self.path / _WRITING).mkdir(exist_ok=True)
            yield

    def runs(self) -> list[WritingRun]:
        """The prompt files that were begun, in their order.

        Raises:
            SubmitterError: `bad_croc_folder`: there are none, or one cannot be read.
        """
        found = []
        for file in sorted((self.path / _WRITING).glob("*.json")):
            try:
                found.append(WritingRun.model_validate(parse_json(file.read_bytes())))
            except (ValidationError, ValueError) as error:
                raise self._bad(f"{_WRITING}/{file.name} cannot be read") from error
        if not found:
            raise self._bad("it holds no prompts of `croc prompts`")
        return sorted(found, key=lambda run: run.order)

    def begin(self, run: WritingRun) -> WritingRun:
        """Go on with a prompt file, or begin one; one that has no pair yet begins anew.

        Raises:
            SubmitterError: `other_settings`: the file was asked for otherwise.
        """
        kept = self.check(run)
        there = {one.key: one for one in self._begun()}
        order = 1 + max((one.order for one in there.values()), default=-1)
        if run.key in there:
            if kept or not self._otherwise(there[run.key], run):
                return there[run.key]
            self._replies(run).unlink(missing_ok=True)
            order = there[run.key].order
        run = run.model_copy(update={"order": order})
        _write(self.path / _WRITING / f"{run.key}.json", run.model_dump_json(indent=1))
        return run

    def _begun(self) -> list[WritingRun]:
        return self.runs() if any((self.path / _WRITING).glob("*.json")) else []

    def check(self, run: WritingRun, but: Collection[str] = ()) -> list[KeptReply]:
        """The replies that a run goes on from: none where they hold no pair and were asked for otherwise.

        `but`: settings that are not known yet.

        Raises:
            SubmitterError: `other_settings`: pairs are there that were asked for otherwise.
        """
        before = next((one for one in self._begun() if one.key == run.key), run)
        kept = list(self.replies(run))
        told = self._otherwise(before, run, but)
        if not told:
            return kept
        if any(isinstance(_pair(one, before.most_words), WrittenPair) for one in kept):
            raise SubmitterError(
                "other_settings",
                f"{self.path} holds prompts of {run.key} made otherwise: {told}.",
                "Name a new folder, or another --text-model or --image-model.",
            )
        return []

    @staticmethod
    def _otherwise(before: WritingRun, run: WritingRun, but: Collection[str] = ()) -> str:
        """What two settings differ in, in words."""
        was, now = before.model_dump(), run.model_dump()
        return "; ".join(
            f"{key}: {str(was[key])[:80]} there, {str(now[key])[:80]} now"
            for key in now
            if key not in {"order", *but} and was[key] != now[key]
        )

    def _replies(self, run: WritingRun) -> Path:
        return self.path / _WRITING / f"{run.key}.jsonl"

    def replies(self, run: WritingRun) -> Iterator[KeptReply]:
        """The replies so far, in the order of asking; a line that was cut off is passed over."""
        file = self._replies(run)
        if not file.exists():
            return
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield KeptReply.model_validate_json(line)
                except ValidationError as error:
                    raise self._bad(f"{_WRITING}/{file.name}, line {number} is no reply") from error

    def keep(self, run: WritingRun, replies: Sequence[KeptReply]) -> None:
        """Add replies; they are on disk when this returns."""
        lines = "".join(f"{one.model_dump_json()}\n" for one in replies)
        append_lines(self._replies(run), lines.encode())

    def drop_cut_line(self, run: WritingRun) -> None:
        """Take out the last line where a run was killed while it wrote it."""
        file = self._replies(run)
        if not file.exists():
            return
        with file.open("rb+") as lines:
            content = lines.read()
            lines.truncate(content.rfind(b"\n") + 1)

    def read(self, *, drawn: bool = True) -> Iterator[ReadRequest]:
        """What came of every request, file by file: equal pairs of an image model are kept once.

        `drawn`: whether pairs are dropped of which an image was withheld.
        """
        seen: set[tuple[str, str, tuple[str, str]]] = set()
        for run in self.runs():
            withheld = self.withheld(run) if drawn else frozenset()
            for _, replies in groupby(self.replies(run), key=lambda one: one.prompt_id):
                of_request = list(replies)
                found = ReadRequest(run, of_request[0].model_copy(update={"reply": ""}))
                for one in of_request:
                    pair = _pair(one, run.most_words)
                    if isinstance(pair, WrittenPair):
                        key = (run.image_model, one.mode, pair.key)
                        stems = {found.stem(one.number, side) for side in ("prompt", "contrast")}
                        if key in seen:
                            pair = "duplicate"
                        elif stems & withheld:
                            pair = "image_withheld"
                        seen.add(key)
                    found.found.append(pair)
                yield found

    def drawing(self, run: WritingRun) -> Path:
        """Folder of the image engine."""
        return self.path / _DRAWING / run.key

    def drawn_by(self, run: WritingRun) -> ModelCard | None:
        """The model that the images of a prompt file are of, as the image engine notes it; None before."""
        from evaluator.generation.folder import RunFolder  # noqa: PLC0415 (where images are drawn)

        manifest = RunFolder(self.drawing(run)).manifest()
        return None if manifest is None else manifest.model_card()

    def withheld(self, run: WritingRun) -> frozenset[str]:
        """Prompts, as `ReadRequest.stem` names them, of which the image engine withheld an image."""
        from evaluator.generation.manifest import read_rows  # noqa: PLC0415 (where images are drawn)

        folder = self.drawing(run)
        rows = read_rows(folder) if folder.is_dir() else []
        return frozenset(row.prompt_id for row in rows if row.problem)

    def images_per_prompt(self) -> int:
        """How many images each prompt has, or will have."""
        try:
            return int((self.path / _DRAWING / "images_per_prompt").read_text())
        except (OSError, ValueError):
            return IMAGES_PER_PROMPT

    def set_images_per_prompt(self, count: int) -> None:
        """Note how many images each prompt has.

        Raises:
            SubmitterError: `other_count`: those that are there have another number.
        """
        there = self.images_per_prompt()
        if count != there and any((self.path / _DRAWING).glob("*/")):
            raise SubmitterError(
                "other_count",
                f"The prompts of {self.path} have {there} images each, and {count} are asked for.",
                f"Give --n {there}, or make a new folder.",
            )
        (self.path / _DRAWING).mkdir(exist_ok=True)
        _write(self.path / _DRAWING / "images_per_prompt", f"{count}\n")

    def publish(self, requests: Sequence[ReadRequest]) -> None:
        """Write prompt files and card from all that `read` gives.

        Raises:
            SubmitterError: `nothing_written`: no reply of a model could be used.
        """
        digest = hashlib.sha256()
        runs = self.runs()
        for run in runs:
            content = "".join(f"{one.line()}\n" for one in requests if one.run == run)
            digest.update(content.encode())
            _write(self.path / prompt_file(run.image_model, run.text_model), content)
        usable = {
            one.run.key for one in requests if any(isinstance(f, WrittenPair) for f in one.found)
        }
        whole = [run for run in runs if run.key in usable]
        if not whole:
            raise nothing_written("no reply had a pair that could be used")
        (self.path / IMAGES).mkdir(exist_ok=True)
        digest.update(str(self.images_per_prompt()).encode())
        for run in whole:
            if drawn := self.drawn_by(run):
                digest.update(f"{run.key}: {_description(drawn)}".encode())
        _write(self.path / CARD, self._card(whole, digest.hexdigest()[:12]))

    def _card(self, runs: Sequence[WritingRun], revision: str) -> str:
        writers = ", ".join(dict.fromkeys(f"{run.text_model} ({run.model})" for run in runs))
        painters = ", ".join(
            dict.fromkeys(f"{run.image_model} ({_description(self.drawn_by(run))})" for run in runs)
        )
        words = max(run.most_words for run in runs)
        draws = ", ".join(dict.fromkeys(run.draws for run in runs))
        return card_text(
            self.name,
            re.sub(r"[\W_]+", " ", self.path.absolute().name).strip().capitalize() or self.name,
            [(run.image_model, run.text_model) for run in runs],
            list(dict.fromkeys(s for run in runs for s in run.skills.values())),
            self.images_per_prompt(),
            summary="Contrasting prompt pairs written by language models from a taxonomy, with "
            "generated images of each prompt: does the metric's best image win?",
            description=f"Prompts of at most {words} words by {writers}; images by {painters}. "
            f"Subjects were drawn as by: {draws}. Nobody checked the images. Made with `croc`; "
            f"{REPORT} beside the card says what was kept and dropped.",
            revision=revision,
        )

    def _bad(self, told: str) -> SubmitterError:
        return SubmitterError(
            "bad_croc_folder", f"{self.path}: {told}.", "`croc prompts` makes such a folder."
        )


def nothing_written(why: str) -> SubmitterError:
    """The error for a model that writes no pair."""
    return SubmitterError(
        "nothing_written",
        f"The model has written no prompt pair: {why}.",
        "Look at the replies in writing/; use another language model, or raise --max-tokens where "
        "replies were cut.",
    )


def _description(drawn: ModelCard | None) -> str:
    if drawn is None:
        return "not drawn yet"
    steps = "" if drawn.steps is None else f"steps {drawn.steps}"
    guidance = "" if drawn.guidance is None else f"guidance {drawn.guidance:g}"
    model = "@".join(filter(None, (drawn.model, drawn.revision)))
    return ", ".join(filter(None, (model, steps, guidance)))


def _write(file: Path, content: str) -> None:
    write_whole(file, lambda path: path.write_text(content, encoding="utf-8"))


def _pair(reply: KeptReply, most_words: int) -> WrittenPair | Reason:
    if reply.refusal:
        return "refused"
    return read_pair(reply.reply, most_words, cut=reply.cut)
