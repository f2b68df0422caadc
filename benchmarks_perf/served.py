"""`serve`: a metric that several clients ask over HTTP, against the same metric called directly."""

from __future__ import annotations

import base64
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path

import httpx
import numpy as np
import torch
import uvicorn

from benchmarks_perf.engine import random_clip
from benchmarks_perf.made_up import noise_jpeg
from benchmarks_perf.measuring import Figure, interleaved
from evaluator.metric import Metric, load_metric
from evaluator.metric_service import metric_service

ImageText = tuple[bytes, str]


def service(
    *, pairs: int = 64, of_a_request: int = 8, clients: int = 8, rounds: int = 3
) -> Iterator[Figure]:
    """A ViT-B/32 over JPEGs of 512 pixels: seconds that pass, with encoding and sending."""
    torch.set_num_threads(1)
    asked = [(noise_jpeg(n), f"picture number {n}") for n in range(pairs)]
    with tempfile.TemporaryDirectory() as folder:
        random_clip(Path(folder))
        metric = load_metric("clipscore-hessel", checkpoints={"model": folder}, offline=True)
    direct = partial(_direct, metric, asked)
    with _served(metric) as address, ThreadPoolExecutor(clients) as pool:
        requests = [asked[n : n + of_a_request] for n in range(0, pairs, of_a_request)]
        over_http = partial(_over_http, address, requests, pool)
        apart = float(np.abs(np.subtract(over_http(), direct())).max())
        yield Figure("scores apart", apart, at_most=1e-5)
        times = interleaved({"HTTP": over_http, "direct": direct}, rounds, time.perf_counter)
    yield Figure("pairs over HTTP", pairs / times.of("HTTP"), "/s")
    yield times.compared("a pair over HTTP, of one asked directly", "HTTP", "direct", at_most=1.5)


def _direct(metric: Metric, asked: Sequence[ImageText]) -> list[float]:
    images = [partial(bytes, image) for image, _ in asked]
    verdicts = metric.verdicts(images, [(n, text) for n, (_, text) in enumerate(asked)])
    return [verdict.score for verdict in verdicts]


def _over_http(
    address: str, requests: Sequence[Sequence[ImageText]], pool: ThreadPoolExecutor
) -> list[float]:
    with httpx.Client(timeout=300, trust_env=False) as client:
        return list(chain.from_iterable(pool.map(partial(_answer, client, address), requests)))


def _answer(client: httpx.Client, address: str, pairs: Sequence[ImageText]) -> list[float]:
    images = [base64.b64encode(image).decode() for image, _ in pairs]
    body = {"images": images, "prompts": [text for _, text in pairs]}
    reply = client.post(f"{address}/score", json=body)
    scores: list[float] = reply.raise_for_status().json()["scores"]
    return scores


@contextmanager
def _served(metric: Metric) -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(metric_service(metric), log_level="error"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
