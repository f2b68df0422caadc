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
from tests.evaluator.scorers import tiny_towers as towers
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scorers.tiny_models import here, row
from tests.kit.pictures import encoded, opened

if TYPE_CHECKING:
    import torch


ABOUT = About("d" * 64, "8 pixels", "tiny")
PROMPTS = ["a cup", "two cups on a table", "a dog", "a dog beside two cups"]


def workload(client: ModelClient) -> list[list[Item]]:
    """Batches of 20 images with two prompts each, as in CROC."""
    items = [towers.item_of(client, towers.photo(n), PROMPTS[2 * (n % 2) :][:2]) for n in range(20)]
    return [items[start : start + 6] for start in range(0, 20, 6)]


def asked(scorer: towers.PairTiny, *items: tuple[Any, ...], **more: Any) -> Reply:
    """What a scorer says of images, told by a number or as files, with prompts and elements."""
    client = towers.client_of(scorer, **more)
    files = [towers.photo(one) if isinstance(one, int) else one for one, *_ in items]
    return client.ask(
        [
            towers.item_of(client, file, *texts)
            for file, (_, *texts) in zip(files, items, strict=True)
        ]
    )


def cups(n: int, *more: str) -> list[tuple[int, list[str]]]:
    """So many images, each with the prompt of a cup and perhaps others."""
    return [(number, ["a cup", *more]) for number in range(n)]


def failing(
    fails: Callable[[Sequence[Any]], Exception | None],
    kind: type[towers.PairTiny] = towers.DualTiny,
) -> towers.PairTiny:
    """A scorer that raises an error for some images."""

    class Failing(kind):  # type: ignore[valid-type, misc]
        def _images(self, images: Sequence[Any]) -> Any:
            if error := fails(images):
                raise error
            return super()._images(images)

    scorer: towers.PairTiny = Failing()
    return scorer


def run(client: ModelClient) -> list[Reply]:
    return [client.ask(batch) for batch in workload(client)]


def all_scores(replies: Sequence[Reply]) -> list[float]:
    return [score for reply in replies for score in towers.scores_of(reply)]


def pair_by_pair() -> list[float]:
    """The formula, without any of the code under test but decoding."""
    import torch

    tiny = towers.DualTiny()
    with torch.inference_mode():
        return [
            float(tiny.score([tiny.prepare(decode(towers.photo(n)).image)], [prompt])[0])
            for n in range(20)
            for prompt in PROMPTS[2 * (n % 2) :][:2]
        ]


@pytest.mark.parametrize(
    ("kind", "image_rows", "text_rows"),
    [(towers.PairTiny, 40, 40), (towers.SharedTiny, 20, 40), (towers.DualTiny, 20, len(PROMPTS))],
)
def test_every_path_gives_the_scores_of_single_pairs_and_counts_what_the_model_saw(
    kind: type[towers.PairTiny], image_rows: int, text_rows: int
) -> None:
    tiny = kind()
    replies = run(towers.client_of(tiny))
    np.testing.assert_allclose(all_scores(replies), pair_by_pair(), atol=1e-6)
    works = [reply.work for reply in replies]
    assert sum(work.images_decoded for work in works) == tiny.prepared == 20
    assert sum(work.images_encoded for work in works) == tiny.image_rows == image_rows
    assert sum(work.texts_encoded for work in works) == tiny.text_rows == text_rows
    assert all(work.seconds > 0 for work in works)


def test_a_second_run_decodes_and_encodes_nothing_and_scores_the_same_bits(tmp_path: Path) -> None:
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        first = all_scores(run(towers.client_of(towers.DualTiny(), cache=cache)))
    tiny = towers.DualTiny()
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        replies = run(towers.client_of(tiny, cache=cache))
    assert all_scores(replies) == first == all_scores(run(towers.client_of(towers.DualTiny())))
    assert tiny.prepared == tiny.image_rows == tiny.text_rows == 0
    for work in (reply.work for reply in replies):
        assert (work.images_decoded, work.images_encoded, work.texts_encoded) == (0, 0, 0)


