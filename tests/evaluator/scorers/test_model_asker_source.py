"""A built-in metric through the whole engine: counts, kept embeddings, and what tells runs apart."""

from __future__ import annotations

import io
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.schema import Pair, Questions
from evaluator.scorers.embeddings import size_report
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import Checkpoint, Runtime
from evaluator.scoring.column import ScoreColumn
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.shards import ShardFolder
from tests.evaluator.scorers.tiny_dual import here, row, save_clip

TEXTS = {f"t{n}": f"{n} small cups on a table" + " and a saucer" * n for n in range(4)}
N_IMAGES = 10
ROW = row(formula="cos")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


def croc(n_images: int = N_IMAGES, spoilt: bytes | None = None) -> Questions:
    """Two texts on every image; the first image may be spoilt."""

    from tests.evaluator.scorers.tiny_towers import photo

    def image(number: int) -> Callable[[], bytes]:
        return lambda: spoilt if spoilt is not None and number == 0 else photo(number)

    pairs = [
        Pair(f"{n}|{side}", f"i{n}", f"t{2 * (n % 2) + side}")
        for n in range(n_images)
        for side in range(2)
    ]
    return Questions({f"i{n}": image(n) for n in range(n_images)}, TEXTS, tuple(pairs))


def run(
    source: ModelSource, folder: Path, questions: Questions | None = None, batch_pairs: int = 8
) -> ScoreColumn:
    questions = questions or croc()
    return run_plan(
        ScoringPlan.of(questions, b"seed"),
        questions,
        source,
        ShardFolder(folder, source.fingerprint),
        options=EngineOptions(batch_pairs=batch_pairs),
    )


@pytest.mark.slow
def test_each_image_and_text_goes_through_the_model_once_and_never_again(
    checkpoint: Path, tmp_path: Path
) -> None:
    source = ModelSource(ROW, here(checkpoint), tmp_path / "kept")
    first = run(source, tmp_path / "one")
    cost = first.cost
    assert (cost.images_decoded, cost.images_encoded, cost.texts_encoded) == (N_IMAGES, N_IMAGES, 4)
    second = run(source, tmp_path / "two")
    cost = second.cost
    assert (cost.images_decoded, cost.images_encoded, cost.texts_encoded) == (0, 0, 0)
    assert first.overall.equals(second.overall), "bit for bit"
    plain = run(ModelSource(ROW, here(checkpoint)), tmp_path / "three")
    assert first.overall.equals(plain.overall)


