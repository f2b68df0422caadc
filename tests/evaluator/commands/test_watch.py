"""`watch`: folders of samples are scored once they are whole, and kept over restarts."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import stats

from benchmarks.errors import PlatformError
from benchmarks.sources.output import alone_in
from evaluator.ab.watching import Curves, Watcher, mean_interval
from evaluator.generation.manifest import TABLE
from evaluator.generation.prompts import Choice, file_prompts
from tests.evaluator.commands.submitting import refused, said, typed
from tests.evaluator.commands.test_ab import MANIFEST, SCORER

PROMPTS = 12


def drawn(folder: Path, shade: int, n: int = PROMPTS) -> None:
    folder.mkdir(parents=True)
    for one in range(n):
        Image.new("RGB", (8, 8), (shade + one, 0, 0)).save(folder / f"p{one}.png")


@pytest.fixture
def words(tmp_path: Path) -> tuple[object, ...]:
    metric = tmp_path / "redness"
    metric.mkdir()
    (metric / "scorer.py").write_text(SCORER.format(calls=str(tmp_path / "calls")))
    (metric / "assay.toml").write_text(MANIFEST)
    rows = [{"prompt_id": f"p{n}", "prompt": str(n), "skills": "ab"[n % 2]} for n in range(PROMPTS)]
    pd.DataFrame(rows).to_csv(tmp_path / "prompts.csv", index=False)
    return (
        "watch", tmp_path / "samples", "--prompts", tmp_path / "prompts.csv", "--metric", metric,
        "--out", tmp_path / "out", "--cache", tmp_path / "cache", "--isolation", "none", "--once",
    )  # fmt: skip


def table(tmp_path: Path) -> pd.DataFrame:
    return pd.read_parquet(tmp_path / "out" / "curves.parquet")


def test_each_checkpoint_is_scored_once_and_the_next_start_goes_on(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    for step, shade in ((900, 20), (1000, 60)):
        drawn(tmp_path / "samples" / f"step-{step}", shade)
    drawn(tmp_path / "samples" / "step-1100", 80, PROMPTS - 1)
    said(*words)
    first = table(tmp_path)
    assert first["checkpoint"].unique().tolist() == ["step-900", "step-1000"]
    asked = (tmp_path / "calls").read_text()
    assert len(asked) == 2 * PROMPTS
    whole = first[(first["checkpoint"] == "step-900") & (first["skill"] == "")].iloc[0]
    values = (20 + np.arange(PROMPTS)) / 255
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (whole["mean"], whole["ci_low"], whole["ci_high"]) == pytest.approx(
        (values.mean(), interval.low, interval.high)
    )
    assert (whole["step"], whole["n"], whole["n_missing"]) == (900, PROMPTS, 0)
    Image.new("RGB", (8, 8), (91, 0, 0)).save(
        tmp_path / "samples/step-1100" / f"p{PROMPTS - 1}.png"
    )
    said(*words)
    assert table(tmp_path)["checkpoint"].unique().tolist() == ["step-900", "step-1000", "step-1100"]
    assert len((tmp_path / "calls").read_text()) == 3 * PROMPTS
    page = (tmp_path / "out" / "curves.html").read_text()
    assert page.count("<circle") == 3 * 3 and "<script" not in page and "http" not in page


def test_a_folder_that_is_being_written_waits(tmp_path: Path, words: tuple[object, ...]) -> None:
    prompts = file_prompts(tmp_path / "prompts.csv", Choice()).prompts
    place, done = tmp_path / "samples" / "1", frozenset[str]()
    drawn(place, 20)
    watcher = Watcher(tmp_path / "samples", prompts)
    assert list(watcher.whole(done)) == [] and "1" in watcher.waiting
    (place / "p3.png").write_bytes((place / "p3.png").read_bytes()[:20])
    assert list(watcher.whole(done)) == []
    assert list(watcher.whole(done)) == [], "half an image is none"
    Image.new("RGB", (8, 8), (1, 0, 0)).save(place / "p3.png")
    assert list(watcher.whole(done)) == []
    (sample,) = watcher.whole(done)
    assert (sample.name, sample.step, watcher.waiting) == ("1", 1, {})
    assert list(watcher.whole(frozenset({"1"}))) == []


def test_a_folder_that_goes_or_changes_is_left_and_the_watch_goes_on(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    """The metric takes the folder away, or draws an image anew, as training might meanwhile."""
    samples = tmp_path / "samples"
    for step in (1, 2, 3):
        drawn(samples / str(step), 20 * step)
    scorer = tmp_path / "redness" / "scorer.py"
    scorer.write_text(
        f"""import shutil
from pathlib import Path

class Scorer:
    def score(self, images, prompts):
        shutil.rmtree({str(samples / "1")!r}, ignore_errors=True)
        once = Path({str(tmp_path / "once")!r})
        if 40 <= images[0].getpixel((0, 0))[0] < 60 and not once.exists():
            once.touch()
            images[0].save({str(samples / "2" / "p0.png")!r})
        return [image.getpixel((0, 0))[0] / 255 for image in images]
