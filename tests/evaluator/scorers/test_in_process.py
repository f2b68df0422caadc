"""A built-in metric in this process: each thing once, the same score on every path, errors where they belong."""

from __future__ import annotations

import io
import math
import pickle
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import AssayError, PlatformError, SubmitterError
from benchmarks.schema import Pair, Questions
from evaluator.scorers.embeddings import About, EmbeddingCache
from evaluator.scorers.in_process import ModelClient, ModelSource, fingerprint_of
from evaluator.scorers.registry import Checkpoint, Runtime
from evaluator.scoring.asking import Item, OutOfMemoryError, Reply, ScoringPlan
from evaluator.scoring.column import ScoreColumn, ShardFolder
from evaluator.scoring.contract import Answer, Verdict
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.scoring.images import ImageError, decode
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scorers.tiny_models import here, row, save_clip
from tests.evaluator.scorers.tiny_towers import (
    LONGEST,
    DualTiny,
    ElementTiny,
    PairTiny,
    SharedTiny,
    client_of,
    item_of,
    photo,
    scores_of,
)

if TYPE_CHECKING:
    import torch


ABOUT = About("d" * 64, "8 pixels", "tiny")
PROMPTS = ["a cup", "two cups on a table", "a dog", "a dog beside two cups"]


def workload(client: ModelClient) -> list[list[Item]]:
    """Batches of 20 images with two prompts each, as in CROC."""
    items = [item_of(client, photo(n), PROMPTS[2 * (n % 2) :][:2]) for n in range(20)]
    return [items[start : start + 6] for start in range(0, 20, 6)]


def run(client: ModelClient) -> list[Reply]:
    return [client.ask(batch) for batch in workload(client)]


def all_scores(replies: Sequence[Reply]) -> list[float]:
    return [score for reply in replies for score in scores_of(reply)]


def pair_by_pair() -> list[float]:
    """The formula, without any of the code under test but decoding."""
    import torch

    tiny = DualTiny()
    with torch.inference_mode():
        return [
            float(tiny.score([tiny.prepare(decode(photo(n)).image)], [prompt])[0])
            for n in range(20)
            for prompt in PROMPTS[2 * (n % 2) :][:2]
        ]


@pytest.mark.parametrize(
    ("kind", "image_rows", "text_rows"),
    [(PairTiny, 40, 40), (SharedTiny, 20, 40), (DualTiny, 20, len(PROMPTS))],
)
def test_every_path_gives_the_scores_of_single_pairs_and_counts_what_the_model_saw(
    kind: type[PairTiny], image_rows: int, text_rows: int
) -> None:
    tiny = kind()
    replies = run(client_of(tiny))
    np.testing.assert_allclose(all_scores(replies), pair_by_pair(), atol=1e-6)
    works = [reply.work for reply in replies]
    assert sum(work.images_decoded for work in works) == tiny.prepared == 20
    assert sum(work.images_encoded for work in works) == tiny.image_rows == image_rows
    assert sum(work.texts_encoded for work in works) == tiny.text_rows == text_rows
    assert all(work.seconds > 0 for work in works)


def test_a_second_run_decodes_and_encodes_nothing_and_scores_the_same_bits(tmp_path: Path) -> None:
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        first = all_scores(run(client_of(DualTiny(), cache=cache)))
    tiny = DualTiny()
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        replies = run(client_of(tiny, cache=cache))
    assert all_scores(replies) == first == all_scores(run(client_of(DualTiny())))
    assert tiny.prepared == tiny.image_rows == tiny.text_rows == 0
    for work in (reply.work for reply in replies):
        assert (work.images_decoded, work.images_encoded, work.texts_encoded) == (0, 0, 0)


def test_a_half_kept_run_encodes_what_is_missing(tmp_path: Path) -> None:
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        client = client_of(DualTiny(), cache=cache)
        client.ask([item_of(client, photo(n), PROMPTS[:2]) for n in range(8)])
    tiny = DualTiny()
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        found = all_scores(run(client_of(tiny, cache=cache)))
    assert (tiny.prepared, tiny.image_rows, tiny.text_rows) == (12, 12, 2)
    np.testing.assert_allclose(found, pair_by_pair(), atol=1e-6)


