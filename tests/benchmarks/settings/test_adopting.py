"""Which value counts: variable before file before default; and what is told to children."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.settings.adopting import adopt, settings_file
from benchmarks.settings.values import Origin, Value, read, value_of, values, with_absolute_paths


def write(folder: Path, text: str, name: str = ".assay/settings.toml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def found(environment: dict[str, str], **options: str) -> dict[str, Value]:
    return {value.field.about.variable: value for value in values(environment, options)}


def test_without_a_file_nothing_is_changed(tmp_path: Path) -> None:
    environment = {"ASSAY_STORE": "x", "PATH": "/bin"}
    adopted = adopt(environment, tmp_path)
    assert environment == {"ASSAY_STORE": "x", "PATH": "/bin"}
    assert (adopted.file, adopted.changed, adopted.warnings) == (None, frozenset(), ())


def test_an_option_comes_before_a_variable_that_before_the_file_and_that_before_the_default(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, "store = 'f'\ndata = 'f'\nscratch = 'f'")
    environment = {"ASSAY_STORE": "v", "ASSAY_DATA": "v", "ASSAY_SCRATCH": "  "}
    adopt(environment, tmp_path)
    told = found(environment, store="o")
    assert (told["ASSAY_STORE"].shown, told["ASSAY_STORE"].origin) == ("o", Origin.OPTION)
    assert (told["ASSAY_DATA"].shown, told["ASSAY_DATA"].origin) == ("v", Origin.ENVIRONMENT)
    assert (told["ASSAY_SCRATCH"].shown, told["ASSAY_SCRATCH"].origin) == ("f", Origin.FILE)
    assert told["ASSAY_SCRATCH"].where == str(file)
    assert (told["PORT"].shown, told["PORT"].origin) == ("7860", Origin.DEFAULT)


def test_the_file_that_is_named_comes_before_the_usual_one(tmp_path: Path) -> None:
    write(tmp_path, "store = 'usual'")
    named = write(tmp_path, "store = 'named'", "mine.toml")
    environment = {"ASSAY_SETTINGS": "mine.toml"}
    adopt(environment, tmp_path)
    assert environment["ASSAY_STORE"] == "named"
    assert settings_file(environment) == named


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError) as caught:
        adopt({"ASSAY_SETTINGS": "nope.toml"}, tmp_path)
    assert caught.value.code == "no_settings"


def test_a_child_in_another_folder_has_the_same_values_and_knows_where_from(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, "store = 'f'")
    environment: dict[str, str] = {}
    adopt(environment, tmp_path)
    file.write_text("store = 'changed since'")
    child = dict(environment)
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", "store = 'of another folder'")
    assert adopt(child, tmp_path / "other").changed == frozenset()
    assert (child["ASSAY_STORE"], found(child)["ASSAY_STORE"].origin) == ("f", Origin.FILE)


def test_what_a_parent_sets_for_a_child_is_the_file_s_no_longer(tmp_path: Path) -> None:
    write(tmp_path, "store = 'f'")
    environment: dict[str, str] = {}
    adopt(environment, tmp_path)
    child = {**environment, "ASSAY_STORE": "by option"}
    assert found(child)["ASSAY_STORE"].origin is Origin.ENVIRONMENT


def test_a_secret_comes_from_a_file_of_its_own_and_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_of_the_house\n")
    environment = {"HF_TOKEN_FILE": str(tmp_path / "token")}
    adopt(environment, tmp_path)
    assert environment["HF_TOKEN"] == "hf_of_the_house"
    value = found(environment)["HF_TOKEN"]
    assert (value.shown, value.where) == ("set", str(tmp_path / "token"))
    assert "hf_of_the_house" not in environment["ASSAY_SETTINGS_TAKEN"]


def test_the_settings_file_may_name_the_file_of_a_secret(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_of_the_house")
    write(tmp_path, f"[hub]\ntoken_file = '{tmp_path / 'token'}'")
    environment: dict[str, str] = {}
    adopt(environment, tmp_path)
    assert environment["HF_TOKEN"] == "hf_of_the_house"


def test_a_variable_hides_both_ways_in_which_the_file_gives_a_secret(tmp_path: Path) -> None:
    for text in ("token = 'x'", "token_file = '/nope'"):
        write(tmp_path, f"[hub]\n{text}")
        environment = {"HF_TOKEN": "of the variable"}
        adopt(environment, tmp_path)
        assert environment["HF_TOKEN"] == "of the variable"
        assert "HF_TOKEN_FILE" not in environment


@pytest.mark.parametrize("content", ["", " \n", "two\nlines", "a\0b"])
def test_a_file_that_holds_no_secret_is_named_without_what_it_holds(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "token").write_text(content)
    with pytest.raises(SubmitterError, match="HF_TOKEN_FILE names") as caught:
        adopt({"HF_TOKEN_FILE": str(tmp_path / "token")}, tmp_path)
    assert caught.value.code == "bad_secret_file"
    assert "two" not in str(caught.value)


def test_a_secret_given_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    with pytest.raises(SubmitterError) as caught:
        adopt({"HF_TOKEN": "y", "HF_TOKEN_FILE": str(tmp_path / "token")}, tmp_path)
    assert caught.value.code == "two_secrets"


def test_the_one_before_a_secret_may_be_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    environment = {"ASSAY_LIVE_SECRET_OLD_FILE": str(tmp_path / "old")}
    adopt(environment, tmp_path)
    assert environment["ASSAY_LIVE_SECRET_OLD"] == ""


def test_a_mistyped_variable_is_told_with_the_nearest(tmp_path: Path) -> None:
    (warning,) = adopt({"ASSAY_OPERATOR": "hub:ada"}, tmp_path).warnings
    assert "ASSAY_OPERATOR is no setting" in warning
    assert "Did you mean ASSAY_OPERATORS?" in warning


@pytest.mark.parametrize(
    "name",
    ["ASSAY_SERVICE_HOST", "ASSAY_PORT_7860_TCP_ADDR", "ASSAY_PORT", "ASSAY_TEST_ALL",
     "HF_TOKENS", "ASSAY_LIVE_SECRET_FILE"],
)  # fmt: skip
def test_what_others_set_is_passed_over(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_text("a-secret-of-the-house")
    assert adopt({name: str(tmp_path / "x")}, tmp_path).warnings == ()


def test_a_bad_variable_is_told_by_name_and_a_secret_is_not_repeated() -> None:
    told = found({"ASSAY_LOG_DAYS": "soon", "HF_TOKEN": "a\x07b"})
    assert "ASSAY_LOG_DAYS 'soon'" in told["ASSAY_LOG_DAYS"].problem
    assert "a\x07b" not in told["HF_TOKEN"].problem + told["HF_TOKEN"].shown


@pytest.mark.parametrize("named", [{}, {"ASSAY_SETTINGS": " "}])
def test_a_file_that_was_only_found_is_trusted_less(tmp_path: Path, named: dict[str, str]) -> None:
    write(tmp_path, "[hub]\nendpoint = 'http://evil.example'")
    with pytest.raises(SubmitterError, match="a file that nobody named may not"):
        adopt(dict(named), tmp_path)
    environment = {"ASSAY_SETTINGS": str(tmp_path / ".assay" / "settings.toml")}
    adopt(environment, tmp_path)
    assert environment["HF_ENDPOINT"] == "http://evil.example"
    assert found(environment)["ASSAY_SETTINGS"].origin is Origin.ENVIRONMENT


def test_an_environment_for_another_folder_means_the_same_there() -> None:
    moved = with_absolute_paths({"ASSAY_MODELS": "models", "ASSAY_STORE": "s", "PORT": "1"})
    assert moved == {
        "ASSAY_MODELS": str(Path("models").absolute()),
        "ASSAY_STORE": "s",
        "PORT": "1",
    }


def test_a_value_is_read_with_its_type_or_refused_by_name() -> None:
    assert value_of("operators", {"ASSAY_OPERATORS": "hub:ada, hub:bob"}) == ("hub:ada", "hub:bob")
    assert value_of("log_days", {"ASSAY_LOG_DAYS": " "}) == 30.0
    assert read({"PORT": "80"}).port == 80
    with pytest.raises(SubmitterError, match="PORT 'x'"):
        read({"PORT": "x"})


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_editor_may_have_marked_the_file_of_a_secret(tmp_path: Path, mark: str) -> None:
    (tmp_path / "token").write_text(f"{mark}hf_of_the_house\r\n", encoding="utf-8")
    environment = {"HF_TOKEN_FILE": str(tmp_path / "token")}
    adopt(environment, tmp_path)
    assert environment["HF_TOKEN"] == "hf_of_the_house"


@pytest.mark.parametrize("kind", ["pipe", "folder", "/dev/zero"])
def test_a_secret_is_not_waited_for_where_there_is_no_plain_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(SubmitterError) as caught:
        adopt({"HF_TOKEN_FILE": str(path)}, tmp_path)
    assert caught.value.code == "bad_secret_file"


@pytest.mark.parametrize("variable", ["ASSAY_SETTINGS", "HF_TOKEN_FILE"])
def test_a_home_that_nobody_has_is_named_by_its_variable(tmp_path: Path, variable: str) -> None:
    with pytest.raises(SubmitterError, match=f"{variable}: there is no home '~nobody-of-that-name"):
        adopt({variable: "~nobody-of-that-name/x"}, tmp_path)


def _folder(usual: Path) -> None:
    usual.mkdir(parents=True)


def _link_to_nowhere(usual: Path) -> None:
    usual.parent.mkdir()
    usual.symlink_to("nowhere.toml")


def _no_way_there(usual: Path) -> None:
    usual.parent.symlink_to(usual.parent.name)  # As a folder that is closed to this user.


@pytest.mark.parametrize("made", [_folder, _link_to_nowhere, _no_way_there])
def test_settings_that_are_there_and_cannot_be_read_are_not_passed_over(
    tmp_path: Path, made: Callable[[Path], None]
) -> None:
    made(tmp_path / ".assay" / "settings.toml")
    with pytest.raises(SubmitterError) as caught:
        adopt({}, tmp_path)
    assert caught.value.code == "no_settings"