"""
    )
    told = typed(*words)
    assert told.exit_code == 0, told.output
    assert table(tmp_path)["checkpoint"].unique().tolist() == ["3"]
    said(*words)
    assert table(tmp_path)["checkpoint"].unique().tolist() == ["3", "2"]


def test_a_table_that_is_half_written_waits(tmp_path: Path, words: tuple[object, ...]) -> None:
    prompts = file_prompts(tmp_path / "prompts.csv", Choice()).prompts
    drawn(tmp_path / "samples" / "1", 20)
    (tmp_path / "samples" / "1" / TABLE).write_text("half")
    watcher = Watcher(tmp_path / "samples", prompts)
    assert list(watcher.whole(frozenset(), settled=True)) == []
    assert "1" in watcher.waiting


def withheld(folder: Path, of: range) -> None:
    rows = [
        {"prompt_id": f"p{n}", "seed": seed, "file": None if n in of and seed == 2 else f"p{n}.png"}
        for n in range(PROMPTS)
        for seed in ((1, 2) if n in of else (1,))
    ]
    (folder / TABLE).write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_prompt_of_which_an_image_is_withheld_counts_as_missing(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    for step, of in ((1, range(0)), (2, range(3)), (3, range(PROMPTS))):
        drawn(tmp_path / "samples" / str(step), 20)
        withheld(tmp_path / "samples" / str(step), of)
    assert "3 prompts without a score" in said(*words)
    whole = table(tmp_path)[table(tmp_path)["skill"] == ""]
    assert whole[["checkpoint", "n", "n_missing"]].to_numpy().tolist() == [
        ["1", PROMPTS, 0], ["2", PROMPTS - 3, 3],
    ], "of the third nothing is left, so that it waits"  # fmt: skip


def test_a_sink_that_was_not_sent_everything_ends_once_with_an_exit_code(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    drawn(tmp_path / "samples" / "1", 20)
    refused("bad_webhook", *words, "--webhook", "notaurl")
    assert not (tmp_path / "calls").exists(), "nothing was scored"
    done = typed(*words, "--webhook", "http://127.0.0.1:1/x")
    assert done.exit_code == PlatformError.exit_code
    assert table(tmp_path)["checkpoint"].unique().tolist() == ["1"]


@pytest.mark.slow
def test_a_webhook_that_fails_is_sent_what_it_missed_and_nothing_twice(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    bodies: list[Any] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if len(bodies) == 2 else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for step in (1, 2):
            drawn(tmp_path / "samples" / str(step), 20)
        for code in (PlatformError.exit_code, 0, 0):
            done = typed(*words, "--webhook", f"http://127.0.0.1:{server.server_port}/x")
            assert done.exit_code == code, done.output
    finally:
        server.shutdown()
        server.server_close()
    assert [one["checkpoint"] for one in bodies] == ["1", "2", "2"]
    assert [row["step"] for row in bodies[2]["rows"]] == [2, 2, 2]
    assert {row["skill"] for row in bodies[0]["rows"]} == {"", "a", "b"}
    assert len(table(tmp_path)) == 6


def test_what_cannot_be_watched_is_told(words: tuple[object, ...], tmp_path: Path) -> None:
    refused("no_folder", *words)
    assert typed(*words, "--wandb", "project/run/more").exit_code == 2
    refused("bad_webhook", *words, "--webhook", "example.org/hook")
    (tmp_path / "samples").mkdir()
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / "curves.parquet").write_text("no table")
    refused("bad_curves", *words)


@pytest.mark.parametrize(("values", "n"), [([], 0), ([1.0], 1), ([1.0, np.nan], 1)])
def test_too_few_values_have_no_interval(values: list[float], n: int) -> None:
    mean, low, high, known = mean_interval(np.array(values))
    assert known == n
    assert np.isnan([low, high]).all()
    assert np.isnan(mean) == (n == 0)


def test_a_number_is_a_step_where_it_has_all_its_digits(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    steps = {
        "ckpt-9007199254740993": (1 << 53) + 1,
        "ckpt-9223372036854775807": (1 << 63) - 1,
        "ckpt-9223372036854775808": None,
        "ckpt-123456789012345678901": None,
        "ckpt": None,
    }
    for name in steps:
        drawn(tmp_path / "samples" / name, 20)
    said(*words)
    found = Curves(tmp_path / "out").checkpoints
    assert [(one.name, one.rows[0]["step"]) for one in found] == sorted(
        steps.items(), key=lambda one: (one[1] is None, one[1] or 0, one[0])
    )


def test_a_second_watch_of_a_table_is_refused(words: tuple[object, ...], tmp_path: Path) -> None:
    drawn(tmp_path / "samples" / "1", 20)
    with alone_in(tmp_path / "out"):
        refused("folder_busy", *words)
    said(*words)


@pytest.mark.parametrize("other", ["prompt", "skill", "metric"])
def test_a_curve_has_points_of_the_same_prompts_and_metrics_alone(
    words: tuple[object, ...], tmp_path: Path, other: str
) -> None:
    drawn(tmp_path / "samples" / "1", 20)
    said(*words)
    said(*words)
    before = table(tmp_path)
    drawn(tmp_path / "samples" / "2", 40)
    more: tuple[object, ...] = ("--skill", "a") if other == "skill" else ()
    changed = tmp_path / {"metric": "redness/scorer.py"}.get(other, "prompts.csv")
    kept = changed.read_text()
    if other == "prompt":
        changed.write_text(kept.replace("p3,3", "p3,three"))
    elif other == "metric":
        changed.write_text(kept + "\n# another\n")
    refused("other_settings", *words, *more)
    assert table(tmp_path).equals(before)
    changed.write_text(kept)
    said(*words)
    assert table(tmp_path)["checkpoint"].unique().tolist() == ["1", "2"]


def test_a_table_that_was_removed_is_begun_with_other_prompts(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    drawn(tmp_path / "samples" / "1", 20)
    said(*words)
    (tmp_path / "out" / "curves.parquet").unlink()
    said(*words, "--skill", "a")
    refused("other_settings", *words)
    (tmp_path / "out" / "curves.json").unlink()  # as older versions left it
    said(*words)
    (tmp_path / "out" / "curves.json").write_text("{")
    refused("bad_curves", *words)