def test_remarks_on_an_image_outlive_its_decoding(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    for _ in range(2):
        with EmbeddingCache(tmp_path, ABOUT) as cache:
            client = client_of(DualTiny(), cache=cache)
            item = item_of(client, photo(1, "JPEG", exif=exif), ["a cup"])
            assert [code for code, _ in item.image.remarks] == ["image_rotated"]
            client.ask([item])


def test_texts_alone_do_not_depend_on_what_was_asked_before() -> None:
    def score_of_the_dog(before: Sequence[str]) -> float:
        client = client_of(DualTiny(), batch_texts=1)
        client.ask([item_of(client, photo(0), before)])
        return scores_of(client.ask([item_of(client, photo(1), ["a dog"])]))[0]

    assert score_of_the_dog(["a cup"]) == score_of_the_dog(["a dog", *PROMPTS, "x" * 30])


def test_texts_are_encoded_in_chunks_of_like_length() -> None:
    class Chunks(DualTiny):
        def __init__(self) -> None:
            super().__init__()
            self.chunks: list[list[str]] = []

        def encode_texts(self, prompts: Sequence[str]) -> Any:
            self.chunks.append(list(prompts))
            return super().encode_texts(prompts)

    tiny = Chunks()
    client = client_of(tiny, batch_texts=2)
    client.ask([item_of(client, photo(0), ["ccc", "a", "dddd", "bb", "a"])])
    assert tiny.chunks == [["a", "bb"], ["ccc", "dddd"]]


def test_a_bad_image_is_named_when_it_is_made_ready() -> None:
    with pytest.raises(ImageError, match="damaged"):
        client_of(DualTiny()).ready(photo(1)[:-60])


def test_a_text_that_is_cut_is_told_once() -> None:
    client = client_of(DualTiny())
    long = "word " * 20
    first = client.ask([item_of(client, photo(n), [long, "a cup"]) for n in range(2)])
    (finding,) = first.findings
    assert (finding.code, finding.item, finding.item_id) == (
        "text_truncated",
        "text",
        f"text {long}",
    )
    assert finding.scored
    assert "20 words" in finding.message
    assert not client.ask([item_of(client, photo(3), [long])]).findings
    assert not client.ask([item_of(client, photo(0), ["x" * LONGEST])]).findings


def test_an_empty_prompt_is_scored_and_told() -> None:
    client = client_of(DualTiny())
    reply = client.ask([item_of(client, photo(0), ["", " \n"])])
    assert [finding.code for finding in reply.findings] == ["text_empty"] * 2
    assert np.isfinite(scores_of(reply)).all()


def test_elements_are_scored_where_there_are_any(tmp_path: Path) -> None:
    tiny = ElementTiny()
    for _ in range(2):  # the second time from kept embeddings
        with EmbeddingCache(tmp_path, ABOUT) as cache:
            client = client_of(tiny, cache=cache)
            assert client.asks_elements
            items = [
                item_of(client, photo(0), ["a cup", "a dog"], ["cup", "dog", "table"]),
                item_of(client, photo(1), ["a dog"]),
            ]
            reply = client.ask(items)
            assert reply.elements is not None
            assert [[len(one) for one in row] for row in reply.elements] == [[3, 3], [0]]
            alone = client.ask([item_of(client, photo(0), ["dog"])])
            np.testing.assert_allclose(reply.elements[0][1][1], scores_of(alone)[0], atol=1e-6)
    assert tiny.image_rows == 2 + 2 * 6, "two encoded, and six elements scored in each run"


def test_without_elements_of_its_own_a_scorer_is_not_asked_for_them() -> None:
    client = client_of(DualTiny())
    reply = client.ask([item_of(client, photo(0), ["a cup"], ["cup"])])
    assert reply.elements is None
    assert not client.asks_elements


def test_verdicts_with_answers_pass_through() -> None:
    answer = Answer("q1", "Is there a cup?", "yes", "Yes.", 1.0)

    class Asks(SharedTiny):
        def score_texts(self, images: Sequence[Any], prompts: Sequence[Sequence[str]]) -> Any:
            return [[Verdict(1.0, answers=(answer,)), math.nan] for _ in images]

    client = client_of(Asks())
    ((first, second),) = client.ask([item_of(client, photo(0), ["a cup", "a dog"])]).verdicts
    assert first.answers == (answer,)
    assert second.problem == "the scorer gave no number"


def test_the_record_says_on_what_it_ran() -> None:
    import torch

    environment = client_of(DualTiny()).environment
    assert environment["device"] == "cpu"
    assert environment["dtype"] == "float32"
    assert environment["torch"] == torch.__version__.partition("+")[0]
    assert {"transformers", "pillow"} <= environment.keys()
    assert int(environment["threads"]) >= 1
    assert client_of(DualTiny()).peak_memory_bytes > 50 * 2**20


def test_no_gradients_are_kept() -> None:
    import torch

    class Watches(DualTiny):
        def encode_images(self, images: Sequence[Any]) -> Any:
            assert torch.is_inference_mode_enabled()
            return super().encode_images(images)

    client = client_of(Watches())
    assert np.isfinite(scores_of(client.ask([item_of(client, photo(0), ["a cup"])]))).all()


BAD_IMAGE = 3
BAD_PROMPT = "the forbidden one"


def refuses(kind: type[PairTiny]) -> PairTiny:
    """A scorer that raises for one image and for one prompt."""

    import torch

    class Refuses(kind):  # type: ignore[valid-type, misc]
        def _images(self, images: Sequence[torch.Tensor]) -> Any:
            bad = self.prepare(Image.open(_file(BAD_IMAGE)))
            if any(torch.equal(image, bad) for image in images):
                raise ValueError("an image\nI cannot see")
            return super()._images(images)

        def _texts(self, prompts: Sequence[str]) -> Any:
            if BAD_PROMPT in prompts:
                raise IndexError("index out of range in self")
            return super()._texts(prompts)

    scorer: PairTiny = Refuses()
    return scorer


def _file(number: int) -> Any:

    return io.BytesIO(photo(number))


def batch_of(client: ModelClient) -> list[Item]:
    return [item_of(client, photo(n), ["a cup", BAD_PROMPT, "a dog"]) for n in range(5)]


@pytest.mark.parametrize("kind", [PairTiny, SharedTiny, DualTiny])
def test_one_bad_image_and_one_bad_prompt_cost_their_own_pairs_only(kind: type[PairTiny]) -> None:
    client = client_of(refuses(kind))
    reply = client.ask(batch_of(client))
    good = client_of(kind())
    expected = good.ask([item_of(good, photo(n), ["a cup", "a dog"]) for n in range(5)])
    for n, (verdicts, wanted) in enumerate(zip(reply.verdicts, expected.verdicts, strict=True)):
        if n == BAD_IMAGE:
            assert all(math.isnan(verdict.score) for verdict in verdicts)
            assert verdicts[0].problem == "ValueError: an image I cannot see"
            continue
        assert verdicts[1].problem == "IndexError: index out of range in self"
        found = [verdicts[0].score, verdicts[2].score]
        np.testing.assert_allclose(found, [one.score for one in wanted], atol=1e-6)


def test_an_image_that_cannot_be_prepared_has_a_reason() -> None:
    class Picky(DualTiny):
        def prepare(self, image: Image.Image) -> torch.Tensor:
            if image.width == 1:
                raise ValueError("mean must have 1 elements")
            return super().prepare(image)

    buffer = io.BytesIO()
    Image.new("RGB", (1, 3)).save(buffer, "PNG")
    client = client_of(Picky())
    reply = client.ask(
        [item_of(client, buffer.getvalue(), ["a cup"]), item_of(client, photo(1), ["a cup"])]
    )
    (bad,), (good,) = reply.verdicts
    assert "cannot take the image: ValueError: mean must have 1 elements" in bad.problem
    assert math.isfinite(good.score)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("CUDA error: device-side assert triggered"), "device_failed"),
        (SubmitterError("questions_missing", "There are none for this text."), "questions_missing"),
    ],
)
def test_a_failed_device_or_an_error_with_a_remedy_ends_the_run(
    error: Exception, code: str
) -> None:
    client = client_of(broken(error))
    with refusal(code, kind=AssayError):
        client.ask([item_of(client, photo(n), ["a cup"]) for n in range(2)])


