"""`load_metric`: what a program gives, gets, and is told."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import AssayError, PlatformError, SubmitterError
from evaluator import Metric, load_metric
from evaluator.bundled import FOLDER
from evaluator.scorers import fitting
from evaluator.scorers.registry import load_rows
from evaluator.scoring import engine
from evaluator.submission.templates import SkeletonKind, module_files
from tests.conftest import REPOSITORY
from tests.evaluator.scorers.tiny_models import pictures

NAME = "clipscore-hessel"
PROMPTS = ["two dogs", "a red cube", "two dogs"]


@pytest.fixture
def metric(clip: Path) -> Metric:
    return load_metric(NAME, checkpoints={"model": clip}, offline=True)


def refusal(code: str, *named: str) -> Any:
    def fits(error: AssayError) -> bool:
        return error.code == code and all(name in str(error) for name in named)

    return pytest.raises(AssayError, check=fits)


def test_importing_the_package_loads_none_of_it() -> None:
    heavy = "torch", "transformers", "pandas", "gradio", "evaluator.metric"
    code = f"import sys, evaluator; print(*(n for n in {heavy} if n in sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_each_image_is_scored_with_its_own_prompt_or_all_with_all(metric: Metric) -> None:
    images = pictures(3)
    scores = metric.score(images, PROMPTS)
    assert scores.shape == (3,) and scores.dtype == np.float64
    assert (metric.name, metric.low, metric.high, metric.higher_is_better) == (NAME, 0.0, 2.5, True)
    assert ((scores >= 0.0) & (scores <= 2.5)).all()
    crossed = metric.score(images, PROMPTS[:2], cross=True)
    assert crossed.shape == (3, 2)
    assert [crossed[0, 0], crossed[1, 1], crossed[2, 0]] == pytest.approx(scores, abs=1e-6)
    assert metric.score([], []).shape == (0,)
    assert metric.score([], PROMPTS, cross=True).shape == (0, 3)


def test_an_image_is_the_same_as_a_picture_a_path_or_an_array(
    metric: Metric, tmp_path: Path
) -> None:
    (picture,) = pictures(1)
    place = tmp_path / "one.png"
    picture.save(place)
    turned = picture.transpose(Image.Transpose.ROTATE_90)
    turned_place = tmp_path / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(turned_place, exif=exif, quality=100)
    given: list[Any] = [picture, place, str(place), np.asarray(picture), picture.convert("RGBA")]
    scores = metric.score(given, ["a dog"] * 5)
    assert scores == pytest.approx([scores[0]] * 5, abs=1e-6)
    with Image.open(turned_place) as opened:
        both = metric.score([turned_place, opened], ["a dog"] * 2)
        assert both[0] == pytest.approx(both[1], abs=1e-6)
        assert opened.getexif()[0x0112] == 6  # what was given stays as it is


def test_everything_wrong_with_images_is_said_at_once(metric: Metric, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.png"
    damaged.write_bytes(b"\x89PNG\r\n\x1a\n")
    floats = np.zeros((4, 4, 3), dtype=np.float32)
    first = np.zeros((3, 6, 6), dtype=np.uint8)
    images: list[Any] = [tmp_path / "gone.png", damaged, floats, first, None, pictures(1)[0]]
    told = ("gone.png", "damaged.png", "image 2", "image 3", "image 4: NoneType", "5 of 6")
    with refusal("image_unreadable", *told):
        metric.score(images, ["a dog"] * 6)


@pytest.mark.parametrize(
    ("code", "images", "prompts"),
    [
        ("lengths_differ", 1, ["a", "b"]),
        ("bad_prompts", 1, "a dog"),
        ("bad_prompts", 1, [7]),
        ("bad_prompts", 1, None),
        ("bad_prompts", 1, iter(["a dog"])),
    ],
)
def test_what_is_no_list_of_pairs_is_refused(
    metric: Metric, code: str, images: int, prompts: Any
) -> None:
    with refusal(code):
        metric.score(pictures(images), prompts)
    one: Any
    for one in (pictures(1)[0], np.asarray(pictures(1)[0]), "one.png", iter(pictures(1)), None):
        with refusal("bad_images"):
            metric.score(one, ["a dog"])
        with refusal("bad_images"):
            metric.score(one, ["a dog"], cross=True)


def test_a_closed_metric_says_so_and_what_torch_was_set_to_stays(clip: Path) -> None:
    import torch

    with load_metric(NAME, checkpoints={"model": clip}, offline=True) as metric:
        metric.score(pictures(1), ["a dog"])
        assert not torch.are_deterministic_algorithms_enabled()
    with refusal("metric_closed"):
        metric.score(pictures(1), ["a dog"])


def test_a_pair_without_a_score_is_nan_and_a_warning_says_why(
    metric: Metric, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_number(*_: object) -> Any:
        return np.array([0.5, np.nan])

    monkeypatch.setattr(type(metric._opened._loaded.scorer), "similarity", no_number)  # type: ignore[attr-defined]
    with pytest.warns(UserWarning, match="1 of 2 pairs"):
        scores = metric.score(pictures(2), ["a dog", "a cat"])
    assert np.isnan(scores).tolist() == [False, True]


def test_a_file_that_breaks_off_costs_its_own_score_alone(metric: Metric, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.jpg", tmp_path / "cut.jpg"
    pictures(1)[0].save(whole)
    cut.write_bytes(whole.read_bytes()[:-200])
    with pytest.warns(UserWarning, match="image 1 with 'a dog'.*damaged"):
        scores = metric.score([whole, cut, whole], ["a dog"] * 3)
    assert np.isnan(scores).tolist() == [False, True, False]


def test_files_are_read_and_decoded_once_when_it_is_their_turn(
    metric: Metric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / f"{n}.png" for n in range(5)]
    for place, picture in zip(places, pictures(5), strict=True):
        picture.save(place)
    whole = metric.score(places, ["a dog"] * 5)
    monkeypatch.setattr("evaluator.metric._BATCH_PAIRS", 2)
    reads: list[str] = []
    read, answered = Path.read_bytes, engine.answered
    monkeypatch.setattr(Path, "read_bytes", lambda one: reads.append(one.name) or read(one))  # type: ignore[func-returns-value]
    monkeypatch.setattr(
        "evaluator.metric.engine.answered",
        lambda *given: reads.append("asked") or answered(*given),  # type: ignore[func-returns-value]
    )
    assert metric.score(places, ["a dog"] * 5) == pytest.approx(whole, abs=1e-6)
    names = [place.name for place in places]
    assert reads == [*names[:2], "asked", *names[2:4], "asked", names[4], "asked"]


@pytest.mark.slow
@pytest.mark.isolation
def test_a_scoring_module_runs_in_its_sandbox_by_name_or_folder() -> None:
    with load_metric("colour-reader") as one, load_metric(FOLDER / "colour_reader") as other:
        images = pictures(2)
        scores = one.score(images, PROMPTS[:2])
        assert np.isfinite(scores).all()
        assert other.score(images, PROMPTS[:2]) == pytest.approx(scores)


@pytest.mark.slow
@pytest.mark.isolation
def test_a_module_that_compares_is_asked_in_both_orders(tmp_path: Path) -> None:
    with load_metric(written(tmp_path / "m", module_files(SkeletonKind.COMPARE, "mine"))) as metric:
        red, blue = (Image.new("RGB", (8, 8), colour) for colour in ("#de2e34", "#2c68d6"))
        margins = metric.compare(["red", "blue", "red"], [red, red, red], [blue, blue, red])
        assert margins.tolist() == [[1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]]
        with refusal("method_missing"):
            metric.score([red], ["red"])
        with refusal("lengths_differ"):
            metric.compare(["red"], [red], [blue, blue])
    with load_metric("colour-reader") as scores, refusal("method_missing"):
        scores.compare(["red"], [red], [blue])


@pytest.mark.slow
@pytest.mark.isolation
def test_one_output_of_a_module_is_scored_or_all_at_once(tmp_path: Path) -> None:
    place = written(tmp_path / "m", module_files(SkeletonKind.OUTPUTS, "mine"))
    red, blue = (Image.new("RGB", (8, 8), colour) for colour in ("#de2e34", "#2c68d6"))
    with load_metric(place, output="quality") as metric:
        assert (metric.name, metric.outputs) == ("mine-quality", ("alignment", "quality"))
        assert metric.score([red, blue], ["red", "red"]) == pytest.approx([0.0, 0.0])
        every = metric.score_outputs([red, blue], ["red"], cross=True)
        assert {name: one.shape for name, one in every.items()} == dict.fromkeys(
            metric.outputs, (2, 1)
        )
        assert every["alignment"].ravel().tolist() == [1.0, 0.0]
        verdicts = metric.verdicts([], [])
        assert verdicts == []
        with refusal("method_missing"):
            metric.compare(["red"], [red], [blue])
    with load_metric(place, output="alignment") as metric:
        assert metric.score([red, blue], ["red", "red"]).tolist() == [1.0, 0.0]
    with load_metric("colour-reader") as metric, refusal("no_outputs"):
        metric.score_outputs([red], ["red"])


@pytest.mark.isolation
def test_a_warning_is_about_the_scores_that_were_asked_for(tmp_path: Path) -> None:
    scorer = b"class Scorer:\n    def score(self, images, prompts):\n        return [(0.5, None)] * len(prompts)\n"
    about = b'name = "mine"\noutputs = ["first", "second"]\n'
    place = written(tmp_path / "m", {"assay.toml": about, "scorer.py": scorer})
    red = Image.new("RGB", (8, 8), "#de2e34")
    with load_metric(place, output="first", isolation="none") as metric:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert metric.score([red], ["red"]).tolist() == [0.5]
        with pytest.warns(UserWarning, match="1 of 1 pairs"):
            every = metric.score_outputs([red], ["red"])
        assert np.isnan(every["second"]).tolist() == [True]
    with (
        load_metric(place, output="second", isolation="none") as metric,
        pytest.warns(UserWarning, match="1 of 1 pairs"),
    ):
        metric.score([red], ["red"])


def test_an_output_that_is_not_there_is_refused_by_the_names_there_are(tmp_path: Path) -> None:
    place = written(tmp_path / "m", module_files(SkeletonKind.OUTPUTS, "mine"))
    with refusal("output_missing", "alignment", "quality"):
        load_metric(place, isolation="none")
    for name in (place, "colour-reader", NAME):
        with refusal("unknown_output", "beauty"):
            load_metric(name, isolation="none", output="beauty")


def written(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_what_cannot_be_loaded_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with refusal("unknown_scorer", NAME):
        load_metric("clipscore-hesel")
    for name, more, code in (
        (NAME, {"device": "cuda:99"}, "device_missing"),
        (NAME, {"questions": tmp_path / "any.jsonl"}, "no_questions"),
        (NAME, {"checkpoints": {"text": tmp_path}}, "unknown_role"),
        (NAME, {"revisions": {"text": "main"}}, "unknown_role"),
        (NAME, {"dtype": "float99"}, "unknown_dtype"),
        ("dsg-ts2-blip", {}, "questions_missing"),
        ("fga-blip2-es-avg", {}, "questions_missing"),
        ("bvqa", {"questions": tmp_path / "gone.jsonl"}, "questions_missing"),
    ):
        with refusal(code):  # before its weights are looked for
            load_metric(name, offline=True, **more)
    with refusal("not_built_in"):
        load_metric("colour-reader", dtype="bfloat16")
    with refusal("unknown_isolation"):
        load_metric(NAME, isolation="wall")
    with pytest.raises(SubmitterError):
        load_metric(tmp_path)
    monkeypatch.setattr(fitting, "find_spec", lambda _: None)
    with refusal("libraries_missing", "assay[metrics]") as raised:
        load_metric(next(iter(load_rows())))
    assert isinstance(raised.value, PlatformError)
