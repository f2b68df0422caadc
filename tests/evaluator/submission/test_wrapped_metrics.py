"""Classes written for T2IScoreScore and for CROC run as they are, behind the adapters of `init`."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from evaluator.__main__ import command_line
from evaluator.isolation.job import Job
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess
from evaluator.templates.wrapped.picture_files import PictureFiles

LIMITS = Limits(start_s=60.0, batch_s=60.0, job_s=120.0)
PAIRS = ((0, "dark"), (1, "bright"), (0, "bright"), (1, "dark"))
EXPECTED = [0.9, 0.9, 0.1, 0.1]
"""Brightness 25.5 and 229.5 of 255: how dark, or bright, each picture is."""

TS2_WITH_PICTURES = '''
    import logging
    from typing import Optional, Union
    from pathlib import Path
    from PIL import Image
    from T2IMetrics.base import T2IMetric

    logger = logging.getLogger(__name__)

    class Brightness(T2IMetric):
        """Takes a path or a picture, as its base class allows."""

        def __init__(self, device: Optional[str] = None, **kwargs):
            super().__init__(device=device)
            assert self.device == "cpu"

        def calculate_score(self, image: Union[str, Path, Image.Image], prompt: str) -> float:
            light = sum(self._load_image(image).convert("L").getdata()) / 255 / (8 * 8)
            return light if prompt == "bright" else 1 - light
'''
TS2_WITH_A_MODEL = '''
    from .base import CorrelationMetric

    class Logits:
        def __init__(self, value): self.logits_per_image = self; self.value = value
        def item(self): return self.value

    class Inputs(dict):
        def to(self, device): return self

    class Brightness(CorrelationMetric):
        """Has a processor and a model, and leaves the rest to its base class."""

        def __init__(self, device=None):
            super().__init__(device)
            self.processor = lambda text, images, return_tensors, padding: Inputs(
                text=text, light=sum(images.convert("L").getdata()) / 255 / 64)
            self.model = lambda text, light: Logits(light if text == "bright" else 1 - light)
'''
TS2_WITH_FILES = '''
    import cv2
    from T2IMetrics.correlation import CorrelationMetric

    class Brightness(CorrelationMetric):
        """Opens files itself, and knows nothing of devices."""

        def __init__(self):
            self.kept = {}

        def calculate_score(self, image, prompt):
            if image not in self.kept:
                self.kept[image] = cv2.imread(image).mean() / 255
            return self.kept[image] if prompt == "bright" else 1 - self.kept[image]
'''
CROC_IN_BATCHES = """
    from PIL import Image
    import numpy as np
    import torch
    import tqdm
    from vmen.metrics.BaseMetric import BaseMetric
    from vmen.project_root import join_with_root

    class Brightness(BaseMetric):
        def __init__(self, batch_size=3, device="cuda"):
            super().__init__()
            self.batch_size = batch_size
            self.device = torch.device(device)

        def __call__(self, caption, image_path):
            if type(caption) == str:
                return self([caption], [image_path])[0]
            scores = []
            for i in tqdm.tqdm(range(0, len(caption), self.batch_size)):
                imgs = [Image.open(p) for p in image_path[i : i + self.batch_size]]
                light = torch.tensor(np.stack([np.asarray(im.convert("L")) for im in imgs]))
                light = light.float().to(self.device).mean(dim=(1, 2)) / 255
                for value, text in zip(light, caption[i : i + self.batch_size]):
                    scores.append(value if text == "bright" else 1 - value)
            return torch.stack(scores)

        def get_state(self):
            return f"batch_size={self.batch_size}"
"""
CROC_ONE_BY_ONE = """
    import os
    from PIL import Image
    from metrics.BaseMetric import BaseMetric

    class Brightness(BaseMetric):
        def __call__(self, caption, path):
            assert isinstance(caption, str) and os.path.isfile(path)
            light = sum(Image.open(path).convert("L").getdata()) / 255 / 64
            return light if caption == "bright" else 1 - light

        def get_state(self):
            return ""
"""


def _pictures() -> list[bytes]:
    found = []
    for light in (25, 230):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 8), (light, light, light)).save(buffer, "PNG")
        found.append(buffer.getvalue())
    return found


def _scores(
    tmp_path: Path, kind: str, source: str, change: tuple[str, str] = ("", "")
) -> Sequence[float]:
    """Scores of the wrapped class, in a process of its own, as a worker asks it."""
    written = tmp_path / "brightness.py"
    written.write_text(textwrap.dedent(source))
    folder = tmp_path / "brightness"
    words = ["init", kind, str(folder), "--from", f"{written}:Brightness"]
    done = CliRunner().invoke(command_line(), words)
    assert done.exit_code == 0, done.output
    copied = list(folder.rglob("brightness.py"))
    assert [p.read_bytes() for p in copied] == [written.read_bytes()]
    adapter = folder / "scorer.py"
    assert change[0] in adapter.read_text()
    adapter.write_text(adapter.read_text().replace(*change) if change[0] else adapter.read_text())
    with PlainProcess().start(Job(folder, limits=LIMITS)) as box:
        first = list(box.score(_pictures(), PAIRS))
        assert list(box.score(_pictures(), PAIRS)) == first
        return first


@pytest.mark.parametrize("source", [TS2_WITH_PICTURES, TS2_WITH_A_MODEL])
def test_a_metric_of_ts2_is_handed_pictures(source: str, tmp_path: Path) -> None:
    assert _scores(tmp_path, "ts2", source) == pytest.approx(EXPECTED, abs=0.01)


def test_a_metric_of_ts2_that_opens_files_is_handed_files(tmp_path: Path) -> None:
    change = ('IMAGES_AS = "pil"', 'IMAGES_AS = "path"')
    assert _scores(tmp_path, "ts2", TS2_WITH_FILES, change) == pytest.approx(EXPECTED, abs=0.01)


@pytest.mark.slow
def test_a_metric_of_croc_is_handed_lists_of_files(tmp_path: Path) -> None:
    assert _scores(tmp_path, "croc", CROC_IN_BATCHES) == pytest.approx(EXPECTED, abs=0.01)


def test_a_metric_of_croc_that_takes_one_pair_is_handed_one(tmp_path: Path) -> None:
    change = ("IN_BATCHES = True", "IN_BATCHES = False")
    assert _scores(tmp_path, "croc", CROC_ONE_BY_ONE, change) == pytest.approx(EXPECTED, abs=0.01)


def test_each_picture_is_written_once_and_all_are_removed() -> None:
    red, blue = (Image.new("RGB", (4, 4), name) for name in ("red", "blue"))
    with PictureFiles() as files:
        paths = files.paths([red, blue, red, red.copy()])
        assert paths[0] == paths[2] == paths[3] != paths[1]
        folder = Path(paths[0]).parent
        assert len(list(folder.iterdir())) == 2
        with Image.open(paths[1]) as seen:
            assert seen.getpixel((0, 0)) == (0, 0, 255)
    assert not folder.exists()
    with PictureFiles() as again:
        assert Path(again.paths([red])[0]).name == Path(paths[0]).name
