"""The scoring engine against published loops, a bare loop and the model alone.

Published loops that score pairs with CLIP are written anew, with the same random weights, pixels
and tokens as ours, so that cosines can be compared:

- CROC's wrapper of CLIPScore: an object of torchmetrics' `CLIPScore`, called for each pair. It
  declares `full_state_update`, so that a call runs both towers twice. Its value is 100 times the
  cosine, none below 0. torchmetrics is installed for this measurement only, into a folder:

      pip install --target FOLDER --no-deps torchmetrics lightning-utilities

- T2IScoreScore's CLIPScore: processor and whole model for each pair, with gradients.
- t2v_metrics' `batch_forward`: 16 pairs at a time, each with an image and a text of its own.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import numpy as np
import open_clip  # type: ignore[import-untyped]
import torch
from numpy.typing import NDArray
from open_clip.tokenizer import SimpleTokenizer  # type: ignore[import-untyped]
from open_clip.transform import PreprocessCfg, image_transform_v2  # type: ignore[import-untyped]
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.functional import pil_to_tensor
from torchvision.transforms.v2 import functional as transforms
from transformers import CLIPConfig, CLIPModel, CLIPProcessor, CLIPTokenizer
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from benchmarks.schema import Questions
from benchmarks_perf.made_up import croc_like, noise_jpeg, numbered
from benchmarks_perf.measuring import MIB, Figure, alone, interleaved, memory_bytes
from evaluator.scorers.device import peak_rss_bytes
from evaluator.scorers.embeddings import About, EmbeddingCache
from evaluator.scorers.in_process import ModelClient
from evaluator.scorers.registry import Checkpoint, Loaded, Runtime, ScorerRow, load_scorer
from evaluator.scoring.asking import ScoringPlan
from evaluator.scoring.column import ScoreColumn, ShardFolder
from evaluator.scoring.contract import Vectors
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.scoring.images import decode

SIDE = 224
MEAN, STD = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD
ROW = ScorerRow(
    name="vit-b-32",
    family="dual_encoder",
    title="ViT-B/32 with random weights",
    summary="To take times.",
    formula="cosine",
    source="transformers",
    checkpoints={"model": Checkpoint(id="nobody/random")},
    options={"formula": "cos"},
)
ImageText = tuple[bytes, str]
Loop = Callable[[Sequence[ImageText]], list[float]]


@dataclass(frozen=True)
class LoadedSource:
    """Opens clients over a scorer that is there already; with a folder, they keep embeddings."""

    loaded: Loaded
    runtime: Runtime = field(default_factory=Runtime)
    kept: Path | None = None
    fingerprint: str = "0" * 64

    @contextmanager
    def open(self) -> Iterator[ModelClient]:
        """See `ClientSource`."""
        if self.kept is None:
            yield ModelClient(self.loaded, self.runtime)
            return
        about = About(self.fingerprint, self.loaded.preprocessing)
        with EmbeddingCache(self.kept, about) as cache:
            yield ModelClient(self.loaded, self.runtime, cache=cache)

    def run(self, questions: Questions, batch_pairs: int = 64) -> ScoreColumn:
        """All scores, from an empty folder of shards."""
        with tempfile.TemporaryDirectory() as folder:
            return run_plan(
                ScoringPlan.of(questions, b"seed"),
                questions,
                self,
                ShardFolder(Path(folder), self.fingerprint),
                options=EngineOptions(batch_pairs=batch_pairs),
            )


def throughput(
    *,
    images: int = 20,
    peer_images: int = 4,
    rounds: int = 2,
    batch_pairs: int = 64,
    device: str = "cpu",
    torchmetrics: Path | None = None,
) -> Iterator[Figure]:
    """A ViT-B/32 over JPEGs of 512 pixels, two texts on each, with everything but its loading.

    The peers go through the pairs of the first images: what they cost per pair does not depend on
    how many there are. On a device other than the CPU there are no peers, but the rate and, where
    `nvidia-smi` is, the share of the time that the GPU is busy.
    """
    torch.set_num_threads(1)
    runtime = Runtime(device=device)
    with tempfile.TemporaryDirectory() as folder:
        model, processor = random_clip(Path(folder))
        loaded = load_scorer(ROW, Runtime(device=device, folders={"model": Path(folder)}))
    questions = croc_like([partial(noise_jpeg, n) for n in range(images)])
    source = LoadedSource(loaded, runtime)
    ours = partial(source.run, questions, batch_pairs)
    yield from _counts(loaded, runtime, questions)
    if device != "cpu":
        yield from _rate(ours, len(questions.pairs))
        return
    tower = _tower(source, model, questions, batch_pairs // 2)
    sides: dict[str, Callable[[], object]] = {"ours": ours, "image tower": tower}
    peers = _peers(model, processor, torchmetrics)
    first = list(questions.images)[:peer_images]
    pairs = {
        pair.pair_id: (questions.images[pair.image_id](), questions.texts[pair.text_id])
        for pair in questions.pairs
        if pair.image_id in first
    }
    own = ours().overall[list(pairs)].to_numpy(dtype=np.float64)
    for name, (loop, _) in peers.items():
        wanted = np.maximum(own, 0) if name == "CROC" else own
        apart = float(np.abs(wanted - loop(list(pairs.values()))).max())
        yield Figure(f"cosines apart from {name}", apart, at_most=1e-5)
        sides[name] = partial(loop, list(pairs.values()))
    times = interleaved(sides, rounds)
    for name in sides:
        times = times.scaled(name, 1 / len(pairs if name in peers else questions.pairs))
    yield times.compared("a pair, of the image tower alone", "ours", "image tower", at_most=1.4)
    for name, (_, at_least) in peers.items():
        yield times.compared(f"a pair, {name}", name, "ours", at_least=at_least)


def random_clip(folder: Path) -> tuple[CLIPModel, Any]:
    """A CLIP ViT-B/32 with open_clip's vocabulary, saved as checkpoints are."""
    torch.manual_seed(0)
    plain = SimpleTokenizer()
    names = {plain.sot_token_id: "<|startoftext|>", plain.eot_token_id: "<|endoftext|>"}
    vocabulary = {names.get(number, piece): number for piece, number in plain.encoder.items()}
    tokenizer = CLIPTokenizer(vocab=vocabulary, merges=list(plain.bpe_ranks))
    text = {"eos_token_id": plain.eot_token_id, "bos_token_id": plain.sot_token_id}
    model = CLIPModel(CLIPConfig(text_config=text, projection_dim=512)).eval()
    processor = CLIPProcessor(CLIPImageProcessorPil(), tokenizer)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return model, processor


