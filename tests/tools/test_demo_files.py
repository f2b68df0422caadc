"""The files of the demo split are what their generator makes; slow, since every picture is drawn."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import typer

from tools.demo_split import __main__ as command


@pytest.mark.slow
def test_the_files_that_ship_are_what_the_generator_makes() -> None:
    with pytest.raises(typer.Exit) as done:
        command.main(check=True)
    assert done.value.exit_code == 0


def test_files_are_written_once_and_what_is_left_over_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "HASHES", tmp_path / "files.toml")
    made = {"a/one.parquet": pa.table({"n": [1, 2]}), "pictures.parquet": pa.table({"png": [b"x"]})}
    monkeypatch.setattr(command, "tables", made.items)
    (tmp_path / "old.parquet").write_bytes(b"")
    with pytest.raises(typer.Exit) as differs:
        command.main(check=True)
    assert differs.value.exit_code == 1
    command.main()
    assert capsys.readouterr().out.split() == [*made, "old.parquet"] * 2
    command.main()
    assert capsys.readouterr().out == ""
    assert (tmp_path / "files.toml").read_text().count("parquet") == len(made)
    assert not (tmp_path / "old.parquet").exists()
