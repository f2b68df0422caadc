"""Fit of a built-in metric with a machine: memory, libraries, and weights at a commit."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError, safe_open

from benchmarks.errors import AssayError, SubmitterError, TransientError
from benchmarks.problems import Problem
from evaluator.scorers.checkpoints import (
    SAFE,
    CheckpointPins,
    ModelHub,
    cached,
    commit_of,
    has_safe,
    names_in,
    pickled,
)
from evaluator.scorers.cost import bytes_of, find_gpu, gpus
from evaluator.scorers.registry import ScorerRow

ROOM = 1.25
"""Memory by that of the weights: a quarter of it for images, texts and what is made of them."""
_GB = 1e9
_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@dataclass(frozen=True)
class Capacity:
    """A machine as far as a model has to fit into it."""

    title: str  # for people
    memory_bytes: float  # of its GPU; where it has none, of the machine
    here: bool = True  # whether it is this machine, whose libraries can be looked at

    def problem(self, row: ScorerRow, weights: float | None = None) -> Problem | None:
        """Why it cannot hold a row of so many weights; None where it can, or none are counted."""
        wanted = wanted_bytes(row, weights)
        if wanted is None or wanted <= self.memory_bytes:
            return None
        return Problem(
            "memory_too_small",
            f"{row.name} needs about {wanted / _GB:.1f} GB of memory, and {self.title} has "
            f"{self.memory_bytes / _GB:.1f} GB.",
            "Choose a smaller metric, or queue it for a worker with a larger GPU: --gpu NAME.",
        )


def wanted_bytes(row: ScorerRow, weights: float | None = None) -> float | None:
    """Memory that a row takes, about; None where neither it nor its checkpoints were counted."""
    counted = weights if row.parameters is None else row.parameters
    return None if counted is None else ROOM * counted * bytes_of(row)


@cache
def this_machine() -> Capacity:
    """This machine: its first GPU, or its memory where torch finds none."""
    if find_spec("torch") is not None:
        import torch  # noqa: PLC0415  # loaded only where a metric is to be run

        if torch.cuda.is_available():
            facts = torch.cuda.get_device_properties(0)
            return Capacity(f"this machine ({facts.name})", float(facts.total_memory))
    return Capacity("this machine (no GPU)", float(_memory_bytes()))


def capacity_of(gpu: str = "") -> Capacity:
    """A GPU by its data sheet; this machine where none is named."""
    if not gpu:
        return this_machine()
    known = find_gpu(gpu)
    return Capacity(known.title, _GB * known.memory_gb, here=False)


def capacity_of_flavor(flavor: str) -> Capacity | None:
    """A machine of the Hub by its flavor, such as `l4x1`; None: of a kind that is not known."""
    named = [name for name in gpus() if flavor.startswith(name)]
    return capacity_of(max(named, key=len)) if named else None


def usual_device() -> str:
    """Where a metric runs that nobody said a device for."""
    import torch  # noqa: PLC0415  # as above

    return "cuda" if torch.cuda.is_available() else "cpu"


def _memory_bytes() -> int:
    """Of this machine, or of the container that this runs in."""
    limits = [int(text) for path in _CGROUP_LIMITS if (text := _read(path)).isdigit()]
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *limits])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:  # of the other version of cgroups
        return ""


def missing_libraries() -> list[str]:
    """What runs models and is not installed: the package comes without."""
    return [name for name in ("torch", "transformers") if find_spec(name) is None]


def library_problem(row: ScorerRow) -> Problem | None:
    """Why this machine cannot load any model."""
    missing = missing_libraries()
    if not missing:
        return None
    return Problem(
        "libraries_missing",
        f"{row.name} needs {' and '.join(missing)}, which this machine does not have.",
        "Install Assay with its extra `metrics` here, or queue it for another machine: --gpu NAME.",
    )


class FoundWeights(NamedTuple):
    """A checkpoint that can be had."""

    commit: str
    weights: float | None  # how many it has; None where that is not known


class RowWeights(NamedTuple):
    """The checkpoints of a row."""

    commits: Mapping[str, str]  # by role, of those that can be had
    weights: float | None  # of all of them together; None where one is not counted
    problems: tuple[Problem, ...]  # why the others cannot be had


@dataclass
class WeightsLookup:
    """Finds the commits of checkpoints, each repository looked up once; fetches no weights."""

    hub: ModelHub  # where they are
    _known: dict[tuple[str, ...], FoundWeights | AssayError] = field(default_factory=dict)

    def of(self, row: ScorerRow) -> RowWeights:
        """What there is of a row's checkpoints."""
        found: dict[str, FoundWeights] = {}
        problems: list[Problem] = []
        for role, checkpoint in row.checkpoints.items():
            key = (checkpoint.id, checkpoint.revision, checkpoint.file, str(checkpoint.weights))
            if key not in self._known:
                self._known[key] = self._look(row, role)
            known = self._known[key]
            if isinstance(known, FoundWeights):
                found[role] = known
            else:
                problems.append(_problem_of(row, role, known))
        commits = {role: one.commit for role, one in found.items()}
        counts = [one.weights for one in found.values()]
        counted = sum(n for n in counts if n is not None)
        unknown = bool(problems) or None in counts
        return RowWeights(commits, None if unknown else counted, tuple(problems))

    def _look(self, row: ScorerRow, role: str) -> FoundWeights | AssayError:
        try:
            return self._weights_of(row, role)
        except TransientError as error:
            return TransientError(
                error.code,
                f"it is not in the cache of this machine. {error.message}",
                "Try again with access to the Hub, or put the weights into the cache (HF_HOME) first.",
            )
        except AssayError as error:
            return error

    def _weights_of(self, row: ScorerRow, role: str) -> FoundWeights:
        checkpoint = row.checkpoints[role]
        if checkpoint.id.startswith(("/", ".", "~")) or "/" not in checkpoint.id:
            raise SubmitterError(
                "file_of_yours",
                "it is a file or model of your own, which a worker elsewhere does not have.",
                "Score with it yourself (python -m evaluator scorers run), and send the scores.",
            )
        if pickled([checkpoint.file]):
            raise _unsafe(checkpoint.file)
        place = cached(row, role, hub=self.hub)
        if place is not None and (has_safe(names_in(place)) or not checkpoint.weights):
            return FoundWeights(place.name, _counted(place) if checkpoint.weights else 0.0)
        revision = commit_of(row, role, hub=self.hub) or "main"
        commit, names, weights = self.hub.look_up(checkpoint.id, revision)
        if checkpoint.weights:
            safe = [checkpoint.file] if checkpoint.file else [n for n in names if n.endswith(SAFE)]
            if not safe and pickled(names):
                raise _unsafe(pickled(names)[0])
            names = [name for name in safe if name in names]
        if not names:
            raise SubmitterError("checkpoint_missing", "the repository holds no weights for it.")
        self.hub.check_access(checkpoint.id, commit, names[0])
        if not checkpoint.revision:  # Later runs here take the same, as after any fetch.
            commit = CheckpointPins(self.hub.pins).pin(checkpoint.id, commit)
        return FoundWeights(commit, weights if checkpoint.weights else 0.0)


def _counted(place: Path) -> float | None:
    """Weights in the safetensors of a folder; None where one cannot be read."""
    total = 0
    for file in place.glob(f"*{SAFE}"):
        try:
            with safe_open(file, framework="np") as weights:
                shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
        except (SafetensorError, OSError):
            return None
        total += sum(map(math.prod, shapes))
    return float(total)


def _unsafe(file: str) -> SubmitterError:
    return SubmitterError(
        "checkpoint_unsafe",
        f"its weights are a pickle ({file}), which can run code when it is read.",
        "Workers never read one. Score with it yourself (python -m evaluator scorers run "
        "--allow-pickle), and send the scores.",
    )


def _problem_of(row: ScorerRow, role: str, error: AssayError) -> Problem:
    where = f"checkpoint {role}, {row.checkpoints[role].id}"
    return Problem(error.code, f"{row.name} ({where}): {error.message}", error.hint)
