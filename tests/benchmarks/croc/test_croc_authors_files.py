"""Score files of the CROC authors' runner become a scores file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.croc.authors_files import app, read_score_files
from benchmarks.errors import SubmitterError

RUNNER = CliRunner()


def prompt_table(category: str, scores: list[float | None]) -> pd.DataFrame:
    paths = [f"data/{category}/prompt/{category}_1___prompt___m___image{k}.jpg" for k in (1, 2)]
    return pd.DataFrame(
        {
            "id": f"{category}_1",
            "prompt": "a",
            "contrast": "b",
            "prompt_paths": paths,
            "VQAScore___orig_text___orig_img": scores,
            "VQAScore___contrast_text___orig_img": [0.25, 0.5],
        }
    )


def contrast_table(category: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": f"{category}_1",
            "prompt": "a",
            "contrast": "b",
            "contrast_paths": [f"{category}/contrast/{category}_1___contrast___m___image1.png"],
            "VQAScore___contrast_text___contrast_img": [3.0],
            "VQAScore___orig_text___contrast_img": [4.0],
        }
    )


def write(folder: Path, tables: dict[str, pd.DataFrame]) -> Path:
    for name, table in tables.items():
        table.to_csv(folder / f"{name}_img_scores.tsv", sep="\t", index=False)
    return folder


def both(category: str, scores: list[float | None]) -> dict[str, pd.DataFrame]:
    return {
        f"{category}_prompt": prompt_table(category, scores),
        f"{category}_contrast": contrast_table(category),
    }


def test_each_score_finds_its_image_and_text(tmp_path: Path) -> None:
    write(tmp_path, {**both("counting", [1.0, None]), **both("body_parts", [5.0, 6.0])})
    (tmp_path / "notes.tsv").write_text("nothing of interest")
    table = read_score_files(tmp_path).set_index("pair_id")
    assert list(table.columns) == ["VQAScore"]
    found = table["VQAScore"].to_dict()
    assert len(found) == 12
    assert found["counting_1___prompt___m___image1|orig"] == 1.0
    assert found["counting_1___prompt___m___image1|contrast"] == 0.25
    assert pd.isna(found["counting_1___prompt___m___image2|orig"])
    assert found["counting_1___contrast___m___image1|contrast"] == 3.0
    assert found["counting_1___contrast___m___image1|orig"] == 4.0
    assert found["body_parts_1___prompt___m___image2|orig"] == 6.0


@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv"])
def test_the_command_writes_a_scores_file(tmp_path: Path, name: str) -> None:
    write(tmp_path, both("counting", [1.0, 2.0]))
    out = tmp_path / name
    result = RUNNER.invoke(app, [str(tmp_path), "--out", str(out)])
    assert result.exit_code == 0
    assert "6 pairs, metrics VQAScore" in result.output
    written = pd.read_csv(out) if name.endswith("csv") else pd.read_parquet(out)
    assert list(written.columns) == ["pair_id", "VQAScore"]
    pd.testing.assert_frame_equal(written, read_score_files(tmp_path))


def test_a_file_that_is_there_is_replaced_only_when_told_and_an_input_never(tmp_path: Path) -> None:
    write(tmp_path, both("counting", [1.0, 2.0]))
    out, given = tmp_path / "scores.csv", tmp_path / "counting_prompt_img_scores.tsv"
    out.write_text("mine")
    before = given.read_bytes()
    result = RUNNER.invoke(app, [str(tmp_path), "--out", str(out)])
    assert isinstance(result.exception, SubmitterError)
    assert (result.exception.code, out.read_text()) == ("file_exists", "mine")
    result = RUNNER.invoke(app, [str(tmp_path), "--out", str(given), "--force"])
    assert isinstance(result.exception, SubmitterError)
    assert (result.exception.code, given.read_bytes()) == ("output_is_input", before)
    assert RUNNER.invoke(app, [str(tmp_path), "--out", str(out), "--force"]).exit_code == 0
    assert out.read_text().startswith("pair_id,")


def test_an_image_shared_by_pairs_of_negation_has_a_name_for_each(tmp_path: Path) -> None:
    image = "negation/alt/negation_1___alt___m___image1.png"
    shared = pd.concat([contrast_table("negation")] * 2).assign(
        id=["negation_1", "negation_2"], contrast_paths=image
    )
    tables = {"negation_prompt": prompt_table("negation", [1.0, 2.0]), "negation_contrast": shared}
    found = set(read_score_files(write(tmp_path, tables))["pair_id"])
    stem = "negation_1___alt___m___image1"
    assert {f"{stem}|orig", f"{stem}|contrast", f"{stem}@negation_2|orig"} < found
    write(tmp_path, {"negation_contrast": shared.assign(id="negation_1")})
    with pytest.raises(SubmitterError, match="stand in two rows"):
        read_score_files(tmp_path)


def drop(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    return table.drop(columns=list(columns))


ORIG, CONTRAST = "VQAScore___orig_text___orig_img", "VQAScore___contrast_text___orig_img"
PROMPT = prompt_table("counting", [1.0, 2.0])


@pytest.mark.parametrize(
    ("tables", "code", "says"),
    [
        ({}, "file_missing", "no score file"),
        ({"counting_prompt": PROMPT}, "file_missing", "counting_contrast_img_scores.tsv"),
        ({"counting_prompt": drop(PROMPT, ORIG)}, "no_scores", ORIG),
        ({"counting_prompt": drop(PROMPT, ORIG, CONTRAST)}, "no_scores", "no score column"),
        ({"counting_prompt": drop(PROMPT, "prompt_paths")}, "unreadable_scores", "prompt_paths"),
        ({"counting_prompt": PROMPT.iloc[[0, 0]]}, "duplicate_pairs", "image1|orig"),
        (
            {"counting_prompt": PROMPT.assign(**{ORIG: ["1.0", "much"]})},
            "not_numeric",
            "'much' (data row 2)",
        ),
        ({"counting_prompt": PROMPT.assign(**{ORIG: ["inf", "1"]})}, "not_numeric", "'inf'"),
        (
            {"counting_prompt": PROMPT.rename(columns=lambda c: c.replace("VQAScore", "Clip"))},
            "no_scores",
            "no scores of",
        ),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, tables: dict[str, pd.DataFrame], code: str, says: str
) -> None:
    others = {} if code == "file_missing" else {"counting_contrast": contrast_table("counting")}
    with pytest.raises(SubmitterError) as caught:
        read_score_files(write(tmp_path, {**others, **tables}))
    assert caught.value.code == code
    assert says in caught.value.message


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    write(tmp_path, both("counting", [1.0, 2.0]))
    (tmp_path / "counting_prompt_img_scores.tsv").write_bytes(b"\xff\xfe")
    with pytest.raises(SubmitterError, match="counting_prompt_img_scores") as caught:
        read_score_files(tmp_path)
    assert caught.value.code == "unreadable_scores"
