"""The site with its own libraries alone: in the image, and as a Space starts it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.launching.space_folder import SpaceFolder
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import create
from leaderboard.store.opening import StoreName
from tests.deploy.rig import ROOT, USER, Container, Rig, for_user, service, walls
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.processes import PATIENCE_S, await_answer, free_port, running

pytestmark = pytest.mark.slow

STORE = "hub:org/assay"
FETCH = "import urllib.request as u; r = u.urlopen('http://127.0.0.1:7860{}'); print(r.status, r.read())"


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder on a way that every user may go, as pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="assay-deploy-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def libraries(open_folder: Path) -> Path:
    """A clean environment with what requirements-app.txt pins, and nothing else."""
    folder = open_folder / "venv"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    words = ["--quiet", "--python", str(folder / "bin/python"), "--require-hashes", "--no-build"]
    lock = ROOT / "requirements-app.txt"
    subprocess.run([uv, "pip", "install", *words, "-r", lock], check=True)
    # Compiled once, what the site imports of it: every start would do it again.
    warm = "import gradio, huggingface_hub, mcp.server.fastmcp, pandas, scipy"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([folder / "bin/python", "-c", warm], cwd="/", env=environment, check=True)
    return folder


# In a container, as its image starts it.


@pytest.fixture(scope="module")
def site(
    engine: Rig, libraries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Container]:
    home = for_user(tmp_path_factory.mktemp("volume"))
    with engine.running("app", libraries, home, options=walls(service("site"))) as container:
        container.wait_until_healthy()
        yield container


def test_it_serves_pages_and_programs_and_runs_commands(site: Container) -> None:
    for path, word in (
        ("/", "200"),
        ("/", "Assay"),
        ("/v1/benchmarks", "demo_croc"),
        ("/health", '"status":"ok"'),
    ):
        assert word in site.says("python", "-c", FETCH.format(path))
    assert "ok" in site.says("python", "-m", "evaluator", "health")
    assert "demo_croc" in site.says("python", "-m", "benchmarks", "list")
    silent = site.says("python", "-I", "-S", "/opt/assay/deploy/probe.py", "7999")
    assert "port 7999" in silent


def test_it_has_no_libraries_of_models(site: Container) -> None:
    of_models = ["torch", "transformers", "ray", "datasets", "cv2"]
    look = f"import importlib.util as i; print([n for n in {of_models} if i.find_spec(n)])"
    assert site.says("python", "-c", look) == "[]\n"


WRITES = """
import os
print(os.getuid(), os.getgid(), open('/proc/self/status').read())
for folder in ('/', '/opt/assay', '/opt/assay/benchmarks', '/opt/venv', '/etc', '/var/lib/assay', '/tmp'):
    try:
        open(f'{folder}/x', 'w')
        print('writes to', folder)
    except OSError:
        print('cannot write to', folder)
"""


def test_it_is_nobody_and_can_write_to_its_volume_alone(site: Container) -> None:
    printed = site.says("python", "-c", WRITES)
    assert printed.startswith("1000 1000")
    assert "CapEff:\t0000000000000000" in printed
    assert "NoNewPrivs:\t1" in printed
    assert re.findall(r"^writes to (.*)", printed, re.MULTILINE) == ["/var/lib/assay", "/tmp"]
    assert len(re.findall(r"^cannot write to", printed, re.MULTILINE)) == 5


def test_it_ends_when_it_is_told_to(site: Container) -> None:
    """The last test of the container: it ends that of the others."""
    assert site.stop(60)["ExitCode"] == 0, site.log()  # 137 where it had to be killed


# As a Space.


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


@pytest.mark.parametrize("signed", [False, True], ids=["without a token", "with a token"])
def test_people_can_sign_in_where_there_is_a_token_and_else_only_look(
    pushed: Path, libraries: Path, hub: HubServer, visitor: Path, signed: bool
) -> None:
    before = hub.tally.commits()
    token = {"HF_TOKEN": hub.token} if signed else {}
    with space(pushed, libraries / "bin/python", hub, visitor, **token) as address:
        assert "demo_croc" in get(address, "/v1/benchmarks")
        assert "Assay" in get(address, "/")
        assert ("Sign in with Hugging Face" in components(address)) == signed
        code, said = upload(address)
    assert code == 403
    assert ("Sign in" if signed else "no token") in said
    assert hub.tally.commits() == before