def test_a_half_kept_run_encodes_what_is_missing(tmp_path: Path) -> None:
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        client = towers.client_of(towers.DualTiny(), cache=cache)
        client.ask([towers.item_of(client, towers.photo(n), PROMPTS[:2]) for n in range(8)])
    tiny = towers.DualTiny()
    with EmbeddingCache(tmp_path, ABOUT) as cache:
        found = all_scores(run(towers.client_of(tiny, cache=cache)))
    assert (tiny.prepared, tiny.image_rows, tiny.text_rows) == (12, 12, 2)
    np.testing.assert_allclose(found, pair_by_pair(), atol=1e-6)


def test_remarks_on_an_image_outlive_its_decoding(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    for _ in range(2):
        with EmbeddingCache(tmp_path, ABOUT) as cache:
            client = towers.client_of(towers.DualTiny(), cache=cache)
            item = towers.item_of(client, towers.photo(1, "JPEG", exif=exif), ["a cup"])
            assert [code for code, _ in item.image.remarks] == ["image_rotated"]
            client.ask([item])


def test_texts_alone_do_not_depend_on_what_was_asked_before() -> None:
    def score_of_the_dog(before: Sequence[str]) -> float:
        client = towers.client_of(towers.DualTiny(), batch_texts=1)
        client.ask([towers.item_of(client, towers.photo(0), before)])
        return towers.scores_of(client.ask([towers.item_of(client, towers.photo(1), ["a dog"])]))[0]

    assert score_of_the_dog(["a cup"]) == score_of_the_dog(["a dog", *PROMPTS, "x" * 30])


def test_texts_are_encoded_in_chunks_of_like_length() -> None:
    class Chunks(towers.DualTiny):
        def __init__(self) -> None:
            super().__init__()
            self.chunks: list[list[str]] = []

        def encode_texts(self, prompts: Sequence[str]) -> Any:
            self.chunks.append(list(prompts))
            return super().encode_texts(prompts)

    tiny = Chunks()
    asked(tiny, (0, ["ccc", "a", "dddd", "bb", "a"]), batch_texts=2)
    assert tiny.chunks == [["a", "bb"], ["ccc", "dddd"]]


def test_a_bad_image_is_named_when_it_is_made_ready() -> None:
    with pytest.raises(ImageError, match="damaged"):
        towers.client_of(towers.DualTiny()).ready(towers.photo(1)[:-60])


def test_a_text_that_is_cut_is_told_once() -> None:
    client = towers.client_of(towers.DualTiny())
    long = "word " * 20
    first = client.ask([towers.item_of(client, towers.photo(n), [long, "a cup"]) for n in range(2)])
    (finding,) = first.findings
    assert (finding.code, finding.item, finding.item_id) == (
        "text_truncated",
        "text",
        f"text {long}",
    )
    assert finding.scored
    assert "20 words" in finding.message
    assert not client.ask([towers.item_of(client, towers.photo(3), [long])]).findings
    assert not client.ask(
        [towers.item_of(client, towers.photo(0), ["x" * towers.LONGEST])]
    ).findings


def test_an_empty_prompt_is_scored_and_told() -> None:
    reply = asked(towers.DualTiny(), (0, ["", " \n"]))
    assert [finding.code for finding in reply.findings] == ["text_empty"] * 2
    assert np.isfinite(towers.scores_of(reply)).all()


def test_elements_are_scored_where_there_are_any(tmp_path: Path) -> None:
    tiny = towers.ElementTiny()
    for _ in range(2):  # the second time from kept embeddings
        with EmbeddingCache(tmp_path, ABOUT) as cache:
            client = towers.client_of(tiny, cache=cache)
            assert client.asks_elements
            items = [
                towers.item_of(
                    client, towers.photo(0), ["a cup", "a dog"], ["cup", "dog", "table"]
                ),
                towers.item_of(client, towers.photo(1), ["a dog"]),
            ]
            reply = client.ask(items)
            assert reply.elements is not None
            assert [[len(one) for one in row] for row in reply.elements] == [[3, 3], [0]]
            alone = client.ask([towers.item_of(client, towers.photo(0), ["dog"])])
            np.testing.assert_allclose(
                reply.elements[0][1][1], towers.scores_of(alone)[0], atol=1e-6
            )
    assert tiny.image_rows == 2 + 2 * 6, "two encoded, and six elements scored in each run"


def test_without_elements_of_its_own_a_scorer_is_not_asked_for_them() -> None:
    client = towers.client_of(towers.DualTiny())
    reply = client.ask([towers.item_of(client, towers.photo(0), ["a cup"], ["cup"])])
    assert reply.elements is None
    assert not client.asks_elements


def test_verdicts_with_answers_pass_through() -> None:
    answer = Answer("q1", "Is there a cup?", "yes", "Yes.", 1.0)

    class Asks(towers.SharedTiny):
        def score_texts(self, images: Sequence[Any], prompts: Sequence[Sequence[str]]) -> Any:
            return [[Verdict(1.0, answers=(answer,)), math.nan] for _ in images]

    ((first, second),) = asked(Asks(), (0, ["a cup", "a dog"])).verdicts
    assert first.answers == (answer,)
    assert second.problem == "the scorer gave no number"


def test_the_record_says_on_what_it_ran() -> None:
    import torch

    environment = towers.client_of(towers.DualTiny()).environment
    assert environment["device"] == "cpu"
    assert environment["dtype"] == "float32"
    assert environment["torch"] == torch.__version__.partition("+")[0]
    assert {"transformers", "pillow"} <= environment.keys()
    assert int(environment["threads"]) >= 1
    assert towers.client_of(towers.DualTiny()).peak_memory_bytes > 50 * 2**20


def test_no_gradients_are_kept() -> None:
    import torch

    class Watches(towers.DualTiny):
        def encode_images(self, images: Sequence[Any]) -> Any:
            assert torch.is_inference_mode_enabled()
            return super().encode_images(images)

    assert np.isfinite(towers.scores_of(asked(Watches(), (0, ["a cup"])))).all()


BAD_IMAGE = 3
BAD_PROMPT = "the forbidden one"


def refuses(kind: type[towers.PairTiny]) -> towers.PairTiny:
    """A scorer that raises for one image and for one prompt."""

    import torch

    class Refuses(kind):  # type: ignore[valid-type, misc]
        def _images(self, images: Sequence[torch.Tensor]) -> Any:
            bad = self.prepare(opened(towers.photo(BAD_IMAGE)))
            if any(torch.equal(image, bad) for image in images):
                raise ValueError("an image\nI cannot see")
            return super()._images(images)

        def _texts(self, prompts: Sequence[str]) -> Any:
            if BAD_PROMPT in prompts:
                raise IndexError("index out of range in self")
            return super()._texts(prompts)

    scorer: towers.PairTiny = Refuses()
    return scorer


@pytest.mark.parametrize("kind", [towers.PairTiny, towers.SharedTiny, towers.DualTiny])
def test_one_bad_image_and_one_bad_prompt_cost_their_own_pairs_only(
    kind: type[towers.PairTiny],
) -> None:
    reply = asked(refuses(kind), *cups(5, BAD_PROMPT, "a dog"))
    expected = asked(kind(), *cups(5, "a dog"))
    for n, (verdicts, wanted) in enumerate(zip(reply.verdicts, expected.verdicts, strict=True)):
        if n == BAD_IMAGE:
            assert all(math.isnan(verdict.score) for verdict in verdicts)
            assert verdicts[0].problem == "ValueError: an image I cannot see"
            continue
        assert verdicts[1].problem == "IndexError: index out of range in self"
        found = [verdicts[0].score, verdicts[2].score]
        np.testing.assert_allclose(found, [one.score for one in wanted], atol=1e-6)


def test_an_image_that_cannot_be_prepared_has_a_reason() -> None:
    class Picky(towers.DualTiny):
        def prepare(self, image: Image.Image) -> torch.Tensor:
            if image.width == 1:
                raise ValueError("mean must have 1 elements")
            return super().prepare(image)

    narrow = encoded(Image.new("RGB", (1, 3)))
    (bad,), (good,) = asked(Picky(), (narrow, ["a cup"]), (1, ["a cup"])).verdicts
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
    with refusal(code, kind=AssayError):
        asked(failing(lambda _: error), *cups(2))


@pytest.mark.parametrize("n_batches", [1, 2])
def test_a_scorer_that_fails_on_everything_is_a_defect(n_batches: int) -> None:
    client = towers.client_of(failing(lambda _: ValueError("no such layer")))
    items = [towers.item_of(client, towers.photo(n), ["a cup"]) for n in range(2)]
    with refusal("scorer_failed", "every image: ValueError: no such layer", kind=PlatformError):
        for start in range(0, 2, 2 // n_batches):
            client.ask(items[start : start + 2 // n_batches])


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "error",
    [
        "torch",
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
        MemoryError(),
    ],
)
@pytest.mark.parametrize("kind", [towers.PairTiny, towers.SharedTiny, towers.DualTiny])
def test_too_little_memory_asks_for_a_smaller_batch(
    error: Exception | str, kind: type[towers.PairTiny]
) -> None:
    import torch

    if isinstance(error, str):
        error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB")
    with pytest.raises(OutOfMemoryError) as raised:
        asked(failing(lambda _: error, kind), *cups(3))
    assert raised.value.__context__ is None, "it would hold on to tensors"


def test_real_memory_that_is_not_there_asks_for_a_smaller_batch() -> None:
    import torch

    def allocate(_: Sequence[Any]) -> None:
        torch.empty(2**60, dtype=torch.uint8)

    with pytest.raises(OutOfMemoryError):
        asked(failing(allocate), *cups(1))


def test_work_of_a_batch_that_did_not_fit_counts_with_the_next() -> None:
    import torch

    too_much = torch.OutOfMemoryError("CUDA out of memory")
    tiny = failing(lambda images: too_much if len(images) > 2 else None)
    client = towers.client_of(tiny)
    items = [towers.item_of(client, towers.photo(n), ["a cup", "a dog"]) for n in range(4)]
    with pytest.raises(OutOfMemoryError):
        client.ask(items)
    works = [client.ask(half).work for half in (items[:2], items[2:])]
    assert sum(work.images_decoded for work in works) == 4
    assert sum(work.images_encoded for work in works) == tiny.image_rows == 4
    assert sum(work.texts_encoded for work in works) == tiny.text_rows == 2
    assert sum(work.calls for work in works) == 1 + 2 + 1 + 2 + 1, "images, texts, scores, lengths"


def test_an_image_of_two_names_or_whose_prompts_are_asked_in_parts_is_encoded_once() -> None:
    tiny = towers.DualTiny()
    reply = asked(tiny, (1, ["a cup"]), (1, ["a dog"]))
    assert tiny.image_rows == reply.work.images_encoded == 1
    assert reply.work.images_decoded == 2
    tiny = towers.DualTiny()
    client = towers.client_of(tiny)
    item = towers.item_of(client, towers.photo(0), ["a cup", "a dog"])
    parts = [Item(item.image_id, item.image, (pair,)) for pair in item.asked]
    works = [client.ask([part]).work for part in parts]
    assert tiny.image_rows == 1
    assert [work.images_decoded for work in works] == [1, 0]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_wrong_number_of_scores_is_a_defect(n: int) -> None:
    class Miscounts(towers.PairTiny):
        def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
            return [0.5] * n

    with refusal("scorer_defect", f"score gave {n} values for 2", kind=PlatformError):
        asked(Miscounts(), *cups(2))


def test_elements_that_fail_leave_the_score_and_have_a_reason() -> None:
    class NoDogs(towers.ElementTiny):
        def score_elements(
            self, images: Sequence[Any], prompts: Sequence[str], elements: Sequence[Sequence[str]]
        ) -> list[list[float]]:
            if any("dog" in one for one in elements):
                raise KeyError("dog")
            return super().score_elements(images, prompts, elements)

    reply = asked(NoDogs(), (0, ["a"], ["cup"]), (1, ["a"], ["cup", "dog"]))
    assert np.isfinite(towers.scores_of(reply)).all()
    assert reply.elements is not None
    assert np.isfinite(reply.elements[0][0]).all()
    assert np.isnan(reply.elements[1][0]).all()
    (finding,) = reply.findings
    assert (finding.code, finding.scored) == ("no_element_scores", True)
    assert "KeyError: 'dog'" in finding.message


def test_a_prompt_whose_length_cannot_be_told_is_scored_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unsure(towers.DualTiny):
        def truncated(self, prompts: Sequence[str]) -> list[bool]:
            if "a dog" in prompts:
                raise ValueError("a dog")
            return [True for _ in prompts]

    reply = asked(Unsure(), (0, ["a cup", "a dog"]))
    assert [finding.item_id for finding in reply.findings] == ["text a cup"]
    assert "not known" in caplog.text


TEXTS = {f"t{n}": f"{n} small cups on a table" + " and a saucer" * n for n in range(4)}
N_IMAGES = 10
ROW = row(formula="cos")


def croc(n_images: int = N_IMAGES) -> Questions:
    """Two texts on every image."""

    def image(number: int) -> Callable[[], bytes]:
        return lambda: towers.photo(number)

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


@pytest.mark.slow
def test_scores_are_those_of_the_library_pair_by_pair(clip: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoImageProcessor, CLIPModel, CLIPTokenizer

    questions = croc()
    column = scored(ModelSource(ROW, here(clip)), tmp_path, questions)
    found, environment = column.overall, column.environment
    assert (environment["device"], environment["dtype"]) == ("cpu", "float32")
    assert str(clip) in environment["checkpoint_model"]
    model = CLIPModel.from_pretrained(clip, dtype=torch.float32).eval()
    tokenizer = CLIPTokenizer.from_pretrained(clip)
    processor = AutoImageProcessor.from_pretrained(clip, backend="pil")
    for pair in questions.pairs:
        image = Image.open(io.BytesIO(questions.images[pair.image_id]()))
        inputs = tokenizer(TEXTS[pair.text_id], truncation=True, max_length=77, return_tensors="pt")
        pixels = processor(images=image, return_tensors="pt")["pixel_values"]
        with torch.no_grad():
            logit = model(**inputs, pixel_values=pixels).logits_per_image.item()
        cosine = logit / model.logit_scale.exp().item()
        assert found[pair.pair_id] == pytest.approx(cosine, abs=2e-6)


def test_embeddings_are_kept_when_a_run_breaks_off(clip: Path, tmp_path: Path) -> None:
    source = ModelSource(ROW, here(clip), tmp_path)
    with pytest.raises(KeyboardInterrupt), source.open() as client:
        client.ask([towers.item_of(client, towers.photo(1), ["a cup"])])
        raise KeyboardInterrupt
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1


def test_global_settings_of_torch_are_as_before(clip: Path) -> None:
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32
    with ModelSource(ROW, here(clip)).open():
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cudnn.allow_tf32
    after = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32
    assert before == after


def test_a_source_travels_with_its_fingerprint(clip: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    shutil.copytree(clip, folder)
    source = ModelSource(ROW, here(folder))
    known = source.fingerprint
    shutil.rmtree(folder)  # the actor's machine need not work it out again
    assert pickle.loads(pickle.dumps(source)).fingerprint == known


def test_what_can_change_a_score_changes_the_fingerprint(clip: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(clip, other)
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    questions = tmp_path / "questions.json"
    questions.write_text("{}")
    mine = here(clip)
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


def test_what_cannot_change_a_score_does_not(clip: Path, tmp_path: Path) -> None:
    first, second = (replace(here(clip), device=name) for name in ("cuda:0", "cuda:1"))
    assert ModelSource(ROW, first).fingerprint == ModelSource(ROW, second).fingerprint
    copy = tmp_path / "copy"
    shutil.copytree(clip, copy)
    checkpoints = {**ROW.checkpoints, "processor": Checkpoint(id="nobody/processor")}
    mine = here(clip)
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
