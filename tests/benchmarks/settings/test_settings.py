"""Settings: their list and the source, precedence, files and secrets, and what is refused."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.settings import model
from benchmarks.settings.model import (
    KEYS,
    MOST_FILE_BYTES,
    SETTINGS,
    VARIABLES,
    Origin,
    SettingsFile,
    Value,
    load,
    read,
    settings_file,
    unknown_variables,
    value_of,
    values,
)
from benchmarks.settings.rotation import (
    CurrentSecrets,
    SecretRotation,
    fixed,
    refresh,
    renewal_hint,
)
from tests.conftest import REPOSITORY

HOME = Path("~").expanduser()
NOBODY = "~nobody-of-that-name/x"
TOKEN = "hf_of_the_house"


def write(folder: Path, text: str, name: str = ".assay/settings.toml", mode: int = 0o600) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def texts(folder: Path, text: str, *, mode: int = 0o600) -> dict[str, str]:
    """What a file that is named gives."""
    return SettingsFile(write(folder, text, mode=mode), named=True).texts()


def refused(action: Callable[[], object], *codes: str) -> str:
    """The message of an error with one of the codes."""
    with pytest.raises(SubmitterError) as caught:
        action()
    assert caught.value.code in codes
    return caught.value.message


def loaded(folder: Path, **environment: str) -> dict[str, str]:
    load(environment, folder)
    return environment


def shown(environment: dict[str, str], **options: str) -> dict[str, Value]:
    return {value.setting.variable: value for value in values(environment, options)}


# The list of settings and the source.

NAME = re.compile(r"\bASSAY_[A-Z0-9_]+\b")
READERS = ("app.py", "leaderboard/service/address.py", "evaluator/commands/demo.py")


NAMES = "|".join([*SETTINGS, *(setting.name for setting in SETTINGS.values())])
MENTIONED = re.compile(rf'{NAME.pattern}|"(?:{NAMES})"')


@cache
def constants() -> dict[str, frozenset[str]]:
    """Texts in the source by file, of the files that may name a setting: parsing all takes seconds."""
    files = [REPOSITORY / "app.py"]
    for package in ("benchmarks", "leaderboard", "evaluator"):
        files += sorted((REPOSITORY / package).rglob("*.py"))
    return {
        str(file.relative_to(REPOSITORY)): frozenset(
            node.value
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        for file in files
        if MENTIONED.search(text := file.read_text("utf-8"))
    }


@pytest.mark.slow
def test_every_variable_that_the_source_names_is_a_setting() -> None:
    for file, found in constants().items():
        assert unknown_variables({n for text in found for n in NAME.findall(text)}) == (), file


def test_every_variable_of_the_deployment_is_a_setting_or_known_as_its_own() -> None:
    files = [REPOSITORY / name for name in ("compose.yaml", "Dockerfile", "Makefile")]
    files += [path for path in (REPOSITORY / "deploy").rglob("*") if path.is_file()]
    text = "\n".join(path.read_text("utf-8", "replace") for path in files)
    assert unknown_variables(NAME.findall(text)) == ()


def test_every_setting_is_read_somewhere_and_explained() -> None:
    outside = frozenset().union(*(t for file, t in constants().items() if "/settings/" not in file))
    source = "".join((REPOSITORY / name).read_text() for name in READERS)
    used = outside | set(re.findall(r"\b(?:values|settings)\.(\w+)", source))
    assert [
        setting.name
        for setting in SETTINGS.values()
        if not setting.at_import
        and not {setting.variable, setting.name} & used
        and setting.variable.removesuffix("_OLD") not in VARIABLES - {setting.variable}
        and setting.name != "settings"
    ] == []
    assert len(KEYS) == len([setting for setting in SETTINGS.values() if setting.key])
    for setting in SETTINGS.values():
        assert setting.text.endswith(".")
        assert setting.readers
        assert not setting.secret or not setting.default_text


def test_a_mistyped_variable_is_told_and_those_of_others_are_passed_over(tmp_path: Path) -> None:
    (warning,) = load({"ASSAY_OPERATOR": "hub:ada"}, tmp_path)
    assert {"ASSAY_OPERATOR", "ASSAY_OPERATORS?"} <= set(warning.split())
    unknown = ("ASSAY_OPERATOR", "ASSAY_TOKEN")
    known = (
        "ASSAY_SERVICE_HOST", "ASSAY_PORT_7860_TCP_ADDR", "ASSAY_PORT", "ASSAY_TEST_ALL",
        "ASSAY_LIVE_SECRET_FILE", "ASSAY_SETTINGS_ORIGINS", "HF_TOKENS",
    )  # fmt: skip
    assert unknown_variables([*unknown, *known]) == unknown


# Precedence.


def test_the_order_of_precedence(tmp_path: Path) -> None:
    before = {"ASSAY_STORE": "x", "PATH": "/bin"}
    assert loaded(tmp_path, **before) == before, "without a file nothing is changed"
    file = write(tmp_path, "store = 'f'\ndata = 'f'\nscratch = 'f'")
    environment = loaded(tmp_path, ASSAY_STORE="v", ASSAY_DATA="v", ASSAY_SCRATCH="  ")
    found = shown(environment, store="o")
    for name, text, origin, of in (
        ("ASSAY_STORE", "o", Origin.OPTION, ""),
        ("ASSAY_DATA", "v", Origin.ENVIRONMENT, ""),
        ("ASSAY_SCRATCH", "f", Origin.FILE, str(file)),
        ("PORT", "7860", Origin.DEFAULT, ""),
    ):
        assert (found[name].text, found[name].origin, found[name].file) == (text, origin, of)


def test_the_file_that_is_named_comes_before_the_usual_one(tmp_path: Path) -> None:
    write(tmp_path, "store = 'usual'")
    named = write(tmp_path, "store = 'named'", "mine.toml")
    environment = loaded(tmp_path, ASSAY_SETTINGS="mine.toml")
    assert (environment["ASSAY_STORE"], settings_file(environment)) == ("named", named)


def test_a_child_in_another_folder_has_the_same_values_and_their_origin(tmp_path: Path) -> None:
    file = write(tmp_path, "store = 'f'\ndata = 'f'")
    environment = loaded(tmp_path)
    file.write_text("store = 'changed since'")
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", "store = 'of another folder'")
    child = {**environment, "ASSAY_DATA": "of the parent's option"}
    assert loaded(tmp_path / "other", **child) == child
    found = shown(child)
    assert (found["ASSAY_STORE"].text, found["ASSAY_STORE"].origin) == ("f", Origin.FILE)
    assert found["ASSAY_DATA"].origin is Origin.ENVIRONMENT


# Secrets in files of their own.


@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize("around", [("", "\n"), ("\ufeff", "\r\n")], ids=["plain", "of Windows"])
def test_a_secret_comes_from_a_file_of_its_own_and_is_never_shown(
    tmp_path: Path, around: tuple[str, str], by_key: bool
) -> None:
    path = tmp_path / "token"
    path.write_bytes(TOKEN.join(around).encode())
    if by_key:
        write(tmp_path, f"[hub]\ntoken_file = '{path}'")
    environment = loaded(tmp_path, **({} if by_key else {"HF_TOKEN_FILE": str(path)}))
    assert environment["HF_TOKEN"] == TOKEN
    value = shown(environment)["HF_TOKEN"]
    assert (value.text, value.file) == ("set", str(path))
    assert TOKEN not in environment["ASSAY_SETTINGS_ORIGINS"]


@pytest.mark.parametrize("text", ["token = 'x'", "token_file = '/nope'"])
def test_a_variable_hides_both_keys_of_a_secret(tmp_path: Path, text: str) -> None:
    write(tmp_path, f"[hub]\n{text}")
    environment = loaded(tmp_path, HF_TOKEN="mine")
    assert environment["HF_TOKEN"] == "mine"
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
    old = loaded(tmp_path, ASSAY_LIVE_SECRET_OLD_FILE=str(write(tmp_path, "", "old")))
    assert old["ASSAY_LIVE_SECRET_OLD"] == "", "there is none before the first"


def test_all_problems_of_secrets_are_told_at_once(tmp_path: Path) -> None:
    environment = {
        "HF_TOKEN": "y",
        "HF_TOKEN_FILE": str(tmp_path / "token"),
        "ASSAY_LIVE_SECRET_FILE": str(tmp_path),
        "ASSAY_JOB_TOKEN_FILE": NOBODY,
    }
    message = refused(lambda: load(environment, tmp_path), "two_secrets", "bad_secret_file")
    for part in ("HF_TOKEN_FILE", "ASSAY_LIVE_SECRET_FILE", "ASSAY_JOB_TOKEN_FILE:"):
        assert part in message
    assert "y" not in environment.get("ASSAY_SETTINGS_ORIGINS", "")


# Variables.


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
    wrong = {name: value.problem for name, value in found.items() if value.problem}
    assert set(wrong) == {"ASSAY_LOG_DAYS", "PORT", "HF_TOKEN"}
    assert all(problem in message for problem in wrong.values())
    assert "ASSAY_LOG_DAYS 'soon'" in message
    assert "a\x07b" not in message + found["HF_TOKEN"].text
    assert found["ASSAY_DATA"].text == "d"


# The settings file.


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
        "ASSAY_STORE": "hub:lab/board", "ASSAY_OPERATORS": "hub:ada,local:bob", "PORT": "8000",
        "HF_TOKEN_FILE": "/run/secrets/token", "HF_HUB_OFFLINE": "1", "ASSAY_LOG_MIB": "0.5",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "variable", "expected"),
    [
        ("data = '~/data'", "ASSAY_DATA", str(HOME / "data")),
        ("scratch = 'scratch'", "ASSAY_SCRATCH", "scratch"),
        ("store = '~/store'", "ASSAY_STORE", str(HOME / "store")),
        ("store = './a:b'", "ASSAY_STORE", "./a:b"),
        ("hub.token_file = '~/t'", "HF_TOKEN_FILE", str(HOME / "t")),
    ],
)
def test_paths_at_home_are_found_and_others_stay(
    tmp_path: Path, text: str, variable: str, expected: str
) -> None:
    assert texts(tmp_path, text) == {variable: expected}


@pytest.mark.parametrize("variable", ["ASSAY_SETTINGS", "HF_TOKEN_FILE"])
def test_a_home_that_nobody_has_is_named_by_its_variable(tmp_path: Path, variable: str) -> None:
    message = refused(lambda: load({variable: NOBODY}, tmp_path), "bad_setting")
    assert message.startswith(f"{variable}: ")
    assert "'~nobody-of-that-name'" in message


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


@pytest.mark.parametrize(
    ("text", "line", "words", "code"),
    [
        ("\nstor = 'x'", 2, "mean store?", "bad_settings"),
        ("[hub]\n[hub.token]\nx = 1", 3, "'hub.token.x'", "bad_settings"),
        ("[[hub]]\ntoken = 'x'", 1, "'hub'", "bad_settings"),
        ("worker = 'w'", 1, "'worker'", "bad_settings"),
        ("[site]\nport = 'http'", 2, "site.port", "bad_setting"),
        ("[site]\n\nport = 0", 3, "or equal to 1", "bad_setting"),
        ("[site]\nport = true", 2, "site.port", "bad_setting"),
        ("store = 5", 1, "valid string", "bad_setting"),
        ("store = ''", 1, "store:", "bad_setting"),
        ("[hub]\ntoken_file = ''", 2, "hub.token_file", "bad_setting"),
        ("[hub]\ntoken_file = 5", 2, "hub.token_file", "bad_setting"),
        ('store = "a\\u0000b"', 1, "control", "bad_setting"),
        ('operators = ["a\\u0000b"]', 1, "control", "bad_setting"),
        (f"data = '{NOBODY}'", 1, "'~nobody-of-that-name'", "bad_setting"),
        (f"store = '{NOBODY}'", 1, "'~nobody-of-that-name'", "bad_setting"),
        (f"hub.token_file = '{NOBODY}'", 1, "'~nobody-of-that-name'", "bad_setting"),
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
    assert set(re.findall(r"settings\.toml:(\d): ", message)) == set("12346")
    assert "hub.token" in message


@pytest.mark.parametrize(
    "text",
    [
        "store = 'x'\nport = =", f"store = {'[' * 20_000}{']' * 20_000}", f"{'a.' * 4_000}b = 1",
        f"site.port = {'9' * 5_000}", "store = '\udcff'",
    ],
    ids=["syntax", "brackets", "dots", "digits", "encoding"],
)  # fmt: skip
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(lambda: SettingsFile(path, named=True), "bad_settings")


@pytest.mark.parametrize(
    ("mode", "text", "taken"),
    [
        (0o640, f"[hub]\ntoken = '{TOKEN}'", False),
        (0o604, f"[hub]\ntoken = '{TOKEN}'", False),
        (0o600, f"[hub]\ntoken = '{TOKEN}'", True),
        (0o646, "store = 'x'", False),
        (0o664, "[hub]\ntoken_file = '/run/secrets/x'", True),
    ],
)
def test_a_file_that_others_may_change_or_read_a_secret_of_is_refused(
    tmp_path: Path, mode: int, text: str, taken: bool
) -> None:
    if taken:
        assert len(texts(tmp_path, text, mode=mode)) == 1
        return
    assert TOKEN not in refused(lambda: texts(tmp_path, text, mode=mode), "settings_open")


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
    of_ours = model._read_regular

    def of_somebody_else(path: Path, most: int) -> tuple[bytes, os.stat_result]:
        content, status = of_ours(path, most)
        return content, os.stat_result((*status[:4], status.st_uid + 12345, *status[5:]))

    monkeypatch.setattr(model, "_read_regular", of_somebody_else)
    path = write(tmp_path, "store = 'x'")
    refused(SettingsFile(path, named=False).texts, "settings_open")
    assert SettingsFile(path, named=True).texts() == {"ASSAY_STORE": "x"}


# Secrets that are changed while a process runs.

FIRST, SECOND = "the-first-of-all-secrets", "the-second-of-them"
SECRET = "ASSAY_LIVE_SECRET"


def checked(secret: str) -> str:
    if len(secret) < 16:
        raise SubmitterError("weak", "It is weak.")
    return secret


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "secret").write_text(FIRST)
    (tmp_path / "old").touch()
    files = {f"{SECRET}_FILE": "secret", f"{SECRET}_OLD_FILE": "old"}
    return loaded(tmp_path, **{name: str(tmp_path / file) for name, file in files.items()})


def test_a_secret_is_read_again_where_it_was_changed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    current = CurrentSecrets({"TOKEN": SECRET, "NONE": "HF_TOKEN"}, environment)
    assert not refresh(SECRET, environment)
    (tmp_path / "secret").write_text(SECOND)
    assert refresh(SECRET, environment)
    assert environment[SECRET] == SECOND
    assert not refresh(SECRET, environment)
    assert str(tmp_path / "secret") in renewal_hint(SECRET, environment)
    (tmp_path / "secret").write_text(FIRST)
    assert dict(current) == {"TOKEN": FIRST, "NONE": ""}, "at each look-up"


@pytest.mark.parametrize("content", [None, "", "two\nlines"])
def test_a_file_that_is_being_written_changes_nothing(
    environment: dict[str, str], tmp_path: Path, content: str | None
) -> None:
    (tmp_path / "secret").unlink() if content is None else (tmp_path / "secret").write_text(content)
    assert not refresh(SECRET, environment)
    assert environment[SECRET] == FIRST


@pytest.mark.parametrize("named", [False, True])
def test_a_secret_of_the_settings_file_is_read_again_too(tmp_path: Path, named: bool) -> None:
    """A file that nobody named is trusted no more than before."""
    file = write(tmp_path, f"[live]\nsecret = '{FIRST}'")
    environment = loaded(tmp_path, **({"ASSAY_SETTINGS": str(file)} if named else {}))
    file.write_text(f"[live]\nsecret = '{SECOND}'\naddress = 'http://elsewhere'")
    assert refresh(SECRET, environment) is named
    assert environment[SECRET] == (SECOND if named else FIRST)
    assert "ASSAY_LIVE" not in environment
    file.write_text(f"[live]\nsecret = '{FIRST[::-1]}'")
    assert refresh(SECRET, environment)


def test_a_secret_of_a_variable_is_left_alone() -> None:
    assert not refresh("HF_TOKEN", {"HF_TOKEN": "x"})
    assert "HF_TOKEN_FILE" in renewal_hint("HF_TOKEN", {"HF_TOKEN": "x"})
    assert "hf auth login" in renewal_hint("HF_TOKEN", {})
    assert (fixed("x")(), fixed("")()) == (("x",), ())


def test_a_server_takes_old_and_new_while_both_are_present(
    environment: dict[str, str], tmp_path: Path
) -> None:
    secrets = SecretRotation(SECRET, environment, checked, every_s=0.0)
    assert secrets() == (FIRST,)
    for new, old, valid in [
        (SECOND, FIRST, (SECOND, FIRST)), ("weak", FIRST, (SECOND, FIRST)), (SECOND, "", (SECOND,)),
    ]:  # fmt: skip
        (tmp_path / "old").write_text(old)
        (tmp_path / "secret").write_text(new)
        assert secrets() == valid
    refused(lambda: SecretRotation(SECRET, {SECRET: "weak"}, checked), "weak")


def test_files_are_read_only_now_and_then(environment: dict[str, str], tmp_path: Path) -> None:
    now = [0.0]
    secrets = SecretRotation(SECRET, environment, checked, every_s=5.0, steady=lambda: now[0])
    (tmp_path / "secret").write_text(SECOND)
    for now[0], valid in ((4.9, FIRST), (5.0, SECOND)):
        assert secrets() == (valid,)
