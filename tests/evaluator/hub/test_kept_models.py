"""Models that modules name: fetched once, by commit, without a token, as safetensors only.

What is kept can be listed and taken away, but not from under a box.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from benchmarks.errors import PlatformError, TransientError
from evaluator import folder_cache
from evaluator.hub.model_cache import ModelCache, model_of
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.job import Job, Limits
from tests.evaluator.isolation.boxes import png
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scorers.model_repositories import REPO
from tests.kit.hub.faults import Fault
from tests.kit.hub.server import HubServer

FILES = {
    "config.json": b"{}",
    "model.safetensors": b"w" * 3000,
    "pytorch_model.bin": b"p" * 3000,
    "onnx/model.safetensors": b"o",
    ".gitattributes": b"*",
    "modeling_own.py": b"print()",
}


def added(hub: HubServer, files: dict[str, bytes] = FILES) -> str:
    """The name of a model at its commit."""
    return f"{REPO}@{hub.add(REPO, files, kind='models').branches['main']}"


def cache_of(hub: HubServer, folder: Path, **more: int) -> ModelCache:
    return ModelCache(folder / "models", hub.endpoint, **more)


def contents(hub: HubServer) -> int:
    """How many files' contents were fetched."""
    return sum("/content/" in path.target for path in hub.served)


# Fetching -------------------------------------------------------------------------------------


def test_a_model_is_kept_as_the_hubs_client_keeps_it_and_fetched_once(
    hub: HubServer, tmp_path: Path
) -> None:
    named = added(hub)
    sha = named.partition("@")[2]
    (model,) = cache_of(hub, tmp_path).bring([named])
    names = {p.relative_to(model.folder).as_posix() for p in model.folder.rglob("*") if p.is_file()}
    files = ("config.json", "model.safetensors", "modeling_own.py")
    assert names == {"refs/main", *(f"snapshots/{sha}/{name}" for name in files)}
    assert (model.folder / "refs/main").read_text() == sha
    assert model.folder_inside == "models--authors--model"
    asked = len(hub.served)
    assert cache_of(hub, tmp_path).bring([named]) == (model,)
    assert len(hub.served) == asked


def test_two_workers_fetch_a_model_once(hub: HubServer, tmp_path: Path) -> None:
    named = added(hub, {"model.safetensors": b"w" * 3000})
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: cache_of(hub, tmp_path).bring([named]), range(2)))
    assert both[0] == both[1]
    assert contents(hub) == 1


@pytest.mark.parametrize("kind", ["gated", "private"])
def test_what_is_not_open_to_everyone_is_not_fetched_with_our_token(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    named = added(hub)
    setattr(hub.find("models", REPO), kind, True)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    with refusal("model_missing"):
        cache_of(hub, tmp_path).bring([named])


def test_weights_as_pickle_only_are_refused_with_their_names(
    hub: HubServer, tmp_path: Path
) -> None:
    named = added(hub, {"config.json": b"{}", "pytorch_model.bin": b"p"})
    with refusal("model_unsafe", "pytorch_model"):
        cache_of(hub, tmp_path).bring([named])


def test_what_is_too_large_or_would_fill_the_disk_is_refused_before_it_is_fetched(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = added(hub)
    with refusal("model_too_large"):
        cache_of(hub, tmp_path, most_bytes=2000).bring([named])
    full = shutil.disk_usage(tmp_path)._replace(free=1 << 30)
    monkeypatch.setattr("evaluator.hub.model_cache.shutil.disk_usage", lambda _: full)
    with refusal("disk_full", kind=PlatformError):
        cache_of(hub, tmp_path).bring([named])
    assert contents(hub) == 0


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ("authors/model", "bad_model"),
        ("authors/model@main", "bad_model"),
        (f"a/../b@{'0' * 40}", "bad_model"),
        (f"{REPO}@{'0' * 40}", "model_missing"),
    ],
)
def test_a_model_is_named_by_a_whole_commit_that_exists(
    hub: HubServer, tmp_path: Path, named: str, code: str
) -> None:
    added(hub)
    with refusal(code):
        cache_of(hub, tmp_path).bring([named])


