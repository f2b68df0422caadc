"""The files that errata read: where anyone gets them, where they may lie, what they must be."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.errata import Erratum, errata
from benchmarks.errata.entries import FILE, data_folder, erratum, files
from benchmarks.errata.recompute import address, check_data, recompute
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.sources.folder import DataFile

GENAI = erratum("genai-out-of-range-ratings")


def test_every_declared_file_is_read_by_an_erratum() -> None:
    assert set(files()) == {path for entry in errata() for path in entry.data}


@pytest.mark.parametrize("file", files().values(), ids=lambda f: f.path)
def test_every_file_has_an_origin_and_a_hash(file: DataFile) -> None:
    assert file.sha256
    assert file.size
    assert (file.supplied or address(file)).count("https://") == 1


def test_files_of_a_benchmark_are_those_of_its_card() -> None:
    cards = {f.path: f for b in load_registry().values() for f in b.card.files if not f.optional}
    shared = set(cards) & set(files())
    assert {"ts2/metadata.csv", "genai_1600/genai_image.json", "gecko/prompts.csv"} <= shared
    for path in shared:
        assert files()[path] == cards[path].model_copy(update={"role": "answers"})


def test_an_address_on_the_hub_is_that_of_the_file() -> None:
    assert address(files()["genai_527/genai_image.json"]) == (
        "https://huggingface.co/datasets/zhiqiulin/GenAI-Bench-527/resolve/main/genai_image.json"
    )


@pytest.mark.parametrize("entry", [e for e in errata() if e.data], ids=lambda e: e.id)
def test_missing_files_are_named_with_the_way_to_get_each(entry: Erratum, tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        with pytest.raises(SubmitterError) as raised:
            check_data(entry, folder)
        assert raised.value.code == "data_missing"
        for path in entry.data:
            assert path in raised.value.message
            assert (files()[path].supplied or address(files()[path])) in raised.value.hint
        assert ("--data" in raised.value.hint) == (folder is None)


def test_only_the_missing_files_are_named(assay_data: Path, tmp_path: Path) -> None:
    (tmp_path / "ts2").mkdir()
    shutil.copyfile(assay_data / "ts2" / "metadata.csv", tmp_path / "ts2" / "metadata.csv")
    with pytest.raises(SubmitterError, match=r"recomputed from ts2/scores\.csv; .*FORMAT\.md"):
        check_data(erratum("ts2-delta-subsets"), tmp_path)


def test_a_file_of_another_release_is_refused_by_its_hash(tmp_path: Path) -> None:
    (tmp_path / "gecko").mkdir()
    (tmp_path / "gecko" / "prompts.csv").write_text("prompt_type\nGecko(S)\n")
    with pytest.raises(SubmitterError, match=r"prompts\.csv has sha256 .* 81058b468d1bef5b"):
        recompute(erratum("gecko-release"), tmp_path)


@pytest.mark.parametrize(
    "place", ["genai_1600/genai_image.json", "genai_bench/genai1600_genai_image.json"]
)
def test_ratings_are_found_where_fetch_puts_them_and_where_a_copy_may_lie(
    place: str, assay_data: Path, tmp_path: Path
) -> None:
    released = data_folder(assay_data)
    for path, there in zip(GENAI.data, (place, "genai_527/genai_image.json"), strict=True):
        (tmp_path / there).parent.mkdir(exist_ok=True)
        shutil.copyfile(released.path(path), tmp_path / there)
    assert all(cell.confirmed for cell in recompute(GENAI, tmp_path))


def test_the_documented_lines_make_the_released_scores_file(
    assay_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a table laid out like `scores_final_all_3.csv`, with columns that are not kept."""
    folder = tmp_path / "data"
    (folder / "ts2").mkdir(parents=True)
    shutil.copyfile(assay_data / "ts2" / "metadata.csv", folder / "ts2" / "metadata.csv")
    scores = pd.read_csv(assay_data / "ts2" / "scores.csv", dtype=str, keep_default_na=False)
    released = scores.drop(columns="pair_id").iloc[:, ::-1].assign(fuyu_tifa="0.5")
    released.insert(0, "image_id", "")
    released.to_csv(tmp_path / "scores_final_all_3.csv", index=False)
    text = (FILE.parent / "FORMAT.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(folder)
    exec(lines, {})
    assert (
        data_folder(folder).path("ts2/scores.csv").read_bytes()
        == (assay_data / "ts2" / "scores.csv").read_bytes()
    )
