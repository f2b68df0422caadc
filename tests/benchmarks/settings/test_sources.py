"""Loading: precedence of sources, what children are told, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.settings.model import Origin, Value
from benchmarks.settings.sources import (
    MOST_FILE_BYTES,
    SettingsFile,
    load,
    read,
    settings_file,
    value_of,
    values,
)

HOME = Path("~").expanduser()
NOBODY = "~nobody-of-that-name/x"


def write(folder: Path, text: str, name: str = ".assay/settings.toml", mode: int = 0o600) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def texts(folder: Path, text: str, *, named: bool = True, mode: int = 0o600) -> dict[str, str]:
    return SettingsFile(write(folder, text, mode=mode), named=named).texts()


def refused(action: Callable[[], object], *codes: str) -> str:
    """The message of an error with one of the codes."""
    with pytest.raises(SubmitterError) as caught:
        action()
    assert caught.value.code in codes
    return caught.value.message


def shown(environment: dict[str, str], **options: str) -> dict[str, Value]:
    return {value.setting.variable: value for value in values(environment, options)}


def test_without_a_file_nothing_is_changed(tmp_path: Path) -> None:
    environment = {"ASSAY_STORE": "x", "PATH": "/bin"}
    assert load(environment, tmp_path) == ()
    assert environment == {"ASSAY_STORE": "x", "PATH": "/bin"}


def test_the_order_of_precedence(tmp_path: Path) -> None:
    file = write(tmp_path, "store = 'f'\ndata = 'f'\nscratch = 'f'")
    environment = {"ASSAY_STORE": "v", "ASSAY_DATA": "v", "ASSAY_SCRATCH": "  "}
    load(environment, tmp_path)
    found = shown(environment, store="o")
    assert {name: (found[name].text, found[name].origin, found[name].file) for name in
            ("ASSAY_STORE", "ASSAY_DATA", "ASSAY_SCRATCH", "PORT")} == {
        "ASSAY_STORE": ("o", Origin.OPTION, ""),
        "ASSAY_DATA": ("v", Origin.ENVIRONMENT, ""),
        "ASSAY_SCRATCH": ("f", Origin.FILE, str(file)),
        "PORT": ("7860", Origin.DEFAULT, ""),
    }  # fmt: skip


def test_the_file_that_is_named_comes_before_the_usual_one(tmp_path: Path) -> None:
    write(tmp_path, "store = 'usual'")
    named = write(tmp_path, "store = 'named'", "mine.toml")
    environment = {"ASSAY_SETTINGS": "mine.toml"}
    load(environment, tmp_path)
    assert (environment["ASSAY_STORE"], settings_file(environment)) == ("named", named)


def test_a_child_in_another_folder_has_the_same_values_and_their_origin(tmp_path: Path) -> None:
    file = write(tmp_path, "store = 'f'\ndata = 'f'")
    environment: dict[str, str] = {}
    load(environment, tmp_path)
    file.write_text("store = 'changed since'")
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", "store = 'of another folder'")
    child = {**environment, "ASSAY_DATA": "of the parent's option"}
    before = dict(child)
    load(child, tmp_path / "other")
    assert child == before
    found = shown(child)
    assert (found["ASSAY_STORE"].text, found["ASSAY_STORE"].origin) == ("f", Origin.FILE)
    assert found["ASSAY_DATA"].origin is Origin.ENVIRONMENT


@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize("content", [b"hf_of_the_house\n", b"\xef\xbb\xbfhf_of_the_house\r\n"])
def test_a_secret_comes_from_a_file_of_its_own_and_is_never_shown(
    tmp_path: Path, content: bytes, by_key: bool
) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    environment = {} if by_key else {"HF_TOKEN_FILE": str(path)}
    if by_key:
        write(tmp_path, f"[hub]\ntoken_file = '{path}'")
    load(environment, tmp_path)
    assert environment["HF_TOKEN"] == "hf_of_the_house"
    value = shown(environment)["HF_TOKEN"]
    assert (value.text, value.file) == ("set", str(path))
    assert "hf_of_the_house" not in environment["ASSAY_SETTINGS_ORIGINS"]


@pytest.mark.parametrize("text", ["token = 'x'", "token_file = '/nope'"])
def test_a_variable_hides_both_keys_of_a_secret(tmp_path: Path, text: str) -> None:
    write(tmp_path, f"[hub]\n{text}")
    environment = {"HF_TOKEN": "of the variable"}
    load(environment, tmp_path)
    assert environment["HF_TOKEN"] == "of the variable"
    assert "HF_TOKEN_FILE" not in environment


@pytest.mark.parametrize("content", ["", " \n", "two\nlines", "a\0b", "x" * (65 << 10), None])
def test_a_file_without_a_secret_is_named_and_its_content_is_not(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "token"
    os.mkfifo(path) if content is None else path.write_text(content)
    message = refused(lambda: load({"HF_TOKEN_FILE": str(path)}, tmp_path), "bad_secret_file")
    assert f"HF_TOKEN_FILE names {path}" in message
    assert "two" not in message
    old = {"ASSAY_LIVE_SECRET_OLD_FILE": str(write(tmp_path, "", "old"))}
    load(old, tmp_path)
    assert old["ASSAY_LIVE_SECRET_OLD"] == "", "there is none before the first"


def test_all_problems_of_secrets_are_told_at_once(tmp_path: Path) -> None:
    environment = {
        "HF_TOKEN": "y",
        "HF_TOKEN_FILE": str(tmp_path / "token"),
        "ASSAY_LIVE_SECRET_FILE": str(tmp_path),
        "ASSAY_JOB_TOKEN_FILE": NOBODY,
    }
    message = refused(lambda: load(environment, tmp_path), "two_secrets", "bad_secret_file")
    for part in ("HF_TOKEN_FILE", "ASSAY_LIVE_SECRET_FILE", "ASSAY_JOB_TOKEN_FILE: there is no"):
        assert part in message
    assert "y" not in environment.get("ASSAY_SETTINGS_ORIGINS", "")


def test_a_mistyped_variable_is_told_with_the_nearest(tmp_path: Path) -> None:
    (warning,) = load({"ASSAY_OPERATOR": "hub:ada"}, tmp_path)
    assert {"ASSAY_OPERATOR", "ASSAY_OPERATORS?"} <= set(warning.split())


def test_a_variable_is_read_with_its_type() -> None:
    environment = {"ASSAY_OPERATORS": "hub:ada, hub:bob", "ASSAY_LOG_DAYS": " ", "PORT": "80"}
    settings = read(environment)
    assert settings.operators == value_of("operators", environment) == ("hub:ada", "hub:bob")
    assert (settings.log_days, settings.port) == (30.0, 80)
    assert value_of("port", {**environment, "ASSAY_LOG_DAYS": "soon"}) == 80


def test_all_invalid_variables_are_told_at_once_and_a_secret_is_not_repeated() -> None:
    environment = {"ASSAY_LOG_DAYS": "soon", "PORT": "0", "HF_TOKEN": "a\x07b", "ASSAY_DATA": "d"}
    message = refused(lambda: read(environment), "bad_setting")
    found = shown(environment)
    assert {name for name, value in found.items() if value.problem} == {
        "ASSAY_LOG_DAYS", "PORT", "HF_TOKEN",
    }  # fmt: skip
    assert all(value.problem in message for value in found.values())
    assert "ASSAY_LOG_DAYS 'soon'" in message
    assert "a\x07b" not in message + found["HF_TOKEN"].text
    assert found["ASSAY_DATA"].text == "d"


@pytest.mark.parametrize("variable", ["ASSAY_SETTINGS", "HF_TOKEN_FILE"])
def test_a_home_that_nobody_has_is_named_by_its_variable(tmp_path: Path, variable: str) -> None:
    message = refused(lambda: load({variable: NOBODY}, tmp_path), "bad_setting")
    assert f"{variable}: there is no home '~nobody-of-that-name'" in message


def _link_to_nowhere(path: Path) -> None:
    path.symlink_to("nowhere.toml")


def _no_way_there(path: Path) -> None:
    path.parent.rmdir()
    path.parent.symlink_to(path.parent.name)  # As a folder that is closed to this user.


def _too_much(path: Path) -> None:
    path.write_bytes(b"#" * (MOST_FILE_BYTES + 1))


@pytest.mark.parametrize(
    "made", [Path.mkdir, os.mkfifo, _link_to_nowhere, _no_way_there, _too_much]
)
@pytest.mark.parametrize("named", [False, True])
def test_settings_that_are_there_and_cannot_be_read_are_not_passed_over(
    tmp_path: Path, made: Callable[[Path], object], named: bool
) -> None:
    usual = tmp_path / ".assay" / "settings.toml"
    usual.parent.mkdir()
    made(usual)
    environment = {"ASSAY_SETTINGS": str(usual)} if named else {}
    refused(lambda: load(environment, tmp_path), "no_settings")
    refused(lambda: load({"ASSAY_SETTINGS": "nope.toml"}, tmp_path), "no_settings")


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
    assert texts(tmp_path, text) == {
        "ASSAY_STORE": "hub:lab/board",
        "ASSAY_OPERATORS": "hub:ada,local:bob",
        "PORT": "8000",
        "HF_TOKEN_FILE": "/run/secrets/token",
        "HF_HUB_OFFLINE": "1",
        "ASSAY_LOG_MIB": "0.5",
    }


@pytest.mark.parametrize(
    ("text", "variable", "expected"),
    [
        ("data = '~/data'", "ASSAY_DATA", str(HOME / "data")),
        ("scratch = 'scratch'", "ASSAY_SCRATCH", "scratch"),
        ("store = '~/store'", "ASSAY_STORE", str(HOME / "store")),
        ("store = 'hub:lab/board'", "ASSAY_STORE", "hub:lab/board"),
        ("store = './a:b'", "ASSAY_STORE", "./a:b"),
        ("hub.token_file = '~/t'", "HF_TOKEN_FILE", str(HOME / "t")),
    ],
)
def test_paths_at_home_are_found_and_others_stay(
    tmp_path: Path, text: str, variable: str, expected: str
) -> None:
    assert texts(tmp_path, text) == {variable: expected}


@pytest.mark.parametrize(
    ("text", "line", "words", "code"),
    [
        ("\nstor = 'x'", 2, "Did you mean store?", "bad_settings"),
        ("[hub]\n[hub.token]\nx = 1", 3, "'hub.token.x'", "bad_settings"),
        ("[[hub]]\ntoken = 'x'", 1, "'hub'", "bad_settings"),
        ("worker = 'w'", 1, "'worker'", "bad_settings"),
        ("[site]\nport = 'http'", 2, "site.port", "bad_setting"),
        ("[site]\n\nport = 0", 3, "greater than or equal to 1", "bad_setting"),
        ("[site]\nport = true", 2, "site.port", "bad_setting"),
        ("store = 5", 1, "valid string", "bad_setting"),
        ("store = ''", 1, "store: it is empty", "bad_setting"),
        ("[hub]\ntoken_file = ''", 2, "hub.token_file", "bad_setting"),
        ("[hub]\ntoken_file = 5", 2, "hub.token_file", "bad_setting"),
        ('store = "a\\u0000b"', 1, "control characters", "bad_setting"),
        ('operators = ["a\\u0000b"]', 1, "control characters", "bad_setting"),
        (f"data = '{NOBODY}'", 1, "no home '~nobody-of-that-name'", "bad_setting"),
        (f"store = '{NOBODY}'", 1, "no home '~nobody-of-that-name'", "bad_setting"),
        (f"hub.token_file = '{NOBODY}'", 1, "no home '~nobody-of-that-name'", "bad_setting"),
    ],
)
def test_a_problem_of_the_file_is_told_with_its_line(
    tmp_path: Path, text: str, line: int, words: str, code: str
) -> None:
    message = refused(lambda: texts(tmp_path, text), code)
    assert f"settings.toml:{line}: " in message
    assert words in message


def test_all_problems_of_the_file_are_told_at_once(tmp_path: Path) -> None:
    text = (
        f"stor = 'x'\nstore = 5\ndata = '{NOBODY}'\nuser = ''\n[site]\nport = 0\n[hub]\ntoken = 's'"
    )
    message = refused(lambda: texts(tmp_path, text, mode=0o644), "settings_open")
    assert [f"settings.toml:{line}: " in message for line in (1, 2, 3, 4, 6)] == [True] * 5
    assert "hub.token" in message


@pytest.mark.parametrize(
    "text",
    [
        "store = 'x'\nport = =",
        f"store = {'[' * 20_000}{']' * 20_000}",
        f"{'a.' * 4_000}b = 1",
        f"site.port = {'9' * 5_000}",
        "store = '\udcff'",
    ],
    ids=["syntax", "brackets", "dots", "digits", "encoding"],
)
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(lambda: SettingsFile(path, named=True), "bad_settings")


@pytest.mark.parametrize(
    ("mode", "text", "code"),
    [
        (0o640, "[hub]\ntoken = 'hf_of_the_house'", "settings_open"),
        (0o604, "[hub]\ntoken = 'hf_of_the_house'", "settings_open"),
        (0o600, "[hub]\ntoken = 'hf_of_the_house'", ""),
        (0o646, "store = 'x'", "settings_open"),
        (0o664, "[hub]\ntoken_file = '/run/secrets/x'", ""),
    ],
)
def test_a_file_that_others_may_change_or_read_a_secret_of_is_refused(
    tmp_path: Path, mode: int, text: str, code: str
) -> None:
    if code:
        message = refused(lambda: texts(tmp_path, text, mode=mode), code)
        assert "hf_of_the_house" not in message
    else:
        assert len(texts(tmp_path, text, mode=mode)) == 1


@pytest.mark.parametrize("text", ["[hub]\nendpoint = 'http://x'", "[live]\naddress = 'http://x'"])
def test_a_file_that_nobody_named_leads_no_secret_elsewhere(tmp_path: Path, text: str) -> None:
    usual = write(tmp_path, text)
    refused(lambda: load({}, tmp_path), "bad_setting")
    refused(lambda: load({"ASSAY_SETTINGS": " "}, tmp_path), "bad_setting")
    environment = {"ASSAY_SETTINGS": str(usual)}
    load(environment, tmp_path)
    assert "http://x" in environment.values()
    assert shown(environment)["ASSAY_SETTINGS"].origin is Origin.ENVIRONMENT


def test_a_file_of_somebody_else_counts_only_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "store = 'x'")
    if path.stat().st_uid == 0:
        try:
            os.chown(path, 12345, -1)
        except OSError:
            pytest.skip("this machine gives no file away")
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    refused(SettingsFile(path, named=False).texts, "settings_open")
    assert SettingsFile(path, named=True).texts() == {"ASSAY_STORE": "x"}
