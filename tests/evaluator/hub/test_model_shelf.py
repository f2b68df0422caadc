"""Models that modules name: fetched once, by commit, without a token, as safetensors only."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from evaluator.hub.model_shelf import ModelShelf
from evaluator.isolation.bubblewrap.backend import Bubblewrap
from evaluator.isolation.job import Job
from evaluator.isolation.limits import Limits
from tests.evaluator.isolation.boxes import png
from tests.evaluator.scorers.model_repositories import REPO, hub_of_models
from tests.hub.faults import Fault
from tests.hub.server import HubServer

FILES = {
    "config.json": b"{}",
    "model.safetensors": b"w" * 3000,
    "pytorch_model.bin": b"p" * 3000,
    "onnx/model.safetensors": b"o",
    ".gitattributes": b"*",
    "modeling_own.py": b"print()",
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub_of_models(monkeypatch) as state:
        yield state


def shelf(hub: HubServer, folder: Path, **more: int) -> ModelShelf:
    return ModelShelf(folder / "models", hub.endpoint, **more)


def refused(code: str) -> pytest.RaisesExc[SubmitterError]:
    return pytest.raises(SubmitterError, check=lambda error: error.code == code)


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_a_model_is_kept_as_the_hubs_client_keeps_it(hub: HubServer, tmp_path: Path) -> None:
    sha = hub.add(REPO, FILES).branches["main"]
    (model,) = shelf(hub, tmp_path).bring([f"{REPO}@{sha}"])
    here = f"snapshots/{sha}"
    assert names(model.folder) == {
        "refs/main",
        f"{here}/config.json",
        f"{here}/model.safetensors",
        f"{here}/modeling_own.py",
    }
    assert (model.folder / "refs/main").read_text() == sha
    assert model.folder_inside == "models--authors--model"


def test_what_is_here_costs_no_request(hub: HubServer, tmp_path: Path) -> None:
    sha = hub.add(REPO, FILES).branches["main"]
    first = shelf(hub, tmp_path).bring([f"{REPO}@{sha}"])
    asked = len(hub.served)
    assert shelf(hub, tmp_path).bring([f"{REPO}@{sha}"]) == first
    assert len(hub.served) == asked


def test_two_workers_fetch_a_model_once(hub: HubServer, tmp_path: Path) -> None:
    sha = hub.add(REPO, FILES).branches["main"]
    both = [
        threading.Thread(target=shelf(hub, tmp_path).bring, args=([f"{REPO}@{sha}"],))
        for _ in range(2)
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    contents = [path for path in hub.served if "/content/" in path.target]
    assert len(contents) == 1


@pytest.mark.parametrize("kind", ["gated", "private"])
def test_what_is_not_open_to_everyone_is_not_fetched_with_our_token(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    repository = hub.add(REPO, FILES)
    setattr(repository, kind, True)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    with refused("model_missing"):
        shelf(hub, tmp_path).bring([f"{REPO}@{repository.branches['main']}"])


def test_weights_as_pickle_only_are_refused_with_their_names(
    hub: HubServer, tmp_path: Path
) -> None:
    sha = hub.add(REPO, {"config.json": b"{}", "pytorch_model.bin": b"p"}).branches["main"]
    with pytest.raises(SubmitterError, match="only pytorch_model") as caught:
        shelf(hub, tmp_path).bring([f"{REPO}@{sha}"])
    assert caught.value.code == "model_unsafe"


def test_a_model_that_is_too_large_is_refused_before_it_is_fetched(
    hub: HubServer, tmp_path: Path
) -> None:
    sha = hub.add(REPO, FILES).branches["main"]
    with refused("model_too_large"):
        shelf(hub, tmp_path, most_bytes=2000).bring([f"{REPO}@{sha}"])
    assert not [path for path in hub.served if "/content/" in path.target]


@pytest.mark.parametrize("named", ["authors/model", "authors/model@main", "a/../b@" + 40 * "0"])
def test_a_model_is_named_by_its_whole_commit(hub: HubServer, tmp_path: Path, named: str) -> None:
    with refused("bad_model"):
        shelf(hub, tmp_path).bring([named])


def test_a_commit_that_does_not_exist_is_its_authors_fault(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, FILES)
    with refused("model_missing"):
        shelf(hub, tmp_path).bring([f"{REPO}@{'0' * 40}"])


def test_a_hub_that_fails_is_asked_again_and_what_is_here_is_kept(
    hub: HubServer, tmp_path: Path
) -> None:
    sha = hub.add(REPO, FILES).branches["main"]
    fault = hub.faults.add(Fault("/content/", times=20, status=500))
    with pytest.raises(TransientError):
        shelf(hub, tmp_path).bring([f"{REPO}@{sha}"])
    fault.times = 0
    assert shelf(hub, tmp_path).bring([f"{REPO}@{sha}"])


@pytest.mark.isolation
def test_a_scorer_finds_its_model_without_network(hub: HubServer, tmp_path: Path) -> None:
    sha = hub.add(REPO, FILES).branches["main"]
    models = shelf(hub, tmp_path).bring([f"{REPO}@{sha}"])
    module = tmp_path / "module"
    module.mkdir()
    (module / "scorer.py").write_text(
        "from pathlib import Path\n"
        "from huggingface_hub import hf_hub_download\n"
        "class Scorer:\n"
        "    def __init__(self, models):\n"
        "        self.folder = Path(models['authors/model'])\n"
        "    def score(self, images, prompts):\n"
        "        found = Path(hf_hub_download('authors/model', 'model.safetensors'))\n"
        "        same = found.read_bytes() == (self.folder / 'model.safetensors').read_bytes()\n"
        "        return [float(same and found.stat().st_size)]\n"
    )
    with Bubblewrap().start(Job(module, limits=Limits(), models=models)) as session:
        assert session.score([png()], [(0, "a cat")]).tolist() == [3000.0]


def test_what_would_fill_the_disk_is_refused_before_it_is_fetched(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = hub.add(REPO, FILES).branches["main"]
    full = shutil.disk_usage(tmp_path)._replace(free=1 << 30)
    monkeypatch.setattr("evaluator.hub.model_shelf.shutil.disk_usage", lambda _: full)
    with pytest.raises(PlatformError) as caught:
        shelf(hub, tmp_path).bring([f"{REPO}@{sha}"])
    assert caught.value.code == "disk_full"
    assert not [path for path in hub.served if "/content/" in path.target]
