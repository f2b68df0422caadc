"""The training loop: bitwise the same after any interruption, and clear where it stops."""

from __future__ import annotations

import errno
import json
import math
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import SafetensorError

from benchmarks.sources.output import replace_durably
from evaluator.scoring.progress import Progress
from evaluator.training import checkpoints
from evaluator.training.checkpoints import TrainingFolder, writing
from evaluator.training.loop import RunOptions, Trained, order_of, train
from evaluator.training.recipe import Schedule, cosine, linear
from tests.conftest import REPOSITORY
from tests.evaluator.training.demo_data import demo_croc
from tests.evaluator.training.toy_recipe import Killed, ToyRecipe, killed_at, same_weights, toy_run
from tests.kit.refusals import refused

OPTIONS = RunOptions(seed=7, checkpoint_every=3)


def trained(folder: Path, options: RunOptions = OPTIONS, **settings: Any) -> Trained:
    recipe, prepared = toy_run(**settings)
    return train(recipe, prepared, TrainingFolder(folder), options)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    return trained(folder), folder


@pytest.fixture(scope="module")
def whole(whole_run: tuple[Trained, Path]) -> Trained:
    """A run of 12 steps that nothing interrupted."""
    return whole_run[0]


@pytest.fixture
def finished(whole_run: tuple[Trained, Path], tmp_path: Path) -> Path:
    """Its folder, to be changed."""
    return Path(shutil.copytree(whole_run[1], tmp_path / "finished"))


def test_a_step_logs_every_term_rate_norm_and_speed(whole: Trained) -> None:
    lines = whole.log
    assert [line["step"] for line in lines] == list(range(1, 13))
    assert all(line["losses"].keys() == {"squared", "total"} for line in lines)
    assert all(line["gradient_norm"] > 0 and line["examples_per_s"] > 0 for line in lines)
    assert [line["rate"] for line in lines[:3]] == pytest.approx([0, 0.025, 0.05])
    assert lines[-1]["losses"]["total"] < lines[0]["losses"]["total"]
    trains = {name: one.requires_grad for name, one in whole.model.named_parameters()}
    assert [name for name, moved in trains.items() if not moved] == ["0.weight", "0.bias"]
    assert whole.steps == 12 and not whole.model.training


