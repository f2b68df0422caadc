"""Secrets that are changed while a process runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.settings.rotation import (
    CurrentSecrets,
    SecretRotation,
    fixed,
    refresh,
    renewal_hint,
)
from benchmarks.settings.sources import load

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
    variables = {
        f"{SECRET}_FILE": str(tmp_path / "secret"), f"{SECRET}_OLD_FILE": str(tmp_path / "old"),
    }  # fmt: skip
    load(variables, tmp_path)
    return variables


def test_a_secret_is_read_again_where_it_was_changed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert not refresh(SECRET, environment)
    (tmp_path / "secret").write_text(SECOND)
    assert refresh(SECRET, environment)
    assert environment[SECRET] == SECOND
    assert not refresh(SECRET, environment)
    assert str(tmp_path / "secret") in renewal_hint(SECRET, environment)


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
    file = tmp_path / ".assay" / "settings.toml"
    file.parent.mkdir()
    file.touch(mode=0o600)
    file.write_text(f"[live]\nsecret = '{FIRST}'")
    environment = {"ASSAY_SETTINGS": str(file)} if named else {}
    load(environment, tmp_path)
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
    with pytest.raises(SubmitterError, match="weak"):
        SecretRotation(SECRET, {SECRET: "weak"}, checked)


def test_files_are_read_only_now_and_then(environment: dict[str, str], tmp_path: Path) -> None:
    now = [0.0]
    secrets = SecretRotation(SECRET, environment, checked, every_s=5.0, steady=lambda: now[0])
    (tmp_path / "secret").write_text(SECOND)
    now[0] = 4.9
    assert secrets() == (FIRST,)
    now[0] = 5.0
    assert secrets() == (SECOND,)


def test_a_fixed_secret_and_none_at_all() -> None:
    assert (fixed("x")(), fixed("")()) == (("x",), ())


def test_current_secrets_are_read_at_each_look_up(
    environment: dict[str, str], tmp_path: Path
) -> None:
    secrets = CurrentSecrets({"TOKEN": SECRET, "NONE": "HF_TOKEN"}, environment)
    (tmp_path / "secret").write_text(SECOND)
    assert dict(secrets) == {"TOKEN": SECOND, "NONE": ""}
