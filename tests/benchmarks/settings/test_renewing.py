"""Secrets that are changed while a process runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.settings.adopting import adopt
from benchmarks.settings.renewing import SecretsOfNow, how_to_renew, renewed
from benchmarks.settings.rotating import Rotating, always

FIRST, SECOND = "the-first-of-all-secrets", "the-second-of-them"


def checked(secret: str) -> str:
    if len(secret) < 16:
        raise SubmitterError("weak", "It is weak.")
    return secret


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "secret").write_text(FIRST)
    (tmp_path / "old").touch()
    environment = {
        "ASSAY_LIVE_SECRET_FILE": str(tmp_path / "secret"),
        "ASSAY_LIVE_SECRET_OLD_FILE": str(tmp_path / "old"),
    }
    adopt(environment, tmp_path)
    return environment


def test_a_secret_is_read_again_where_it_was_changed(given: dict[str, str], tmp_path: Path) -> None:
    assert not renewed("ASSAY_LIVE_SECRET", given)
    (tmp_path / "secret").write_text(SECOND)
    assert renewed("ASSAY_LIVE_SECRET", given)
    assert given["ASSAY_LIVE_SECRET"] == SECOND
    assert not renewed("ASSAY_LIVE_SECRET", given)


@pytest.mark.parametrize("content", [None, "", "two\nlines"])
def test_a_file_that_is_being_written_changes_nothing(
    given: dict[str, str], tmp_path: Path, content: str | None
) -> None:
    (tmp_path / "secret").unlink() if content is None else (tmp_path / "secret").write_text(content)
    assert not renewed("ASSAY_LIVE_SECRET", given)
    assert given["ASSAY_LIVE_SECRET"] == FIRST


def test_a_secret_of_the_settings_file_is_read_again_too(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.touch(mode=0o600)
    file.write_text(f"[live]\nsecret = '{FIRST}'")
    environment = {"ASSAY_SETTINGS": str(file)}
    adopt(environment, tmp_path)
    file.write_text(f"[live]\nsecret = '{SECOND}'")
    assert renewed("ASSAY_LIVE_SECRET", environment)
    assert environment["ASSAY_LIVE_SECRET"] == SECOND


def test_what_a_variable_gave_is_left_alone() -> None:
    environment = {"HF_TOKEN": "x"}
    assert not renewed("HF_TOKEN", environment)
    assert "HF_TOKEN_FILE" in how_to_renew("HF_TOKEN", environment)
    assert "hf auth login" in how_to_renew("HF_TOKEN", {})


def test_a_server_takes_old_and_new_while_both_are_given(
    given: dict[str, str], tmp_path: Path
) -> None:
    secrets = Rotating("ASSAY_LIVE_SECRET", given, checked, every_s=0.0)
    assert secrets() == (FIRST,)
    (tmp_path / "old").write_text(FIRST)
    (tmp_path / "secret").write_text(SECOND)
    assert secrets() == (SECOND, FIRST)
    (tmp_path / "old").write_text("")
    assert secrets() == (SECOND,)


def test_a_new_secret_that_is_weak_is_not_taken(given: dict[str, str], tmp_path: Path) -> None:
    secrets = Rotating("ASSAY_LIVE_SECRET", given, checked, every_s=0.0)
    (tmp_path / "secret").write_text("weak")
    assert secrets() == (FIRST,)
    with pytest.raises(SubmitterError, match="weak"):
        Rotating("ASSAY_LIVE_SECRET", {"ASSAY_LIVE_SECRET": "weak"}, checked)


def test_files_are_looked_at_only_now_and_then(given: dict[str, str], tmp_path: Path) -> None:
    now = [0.0]
    secrets = Rotating("ASSAY_LIVE_SECRET", given, checked, every_s=5.0, steady=lambda: now[0])
    (tmp_path / "secret").write_text(SECOND)
    now[0] = 4.9
    assert secrets() == (FIRST,)
    now[0] = 5.0
    assert secrets() == (SECOND,)


def test_one_secret_for_ever_and_none_at_all() -> None:
    assert (always("x")(), always("")()) == (("x",), ())


def test_secrets_for_others_are_those_of_now(given: dict[str, str], tmp_path: Path) -> None:
    secrets = SecretsOfNow({"TOKEN": "ASSAY_LIVE_SECRET", "NONE": "HF_TOKEN"}, given)
    (tmp_path / "secret").write_text(SECOND)
    assert dict(secrets) == {"TOKEN": SECOND, "NONE": ""}


def test_a_file_that_nobody_named_is_trusted_no_more_when_it_is_read_again(tmp_path: Path) -> None:
    usual = tmp_path / ".assay" / "settings.toml"
    usual.parent.mkdir()
    usual.write_text("[hub]\ntoken = 'one'\n")
    usual.chmod(0o600)
    environment: dict[str, str] = {}
    adopt(environment, tmp_path)
    usual.write_text("[hub]\ntoken = 'two'\nendpoint = 'http://evil.example'\n")
    assert not renewed("HF_TOKEN", environment)
    assert environment["HF_TOKEN"] == "one"
    usual.write_text("[hub]\ntoken = 'two'\n")
    assert renewed("HF_TOKEN", environment)