def broken(error: Exception, kind: type[PairTiny] = DualTiny) -> PairTiny:
    class Broken(kind):  # type: ignore[valid-type, misc]
        def _images(self, images: Sequence[Any]) -> Any:
            raise error

    scorer: PairTiny = Broken()
    return scorer


@pytest.mark.parametrize("n_batches", [1, 2])
def test_a_scorer_that_fails_on_everything_is_a_defect(n_batches: int) -> None:
    client = client_of(broken(ValueError("no such layer")))
    items = [item_of(client, photo(n), ["a cup"]) for n in range(2)]
    with refusal("scorer_failed", "every image: ValueError: no such layer", kind=PlatformError):
        for start in range(0, 2, 2 // n_batches):
            client.ask(items[start : start + 2 // n_batches])


@pytest.mark.parametrize(
    "error",
    [
        "torch",
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
        MemoryError(),
    ],
)
@pytest.mark.parametrize("kind", [PairTiny, SharedTiny, DualTiny])
def test_too_little_memory_asks_for_a_smaller_batch(
    error: Exception | str, kind: type[PairTiny]
) -> None:
    import torch

    if isinstance(error, str):
        error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB")
    client = client_of(broken(error, kind))
    with pytest.raises(OutOfMemoryError) as raised:
        client.ask([item_of(client, photo(n), ["a cup"]) for n in range(3)])
    assert raised.value.__context__ is None, "it would hold on to tensors"


def test_real_memory_that_is_not_there_asks_for_a_smaller_batch() -> None:
    import torch

    class Greedy(DualTiny):
        def _images(self, images: Sequence[Any]) -> Any:
            torch.empty(2**60, dtype=torch.uint8)
            return super()._images(images)

    client = client_of(Greedy())
    with pytest.raises(OutOfMemoryError):
        client.ask([item_of(client, photo(0), ["a cup"])])


def test_work_of_a_batch_that_did_not_fit_counts_with_the_next() -> None:
    import torch

    class Small(DualTiny):
        def _images(self, images: Sequence[Any]) -> Any:
            if len(images) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super()._images(images)

    tiny = Small()
    client = client_of(tiny)
    items = [item_of(client, photo(n), ["a cup", "a dog"]) for n in range(4)]
    with pytest.raises(OutOfMemoryError):
        client.ask(items)
    works = [client.ask(half).work for half in (items[:2], items[2:])]
    assert sum(work.images_decoded for work in works) == 4
    assert sum(work.images_encoded for work in works) == tiny.image_rows == 4
    assert sum(work.texts_encoded for work in works) == tiny.text_rows == 2
    assert sum(work.calls for work in works) == 1 + 2 + 1 + 2 + 1, "images, texts, scores, lengths"


def test_an_image_of_two_names_or_whose_prompts_are_asked_in_parts_is_encoded_once() -> None:
    tiny = DualTiny()
    client = client_of(tiny)
    reply = client.ask([item_of(client, photo(1), ["a cup"]), item_of(client, photo(1), ["a dog"])])
    assert tiny.image_rows == reply.work.images_encoded == 1
    assert reply.work.images_decoded == 2
    tiny = DualTiny()
    client = client_of(tiny)
    item = item_of(client, photo(0), ["a cup", "a dog"])
    parts = [Item(item.image_id, item.image, (asked,)) for asked in item.asked]
    works = [client.ask([part]).work for part in parts]
    assert tiny.image_rows == 1
    assert [work.images_decoded for work in works] == [1, 0]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_wrong_number_of_scores_is_a_defect(n: int) -> None:
    class Miscounts(PairTiny):
        def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
            return [0.5] * n

    client = client_of(Miscounts())
    with pytest.raises(PlatformError, match=f"score gave {n} values for 2") as raised:
        client.ask([item_of(client, photo(k), ["a cup"]) for k in range(2)])
    assert raised.value.code == "scorer_defect"


def test_elements_that_fail_leave_the_score_and_have_a_reason() -> None:
    class NoDogs(ElementTiny):
        def score_elements(
            self, images: Sequence[Any], prompts: Sequence[str], elements: Sequence[Sequence[str]]
        ) -> list[list[float]]:
            if any("dog" in one for one in elements):
                raise KeyError("dog")
            return super().score_elements(images, prompts, elements)

    client = client_of(NoDogs())
    reply = client.ask(
        [
            item_of(client, photo(0), ["a"], ["cup"]),
            item_of(client, photo(1), ["a"], ["cup", "dog"]),
        ]
    )
    assert np.isfinite(scores_of(reply)).all()
    assert reply.elements is not None
    assert np.isfinite(reply.elements[0][0]).all()
    assert np.isnan(reply.elements[1][0]).all()
    (finding,) = reply.findings
    assert (finding.code, finding.scored) == ("no_element_scores", True)
    assert "KeyError: 'dog'" in finding.message


def test_a_prompt_whose_length_cannot_be_told_is_scored_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unsure(DualTiny):
        def truncated(self, prompts: Sequence[str]) -> list[bool]:
            if "a dog" in prompts:
                raise ValueError("a dog")
            return [True for _ in prompts]

    client = client_of(Unsure())
    reply: Reply = client.ask([item_of(client, photo(0), ["a cup", "a dog"])])
    assert [finding.item_id for finding in reply.findings] == ["text a cup"]
    assert "not known" in caplog.text


TEXTS = {f"t{n}": f"{n} small cups on a table" + " and a saucer" * n for n in range(4)}
N_IMAGES = 10
ROW = row(formula="cos")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


def croc(n_images: int = N_IMAGES) -> Questions:
    """Two texts on every image."""

    def image(number: int) -> Callable[[], bytes]:
        return lambda: photo(number)

    pairs = [
        Pair(f"{n}|{side}", f"i{n}", f"t{2 * (n % 2) + side}")
        for n in range(n_images)
        for side in range(2)
    ]
    return Questions({f"i{n}": image(n) for n in range(n_images)}, TEXTS, tuple(pairs))


def scored(
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


def test_scores_are_those_of_the_library_pair_by_pair(checkpoint: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoImageProcessor, CLIPModel, CLIPTokenizer

    questions = croc()
    column = scored(ModelSource(ROW, here(checkpoint)), tmp_path, questions)
    found, environment = column.overall, column.environment
    assert (environment["device"], environment["dtype"]) == ("cpu", "float32")
    assert str(checkpoint) in environment["checkpoint_model"]
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


def test_embeddings_are_kept_when_a_run_breaks_off(checkpoint: Path, tmp_path: Path) -> None:
    source = ModelSource(ROW, here(checkpoint), tmp_path)
    with pytest.raises(KeyboardInterrupt), source.open() as client:
        client.ask([item_of(client, photo(1), ["a cup"])])
        raise KeyboardInterrupt
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1


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
    found = {fingerprint_of(source.row, source.runtime) for source in variants}
    assert len(found) == len(variants)


def test_what_cannot_change_a_score_does_not(checkpoint: Path, tmp_path: Path) -> None:
    first, second = (replace(here(checkpoint), device=name) for name in ("cuda:0", "cuda:1"))
    assert ModelSource(ROW, first).fingerprint == ModelSource(ROW, second).fingerprint
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


def test_a_checkpoint_that_is_not_there_is_named_before_anything_is_read(tmp_path: Path) -> None:
    source = ModelSource(ROW, Runtime(folders={"model": tmp_path / "none"}))
    with refusal("checkpoint_missing"):
        _ = source.fingerprint
