"""Checkpoints: fetched once, held to their commit, and refused where they would not be whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import SubmitterError, TransientError
from evaluator.scorers.checkpoints import Source, cached, check_class, resolve
from evaluator.scorers.model_hub import ModelHub
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.model_repositories import REPO, hub_of_models, row_of, store
from tests.evaluator.scorers.tiny_dual import save_clip
from tests.hub.server import HubServer

FILES = {
    "config.json": b'{"model_type": "clip"}',
    "merges.txt": b"#version",
    "model.safetensors": b"w" * 2000,
    "pytorch_model.bin": b"p" * 2000,
    "tf_model.h5": b"t" * 2000,
    "onnx/model.safetensors": b"o" * 2000,
    "modeling_own.py": b"print()",
}
PICKLED = {name: FILES[name] for name in ("config.json", "pytorch_model.bin")}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub_of_models(monkeypatch) as state:
        yield state


@pytest.fixture
def cache(hub: HubServer, tmp_path: Path) -> ModelHub:
    return store(hub, tmp_path)


def names(source: Source) -> set[str]:
    files = [each for each in source.place.rglob("*") if each.is_file()]
    return {each.relative_to(source.place).as_posix() for each in files}


def refusal(code: str) -> Any:
    """A SubmitterError of a code; its text is checked by the caller."""
    return pytest.raises(SubmitterError, check=lambda error: error.code == code)


def test_safetensors_and_settings_are_fetched_and_nothing_else(
    hub: HubServer, cache: ModelHub
) -> None:
    commit = hub.add(REPO, FILES).branches["main"]
    source = resolve(row_of(), Runtime(), hub=cache)
    assert names(source) == {"config.json", "merges.txt", "model.safetensors"}
    assert (source.name, source.revision) == (REPO, commit)
    assert str(source) == f"{REPO}@{commit}"
    with_code = resolve(row_of(), Runtime(trust_remote_code=True), hub=cache)
    assert "modeling_own.py" in names(with_code)


def test_a_second_run_downloads_nothing(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, FILES)
    first = resolve(row_of(), Runtime(), hub=cache)
    asked = len(hub.served)
    assert resolve(row_of(), Runtime(), hub=cache) == first
    assert resolve(row_of(), Runtime(offline=True), hub=cache) == first
    assert len(hub.served) == asked


def test_later_runs_keep_to_the_first_ones_commit(hub: HubServer, cache: ModelHub) -> None:
    repository = hub.add(REPO, FILES)
    first = resolve(row_of(), Runtime(), hub=cache)
    newer = repository.commit({**FILES, "model.safetensors": b"n" * 2000})
    assert resolve(row_of(), Runtime(), hub=cache) == first
    elsewhere = replace(cache, cache=cache.cache.with_name("empty"))
    assert resolve(row_of(), Runtime(), hub=elsewhere).revision == first.revision
    assert json.loads(cache.pins.read_text()) == {REPO: first.revision}
    said = resolve(row_of(), Runtime(revisions={"model": newer}), hub=cache)
    assert said.revision == newer
    assert resolve(row_of(), Runtime(), hub=cache) == first


def test_a_rows_commit_that_differs_from_earlier_runs_is_refused(
    hub: HubServer, cache: ModelHub
) -> None:
    repository = hub.add(REPO, FILES)
    resolve(row_of(), Runtime(), hub=cache)
    newer = repository.commit({**FILES, "config.json": b"{}"})
    for revision in (newer, "main"):
        with refusal("checkpoint_revision") as refused:
            resolve(row_of(revision=revision), Runtime(), hub=cache)
        assert newer in refused.value.message
        assert str(cache.pins) in refused.value.hint


def test_a_rows_commit_is_taken_and_remembered(hub: HubServer, cache: ModelHub) -> None:
    repository = hub.add(REPO, FILES)
    old = repository.branches["main"]
    repository.commit({**FILES, "model.safetensors": b"n" * 2000})
    assert resolve(row_of(revision=old), Runtime(), hub=cache).revision == old
    assert resolve(row_of(), Runtime(), hub=cache).revision == old


def test_weights_in_pickles_only_are_refused_unless_allowed(
    hub: HubServer, cache: ModelHub
) -> None:
    hub.add(REPO, PICKLED)
    with refusal("checkpoint_unsafe") as refused:
        resolve(row_of(), Runtime(), hub=cache)
    assert "pytorch_model.bin" in refused.value.message
    assert "can run code" in refused.value.message
    assert "--allow-pickle" in refused.value.hint
    assert hub.asked("/resolve/") != []
    assert not [each for each in hub.served if "pytorch_model" in each.target]
    source = resolve(row_of(), Runtime(allow_pickle=True), hub=cache)
    assert names(source) == set(PICKLED)


def test_allowing_pickles_still_prefers_safetensors(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, FILES)
    source = resolve(row_of(), Runtime(allow_pickle=True), hub=cache)
    assert "pytorch_model.bin" not in names(source)


def test_a_single_file_is_fetched_alone(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, {**FILES, "deep/own.safetensors": b"d" * 1500, "own.pt": b"x"})
    source = resolve(row_of(file="deep/own.safetensors"), Runtime(), hub=cache)
    assert source.place.read_bytes() == b"d" * 1500
    assert not (source.place.parent.parent / "config.json").exists()
    with refusal("checkpoint_unsafe"):
        resolve(row_of(file="own.pt"), Runtime(), hub=cache)
    allowed = Runtime(allow_pickle=True)
    assert resolve(row_of(file="own.pt"), allowed, hub=cache).place.name == "own.pt"
    with refusal("checkpoint_missing") as refused:
        resolve(row_of(file="gone.safetensors"), Runtime(), hub=cache)
    assert "gone.safetensors" in refused.value.message


def test_settings_alone_need_no_weights(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, PICKLED)
    assert names(resolve(row_of(weights=False), Runtime(), hub=cache)) == {"config.json"}


def test_of_two_layouts_the_rows_is_fetched(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, {**FILES, "open_clip_model.safetensors": b"c" * 2000})
    found = names(resolve(row_of(pattern="open_clip*.safetensors"), Runtime(), hub=cache))
    assert found == {"config.json", "merges.txt", "open_clip_model.safetensors"}


def test_what_the_hub_does_not_have_is_said(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, FILES)
    with refusal("checkpoint_missing") as refused:
        resolve(row_of("authors/unknown"), Runtime(), hub=cache)
    assert "authors/unknown" in refused.value.message
    with refusal("checkpoint_missing") as refused:
        resolve(row_of(revision="f" * 40), Runtime(), hub=cache)
    assert f"no revision '{'f' * 40}'" in refused.value.message
    with refusal("checkpoint_missing") as refused:
        resolve(row_of("not a name"), Runtime(), hub=cache)


def test_a_gated_repository_says_what_to_accept(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, FILES, gated=True)
    with refusal("checkpoint_missing") as refused:
        resolve(row_of(), Runtime(), hub=store(hub, tmp_path))
    assert "accepted its terms" in refused.value.message
    assert "HF_TOKEN" in refused.value.hint
    known = store(hub, tmp_path, hub.token)
    assert resolve(row_of(), Runtime(), hub=known).place.is_dir()


def test_offline_names_what_is_not_here(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, FILES)
    with refusal("checkpoint_missing") as refused:
        resolve(row_of(), Runtime(offline=True), hub=cache)
    assert "--checkpoint" in refused.value.hint
    assert hub.served == []


def test_a_hub_out_of_reach_is_no_fault_of_the_operator(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, FILES)
    nowhere = ModelHub(tmp_path / "c", tmp_path / "p.json", "http://127.0.0.1:9")
    with pytest.raises(TransientError) as failed:
        resolve(row_of(), Runtime(), hub=nowhere)
    assert failed.value.code == "hub_unreachable"
    hub.spoil("/api/", times=50, status=503)
    with pytest.raises(TransientError, match="503"):
        resolve(row_of(), Runtime(), hub=store(hub, tmp_path))


def test_the_cache_serves_while_the_hub_is_down(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, FILES)
    first = resolve(row_of(), Runtime(), hub=cache)
    hub.spoil("/", times=50, status=503)
    assert resolve(row_of(), Runtime(), hub=cache) == first


def test_whether_a_checkpoint_is_here_is_told_without_asking_or_pinning(
    hub: HubServer, cache: ModelHub
) -> None:
    hub.add(REPO, FILES)
    assert cached(row_of(), hub=cache) is None
    assert not cache.pins.exists()
    source = resolve(row_of(), Runtime(), hub=cache)
    assert cached(row_of(), hub=cache) == source.place
    assert cached(row_of(file="own.pt"), hub=cache) is None


def test_a_malformed_record_of_commits_is_refused(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, FILES)
    for content in ("{", "[]", '{"a": 1}'):
        cache.pins.write_text(content)
        with refusal("checkpoint_pins_malformed"):
            resolve(row_of(), Runtime(), hub=cache)


def test_an_operators_folder_stands_for_the_hubs(tmp_path: Path) -> None:
    with refusal("checkpoint_missing") as refused:
        resolve(row_of(), Runtime(folders={"model": tmp_path / "no"}))
    assert str(tmp_path / "no") in refused.value.message
    (tmp_path / "pytorch_model.bin").write_bytes(b"p")
    runtime = Runtime(folders={"model": tmp_path})
    with refusal("checkpoint_unsafe"):
        resolve(row_of(), runtime)
    assert resolve(row_of(weights=False), runtime).place == tmp_path
    (tmp_path / "model.safetensors").write_bytes(b"w")
    assert resolve(row_of(), runtime) == Source(tmp_path, str(tmp_path), "")
    assert resolve(row_of(str(tmp_path)), Runtime()).place == tmp_path
    one = resolve(row_of(file="deep/model.safetensors"), runtime)
    assert one.place == tmp_path / "model.safetensors"


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def broken(clip: Path, tmp_path: Path) -> Path:
    """A copy to be spoilt."""
    (tmp_path / "config.json").write_bytes((clip / "config.json").read_bytes())
    (tmp_path / "model.safetensors").write_bytes((clip / "model.safetensors").read_bytes())
    return tmp_path


def load_clip(folder: Path, **more: Any) -> Any:
    from transformers import CLIPModel

    from evaluator.scorers.loading import load_transformers

    return load_transformers(CLIPModel, Source(folder, "tiny", ""), row_of(), Runtime(), **more)


def test_another_kind_of_model_is_named_before_it_is_loaded(broken: Path) -> None:
    source = Source(broken, "tiny", "abc")
    assert check_class(source, ("siglip", "clip")) == "clip"
    with refusal("checkpoint_wrong_class") as refused:
        load_clip(broken, accepted=("align",))
    assert "'clip'" in refused.value.message
    assert "align" in refused.value.message
    (broken / "config.json").write_text("{")
    with refusal("checkpoint_damaged"):
        check_class(source, ("clip",))
    (broken / "config.json").unlink()
    with refusal("checkpoint_wrong_class"):
        check_class(source, ("clip",))


def test_every_weight_comes_from_the_checkpoint(clip: Path, broken: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    whole = load_clip(clip)
    assert not whole.training
    assert {weight.dtype for weight in whole.parameters()} == {torch.float32}
    state = load_file(clip / "model.safetensors")
    del state["visual_projection.weight"]
    save_file(state, broken / "model.safetensors", {"format": "pt"})
    with refusal("checkpoint_incomplete") as refused:
        load_clip(broken)
    assert "visual_projection.weight" in refused.value.message
    assert load_clip(broken, may_lack=("^visual_projection",)) is not None


def test_damaged_weights_are_named(clip: Path, broken: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    content = (clip / "model.safetensors").read_bytes()
    shapes = load_file(clip / "model.safetensors")
    for spoilt in (content[: len(content) // 2], b"no weights at all", b""):
        (broken / "model.safetensors").write_bytes(spoilt)
        with refusal("checkpoint_damaged") as refused:
            load_clip(broken)
        assert str(broken) in refused.value.hint
    shapes["text_projection.weight"] = torch.zeros(3, 3)
    save_file(shapes, broken / "model.safetensors", {"format": "pt"})
    with refusal("checkpoint_damaged"):
        load_clip(broken)


def test_a_checkpoint_in_half_precision_is_widened_to_the_rows(clip: Path, tmp_path: Path) -> None:
    import torch
    from transformers import CLIPModel

    from evaluator.scorers.loading import load_transformers

    CLIPModel.from_pretrained(clip).half().save_pretrained(tmp_path)
    assert load_clip(tmp_path).dtype == torch.float32
    runtime = Runtime(dtype="bfloat16")
    source = Source(tmp_path, "tiny", "")
    assert load_transformers(CLIPModel, source, row_of(), runtime).dtype == torch.bfloat16


def test_a_single_file_fills_a_module_whole_or_not_at_all(tmp_path: Path) -> None:
    import torch

    from evaluator.scorers.loading import fill, read_weights

    module = torch.nn.Linear(2, 3)
    state = {name: torch.full_like(value, 7) for name, value in module.state_dict().items()}
    place = tmp_path / "weights.pt"
    source = Source(place, "tiny", "")
    torch.save({"model": state}, place)
    with refusal("checkpoint_unsafe"):
        read_weights(source, Runtime())
    read = read_weights(source, Runtime(allow_pickle=True))
    assert float(fill(module, read, source).weight.detach().min()) == 7
    with refusal("checkpoint_incomplete"):
        fill(module, {"weight": read["weight"]}, source)
    with refusal("checkpoint_wrong_class"):
        fill(module, {**read, "stray": torch.zeros(1)}, source)
    with refusal("checkpoint_damaged"):
        fill(module, {**read, "weight": torch.zeros(1)}, source)
    for content in (["no", "table"], {"epoch": 3}):
        torch.save(content, place)
        with refusal("checkpoint_damaged"):
            read_weights(source, Runtime(allow_pickle=True))
    place.write_bytes(b"cut")
    with refusal("checkpoint_damaged"):
        read_weights(source, Runtime(allow_pickle=True))


def test_a_pickle_that_would_run_code_is_not_read(tmp_path: Path) -> None:
    import torch

    from evaluator.scorers.loading import read_weights

    place = tmp_path / "hostile.pt"
    torch.save({"model": Hostile(tmp_path)}, place)
    with refusal("checkpoint_damaged"):
        read_weights(Source(place, "tiny", ""), Runtime(allow_pickle=True))
    assert not (tmp_path / "ran").exists()


class Hostile:
    """Makes a folder when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return (Path.mkdir, (self.place / "ran",))
