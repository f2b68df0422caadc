"""Checkpoints: fetched once, held to their commit, and refused where they would not be whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import TransientError
from evaluator.scorers.checkpoints import ModelHub, Source, cached, check_class, resolve
from evaluator.scorers.registry import Runtime
from tests.evaluator.scorers.common import hf, later, refusal, safetensors, torch
from tests.evaluator.scorers.model_repositories import REPO, row_of, store
from tests.evaluator.scorers.tiny_models import here
from tests.kit.hub.server import HubServer

loading = later("evaluator.scorers.loading")

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
NEWER = {**FILES, "model.safetensors": b"n" * 2000}
PICKLES = Runtime(allow_pickle=True)


@pytest.fixture
def cache(hub: HubServer, tmp_path: Path) -> ModelHub:
    return store(hub, tmp_path)


def fetched(cache: ModelHub, runtime: Runtime | None = None, **checkpoint: Any) -> Source:
    return resolve(row_of(**checkpoint), runtime or Runtime(), hub=cache)


def names(source: Source) -> set[str]:
    files = [each for each in source.place.rglob("*") if each.is_file()]
    return {each.relative_to(source.place).as_posix() for each in files}


def test_safetensors_and_settings_are_fetched_once_and_nothing_else(
    hub: HubServer, cache: ModelHub
) -> None:
    commit = hub.add(REPO, FILES, kind="models").branches["main"]
    assert cached(row_of(), hub=cache) is None
    assert not cache.pins.exists()  # asking whether it is here neither fetches nor pins
    source = fetched(cache)
    assert names(source) == {"config.json", "merges.txt", "model.safetensors"}
    assert (source.name, source.revision, str(source)) == (REPO, commit, f"{REPO}@{commit}")
    assert cached(row_of(), hub=cache) == source.place
    assert cached(row_of(file="own.pt"), hub=cache) is None
    asked = len(hub.served)
    hub.spoil("/", times=50, status=503)
    assert fetched(cache) == fetched(cache, Runtime(offline=True)) == source
    assert len(hub.served) == asked


def test_code_is_fetched_if_trusted_and_pickles_if_there_is_nothing_else(
    hub: HubServer, cache: ModelHub
) -> None:
    hub.add(REPO, FILES, kind="models")
    assert "pytorch_model.bin" not in names(fetched(cache, PICKLES))
    assert "modeling_own.py" in names(fetched(cache, Runtime(trust_remote_code=True)))


def test_later_runs_keep_to_the_first_ones_commit(hub: HubServer, cache: ModelHub) -> None:
    repository = hub.add(REPO, FILES, kind="models")
    first = fetched(cache)
    newer = repository.commit(NEWER)
    assert fetched(cache) == first
    elsewhere = replace(cache, cache=cache.cache.with_name("empty"))
    assert fetched(elsewhere).revision == first.revision
    assert json.loads(cache.pins.read_text()) == {REPO: first.revision}
    assert fetched(cache, Runtime(revisions={"model": newer})).revision == newer
    assert fetched(cache) == first
    for revision in (newer, "main"):
        with refusal("checkpoint_revision", newer) as refused:
            fetched(cache, revision=revision)
        assert str(cache.pins) in refused.value.hint


def test_a_rows_commit_is_taken_and_remembered(hub: HubServer, cache: ModelHub) -> None:
    repository = hub.add(REPO, FILES, kind="models")
    old = repository.branches["main"]
    repository.commit(NEWER)
    assert fetched(cache, revision=old).revision == fetched(cache).revision == old


def test_weights_in_pickles_only_are_refused_unless_allowed_or_unneeded(
    hub: HubServer, cache: ModelHub
) -> None:
    hub.add(REPO, PICKLED, kind="models")
    with refusal("checkpoint_unsafe", "pytorch_model.bin") as refused:
        fetched(cache)
    assert "--allow-pickle" in refused.value.hint
    assert names(fetched(cache, weights=False)) == {"config.json"}
    assert hub.asked("/resolve/") != []
    assert not [each for each in hub.served if "pytorch_model" in each.target]
    assert names(fetched(cache, PICKLES)) == set(PICKLED)


def test_a_single_file_is_fetched_alone(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, {**FILES, "deep/own.safetensors": b"d" * 1500, "own.pt": b"x"}, kind="models")
    source = fetched(cache, file="deep/own.safetensors")
    assert source.place.read_bytes() == b"d" * 1500
    assert not (source.place.parent.parent / "config.json").exists()
    with refusal("checkpoint_unsafe"):
        fetched(cache, file="own.pt")
    assert fetched(cache, PICKLES, file="own.pt").place.name == "own.pt"
    with refusal("checkpoint_missing", "gone.safetensors"):
        fetched(cache, file="gone.safetensors")


def test_of_two_layouts_the_rows_is_fetched(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, {**FILES, "open_clip_model.safetensors": b"c" * 2000}, kind="models")
    found = names(fetched(cache, pattern="open_clip*.safetensors"))
    assert found == {"config.json", "merges.txt", "open_clip_model.safetensors"}


def test_what_the_hub_does_not_have_is_said(hub: HubServer, cache: ModelHub) -> None:
    hub.add(REPO, FILES, kind="models")
    with refusal("checkpoint_missing", "--checkpoint"):
        fetched(cache, Runtime(offline=True))
    assert hub.served == []
    unknown: list[tuple[dict[str, Any], str]] = [
        ({"repository": "authors/unknown"}, "authors/unknown"),
        ({"revision": "f" * 40}, repr("f" * 40)),
        ({"repository": "not a name"}, ""),
    ]
    for checkpoint, named in unknown:
        with refusal("checkpoint_missing", named):
            fetched(cache, **checkpoint)


def test_a_gated_repository_says_what_to_accept(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, FILES, kind="models", gated=True)
    with refusal("checkpoint_missing", "terms") as refused:
        fetched(store(hub, tmp_path))
    assert "HF_TOKEN" in refused.value.hint
    assert fetched(store(hub, tmp_path, hub.token)).place.is_dir()


def test_a_hub_out_of_reach_is_no_fault_of_the_operator(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, FILES, kind="models")
    with refusal("hub_unreachable", kind=TransientError):
        fetched(ModelHub(tmp_path / "c", tmp_path / "p.json", "http://127.0.0.1:9"))
    hub.spoil("/api/", times=50, status=503)
    with pytest.raises(TransientError, match="503"):
        fetched(store(hub, tmp_path))


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}'])
def test_a_malformed_record_of_commits_is_refused(
    hub: HubServer, cache: ModelHub, content: str
) -> None:
    hub.add(REPO, FILES, kind="models")
    cache.pins.write_text(content)
    with refusal("checkpoint_pins_malformed"):
        fetched(cache)


def test_an_operators_folder_stands_for_the_hubs(tmp_path: Path) -> None:
    with refusal("checkpoint_missing", str(tmp_path / "no")):
        resolve(row_of(), here(tmp_path / "no"))
    (tmp_path / "pytorch_model.bin").write_bytes(b"p")
    with refusal("checkpoint_unsafe"):
        resolve(row_of(), here(tmp_path))
    assert resolve(row_of(weights=False), here(tmp_path)).place == tmp_path
    (tmp_path / "model.safetensors").write_bytes(b"w")
    assert resolve(row_of(), here(tmp_path)) == Source(tmp_path, str(tmp_path), "")
    assert resolve(row_of(str(tmp_path)), Runtime()).place == tmp_path
    one = resolve(row_of(file="deep/model.safetensors"), here(tmp_path))
    assert one.place == tmp_path / "model.safetensors"


# Weights


@pytest.fixture
def broken(clip: Path, tmp_path: Path) -> Path:
    """A copy to be spoilt."""
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((clip / name).read_bytes())
    return tmp_path


def load_clip(folder: Path, runtime: Runtime | None = None, **more: Any) -> Any:
    source = Source(folder, "tiny", "")
    return loading.load_transformers(hf.CLIPModel, source, row_of(), runtime or Runtime(), **more)


def test_another_kind_of_model_is_named_before_it_is_loaded(broken: Path) -> None:
    source = Source(broken, "tiny", "abc")
    assert check_class(source, ("siglip", "clip")) == "clip"
    with refusal("checkpoint_wrong_class", "'clip'") as refused:
        load_clip(broken, accepted=("align",))
    assert "align" in refused.value.message
    (broken / "config.json").write_text("{")
    with refusal("checkpoint_damaged"):
        check_class(source, ("clip",))
    (broken / "config.json").unlink()
    with refusal("checkpoint_wrong_class"):
        check_class(source, ("clip",))


def test_every_weight_comes_from_the_checkpoint(clip: Path, broken: Path) -> None:
    whole = load_clip(clip)
    assert not whole.training
    assert {weight.dtype for weight in whole.parameters()} == {torch.float32}
    state = safetensors.load_file(clip / "model.safetensors")
    del state["visual_projection.weight"]
    safetensors.save_file(state, broken / "model.safetensors", {"format": "pt"})
    with refusal("checkpoint_incomplete", "visual_projection.weight"):
        load_clip(broken)
    assert load_clip(broken, may_lack=("^visual_projection",)) is not None


def test_damaged_weights_are_named(clip: Path, broken: Path) -> None:
    content = (clip / "model.safetensors").read_bytes()
    shapes = safetensors.load_file(clip / "model.safetensors")
    shapes["text_projection.weight"] = torch.zeros(3, 3)
    misshapen = later("safetensors.torch").save(shapes, {"format": "pt"})
    for spoilt in (content[: len(content) // 2], b"no weights at all", b"", misshapen):
        (broken / "model.safetensors").write_bytes(spoilt)
        with refusal("checkpoint_damaged", str(broken)):
            load_clip(broken)


def test_a_checkpoint_in_half_precision_is_widened_to_the_rows(clip: Path, tmp_path: Path) -> None:
    hf.CLIPModel.from_pretrained(clip).half().save_pretrained(tmp_path)
    assert load_clip(tmp_path).dtype == torch.float32
    assert load_clip(tmp_path, Runtime(dtype="bfloat16")).dtype == torch.bfloat16


def test_a_single_file_fills_a_module_whole_or_not_at_all(tmp_path: Path) -> None:
    module = torch.nn.Linear(2, 3)
    state = {name: torch.full_like(value, 7) for name, value in module.state_dict().items()}
    place = tmp_path / "weights.pt"
    source = Source(place, "tiny", "")
    torch.save({"model": state}, place)
    with refusal("checkpoint_unsafe"):
        loading.read_weights(source, Runtime())
    read = loading.read_weights(source, PICKLES)
    assert float(loading.fill(module, read, source).weight.detach().min()) == 7
    for weights, code in (
        ({"weight": read["weight"]}, "checkpoint_incomplete"),
        ({**read, "stray": torch.zeros(1)}, "checkpoint_wrong_class"),
        ({**read, "weight": torch.zeros(1)}, "checkpoint_damaged"),
    ):
        with refusal(code):
            loading.fill(module, weights, source)


def test_a_pickle_that_is_no_table_or_would_run_code_is_not_read(tmp_path: Path) -> None:
    place = tmp_path / "hostile.pt"
    for content in (["no", "table"], {"epoch": 3}, {"model": Hostile(tmp_path)}, None):
        torch.save(content, place)
        if content is None:
            place.write_bytes(b"cut")
        with refusal("checkpoint_damaged"):
            loading.read_weights(Source(place, "tiny", ""), PICKLES)
    assert not (tmp_path / "ran").exists()


class Hostile:
    """Makes a folder when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return (Path.mkdir, (self.place / "ran",))
