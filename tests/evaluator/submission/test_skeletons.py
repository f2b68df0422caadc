"""Templates of `init`: known while nobody has changed them, and what is put into them runs."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from evaluator.__main__ import command_line
from evaluator.bundled import bundled_modules
from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.job import Job, Limits, ModelFiles
from evaluator.submission.archives.archive import taken_in
from evaluator.submission.templates import (
    ClassFile,
    SkeletonKind,
    module_files,
    template_notes,
    template_of,
)
from evaluator.submission.validate import examine_source, validated_source
from evaluator.templates.wrapped.picture_files import PictureFiles
from leaderboard.models.grid import ranked_metrics
from leaderboard.publication.snapshot import read_snapshot
from tests.evaluator.isolation.boxes import png
from tests.evaluator.scorers.tiny_models import blip2_t5, qwen2_vl, saved, t5_tokenizer
from tests.evaluator.submission.archives import folder_of
from tests.kit.toy import Toy
from tests.kit.worker import ADA, Rig

MODULES = [kind for kind in SkeletonKind if kind is not SkeletonKind.GENERATIONS]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LIMITS = Limits(start_s=240.0, batch_s=240.0, job_s=280.0)
Files = Mapping[str, bytes]


def found_in(folder: Path, files: Files) -> str:
    with taken_in(folder_of(folder, files)) as content:
        return template_of(content)


def sources(change: Callable[[bytes], bytes]) -> Callable[[Files], Files]:
    return lambda files: {n: change(own) if n.endswith(".py") else own for n, own in files.items()}


OTHER_NAME = b'name = "ours"\nversion = "7"\ndescription = "Quite another one."\n'
NOT_READ: dict[str, Callable[[Files], Files]] = {
    "unchanged": lambda files: files,
    "manifest": lambda files: {**files, "assay.toml": OTHER_NAME},
    "crlf": sources(lambda own: own.replace(b"\n", b"\r\n")),
    "bom": sources(lambda own: b"\xef\xbb\xbf" + own),
    "newlines at the end": sources(lambda own: own + b"\n\n" if own else own),
    "readme": lambda files: {**files, "README.md": b"Ours."},
    "no readme": lambda files: {name: own for name, own in files.items() if name != "README.md"},
    "other files": lambda files: {**files, "LICENSE": b"MIT", "data/words.txt": b"red"},
    "empty source": lambda files: {**files, "helpers/__init__.py": b""},
}


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("change", NOT_READ)
def test_what_no_code_reads_changes_nothing(
    kind: SkeletonKind, change: str, tmp_path: Path
) -> None:
    files = module_files(kind, "mine", model=f"me/model@{COMMIT}" if kind == "vlm" else "")
    assert found_in(tmp_path / "m", NOT_READ[change](files)) == kind


@pytest.mark.parametrize("kind", MODULES)
def test_one_other_source_makes_it_a_metric_of_its_own(kind: SkeletonKind, tmp_path: Path) -> None:
    files = module_files(kind, "mine")
    own: list[Files] = [{**files, "words.py": b"W = 1\n"}, {"assay.toml": files["assay.toml"]}]
    for name in [name for name, source in files.items() if name.endswith(".py") and source]:
        own.append({**files, name: files[name] + b"\nMORE = 1\n"})
        own.append({other: source for other, source in files.items() if other != name})
    if kind in {SkeletonKind.TS2, SkeletonKind.CROC}:
        wrapped = ClassFile(Path("mine.py"), b"class Mine: ...\n", "Mine", False, (), ())
        own.append(module_files(kind, "mine", wrapped=wrapped))
    assert {found_in(tmp_path / f"{n}", one) for n, one in enumerate(own)} == {""}


def test_no_bundled_metric_is_a_template() -> None:
    for folder in bundled_modules():
        with taken_in(folder) as content:
            assert template_of(content) == ""


@pytest.mark.parametrize(("more", "template"), [({}, "plain"), ({"more.py": b"MORE = 1"}, "")])
def test_check_door_record_and_boards_say_it_and_no_model_is_judged_by_a_template(
    more: Files, template: str, tmp_path: Path
) -> None:
    files = {**module_files(SkeletonKind.PLAIN, "grey"), **more}
    folder = folder_of(tmp_path / "m", files)
    notes = examine_source(folder, {"toy": Toy()}).notes
    assert notes[:-1] == template_notes(template) and bool(notes[:-1]) == bool(template)
    with validated_source(folder, {"toy": Toy()}) as module:
        assert module.template == template
    rig = Rig(tmp_path)
    accepted = rig.desk.submit_metric(rig.module(files), account=ADA)
    assert accepted.notes == template_notes(template)
    rig.worker().run_all()
    (status,) = rig.ledger.statuses()
    assert status.on_boards and status.submission.template == template
    snapshot = read_snapshot(rig.store.public)
    assert snapshot is not None
    assert [entry.template for entry in snapshot.entries.values()] == [template]
    assert bool(ranked_metrics(snapshot, [status])) is not bool(template)


# A vision-language model, tiny, from a folder like the Hub's -------------------------------------

PROMPTS = ["a cat", "two dogs under a red tree"]


def init(*words: object) -> None:
    done = CliRunner().invoke(command_line(), ["init", *map(str, words)])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    folder = tmp_path_factory.mktemp("models") / "models--me--tiny"
    for part in qwen2_vl():
        part.save_pretrained(folder / "snapshots" / COMMIT)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    return ModelFiles("me/tiny", COMMIT, folder)


@pytest.mark.slow
def test_a_vlm_runs_with_the_model_it_is_given(tmp_path: Path, model: ModelFiles) -> None:
    init("vlm", tmp_path / "m", "--model", f"me/tiny@{COMMIT}")
    images = [png("red", (32, 32)), png("blue", (32, 32))]
    pairs = [(0, PROMPTS[0]), (1, PROMPTS[0]), (0, PROMPTS[1])]
    with PlainProcess().start(Job(tmp_path / "m", limits=LIMITS, models=(model,))) as box:
        assert Capability.SCORE_TEXTS in box.capabilities
        together = box.score(images, pairs)
        alone = [box.score([images[i]], [(0, text)])[0] for i, text in pairs]
    assert np.all((together > 0) & (together < 1))
    assert len(set(together)) == 3
    assert together == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("models", [None, {}])
def test_a_vlm_says_how_to_name_a_model_where_none_is_named(models: dict[str, str] | None) -> None:
    from evaluator.templates.vlm.scorer import Scorer

    with pytest.raises(ValueError, match=r'models = \["owner/name@commit"\]'):
        Scorer(models=models)


def test_a_score_is_the_share_of_yes_after_the_question(model: ModelFiles) -> None:
    import torch

    from evaluator.templates.vlm.scorer import QUESTION, Scorer

    network, processor = qwen2_vl()
    image = Image.new("RGB", (32, 32), "red")
    asked = {"type": "text", "text": QUESTION.format(prompt=PROMPTS[1])}
    text = processor.apply_chat_template(
        [{"role": "user", "content": [{"type": "image"}, asked]}],
        add_generation_prompt=True,
        tokenize=False,
    )
    inputs = processor(text=[text], images=[image], return_tensors="pt")
    with torch.inference_mode():
        found = torch.softmax(network(**inputs).logits[0, -1].float(), dim=-1)
    tokens = processor.tokenizer.get_vocab()
    yes, no = (
        sum(float(found[tokens[w]]) for w in words if w in tokens)
        for words in (("Yes", "yes"), ("No", "no"))
    )
    assert yes and no
    scorer = Scorer(models={"me/tiny": str(model.folder / "snapshots" / COMMIT)})
    assert scorer.score([image], [PROMPTS[1]]) == pytest.approx([yes / (yes + no)], abs=1e-5)


@pytest.mark.parametrize(
    ("words", "without", "no"),
    [
        pytest.param("▁1", "", "No", id="a space before all answers"),
        pytest.param("▁1", "YyNn", "No", id="unknown answers"),
        pytest.param("▁Y", "", "Yet", id="one beginning"),
    ],
)
def test_a_vlm_whose_tokenizer_cannot_tell_the_answers_apart_is_refused(
    words: str, without: str, no: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluator.templates.vlm import scorer

    monkeypatch.setattr(scorer, "NO", (no,))
    folder = saved(tmp_path, *blip2_t5(tokenizer=t5_tokenizer(words, without=without)))
    with pytest.raises(ValueError, match="YES and NO"):
        scorer.Scorer(models={"me/tiny": str(folder)})


# Classes written for T2IScoreScore and for CROC run as they are, behind adapters ------------------

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


@pytest.mark.parametrize(
    ("kind", "source", "old", "new"),
    [
        ("ts2", TS2_WITH_PICTURES, "", ""),
        ("ts2", TS2_WITH_A_MODEL, "", ""),
        ("ts2", TS2_WITH_FILES, 'IMAGES_AS = "pil"', 'IMAGES_AS = "path"'),
        pytest.param("croc", CROC_IN_BATCHES, "", "", marks=pytest.mark.slow),
        ("croc", CROC_ONE_BY_ONE, "IN_BATCHES = True", "IN_BATCHES = False"),
    ],
    ids=["pictures", "a model", "files", "in batches", "one by one"],
)
def test_a_wrapped_class_scores(kind: str, source: str, old: str, new: str, tmp_path: Path) -> None:
    written, folder = tmp_path / "brightness.py", tmp_path / "brightness"
    written.write_text(textwrap.dedent(source))
    init(kind, folder, "--from", f"{written}:Brightness")
    copied = [path.read_bytes() for path in folder.rglob("brightness.py")]
    assert copied == [written.read_bytes()]
    adapter = (folder / "scorer.py").read_text()
    assert old in adapter
    (folder / "scorer.py").write_text(adapter.replace(old, new) if old else adapter)
    pictures = []
    for light in (25, 230):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 8), (light, light, light)).save(buffer, "PNG")
        pictures.append(buffer.getvalue())
    with PlainProcess().start(Job(folder, limits=LIMITS)) as box:
        first = list(box.score(pictures, PAIRS))
        assert list(box.score(pictures, PAIRS)) == first == pytest.approx(EXPECTED, abs=0.01)


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
