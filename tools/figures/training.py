"""Figure of training: a short run of the dual encoder on the demo split of CROC."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.registry import load_registry
from evaluator.training.checkpoints import TrainingFolder
from evaluator.training.loop import RunOptions, train
from evaluator.training.packing import curve
from evaluator.training.preparing import open_data, prepare
from evaluator.training.recipes.dual_encoder import DualEncoder, DualEncoderSettings


def loss_and_held_out() -> str:
    """The curve that a submission's card has."""
    registry = load_registry()
    recipe = DualEncoder(DualEncoderSettings(batch=8, steps=40, rate=2e-4, warmup_steps=5))
    data = open_data("demo_croc", registry, None)
    found = prepare(recipe, data, registry, None, seed=0)
    with TemporaryDirectory() as place:
        folder = TrainingFolder(Path(place) / "run")
        trained = train(recipe, found.prepared, folder, RunOptions(evaluate_every=10))
    return curve(trained.log, found)