@pytest.mark.parametrize("batch", [2, 5, 8, 14, 21], ids="at batch {}".format)
def test_a_run_killed_in_any_batch_gives_bitwise_the_same_weights(
    batch: int, whole: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(ToyRecipe, "losses", killed_at(batch, ToyRecipe.losses))
        trained(tmp_path / "run")
    again = trained(tmp_path / "run")
    assert same_weights(again.model.state_dict(), whole.model.state_dict())
    lines = [(line["step"], line["losses"], line["gradient_norm"]) for line in again.log]
    assert lines == [(line["step"], line["losses"], line["gradient_norm"]) for line in whole.log]


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_run_killed_while_a_checkpoint_is_written_gives_the_same_weights(
    step: str, whole: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def cut_off(path: Path, data: bytes) -> None:
        if path.name == "checkpoint.pt" and step == "fsync":
            path.with_name("checkpoint.pt.1.draft").write_bytes(data[: len(data) // 2])
            raise Killed
        replace_durably(path, data)
        if path.name == "checkpoint.pt":
            raise Killed

    for _ in range(2):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(checkpoints, "replace_durably", cut_off)
            trained(tmp_path / "run")
    assert same_weights(trained(tmp_path / "run").model.state_dict(), whole.model.state_dict())


def test_a_finished_run_is_not_trained_again(whole: Trained, finished: Path) -> None:
    recipe, prepared = toy_run()
    again = train(recipe, prepared, TrainingFolder(finished), OPTIONS)
    assert not recipe.seen
    assert same_weights(again.model.state_dict(), whole.model.state_dict())


def test_every_example_is_seen_once_an_epoch_in_an_order_of_the_seed(tmp_path: Path) -> None:
    recipe, prepared = toy_run()
    train(recipe, prepared, TrainingFolder(tmp_path / "run"), OPTIONS)
    epochs = [recipe.seen[at : at + 20] for at in range(0, 60, 20)]
    assert all(Counter(one) == Counter(f"e{i}" for i in range(20)) for one in epochs)
    assert epochs[0] != epochs[1]
    assert epochs[1] == [f"e{i}" for i in order_of(20, 7, 1)]


def test_accumulated_batches_make_the_step_of_one_large_batch(tmp_path: Path) -> None:
    import torch

    class Plain(ToyRecipe):
        def build(self, device: str) -> Any:
            return torch.nn.Linear(2, 1)

        def collate(self, examples: Any, rng: np.random.Generator) -> Any:
            return torch.tensor([one.content for one in examples])

    found = []
    for batch, accumulate in ((2, 3), (6, 1)):
        _, prepared = toy_run(n=20)
        recipe = Plain(ToyRecipe.settings_class(batch=batch, accumulate=accumulate, steps=8))
        found.append(train(recipe, prepared, TrainingFolder(tmp_path / f"{batch}"), OPTIONS))
    one, other = (run.model.state_dict() for run in found)
    assert all(torch.allclose(one[name], other[name], atol=1e-6) for name in one)


@pytest.mark.parametrize(
    ("options", "settings", "told"),
    [({"seed": 8}, {}, "seed"), ({}, {"rate": 0.1}, "rate"), ({}, {"n": 21}, "data"),
     ({}, {"steps": 13}, "steps"), ({"precision": "bfloat16"}, {}, "precision")],
)  # fmt: skip
def test_other_settings_or_data_are_refused_in_words(
    options: Any, settings: Any, told: str, finished: Path
) -> None:
    before = (finished / "checkpoint.pt").read_bytes()
    with refused("other_run", f"{told} was"):
        trained(finished, RunOptions(**({"seed": 7} | options)), **settings)
    assert (finished / "checkpoint.pt").read_bytes() == before


def test_another_base_is_refused(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyRecipe, "base", lambda _: "another")
    with refused("other_run", "base_content was"):
        trained(finished)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with refused("folder_not_empty"):
        trained(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("run.json", b"[1"), ("checkpoint.pt", b""), ("checkpoint.pt", b"PK torn"),
     ("log.jsonl", b"{}\n"), ("log.jsonl", b"torn\n"), ("log.jsonl", b""),
     ("log.jsonl", b'{"step": 1, "losses": {"total": 1}}\n'), ("log.jsonl", None)],
)  # fmt: skip
def test_a_damaged_file_of_a_run_is_named(name: str, content: bytes | None, finished: Path) -> None:
    (finished / name).unlink()
    if content is not None:
        (finished / name).write_bytes(content)
    with refused("checkpoint_damaged", name):
        trained(finished)


@pytest.mark.parametrize("name", ["run.json", "checkpoint.pt", "log.jsonl"])
def test_a_full_disk_is_told_in_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        if path.name == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace_durably(path, data)

    monkeypatch.setattr(checkpoints, "replace_durably", full)
    with refused("cannot_write"):
        trained(tmp_path / "run")


def test_weights_that_do_not_fit_on_the_disk_are_told_in_words(tmp_path: Path) -> None:
    with refused("cannot_write"), writing(tmp_path):
        raise SafetensorError("No space left on device")


def test_what_a_kill_left_of_the_first_file_is_not_of_others(tmp_path: Path) -> None:
    (tmp_path / "run.json.1.draft").write_text("{")
    assert trained(tmp_path).steps == 12


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses, calls = ToyRecipe.losses, iter(range(100))

    def broken(recipe: ToyRecipe, model: Any, batch: Any) -> Any:
        found = losses(recipe, model, batch)
        return found | {"squared": found["squared"] * (math.nan if next(calls) == 9 else 1)}

    monkeypatch.setattr(ToyRecipe, "losses", broken)
    with refused("loss_not_finite", "step 6", "squared is nan"):
        trained(tmp_path / "run")
    found = TrainingFolder(tmp_path / "run").read()
    assert found is not None and found.step == 3


def test_progress_is_told_with_the_steps_that_were_done_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(ToyRecipe, "losses", killed_at(15, ToyRecipe.losses))
        trained(tmp_path / "run")
    told: list[Progress] = []
    recipe, prepared = toy_run()
    train(recipe, prepared, TrainingFolder(tmp_path / "run"), OPTIONS, told.append)
    assert (told[0].done, told[-1].done, told[-1].total) == (6, 12, 12)


class Scoring(ToyRecipe):
    """Scores images by their brightness, more or less as it was trained; counts its looks."""

    looks = 0

    def score(self, model: Any, images: Any, prompts: Any) -> list[float]:
        self.looks += 1
        slope = float(model[3].weight.detach().sum())
        return [
            slope * float(np.asarray(image).mean()) + len(prompt)
            for image, prompt in zip(images, prompts, strict=True)
        ]


def measured(folder: Path, every: int | None, keep: str) -> tuple[Scoring, Trained]:
    toy, prepared = toy_run(keep=keep)
    recipe = Scoring(toy.settings)
    options = replace(OPTIONS, evaluate_every=every)
    prepared = replace(prepared, held_out=demo_croc(4))
    return recipe, train(recipe, prepared, TrainingFolder(folder), options)


@pytest.mark.parametrize("keep", ["last", "best"])
def test_an_evaluation_that_was_killed_is_done_again_and_one_that_was_not_is_kept(
    keep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, whole = measured(tmp_path / "whole", 4, keep)
    assert recipe.looks == 3 and whole.rows
    for look in (1, 1, 2, 2):  # at step 4, at it again, at 8, and at the last
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(Scoring, "score", killed_at(look, Scoring.score))
            measured(tmp_path / "again", 4, keep)
    recipe, again = measured(tmp_path / "again", 4, keep)
    assert (recipe.looks, recipe.seen) == (1, [])
    recipe, third = measured(tmp_path / "again", 4, keep)
    assert (recipe.looks, recipe.seen) == (0, [])
    for found in (again, third):
        assert [one.to_json() for one in found.rows] == [one.to_json() for one in whole.rows]
        assert found.steps == whole.steps
        assert same_weights(found.model.state_dict(), whole.model.state_dict())
        assert [line["step"] for line in found.log if "held_out" in line] == [4, 8, 12]


def test_progress_is_told_of_the_evaluation(tmp_path: Path) -> None:
    told: list[Progress] = []
    toy, prepared = toy_run(steps=1)
    held_out = demo_croc(4)
    prepared = replace(prepared, held_out=held_out)
    train(Scoring(toy.settings), prepared, TrainingFolder(tmp_path), OPTIONS, told.append)
    last = next(one for one in reversed(told) if one.stage == "evaluating")
    assert last.done == last.total == len(held_out.questions.pairs)


def test_a_log_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path)
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n{"step": 2}\n{"ste')
    assert [line["step"] for line in folder.log()] == [1, 2]
    folder.cut_log(1)
    assert json.loads((tmp_path / "log.jsonl").read_text()) == {"step": 1}


@pytest.mark.parametrize(
    ("step", "line", "half_cosine"),
    [(0, 0.0, 0.0), (5, 0.5, 0.5), (10, 1.0, 1.0), (60, 0.5, 0.5), (110, 0.0, 0.0)],
)
def test_rates_rise_and_fall(step: int, line: float, half_cosine: float) -> None:
    at = Schedule(step, 110, 11)
    assert linear(at, 10) == pytest.approx(line)
    assert cosine(at, 10) == pytest.approx(half_cosine)


OTHER_PRECISION = """
import sys
from pathlib import Path
import pytest
from tests.evaluator.training.test_loop import trained
from tests.evaluator.training.toy_recipe import Killed, ToyRecipe, killed_at, same_weights
from evaluator.training.loop import RunOptions
options, place = RunOptions(seed=7, precision=sys.argv[1], checkpoint_every=3), Path(sys.argv[2])
whole = trained(place / "whole", options)
with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
    patch.setattr(ToyRecipe, "losses", killed_at(14, ToyRecipe.losses))
    trained(place / "cut", options)
again = trained(place / "cut", options)
assert same_weights(again.model.state_dict(), whole.model.state_dict())
assert len(whole.log) == 12
"""


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_runs_in_other_precisions_go_on_likewise(precision: str, tmp_path: Path) -> None:
    # A process has one precision.
    command = [sys.executable, "-c", OTHER_PRECISION, precision, str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