def test_a_hub_that_fails_is_asked_again_and_what_is_here_is_kept(
    hub: HubServer, tmp_path: Path
) -> None:
    named = added(hub)
    fault = hub.faults.add(Fault("/content/", times=20, status=500))
    with pytest.raises(TransientError):
        cache_of(hub, tmp_path).bring([named])
    fault.times = 0
    assert cache_of(hub, tmp_path).bring([named])


SCORER = """
from pathlib import Path
from huggingface_hub import hf_hub_download
class Scorer:
    def __init__(self, models):
        self.folder = Path(models['authors/model'])
    def score(self, images, prompts):
        found = Path(hf_hub_download('authors/model', 'model.safetensors'))
        same = found.read_bytes() == (self.folder / 'model.safetensors').read_bytes()
        return [float(same and found.stat().st_size)]
"""


@pytest.mark.isolation
def test_a_scorer_finds_its_model_without_network(hub: HubServer, tmp_path: Path) -> None:
    models = cache_of(hub, tmp_path).bring([added(hub)])
    module = tmp_path / "module"
    module.mkdir()
    (module / "scorer.py").write_text(SCORER)
    with Bubblewrap().start(Job(module, limits=Limits(), models=models)) as session:
        assert session.score([png()], [(0, "a cat")]).tolist() == [3000.0]


# What stands on the kept ---------------------------------------------------------------------

OLD, NEW = f"old/model@{'0' * 40}", f"new/model@{'1' * 40}"


def put(kept: ModelCache, model: str, used_at: float, n_bytes: int = 4096, end: str = "") -> Path:
    place = kept.folder / f"{model.replace('/', '--')}{end}"
    place.mkdir(parents=True)
    (place / "model.safetensors").write_bytes(b"w" * n_bytes)
    mark = kept.folder / f"{model.replace('/', '--')}.used"
    mark.touch()
    os.utime(mark, (used_at, used_at))
    return place


@pytest.fixture
def kept(tmp_path: Path) -> ModelCache:
    made = ModelCache(tmp_path / "models")
    assert made.models() == (), "one that is not there is empty"
    put(made, NEW, used_at=2000.0)
    put(made, OLD, used_at=1000.0, n_bytes=8192)
    return made


def test_models_are_listed_with_size_and_last_use_the_oldest_first(kept: ModelCache) -> None:
    found = [(model_of(one), one.n_bytes, one.last_used, one.in_use) for one in kept.models()]
    assert found == [(OLD, 8192, 1000.0, False), (NEW, 4096, 2000.0, False)]
    with kept.lent([OLD]):
        pass
    assert [model_of(one) for one in kept.models()] == [NEW, OLD], "lending is use"


def test_a_model_that_is_forgotten_frees_its_bytes_but_not_while_a_box_uses_it(
    kept: ModelCache,
) -> None:
    with kept.lent([OLD]) as (model,):
        assert {model_of(one): one.in_use for one in kept.models()} == {OLD: True, NEW: False}
        with refusal("model_in_use", kind=TransientError):
            kept.forget(OLD)
        assert (model.folder / "model.safetensors").is_file()
    assert kept.forget(OLD) == 8192
    assert [model_of(one) for one in kept.models()] == [NEW]
    with refusal("unknown_model"):
        kept.forget(OLD)


def test_a_model_that_is_being_fetched_cannot_be_taken_away(kept: ModelCache) -> None:
    part = put(kept, f"part/model@{'2' * 40}", 1.0, end=".part")
    (one, *_) = kept.models()
    assert (one.place, one.whole) == (part, False)
    with FileLock(kept.folder / f"part--model@{'2' * 40}.lock"):
        assert folder_cache.taken_away(one) == 0
    assert folder_cache.taken_away(one) == one.n_bytes
    assert not part.exists()


def test_what_a_removal_left_that_was_cut_off_is_swept(kept: ModelCache) -> None:
    left = kept.folder / "0123.gone"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"w" * 4096)
    assert folder_cache.sweep(kept.folder) == 4096
    assert not left.exists()


def test_a_model_that_was_taken_away_is_fetched_again(hub: HubServer, tmp_path: Path) -> None:
    named, kept = added(hub), cache_of(hub, tmp_path)
    kept.bring([named])
    kept.forget(named)
    with kept.lent([named]) as (model,):
        assert (model.folder / "refs/main").read_text() == named.partition("@")[2]
