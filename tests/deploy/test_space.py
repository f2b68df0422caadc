"""The Space: its metadata, its folder, and what it does with and without a token."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.errors import AssayError
from evaluator.launching.space_folder import LOCK, SpaceFolder
from leaderboard.governance.authentication import Authentication, AuthenticationMethod, Visit
from leaderboard.rendering import render
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import create
from leaderboard.store.opening import StoreName
from supply.locks import read_lock
from tests.deploy.rig import ROOT, USER, for_user
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.processes import PATIENCE_S, await_answer, free_port, running

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


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """A Hub with an empty store."""
    with running_hub() as found:
        folder = tmp_path_factory.mktemp("parts")
        list(create(HubParts("org/assay", folder, endpoint=found.endpoint, token=found.token)))
        yield found


@pytest.fixture(scope="module")
def pushed(open_folder: Path) -> Path:
    """What `python -m evaluator space` wrote, where an ordinary user can read it."""
    folder = open_folder / "space"
    SpaceFolder(StoreName.parse(STORE)).write(folder)
    return for_user(folder)


@pytest.fixture
def visitor(open_folder: Path) -> Path:
    """The home folder of whoever runs the Space."""
    (open_folder / "home").mkdir(exist_ok=True)
    return for_user(open_folder / "home")


@contextmanager
def space(folder: Path, python: Path, hub: HubServer, home: Path, **secrets: str) -> Iterator[str]:
    """The folder started as a Space starts it; gives its address."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "SYSTEM": "spaces", "PORT": str(port),
        "SPACE_ID": "org/assay", "SPACE_HOST": "org-assay.hf.space", "ASSAY_STORE": STORE,
        "GRADIO_SERVER_NAME": "127.0.0.1", "OAUTH_CLIENT_ID": "client", "PYTHONPATH": "",
        "OAUTH_CLIENT_SECRET": "x" * 32, "OAUTH_SCOPES": "openid profile",
        "OPENID_PROVIDER_URL": hub.endpoint, "PYTHONDONTWRITEBYTECODE": "1",
        **{k: v for k, v in hub.environment().items() if k != "HF_TOKEN"}, **secrets,
    }  # fmt: skip
    log = home / "log"
    address = f"http://127.0.0.1:{port}"
    command = [*as_user(python), "app.py"]
    with (
        log.open("wb") as output,
        running(command, cwd=folder, env=environment, stdout=output, stderr=output) as process,
    ):
        await_answer(f"{address}/health", process, log)
        yield address


def as_user(python: Path) -> list[str]:
    """Python as an ordinary user, for whom closed folders on the way to it are opened."""
    if os.geteuid() != 0:
        return [str(python)]
    opened = ROOT / "tests/deploy/as_space_user.py"
    return [str(python), str(opened), str(USER)]


def get(address: str, path: str) -> str:
    try:
        with urllib.request.urlopen(address + path, timeout=PATIENCE_S) as reply:
            return str(reply.read().decode())
    except OSError:
        return ""


def upload(address: str) -> tuple[int, str]:
    """What is answered to a guest who sends a file: the code, and the words."""
    request = urllib.request.Request(f"{address}/gradio_api/upload", data=b"x", method="POST")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
            return int(reply.status), reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def components(address: str) -> str:
    """The parts of the page Submit, as the browser is given them."""
    found = re.search(r"window\.gradio_config = (\{.*?\});</script>", get(address, "/submit"))
    assert found
    return found[1]


@pytest.mark.slow
@pytest.mark.parametrize("signed", [False, True], ids=["without a token", "with a token"])
def test_people_can_sign_in_where_there_is_a_token_and_else_only_look(
    pushed: Path, site_libraries: Path, hub: HubServer, visitor: Path, signed: bool
) -> None:
    before = hub.tally.commits()
    token = {"HF_TOKEN": hub.token} if signed else {}
    with space(pushed, site_libraries / "bin/python", hub, visitor, **token) as address:
        assert "demo_croc" in get(address, "/v1/benchmarks")
        assert "Assay" in get(address, "/")
        assert ("Sign in with Hugging Face" in components(address)) == signed
        code, said = upload(address)
    assert code == 403
    assert ("Sign in" if signed else "no token") in said
    assert hub.tally.commits() == before


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
    program = Path(sys.executable).with_name("hf")
    asked = [str(program), *command.split(), "--help"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
    assert all(re.search(rf"(^|[\s,]){option}[,\s]", said) for option in options)
