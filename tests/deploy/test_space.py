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

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.launching.space_folder import LOCK, SpaceFolder
from leaderboard.governance.signing_in import SignIn, Visit, Way
from leaderboard.pages.visitors import who
from leaderboard.store.hub.creating import create
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.opening import StoreName
from supply.locks import read_lock
from tests.deploy.conftest import for_user
from tests.deploy.rig import ROOT, USER
from tests.hub.server import HubServer, running_hub
from tests.processes import await_answer, free_port, running

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


class TestMetadata:
    card = front_matter((ROOT / "README.md").read_text())

    def test_only_fields_that_spaces_know(self) -> None:
        assert self.card.keys() <= FIELDS
        assert {self.card["colorFrom"], self.card["colorTo"]} <= COLOURS
        assert len(self.card["short_description"]) <= 60
        assert not self.card["emoji"].isascii()

    def test_gradio_and_python_are_those_that_are_locked(self) -> None:
        pins = {pin.name: str(pin.version) for pin in read_lock(ROOT / LOCK)}
        assert self.card["sdk"] == "gradio"
        assert self.card["sdk_version"] == pins["gradio"]
        assert self.card["python_version"] == "3.11"
        assert (ROOT / self.card["app_file"]).is_file()

    def test_people_sign_in_and_are_asked_for_their_name_alone(self) -> None:
        assert self.card["hf_oauth"] is True
        assert "hf_oauth_scopes" not in self.card  # openid and profile are always asked for
        assert 0 < self.card["hf_oauth_expiration_minutes"] <= 43200


class TestFolder:
    def test_the_same_tree_gives_the_same_files(self) -> None:
        folder = SpaceFolder(StoreName.parse(STORE))
        assert list(folder.files()) == list(folder.files())

    def test_it_holds_the_site_and_nothing_private(self, tmp_path: Path) -> None:
        SpaceFolder().write(tmp_path / "out")
        tops = {path.name for path in (tmp_path / "out").iterdir()}
        assert tops == {
            "LICENSE", "README.md", "app.py", "benchmarks", "evaluator", "leaderboard",
            "pyproject.toml", "requirements.txt",
        }  # fmt: skip
        names = [path.name for path in (tmp_path / "out").rglob("*")]
        assert not [name for name in names if name.startswith(".") or name.endswith(".pyc")]

    def test_what_is_installed_is_what_is_locked(self) -> None:
        text = dict(SpaceFolder().files())["requirements.txt"].decode()
        pinned = [line for line in text.splitlines() if not line.startswith("#")]
        locked = [f"{pin.name}=={pin.version}" for pin in read_lock(ROOT / LOCK)]
        assert pinned == locked
        assert "torch" not in text
        assert "--hash" not in text  # pip would refuse what a Space adds

    def test_the_card_names_what_everybody_may_read(self) -> None:
        card = SpaceFolder(StoreName.parse(STORE), title="Ours").readme()
        front = front_matter(card)
        assert front["title"] == "Ours"
        assert front["datasets"] == ["org/assay-requests", "org/assay-scores", "org/assay-results"]
        assert "HF_TOKEN" in card

    def test_nothing_is_mixed_with_what_was_there(self, tmp_path: Path) -> None:
        (tmp_path / "old").write_text("")
        with pytest.raises(SubmitterError, match="not an empty folder"):
            SpaceFolder().write(tmp_path)

    def test_a_store_that_a_space_cannot_reach_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SubmitterError, match="cannot reach"):
            SpaceFolder(StoreName.parse("store")).write(tmp_path / "out")

    def test_an_image_is_no_place_to_write_one_from(self, tmp_path: Path) -> None:
        with pytest.raises(PlatformError, match="no checkout"):
            SpaceFolder(tree=tmp_path).write(tmp_path / "out")


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
        with urllib.request.urlopen(address + path, timeout=10) as reply:
            return str(reply.read().decode())
    except OSError:
        return ""


def upload(address: str) -> tuple[int, str]:
    """What is answered to a guest who sends a file: the code, and the words."""
    request = urllib.request.Request(f"{address}/gradio_api/upload", data=b"x", method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return int(reply.status), reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def components(address: str) -> str:
    """The parts of the page Submit, as the browser is given them."""
    found = re.search(r"window\.gradio_config = (\{.*?\});</script>", get(address, "/submit"))
    assert found
    return found[1]


@pytest.mark.slow
def test_without_a_token_the_boards_are_shown_and_nothing_is_taken(
    pushed: Path, site_libraries: Path, hub: HubServer, visitor: Path
) -> None:
    before = hub.tally.commits()
    with space(pushed, site_libraries / "bin/python", hub, visitor) as address:
        assert "demo_croc" in get(address, "/v1/benchmarks")
        assert "Assay" in get(address, "/")
        assert "Sign in with Hugging Face" not in components(address)
        code, said = upload(address)
    assert code == 403
    assert "takes nothing: it has no token" in said
    assert hub.tally.commits() == before


@pytest.mark.slow
def test_with_a_token_people_can_sign_in(
    pushed: Path, site_libraries: Path, hub: HubServer, visitor: Path
) -> None:
    python = site_libraries / "bin/python"
    with space(pushed, python, hub, visitor, HF_TOKEN=hub.token) as address:
        assert "Sign in with Hugging Face" in components(address)
        code, said = upload(address)
    assert code == 403
    assert "Sign in with your Hugging Face account" in said


def test_a_store_on_this_machine_needs_no_token(tmp_path: Path) -> None:
    assert StoreName.parse(str(tmp_path)).why_read_only() == ""


def test_who_can_write_nothing_knows_nobody() -> None:
    given = SignIn(Way.HUB, operators=frozenset({"hub:ada"}), hosts=frozenset({"x.hf.space"}))
    closed = given.reading_only("It only shows.")
    assert closed.account(Visit("127.0.0.1", {"host": "x.hf.space"}, "ada")) is None
    assert closed.invitation == "It only shows."
    assert "It only shows." in who(closed, None)


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
