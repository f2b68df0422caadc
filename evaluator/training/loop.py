"""Training loop: seeded, resumable, and the same weights however often it was interrupted."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchmarks.arrays import IntArray
from benchmarks.errors import SubmitterError
from benchmarks.rows import Row
from evaluator.scoring.progress import Listener, Tracker
from evaluator.training.checkpoints import Checkpoint, LogWriter, TrainingFolder
from evaluator.training.data import TrainingData
from evaluator.training.recipe import Example, Recipe, Schedule

if TYPE_CHECKING:
    from accelerate import Accelerator
    from torch import Tensor, nn
    from torch.optim import AdamW

Precision = Literal["float32", "bfloat16", "float16"]
_MIXED: Mapping[Precision, str] = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}


@dataclass(frozen=True)
class RunOptions:
    """How a run is carried out."""

    seed: int = 0  # of order, first weights and everything else that is drawn
    device: str = "cpu"
    precision: Precision = "float32"  # of activations; weights are kept in float32
    checkpoint_every: int = 100  # steps
    evaluate_every: int | None = None  # steps; None: at the end alone


@dataclass(frozen=True)
class Prepared:
    """What a run learns from, and what it is measured on."""

    examples: tuple[Example, ...]
    held_out: TrainingData | None  # None where whoever trains measures in another way
    digest: str  # changes where an example does
    held_out_images: str = ""  # changes where an image of the held-out part does


@dataclass(frozen=True)
class Trained:
    """The end of a run."""

    model: nn.Module  # with the weights that are kept, ready to score
    steps: int  # that made these weights
    rows: tuple[Row, ...]  # of the held-out part, with these weights; empty without one
    log: tuple[Mapping[str, Any], ...]  # a line of each step, and of each evaluation


def train(
    recipe: Recipe,
    prepared: Prepared,
    folder: TrainingFolder,
    options: RunOptions,
    listener: Listener | None = None,
) -> Trained:
    """Train, or go on from the last checkpoint in the folder.

    Raises:
        SubmitterError: `loss_not_finite`, `other_run`, `no_examples`; what the recipe raises.
    """
    if not prepared.examples:
        raise SubmitterError("no_examples", "There is nothing to train on.", "Bring more data.")
    with folder.opened(run_record(recipe, prepared, options)):
        return _Run(recipe, prepared, folder, options, listener).go()


def run_record(recipe: Recipe, prepared: Prepared, options: RunOptions) -> dict[str, Any]:
    """All that decides what the weights become; a run goes on only where it is the same."""
    return {
        "recipe": recipe.name,
        **recipe.settings.model_dump(mode="json"),
        "base_content": recipe.base(),
        "base_trained_on": list(recipe.base_trained_on()),
        "seed": options.seed,
        "precision": options.precision,
        "evaluate_every": options.evaluate_every,
        "examples": len(prepared.examples),
        "data": prepared.digest,
        "held_out_data": None if prepared.held_out is None else prepared.held_out.digest,
        "held_out_images": prepared.held_out_images,
    }


def order_of(n: int, seed: int, epoch: int) -> IntArray:
    """Order of n examples in an epoch, shape (n,)."""
    return np.random.default_rng([seed, epoch]).permutation(n)


class _Run:
    """One start of a run."""

    def __init__(
        self,
        recipe: Recipe,
        prepared: Prepared,
        folder: TrainingFolder,
        options: RunOptions,
        listener: Listener | None,
    ) -> None:
        self._recipe = recipe
        self._settings = recipe.settings
        self._prepared = prepared
        self._folder = folder
        self._options = options
        n, of_step = len(prepared.examples), self._settings.batch * self._settings.accumulate
        self._steps_per_epoch = -(-n // of_step)
        self._steps = self._settings.steps or self._settings.epochs * self._steps_per_epoch
        self._best: tuple[float, int] | None = None  # value, the higher the better, and its step
        self._rows: dict[int, tuple[Row, ...]] = {}  # by step, of the last and best evaluation
        self._evaluated: set[int] = set()  # steps
        self._listener = listener

    def go(self) -> Trained:
        from evaluator.scorers.device import repeatable  # noqa: PLC0415 (torch)

        with repeatable():
            self._accelerator = _accelerator(self._options)
            self._seed(0)
            # Frozen parts are never wrapped: one process trains, on one device.
            self._model = self._recipe.build(self._options.device).to(self._accelerator.device)
            self._optimiser: AdamW = self._accelerator.prepare(self._new_optimiser())
            self._rates = [group["lr"] for group in self._optimiser.param_groups]
            start = self._resume()
            with self._folder.log_writer() as log:
                if start:
                    self._evaluate_where_due(start, log)
                tracker = Tracker(self._steps, self._listener, already_done=start, stage="training")
                for step in range(start, self._steps):
                    self._step(step, log)
                    self._after(step + 1, log)
                    tracker.advance(1)
            return self._finish()

    def _new_optimiser(self) -> AdamW:
        from torch.optim import AdamW  # noqa: PLC0415 (torch)

        chosen = self._settings
        return AdamW(
            self._recipe.parameter_groups(self._model),
            lr=chosen.rate,
            betas=chosen.betas,
            eps=chosen.eps,
            weight_decay=chosen.weight_decay,
        )

    def _resume(self) -> int:
        """Take the last checkpoint up; gives the steps that are done."""
        found = self._folder.read()
        self._folder.cut_log(found.step if found else 0)
        if found is None:
            return 0
        self._load(found.weights)
        self._optimiser.load_state_dict(dict(found.optimiser))
        if found.scaler:
            self._accelerator.scaler.load_state_dict(dict(found.scaler))
        self._take_up_rows()
        return found.step

    def _take_up_rows(self) -> None:
        """What was measured up to the checkpoint."""
        for line in self._folder.log():
            if "held_out" in line:
                self._evaluated.add(line["step"])
                self._note_best(line["step"], Row.from_json(line["held_out"]))
        rows = self._folder.read_rows()
        self._rows = {step: its for step, its in rows.items() if step in self._evaluated}

    def _note_best(self, step: int, row: Row) -> bool:
        """Whether it is the best so far."""
        held_out = self._prepared.held_out
        rises = held_out is None or held_out.benchmark.card.higher_is_better(row.measure)
        value = row.value if rises else -row.value
        if not math.isfinite(value) or (self._best and value <= self._best[0]):
            return False
        self._best = value, step
        return True

    def _step(self, step: int, log: LogWriter) -> None:
        """One step of the optimiser, over the gradients of its batches."""
        started = time.perf_counter()
        at = Schedule(step, self._steps, self._steps_per_epoch)
        for group, rate in zip(self._optimiser.param_groups, self._rates, strict=True):
            group["lr"] = rate * self._recipe.rate(at)
        self._seed(step + 1)
        rng = np.random.default_rng([self._options.seed, step, 1])
        self._model.train()
        self._optimiser.zero_grad()
        chosen = self._examples_of(step)
        terms: dict[str, float] = {}
        for batch in self._batches(chosen):
            share = len(batch) / len(chosen)
            for name, value in self._learn(step, self._recipe.collate(batch, rng), share).items():
                terms[name] = terms.get(name, 0.0) + share * value
        norm = self._clip(step)
        self._optimiser.step()
        log.add(
            step=step + 1,
            epoch=(step + 1) / self._steps_per_epoch,
            losses=terms,
            rate=self._optimiser.param_groups[0]["lr"],
            gradient_norm=norm if math.isfinite(norm) else None,
            examples_per_s=round(len(chosen) / (time.perf_counter() - started), 3),
        )

    def _examples_of(self, step: int) -> list[Example]:
        epoch, place = divmod(step, self._steps_per_epoch)
        size = self._settings.batch * self._settings.accumulate
        order = order_of(len(self._prepared.examples), self._options.seed, epoch)
        return [self._prepared.examples[at] for at in order[place * size : (place + 1) * size]]

    def _batches(self, chosen: Sequence[Example]) -> Iterator[Sequence[Example]]:
        for start in range(0, len(chosen), self._settings.batch):
            yield chosen[start : start + self._settings.batch]

    def _learn(self, step: int, batch: Any, share: float) -> dict[str, float]:
        """Add the gradients of a batch; gives the terms of its loss."""
        from accelerate.utils import send_to_device  # noqa: PLC0415 (torch)

        with self._accelerator.autocast():
            losses = self._recipe.losses(
                self._model, send_to_device(batch, self._accelerator.device)
            )
        terms = {name: float(value.detach()) for name, value in losses.items()}
        wrong = [f"{name} is {value}" for name, value in terms.items() if not math.isfinite(value)]
        if wrong:
            raise _not_finite(step, ", ".join(wrong))
        self._accelerator.backward(losses["total"] * share)
        return terms

    def _clip(self, step: int) -> float:
        """Norm of the gradients, before they are clipped."""
        trained = [one for group in self._optimiser.param_groups for one in group["params"]]
        found = self._accelerator.clip_grad_norm_(trained, self._settings.clip or math.inf)
        norm = math.nan if found is None else float(found)
        # In float16 the scaler passes over a step that overflows.
        if not math.isfinite(norm) and self._accelerator.scaler is None:
            raise _not_finite(step, f"the norm of the gradients is {norm}")
        return norm

    def _after(self, done: int, log: LogWriter) -> None:
        """Write a checkpoint and evaluate where it is time; the log is on disk before either."""
        if done == self._steps or done % self._options.checkpoint_every == 0:
            log.sync()
            scaler = self._accelerator.scaler
            self._folder.write(
                Checkpoint(
                    done,
                    self._weights(),
                    self._optimiser.state_dict(),
                    scaler.state_dict() if scaler is not None else {},
                )
            )
        self._evaluate_where_due(done, log)

    def _evaluate_where_due(self, done: int, log: LogWriter) -> None:
        held_out, every = self._prepared.held_out, self._options.evaluate_every
        due = done == self._steps or (every and done % every == 0)
        if held_out is None or not due or done in self._evaluated:
            return
        rows = self._measure(held_out)
        row = held_out.headline(rows)
        if self._note_best(done, row):
            self._folder.write_best(self._weights())
        best = self._best[1] if self._best else done
        self._rows = {k: its for k, its in self._rows.items() if k == best} | {done: rows}
        self._folder.write_rows(self._rows)
        log.add(step=done, held_out=row.to_json())
        log.sync()

    def _measure(self, held_out: TrainingData) -> tuple[Row, ...]:
        from evaluator.scorers.device import without_gradients  # noqa: PLC0415 (torch)

        self._model.eval()
        with without_gradients():
            return held_out.evaluate(
                lambda images, prompts: self._recipe.score(self._model, images, prompts),
                listener=self._listener,
            )

    def _finish(self) -> Trained:
        steps = self._steps
        if self._settings.keep == "best":
            self._load(self._folder.read_best())
            steps = self._best[1] if self._best else steps
        held_out, rows = self._prepared.held_out, self._rows.get(steps, ())
        if held_out is not None and not rows:
            rows = self._measure(held_out)
        return Trained(self._model.eval(), steps, rows, tuple(self._folder.log()))

    def _weights(self) -> dict[str, Tensor]:
        """What is trained and buffers, copied to the CPU."""
        kept = {name for name, one in self._model.named_parameters() if one.requires_grad}
        kept |= {name for name, _ in self._model.named_buffers()}
        state = self._model.state_dict()
        return {name: one.detach().cpu().clone() for name, one in state.items() if name in kept}

    def _load(self, weights: Mapping[str, Tensor]) -> None:
        unknown = self._model.load_state_dict(dict(weights), strict=False).unexpected_keys
        if unknown:
            raise SubmitterError(
                "other_run",
                f"The checkpoint of {self._folder.path} has weights that {self._recipe.name} does "
                f"not know, such as {unknown[0]}.",
                "Name a new folder.",
            )

    def _seed(self, step: int) -> None:
        """Generators of torch, so that what is drawn depends on seed and step alone."""
        import torch  # noqa: PLC0415 (takes seconds)

        told = hashlib.sha256(f"{self._options.seed}:{step}".encode()).digest()
        torch.manual_seed(int.from_bytes(told[:7], "big"))


def _accelerator(options: RunOptions) -> Accelerator:
    import torch  # noqa: PLC0415 (takes seconds)
    from accelerate import Accelerator  # noqa: PLC0415 (torch)

    device = torch.device(options.device)
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)
    try:
        found = Accelerator(cpu=device.type == "cpu", mixed_precision=_MIXED[options.precision])
    except ValueError as error:
        raise SubmitterError(
            "precision_unavailable",
            f"{options.precision} is not possible on {options.device} here: {error}",
            "Use float32, or another device.",
        ) from error
    if found.num_processes > 1:
        raise SubmitterError(
            "one_process", "Training runs in one process.", "Start it without a launcher."
        )
    return found


def _not_finite(step: int, what: str) -> SubmitterError:
    return SubmitterError(
        "loss_not_finite",
        f"At step {step + 1} {what}.",
        "Lower the learning rate, warm up longer, clip gradients or use another precision; the "
        "last checkpoint is kept.",
    )
