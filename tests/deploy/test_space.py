"""The Space: its metadata, its folder, and what it does with and without a token."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub.cli.hf import app as hf

from benchmarks.errors import AssayError
from evaluator.launching.space_folder import LOCK, SpaceFolder
from leaderboard.governance.authentication import Authentication, AuthenticationMethod, Visit
from leaderboard.rendering import render
from leaderboard.store.opening import StoreName
from supply.locks import read_lock
from tests.deploy.rig import ROOT

STORE = "hub:org/assay"
# https://huggingface.co/docs/hub/spaces-config-reference
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
FIELDS = {
    "title", "emoji", "colorFrom", "colorTo", "sdk", "python_version", "sdk_version",
    "suggested_hardware", "suggested_storage", "app_file", "app_build_command", "app_port",
    "base_path", "fullWidth", "header", "short_description", "models", "datasets", "tags",
    "thumbnail", "pinned", "hf_oauth", "hf_oauth_expiration_minutes", "hf_oauth_scopes",
    "disable_embedding", "startup_duration_timeout", "custom_headers", "preload_from_hub",
    "license",
}  # fmt: skip


def front_matter(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def test_the_metadata_are_those_that_spaces_know_and_what_is_locked() -> None:
    card = front_matter((ROOT / "README.md").read_text())
    assert card.keys() <= FIELDS
    assert {card["colorFrom"], card["colorTo"]} <= COLOURS
    assert len(card["short_description"]) <= 60
    assert not card["emoji"].isascii()
    pins = {pin.name: str(pin.version) for pin in read_lock(ROOT / LOCK)}
    assert (card["sdk"], card["sdk_version"]) == ("gradio", pins["gradio"])
    assert card["python_version"] == "3.11"
    assert (ROOT / card["app_file"]).is_file()
    # People sign in, and are asked for their name alone: openid and profile are always asked for.
    assert card["hf_oauth"] is True
    assert "hf_oauth_scopes" not in card
    assert 0 < card["hf_oauth_expiration_minutes"] <= 43200


def test_the_folder_holds_the_site_as_it_is_locked_and_nothing_private(tmp_path: Path) -> None:
    folder = SpaceFolder(StoreName.parse(STORE), title="Ours")
    files = dict(folder.files())
    assert files == dict(folder.files()), "the same tree gives the same files"
    folder.write(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "LICENSE", "README.md", "app.py", "benchmarks", "docs", "evaluator", "leaderboard",
        "pyproject.toml", "requirements.txt",
    }  # fmt: skip
    names = [path.name for path in (tmp_path / "out").rglob("*")]
    assert not [name for name in names if name.startswith(".") or name.endswith(".pyc")]
    text = files["requirements.txt"].decode()
    pinned = [line.partition(" ; ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert pinned == [f"{pin.name}=={pin.version}" for pin in read_lock(ROOT / LOCK)]
    assert "torch" not in text
    assert "--hash" not in text  # pip would refuse what a Space adds
    card = folder.readme()
    front = front_matter(card)
    assert front["title"] == "Ours"
    assert front["datasets"] == ["org/assay-requests", "org/assay-results"]
    assert "HF_TOKEN" in card


def test_where_a_space_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("")
    out = tmp_path / "out"
    for folder, place, says in (
        (SpaceFolder(), tmp_path, "empty folder"),
        (SpaceFolder(StoreName.parse("store")), out, "cannot reach"),
        (SpaceFolder(tree=tmp_path), out, "no checkout"),  # as within an image
    ):
        with pytest.raises(AssayError, match=says):
            folder.write(place)


def test_who_can_write_nothing_knows_nobody(tmp_path: Path) -> None:
    assert StoreName.parse(str(tmp_path)).why_read_only() == "", "a store here needs no token"
    given = Authentication(
        AuthenticationMethod.HUB, operators=frozenset({"hub:ada"}), hosts=frozenset({"x.hf.space"})
    )
    closed = given.reading_only("It only shows.")
    assert closed.account(Visit("127.0.0.1", {"host": "x.hf.space"}, "ada")) is None
    assert closed.invitation == "It only shows."
    assert "It only shows." in render("submit/visitor.html", sign_in=closed, account=None)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("repos create", {"--type", "--sdk"}),
        ("upload", {"--type", "--delete"}),
        ("spaces variables add", {"-e"}),
        ("spaces secrets add", {"-s"}),
    ],
)
def test_the_commands_of_the_hubs_own_program_exist(command: str, options: set[str]) -> None:
    """`hf` with these options is what the document tells people to run."""
    document = (ROOT / "docs/space.md").read_text("utf-8")
    told = [line for line in document.splitlines() if line.startswith(f"hf {command} ")]
    assert told
    for line in told:
        words = line.partition(" #")[0].split()
        assert {word for word in words if word.startswith("-")} == options
    help_text = CliRunner().invoke(hf, [*command.split(), "--help"]).stdout
    assert all(re.search(rf"(^|[\s,]){option}[,\s]", help_text) for option in options)
