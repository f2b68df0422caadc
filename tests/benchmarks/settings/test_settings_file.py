"""The settings file: what it says is read, and what it may not say is named with its line."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.settings.example import example
from benchmarks.settings.fields import by_file_key, by_key
from benchmarks.settings.file import MOST_BYTES, read_settings


def file_of(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def read(folder: Path, text: str, **how: bool) -> dict[str, str]:
    return {one.variable: one.text for one in read_settings(file_of(folder, text), **how)}


def refused(folder: Path, text: str, **how: bool) -> SubmitterError:
    with pytest.raises(SubmitterError) as caught:
        read_settings(file_of(folder, text), **how)
    return caught.value


def test_every_kind_of_value_becomes_what_its_variable_has(tmp_path: Path) -> None:
    text = """
store = "hub:lab/board"
operators = ["hub:ada", "local:bob"]
site.port = 8000
[hub]
token_file = "/run/secrets/token"
offline = true
[limits]
log_mib = 0.5
"""
    assert read(tmp_path, text) == {
        "ASSAY_STORE": "hub:lab/board",
        "ASSAY_OPERATORS": "hub:ada,local:bob",
        "PORT": "8000",
        "HF_TOKEN_FILE": "/run/secrets/token",
        "HF_HUB_OFFLINE": "1",
        "ASSAY_LOG_MIB": "0.5",
    }


def test_a_home_folder_is_found_and_other_paths_stay(tmp_path: Path) -> None:
    found = read(tmp_path, 'data = "~/data"\nscratch = "scratch"')
    assert found == {"ASSAY_DATA": str(Path("~/data").expanduser()), "ASSAY_SCRATCH": "scratch"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("\nstor = 'x'", 2, "Did you mean store?"),
        ("[site]\nport = 'http'", 2, "site.port"),
        ("[site]\n\nport = 0", 3, "greater than or equal to 1"),
        ("[site]\nport = true", 2, "a number is needed"),
        ("store = 5", 1, "valid string"),
        ("store = ''", 1, "leave the line out"),
        ("[hub]\n[hub.token]\nx = 1", 3, "no setting 'hub.token.x'"),
        ("[hub]\ntoken_file = ''", 2, "the path of a file"),
        ("store = 'a\\u0000b'".replace("'", '"'), 1, "control characters"),
        ("[[hub]]\ntoken = 'x'", 1, "no setting 'hub'"),
        ("worker = 'w'", 1, "no setting 'worker'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    error = refused(tmp_path, text)
    assert error.code in {"bad_setting", "bad_settings"}
    assert f"settings.toml:{line}: " in error.message
    assert words in error.message


def test_what_is_no_toml_is_named_with_its_line(tmp_path: Path) -> None:
    error = refused(tmp_path, "store = 'x'\nport = =")
    assert (error.code, "line 2" in error.message) == ("bad_settings", True)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"#" * (MOST_BYTES + 1)])
def test_what_is_no_settings_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    with pytest.raises(SubmitterError):
        read_settings(path)


def test_neither_a_pipe_nor_a_folder_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing"):
        with pytest.raises(SubmitterError) as caught:
            read_settings(path)
        assert caught.value.code == "no_settings"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_with_a_secret_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = file_of(tmp_path, "[hub]\ntoken = 'hf_of_the_house'", mode)
    with pytest.raises(SubmitterError, match="chmod 600") as caught:
        read_settings(path)
    assert caught.value.code == "settings_open"
    assert "hf_of_the_house" not in str(caught.value)


def test_a_file_that_everybody_can_change_is_refused_though_it_holds_no_secret(
    tmp_path: Path,
) -> None:
    path = file_of(tmp_path, "store = 'x'", 0o646)
    with pytest.raises(SubmitterError, match="everybody"):
        read_settings(path)


def test_a_file_without_secrets_may_be_read_by_all(tmp_path: Path) -> None:
    path = file_of(tmp_path, "[hub]\ntoken_file = '/run/secrets/x'", 0o664)
    assert len(read_settings(path)) == 1


def test_a_file_that_nobody_named_leads_no_secret_elsewhere(tmp_path: Path) -> None:
    for text in ("[hub]\nendpoint = 'http://evil'", "[live]\naddress = 'http://evil'"):
        assert read(tmp_path, text)
        assert "a file that nobody named may not" in refused(tmp_path, text, found=True).message


def test_the_example_names_every_key_and_can_be_used(tmp_path: Path) -> None:
    assert read(tmp_path, example()) == {}, "nothing of it is in force"
    in_force = re.sub(r"(?m)^# (?=[a-z_]+ = )", "", example())
    found = read_settings(file_of(tmp_path, in_force))
    named = {one.field.about.file_key if one.in_file else one.field.about.key for one in found}
    secrets = {field.about.key for field in by_file_key().values()}
    assert named == (set(by_key()) - secrets) | set(by_file_key())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"store = {'[' * 20_000}{']' * 20_000}", "nested too deep"),
        (f"{'a.' * 4_000}b = 1", "nested too deep"),
        (f"site.port = {'9' * 5_000}", "is no TOML"),
    ],
    ids=["brackets", "dots", "digits"],
)
def test_what_the_reader_of_toml_cannot_hold_is_refused_in_words(
    tmp_path: Path, text: str, words: str
) -> None:
    error = refused(tmp_path, text)
    assert error.code == "bad_settings"
    assert words in error.message


def test_the_folder_of_a_store_may_be_at_home_and_its_name_stays(tmp_path: Path) -> None:
    home = {"ASSAY_STORE": str(Path("~/store").expanduser())}
    assert read(tmp_path, 'store = "~/store"') == home
    for name in ("hub:lab/board", "./a:b"):
        assert read(tmp_path, f'store = "{name}"') == {"ASSAY_STORE": name}


@pytest.mark.parametrize("key", ["data", "store", "hub.token_file"])
def test_a_home_that_nobody_has_is_named(tmp_path: Path, key: str) -> None:
    error = refused(tmp_path, f'{key} = "~nobody-of-that-name/x"')
    assert error.code == "bad_setting"
    assert "no home '~nobody-of-that-name'" in error.message