def _counts(loaded: Loaded, runtime: Runtime, questions: Questions) -> Iterator[Figure]:
    """Nothing is decoded or encoded twice, nor at all where embeddings are kept."""
    with tempfile.TemporaryDirectory() as folder:
        source = LoadedSource(loaded, runtime, Path(folder))
        first, second = source.run(questions), source.run(questions)
    for what, found, again, wanted in (
        ("decoded", first.cost.images_decoded, second.cost.images_decoded, len(questions.images)),
        ("encoded", first.cost.images_encoded, second.cost.images_encoded, len(questions.images)),
        ("texts", first.cost.texts_encoded, second.cost.texts_encoded, len(questions.texts)),
    ):
        yield Figure(f"{what}, of those there are", found, at_least=wanted, at_most=wanted)
        yield Figure(f"{what} in a second run", again, at_most=0)
    same = first.overall.equals(second.overall)
    yield Figure("same bits in the second run", float(same), at_least=1)


def _rate(run: Callable[[], object], n_pairs: int) -> Iterator[Figure]:
    """Pairs a second of time that passes, and the share of it that the GPU is busy."""
    run()
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    start = time.perf_counter()
    try:
        sampler = subprocess.Popen([*command, "-lms", "100"], stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sampler = None
    run()
    yield Figure("pairs", n_pairs / (time.perf_counter() - start), "/s")
    if sampler is not None:
        sampler.terminate()
        told, _ = sampler.communicate()
        shares = [float(word) / 100 for word in told.split() if word.isdigit()]
        if shares:
            yield Figure("GPU busy", mean(shares), details=f"{len(shares)} samples")


def _tower(
    source: LoadedSource, model: Any, questions: Questions, size: int
) -> Callable[[], object]:
    """The image tower on pixels that are ready, in batches of as many images as ours."""
    client = ModelClient(source.loaded, source.runtime)
    prepared = [client.ready(image()).content.prepared for image in questions.images.values()]
    batches = [torch.stack(prepared[i : i + size]) for i in range(0, len(prepared), size)]

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model.get_image_features(batch.float())

    return run


def _peers(
    model: CLIPModel, processor: Any, torchmetrics: Path | None
) -> dict[str, tuple[Loop, float]]:
    """The loops that can be run here, and how much faster ours has to be."""

    def features(kind: str, *inputs: torch.Tensor) -> torch.Tensor:
        vectors = getattr(model, f"get_{kind}_features")(*inputs).pooler_output
        return torch.nn.functional.normalize(vectors, dim=-1)

    def t2i_score_score(pairs: Sequence[ImageText]) -> list[float]:
        scores = []
        for data, text in pairs:
            inputs = processor(text=[text], images=_opened(data), return_tensors="pt", padding=True)
            logit = model(**inputs).logits_per_image
            scores.append(float(logit.item() / model.logit_scale.exp().item()))
        return scores

    def t2v_metrics(pairs: Sequence[ImageText]) -> list[float]:
        scores: list[float] = []
        for start in range(0, len(pairs), 16):
            batch = pairs[start : start + 16]
            pixels = processor(images=[_opened(d) for d, _ in batch], return_tensors="pt")
            words = processor.tokenizer(
                [text for _, text in batch],
                return_tensors="pt",
                padding="max_length",
                max_length=77,
            )
            with torch.no_grad():
                images = features("image", pixels["pixel_values"])
                texts = features("text", words["input_ids"], words["attention_mask"])
            scores += (images * texts).sum(-1).tolist()
        return scores

    found: dict[str, tuple[Loop, float]] = {
        "T2IScoreScore": (t2i_score_score, 2.5),
        "t2v_metrics": (t2v_metrics, 2.4),
    }
    if torchmetrics is not None:
        sys.path.append(str(torchmetrics))
    if find_spec("torchmetrics") is not None:
        layout = _FeaturesAsTensors(model)
        metric = import_module("torchmetrics.multimodal").CLIPScore(lambda: (layout, processor))

        def croc(pairs: Sequence[ImageText]) -> list[float]:
            with torch.no_grad():
                return [float(metric(pil_to_tensor(_opened(d)), text)) / 100 for d, text in pairs]

        found["CROC"] = (croc, 5.0)
    return found


class _FeaturesAsTensors(torch.nn.Module):
    """What torchmetrics expects of a model, and transformers gave until its version 5."""

    def __init__(self, model: CLIPModel) -> None:
        super().__init__()
        self.inner = model
        self.config = model.config

    def get_image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.inner.get_image_features(pixels).pooler_output
        return features

    def get_text_features(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.inner.get_text_features(ids, mask).pooler_output
        return features


def _opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


class _Nothing:
    """The cheapest score that still depends on the pair."""

    def score(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> list[float]:
        """Number of letters by width."""
        return [len(p) / image.width for image, p in zip(images, prompts, strict=True)]


def overhead(images: int = 600, rounds: int = 3) -> Iterator[Figure]:
    """What the engine adds to a pair of small images, in decodings of a JPEG of 512 pixels."""
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16), "teal").save(buffer, "JPEG")
    questions = croc_like([partial(numbered, buffer.getvalue(), n) for n in range(images)])
    source, large = LoadedSource(Loaded(_Nothing(), {})), noise_jpeg(0)
    found = {str(pair): float(score) for pair, score in source.run(questions).overall.items()}
    yield Figure("same scores", float(found == _bare(questions)), at_least=1)
    n_pairs = len(questions.pairs)
    sides: dict[str, Callable[[], object]] = {
        "engine": lambda: source.run(questions),
        "bare loop": lambda: _bare(questions),
        "decoding": lambda: [decode(large) for _ in range(20)],
    }
    times = interleaved(sides, rounds).scaled("decoding", 1 / 20)
    times = times.scaled("engine", 1 / n_pairs).scaled("bare loop", 1 / n_pairs)
    added = times.of("engine") - times.of("bare loop")
    details = f"microseconds: added {1e6 * added:.1f}, decoding {1e6 * times.of('decoding'):.1f}"
    yield Figure(
        "added to a pair", added / times.of("decoding"), "x", at_most=0.15, details=details
    )


def _bare(questions: Questions) -> dict[str, float]:
    """The same scores by the shortest loop."""
    scorer, by_image = _Nothing(), dict[str, list[Any]]()
    for pair in questions.pairs:
        by_image.setdefault(pair.image_id, []).append(pair)
    scores: dict[str, float] = {}
    for image_id, pairs in by_image.items():
        image = decode(questions.images[image_id]()).image
        found = scorer.score([image] * len(pairs), [questions.texts[p.text_id] for p in pairs])
        scores |= dict(zip((pair.pair_id for pair in pairs), found, strict=True))
    return scores


ImageBackend = Literal["pil", "torchvision"]


def resized_and_cropped(
    image: Image.Image, size: int, backend: ImageBackend = "pil"
) -> torch.Tensor:
    """The middle of an image whose shorter side was made `size` pixels long, bicubic.

    Returns: Shape (3, size, size), uint8.
    """
    whole = image if backend == "pil" else _bytes_of(image)
    small = transforms.resize(whole, [size], InterpolationMode.BICUBIC, antialias=True)
    square = transforms.center_crop(small, [size, size])
    return (_bytes_of(square) if backend == "pil" else square).contiguous()


def normalised(pixels: torch.Tensor, mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
    """Bytes as a model's input, (x / 255 - mean) / std by channel.

    `pixels`: shape (n, 3, h, w), uint8.
    Returns: Shape (n, 3, h, w), float32.
    """
    shape = (1, len(mean), 1, 1)
    centre = torch.tensor(mean, device=pixels.device).view(shape)
    spread = torch.tensor(std, device=pixels.device).view(shape)
    return pixels.float().div_(255).sub_(centre).div_(spread)


def _bytes_of(image: Image.Image) -> torch.Tensor:
    """Shape (3, h, w), uint8, channels last in memory, as the fast kernels want them."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


class _SmallDual:
    """A patch embedding, averaged; texts are averaged bytes. As wide as a ViT-B/32's vectors."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.patches = torch.nn.Conv2d(3, 512, 32, 32)
        self.bytes = torch.nn.Embedding(256, 512)

    def prepare(self, image: Image.Image) -> torch.Tensor:
        """Bytes of pixels."""
        return resized_and_cropped(image, SIDE, "torchvision")

    def encode_images(self, images: Sequence[torch.Tensor]) -> Vectors:
        """See `DualEncoder`."""
        pixels = normalised(torch.stack(list(images)), [0.5] * 3, [0.25] * 3)
        vectors: Vectors = self.patches(pixels).flatten(2).mean(-1).numpy()
        return vectors

    def encode_texts(self, prompts: Sequence[str]) -> Vectors:
        """See `DualEncoder`."""
        rows = [self.bytes(torch.tensor(list(prompt.encode()))).mean(0) for prompt in prompts]
        vectors: Vectors = torch.stack(rows).numpy()
        return vectors

    def similarity(self, image_vectors: Vectors, text_vectors: Vectors) -> NDArray[np.float64]:
        """See `DualEncoder`."""
        products: NDArray[np.float64] = (image_vectors * text_vectors).sum(-1, dtype=np.float64)
        return products

    def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
        """See `Scorer`."""
        scores: list[float] = self.similarity(
            self.encode_images(images), self.encode_texts(prompts)
        ).tolist()
        return scores


def scoring_memory(images: int = 800) -> Iterator[Figure]:
    """Peaks at n and at 4 n images of 512 pixels, and at 4 n from kept embeddings.

    Images are made as they are read. Scores and ids stay in memory, images and vectors must not;
    threads' allocators hold back some more, so that the share of an image differs from run to run,
    and is too large where there are few.
    """
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as four:
        n, before, _ = alone(_added_by, images, Path(one))
        four_n, before_four, _ = alone(_added_by, 4 * images, Path(four))
        kept, _, decoded = alone(_added_by, 4 * images, Path(four))
    details = f"MiB added: n {n / MIB:.0f}, 4 n {four_n / MIB:.0f}, kept {kept / MIB:.0f}"
    peaks = (before_four + four_n) / (before + n)
    yield Figure("peak at 4 n, of that at n", peaks, "x", at_most=1.1, details=details)
    share = (four_n - n) / (3 * images) / len(noise_jpeg(0))
    yield Figure("a further image, of its bytes", share, "x", at_most=0.25)
    yield Figure("kept embeddings, of making them", kept / four_n, "x", at_most=1)
    yield Figure("decoded where embeddings are kept", decoded, at_most=0)


def _added_by(n_images: int, folder: Path) -> tuple[int, int, int]:
    """Bytes that scoring adds to the peak, the peak before, and images decoded."""
    torch.set_num_threads(1)

    def run(count: int, kept: Path) -> int:
        questions = croc_like([partial(numbered, noise_jpeg(0), n) for n in range(count)])
        source = LoadedSource(Loaded(_SmallDual(), {}), kept=kept)
        return source.run(questions).cost.images_decoded

    # Whatever is allocated once, whichever the number of images, is there before.
    run(8, folder / "warm")
    before = peak_rss_bytes()
    decoded = run(n_images, folder / "kept")
    return memory_bytes("VmHWM") - before, before, decoded


def preprocessing(images: int = 8, rounds: int = 5) -> Iterator[Figure]:
    """JPEGs of 512 pixels to 224: torchvision's resampling of bytes, and Pillow's exactly."""
    torch.set_num_threads(1)
    jpegs = [noise_jpeg(seed) for seed in range(images)]
    transform = image_transform_v2(PreprocessCfg(size=SIDE), is_train=False)

    def open_clips() -> torch.Tensor:
        return torch.stack([transform(Image.open(io.BytesIO(jpeg))) for jpeg in jpegs])

    def ours(backend: ImageBackend) -> torch.Tensor:
        return torch.stack(
            [resized_and_cropped(decode(jpeg).image, SIDE, backend) for jpeg in jpegs]
        )

    fast, exact = ours("torchvision"), ours("pil")
    apart = float((fast.int() - exact.int()).abs().max())
    yield Figure("fast, grey levels apart from Pillow's", apart, at_most=1)
    same = torch.equal(normalised(exact, MEAN, STD), open_clips())
    yield Figure("exact, same bits as open_clip's", float(same), at_least=1)
    sides: dict[str, Callable[[], object]] = {
        "open_clip": open_clips,
        "fast": lambda: ours("torchvision"),
        "fast, normalised": lambda: normalised(ours("torchvision"), MEAN, STD),
        "exact": lambda: ours("pil"),
    }
    times = interleaved(sides, rounds)
    yield times.compared("fast, of open_clip's", "fast", "open_clip", at_most=0.7)
    yield times.compared("fast and normalised", "fast, normalised", "open_clip")
    yield times.compared("exact", "exact", "open_clip")