def test_scores_are_those_of_the_library_pair_by_pair(checkpoint: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoImageProcessor, CLIPModel, CLIPTokenizer

    questions = croc()
    found = run(ModelSource(ROW, here(checkpoint)), tmp_path, questions).overall
    model = CLIPModel.from_pretrained(checkpoint, dtype=torch.float32).eval()
    tokenizer = CLIPTokenizer.from_pretrained(checkpoint)
    processor = AutoImageProcessor.from_pretrained(checkpoint, backend="pil")
    for pair in questions.pairs:
        image = Image.open(io.BytesIO(questions.images[pair.image_id]()))
        inputs = tokenizer(TEXTS[pair.text_id], truncation=True, max_length=77, return_tensors="pt")
        pixels = processor(images=image, return_tensors="pt")["pixel_values"]
        with torch.no_grad():
            logit = model(**inputs, pixel_values=pixels).logits_per_image.item()
        cosine = logit / model.logit_scale.exp().item()
        assert found[pair.pair_id] == pytest.approx(cosine, abs=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("batch_pairs", [1, 3, 64])
def test_batches_change_no_more_than_rounding(
    checkpoint: Path, tmp_path: Path, batch_pairs: int
) -> None:
    source = ModelSource(ROW, here(checkpoint))
    one, other = run(source, tmp_path / "a"), run(source, tmp_path / "b", None, batch_pairs)
    np.testing.assert_allclose(one.overall, other.overall, atol=1e-6)


def test_a_truncated_jpeg_costs_its_own_pairs(checkpoint: Path, tmp_path: Path) -> None:
    from tests.evaluator.scorers.tiny_towers import photo

    spoilt = photo(0, "JPEG")[:-40]
    column = run(ModelSource(ROW, here(checkpoint)), tmp_path, croc(spoilt=spoilt))
    assert column.overall.isna().sum() == 2
    assert column.verdict.unscored == {"image_unreadable": 2}


def test_the_record_names_checkpoint_and_precision(checkpoint: Path, tmp_path: Path) -> None:
    environment = run(ModelSource(ROW, here(checkpoint)), tmp_path).environment
    assert environment["device"] == "cpu"
    assert environment["dtype"] == "float32"
    assert str(checkpoint) in environment["checkpoint_model"]
    assert {"torch", "transformers", "pillow", "threads"} <= environment.keys()


def test_embeddings_are_reported_under_the_name_of_the_metric(
    checkpoint: Path, tmp_path: Path
) -> None:
    source = ModelSource(ROW, here(checkpoint), tmp_path / "kept")
    run(source, tmp_path / "one")
    (kept,) = size_report(tmp_path / "kept")
    assert (kept.fingerprint, kept.scorer) == (source.fingerprint, "tiny")
    assert (kept.images, kept.texts) == (N_IMAGES, 4)


def test_embeddings_are_kept_when_a_run_breaks_off(checkpoint: Path, tmp_path: Path) -> None:
    from tests.evaluator.scorers.tiny_towers import photo

    source = ModelSource(ROW, here(checkpoint), tmp_path)
    with pytest.raises(KeyboardInterrupt), source.open() as asker:
        from tests.evaluator.scorers.tiny_towers import item_of

        asker.ask([item_of(asker, photo(1), ["a cup"])])
        raise KeyboardInterrupt
    assert size_report(tmp_path)[0].images == 1


def test_global_settings_of_torch_are_as_before(checkpoint: Path) -> None:
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32
    with ModelSource(ROW, here(checkpoint)).open():
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cudnn.allow_tf32
    after = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32
    assert before == after


def test_a_source_travels_with_its_fingerprint(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    shutil.copytree(checkpoint, folder)
    source = ModelSource(ROW, here(folder))
    known = source.fingerprint
    shutil.rmtree(folder)  # the actor's machine need not work it out again
    assert pickle.loads(pickle.dumps(source)).fingerprint == known


def test_what_can_change_a_score_changes_the_fingerprint(checkpoint: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(checkpoint, other)
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    questions = tmp_path / "questions.json"
    questions.write_text("{}")
    mine = here(checkpoint)
    variants = [
        ModelSource(ROW, mine),
        ModelSource(ROW, here(other)),
        ModelSource(ROW, replace(mine, dtype="bfloat16")),
        ModelSource(ROW, replace(mine, device="cuda")),
        ModelSource(ROW, replace(mine, questions=questions)),
        ModelSource(ROW, replace(mine, trust_remote_code=True)),
        ModelSource(row(formula="hessel"), mine),
        ModelSource(row(formula="cos", prefix="A photo depicts "), mine),
        ModelSource(ROW.model_copy(update={"name": "another"}), mine),
    ]
    assert len({source.fingerprint for source in variants}) == len(variants)


def test_what_cannot_change_a_score_does_not(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    checkpoints = {**ROW.checkpoints, "processor": Checkpoint(id="nobody/processor")}
    mine = here(checkpoint)
    variants = [
        ModelSource(ROW, mine),
        ModelSource(ROW, mine, tmp_path / "kept"),
        ModelSource(ROW, here(copy)),
        ModelSource(ROW, replace(mine, batch_texts=3, offline=True)),
        ModelSource(ROW, replace(mine, dtype="float32")),
        ModelSource(ROW.model_copy(update={"summary": "In other words."}), mine),
        ModelSource(ROW.model_copy(update={"checkpoints": checkpoints}), mine),
    ]
    assert len({source.fingerprint for source in variants}) == 1


def test_cards_of_one_kind_are_one_kind_of_device(checkpoint: Path) -> None:
    first, second = (replace(here(checkpoint), device=name) for name in ("cuda:0", "cuda:1"))
    assert ModelSource(ROW, first).fingerprint == ModelSource(ROW, second).fingerprint


def test_a_checkpoint_that_is_not_there_is_named_before_anything_is_read(tmp_path: Path) -> None:
    source = ModelSource(ROW, Runtime(folders={"model": tmp_path / "none"}))
    with pytest.raises(SubmitterError) as raised:
        _ = source.fingerprint
    assert raised.value.code == "checkpoint_missing"


def test_naming_a_source_does_not_load_torch() -> None:
    code = "import sys; import evaluator.scorers.in_process; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
