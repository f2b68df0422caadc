"""A workload like CROC's with a ViT-B/32: our engine against published loops and the bare model.

    python -m benchmarks_perf.scoring_throughput [--torchmetrics FOLDER] [--images 20] \
        [--peer-images 4] [--rounds 5]

Random weights; JPEGs of 512 pixels, two texts on each image, float32. Ours is `run_plan` with
`ModelAsker` and the dual encoder family, reading, decoding, preprocessing and shards included;
loading the model is not. The peers (`scoring_peers`) go through the pairs of the first images, for
what they cost per pair does not depend on how many there are. CPU seconds per pair on one thread,
sides interleaved in rotated order, median of per-round ratios. Gates:

- ours is at least 5 / 2.5 / 2.4 times as fast as CROC's wrapper / T2IScoreScore / t2v_metrics,
  and all cosines agree to 1e-5;
- ours takes at most 1.4 times the image tower alone on pixels that are ready, in batches of the
  same size;
- counts, without a clock: images decoded = rows of the image tower = images, rows of the text
  tower = texts; a second run from kept embeddings has none of them, and the same scores.

Where torchmetrics is not installed, its loop is left out, and said to be.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import open_clip  # type: ignore[import-untyped]
import torch
from open_clip.transform import PreprocessCfg, image_transform_v2  # type: ignore[import-untyped]
from safetensors.torch import save_file

from benchmarks.schema import Questions
from benchmarks_perf.engine_overhead import LoadedSource
from benchmarks_perf.made_up_images import croc_like, noise_jpeg, on_one_thread
from benchmarks_perf.scoring_peers import HOW_TO_INSTALL, ImageText, Loop, Peers
from evaluator.scorers.family import Loaded
from evaluator.scorers.registry import load_scorer
from evaluator.scorers.row import Checkpoint, ScorerRow
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.column import ScoreColumn
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.scoring.in_process.asker import ModelAsker
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.shards import ShardFolder

ARCHITECTURE = "ViT-B-32"
OURS, RAW = "ours, engine and all", "image tower alone"
CROC, TS2, T2V = "CROC's wrapper", "T2IScoreScore", "t2v_metrics"
FASTER = {CROC: 5.0, TS2: 2.5, T2V: 2.4}
RAW_GATE, SAME = 1.4, 1e-5
ROW = ScorerRow(
    name="vit-b-32",
    family="dual_encoder",
    title="ViT-B/32 with random weights",
    summary="To take times.",
    formula="cosine",
    source="open_clip",
    checkpoints={"model": Checkpoint(id="nobody/random")},
    options={"formula": "cos", "backend": "open_clip", "architecture": ARCHITECTURE},
)


@dataclass(frozen=True)
class Site:
    """The model in our family and as the peers have it, and what is asked."""

    loaded: Loaded
    peers: Peers
    questions: Questions
    batch_pairs: int

    def ours(self, kept: Path | None = None) -> ScoreColumn:
        """A whole run from an empty folder of shards."""
        source = LoadedSource(self.loaded, Runtime(), kept)
        with tempfile.TemporaryDirectory() as folder:
            return run_plan(
                ScoringPlan.of(self.questions, b"seed"),
                self.questions,
                source,
                ShardFolder(Path(folder), source.fingerprint),
                options=EngineOptions(batch_pairs=self.batch_pairs),
            )

    def pairs(self, n_images: int) -> dict[str, ImageText]:
        """The pairs of the first images, by id."""
        questions = self.questions
        first = list(questions.images)[:n_images]
        return {
            pair.pair_id: (questions.images[pair.image_id](), questions.texts[pair.text_id])
            for pair in questions.pairs
            if pair.image_id in first
        }


def load(n_images: int, folder: Path, batch_pairs: int) -> Site:
    """A random model, saved once and loaded as any checkpoint is."""
    torch.manual_seed(0)
    model: Any = open_clip.create_model(ARCHITECTURE)
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    transform = image_transform_v2(PreprocessCfg(**model.visual.preprocess_cfg), is_train=False)
    loaded = load_scorer(ROW, Runtime(folders={"model": folder}))
    images = [(lambda n=n: noise_jpeg(n)) for n in range(n_images)]
    return Site(loaded, Peers.of(model, transform), croc_like(images), batch_pairs)


def raw(site: Site) -> Callable[[], None]:
    """The image tower on pixels that are ready, in batches of as many images as ours."""
    model = site.peers.model
    asker = ModelAsker(site.loaded, Runtime())
    prepared = [asker.ready(image()).content.prepared for image in site.questions.images.values()]
    size = max(1, site.batch_pairs // 2)
    batches = [torch.stack(prepared[i : i + size]) for i in range(0, len(prepared), size)]

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model.encode_image(batch)

    return run


def counts_hold(site: Site) -> bool:
    """Print what was counted; whether nothing was done twice."""
    n_images, n_texts = len(site.questions.images), len(site.questions.texts)
    with tempfile.TemporaryDirectory() as folder:
        columns = [site.ours(Path(folder)) for _ in range(2)]
    wanted = [(n_images, n_images, n_texts), (0, 0, 0)]
    found = [(c.cost.images_decoded, c.cost.images_encoded, c.cost.texts_encoded) for c in columns]
    same = columns[0].overall.equals(columns[1].overall)
    print(f"{n_images} images, {n_texts} texts: decoded, image rows, text rows {found[0]}")
    print(f"second run, from kept embeddings: {found[1]}, same bits: {'yes' if same else 'NO'}")
    return found == wanted and same


def loops(site: Site, torchmetrics: Path | None) -> dict[str, Loop]:
    """The peers that can be run here."""
    found: dict[str, Loop] = {TS2: site.peers.ts2, T2V: site.peers.t2v}
    croc = site.peers.croc_wrapper(torchmetrics)
    if croc is None:
        print(f"{CROC} is left out: {HOW_TO_INSTALL}")
        return found
    return {CROC: croc, **found}


def agree(site: Site, peers: dict[str, Loop], pairs: dict[str, ImageText]) -> bool:
    """Print how far the cosines are apart; whether that is no more than rounding."""
    ours = site.ours().overall[list(pairs)].to_numpy(dtype=np.float64)
    apart = {}
    for name, loop in peers.items():
        wanted = np.maximum(ours, 0) if name == CROC else ours
        apart[name] = float(np.abs(wanted - loop(list(pairs.values()))).max())
    told = ", ".join(f"{name} {value:.0e}" for name, value in apart.items())
    print(f"{(ours > 0).sum()} of {ours.size} cosines are above 0; largest differences: {told}")
    return max(apart.values()) <= SAME


def compare(site: Site, n_peer_images: int, rounds: int, torchmetrics: Path | None) -> bool:
    """Print the table; whether all gates are met."""
    peers, pairs = loops(site, torchmetrics), site.pairs(n_peer_images)
    counted, same = counts_hold(site), agree(site, peers, pairs)
    n_ours, n_peers = len(site.questions.pairs), len(pairs)
    tower = raw(site)
    cases: dict[str, tuple[Callable[[], object], int]] = {
        OURS: (site.ours, n_ours),
        RAW: (tower, n_ours),
    }
    for name, loop in peers.items():
        cases[name] = partial(loop, list(pairs.values())), n_peers
    times = _timed(cases, rounds)
    print(f"CPU seconds per pair, one thread, median of {rounds} rounds")
    met = [counted, same]
    for name, seconds in times.items():
        ratio = median(t / ours for t, ours in zip(seconds, times[OURS], strict=True))
        print(f"{name:22}{median(seconds):9.4f}{ratio:8.2f} times ours{_gate(name, met, ratio)}")
    share = median(ours / t for t, ours in zip(times[RAW], times[OURS], strict=True))
    met.append(share <= RAW_GATE)
    print(f"ours at most {RAW_GATE} of the image tower: {_yes(met[-1])} ({share:.2f})")
    print(f"counts: {_yes(counted)}; cosines agree to {SAME}: {_yes(same)}")
    return all(met)


def _gate(name: str, met: list[bool], ratio: float) -> str:
    if name not in FASTER:
        return ""
    met.append(ratio >= FASTER[name])
    return f"   at least {FASTER[name]}: {_yes(met[-1])}"


def _timed(
    cases: dict[str, tuple[Callable[[], object], int]], rounds: int
) -> dict[str, list[float]]:
    names = list(cases)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            run, n_pairs = cases[name]
            start = time.process_time()
            run()
            times[name].append((time.process_time() - start) / n_pairs)
    return times


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def main() -> int:
    """Print the table; 0 where all gates are met."""
    on_one_thread("benchmarks_perf.scoring_throughput")
    parser = argparse.ArgumentParser(description="A CROC-like workload against peers")
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--peer-images", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-pairs", type=int, default=64)
    parser.add_argument("--torchmetrics", type=Path, help="folder where it was installed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        site = load(options.images, Path(folder), options.batch_pairs)
    met = compare(site, options.peer_images, options.rounds, options.torchmetrics)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
