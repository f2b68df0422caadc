"""The client of the tests of Ray with a torch model, whose sums depend on batch and threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tests.evaluator.scoring.ray_clients import WIDTH, AccidentClient, AccidentSource


@dataclass(frozen=True)
class TorchSource(AccidentSource):
    """Opens a torch model with fixed weights."""

    def client(self) -> AccidentClient:
        torch.manual_seed(1)
        return TorchClient(self)


class TorchClient(AccidentClient):
    """A network of two layers."""

    def __init__(self, source: AccidentSource) -> None:
        super().__init__(source)
        self._model = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 1)
        ).eval()

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "threads": str(torch.get_num_threads())}

    @torch.inference_mode()
    def scores(self, rows: NDArray[np.float32]) -> list[float]:
        found: list[float] = self._model(torch.from_numpy(rows)).squeeze(1).tolist()
        return found
