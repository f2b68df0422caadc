"""Score shards of the CROC authors' runner become a scores file for croc_syn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.croc_syn.authors_files import app, read_shards
from benchmarks.errors import SubmitterError
from benchmarks.scores import read_scores
from tests.benchmarks.croc_syn.syn_tree import (
    EP,
    FILES,
    PV,
    benchmark,
    line,
    load,
    same_everywhere,
    write,
)

CELLS = [("orig", "orig"), ("contrast", "orig"), ("orig", "contrast"), ("contrast", "contrast")]


def shards(folder: Path) -> dict[str, float]:
    """Scores of two prompts with two images each in the runner's form; returns them by pair id."""
    expected: dict[str, float] = {}
    rng = np.random.default_rng(0)
    for image_model, text_model in FILES:
        place = folder / f"{image_model}_{text_model}"
        place.mkdir(parents=True)
        for part, prompt_id in enumerate((PV, EP)):
            rows = []
            for k in range(2):
                name = prompt_id.replace("|||", "_____")
                stems = {
                    "orig": f"prompts/{name}_prompt_0_image_{k}",
                    "contrast": f"contrast_prompts/{name}_contrast_0_image_{k}",
                }
                base = f"{image_model}/{text_model}"
                row: dict[str, object] = {
                    "prompt": "a",
                    "contrast_prompt": "b",
                    "img_paths_prompts": f"root/{base}/{stems['orig']}.png",
                    "img_paths_contrast": f"root/{base}/{stems['contrast']}.png",
                    "prompt_id": f"{prompt_id}_____{k + 1}",
                }
                for text, side in CELLS:
                    score = float(rng.random())
                    row[f"PickScore___{text}_text___{side}_img"] = score
                    expected[f"{base}/{stems[side]}|{text}"] = score
                rows.append(row)
            pd.DataFrame(rows).to_csv(place / f"part{part}_scores.tsv", sep="\t", index=False)
    return expected


def test_each_score_finds_its_pair(tmp_path: Path) -> None:
    expected = shards(tmp_path)
    table = read_shards(tmp_path).set_index("pair_id")
    assert table["PickScore"].to_dict() == pytest.approx(expected)
    assert len(expected) == 4 * 2 * 2 * 4


def test_the_command_writes_what_the_benchmark_reads(tmp_path: Path) -> None:
    expected = shards(tmp_path / "shards")
    out = tmp_path / "scores.parquet"
    result = CliRunner().invoke(app, [str(tmp_path / "shards"), "--out", str(out)])
    assert result.exit_code == 0
    answers = load(write(tmp_path, same_everywhere(line(PV, ["a"]), line(EP, ["a"]))), n_images=2)
    scores = read_scores(out, benchmark(2), answers)
    assert scores.overall["PickScore"].to_dict() == pytest.approx(expected)


def test_what_is_there_is_replaced_only_when_told_and_a_shard_never(tmp_path: Path) -> None:
    shards(tmp_path)
    shard, out = tmp_path / "sd_ds" / "part0_scores.tsv", tmp_path / "out.csv"
    out.write_text("mine")
    before = shard.read_bytes()
    for words, code in (([out], "file_exists"), ([shard, "--force"], "output_is_input")):
        end = CliRunner().invoke(app, [str(tmp_path), "--out", *map(str, words)])
        assert isinstance(end.exception, SubmitterError)
        assert end.exception.code == code
    assert (out.read_text(), shard.read_bytes()) == ("mine", before)


def test_an_absent_set_is_named(tmp_path: Path) -> None:
    shards(tmp_path)
    for path in (tmp_path / "sd_ds").iterdir():
        path.unlink()
    with pytest.raises(SubmitterError, match="sd_ds holds no score shard") as caught:
        read_shards(tmp_path)
    assert caught.value.code == "file_missing"


def test_the_same_shard_twice_is_refused(tmp_path: Path) -> None:
    shards(tmp_path)
    content = (tmp_path / "sd_ds" / "part0_scores.tsv").read_bytes()
    (tmp_path / "sd_ds" / "part7_scores.tsv").write_bytes(content)
    with pytest.raises(SubmitterError) as caught:
        read_shards(tmp_path)
    assert caught.value.code == "duplicate_pairs"
