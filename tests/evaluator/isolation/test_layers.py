"""Layers, their names, and what is said when one of them is turned off."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.availability import IsolationChoice, machine_isolation
from evaluator.isolation.backend import LEGEND, Layer, Probe, isolation_status
from evaluator.isolation.bubblewrap import SWITCHABLE, Bubblewrap
from evaluator.isolation.job import Job, Limits, ModelFiles
from evaluator.isolation.session import ScorerSession
from leaderboard.ranking.cells import UNSANDBOXED, kept_from_ranking
from tests.evaluator.isolation.boxes import SHORT, Submit, png
from tests.evaluator.isolation.inquiry import REPOSITORY


def test_every_layer_says_what_it_stops_there_and_in_its_document() -> None:
    assert set(LEGEND) == set(Layer)
    assert all(text.endswith(".") for text in LEGEND.values())
    page = (REPOSITORY / "evaluator/isolation/README.md").read_text(encoding="utf-8")
    assert [layer for layer in Layer if f"| `{layer}` | {LEGEND[layer]} |" not in page] == []


SEEN = {
    Layer.FILESYSTEM: "is visible",
    Layer.ENVIRONMENT: "variable",
    Layer.CAPABILITIES: "capabilities are left",
    Layer.SYSTEM_CALLS: "not refused by the filter",
    Layer.MEMORY_FOLDERS: "holds more than",
}
"""What a probe says that finds a layer missing without being told."""


@pytest.mark.first_quick
@pytest.mark.isolation
@pytest.mark.parametrize("layer", SEEN | dict.fromkeys(sorted(SWITCHABLE), ""))
def test_a_box_without_a_layer_never_probes_well(
    bubblewrap: Bubblewrap, layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SECRET", "token")
    probe = replace(bubblewrap, without=frozenset({layer}), hidden=(Path("/etc/passwd"),)).probe()
    assert not probe.ok
    assert layer not in probe.layers
    assert f"{layer} was turned off" in probe.reason
    assert SEEN.get(layer, "") in probe.reason
    root_is_seen = "the kernel sees root in it" in probe.reason
    assert root_is_seen == (layer is Layer.KERNEL_UID and os.geteuid() == 0)


def test_none_is_loud_and_marked_and_never_isolates(caplog: pytest.LogCaptureFixture) -> None:
    status = machine_isolation(choice=IsolationChoice.NONE)
    assert "NOTHING ISOLATES" in caplog.text
    assert status.layers == (UNSANDBOXED,) == (str(Layer.UNSANDBOXED),)
    assert status.ok
    assert not status.isolates
    assert status.require().name == "plain"


@pytest.mark.isolation
def test_bubblewrap_can_be_asked_for_by_name(bubblewrap: Bubblewrap) -> None:
    status = machine_isolation(Path("/usr/bin"), choice=IsolationChoice.BUBBLEWRAP)
    assert not status.ok
    assert "/usr/bin is visible" in status.reason
    assert machine_isolation(choice=IsolationChoice.BUBBLEWRAP).require().name == "bubblewrap"


def test_a_run_without_isolation_is_kept_from_ranking_whatever_its_trust() -> None:
    assert kept_from_ranking("", [UNSANDBOXED]) == "ran without isolation"
    assert kept_from_ranking("depends on the order", ["pid"]) == "depends on the order"
    assert kept_from_ranking("", ["pid", "network"]) == ""


def test_a_card_is_given_its_own_node_and_the_shared_ones(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    names = [path.name for path in layout.device_nodes("cuda:1", tmp_path)]
    assert names == ["nvidia1", "nvidiactl", "nvidia-uvm"]
    assert layout.device_nodes("cuda", tmp_path)[0].name == "nvidia0"
    assert layout.device_nodes("cpu", tmp_path) == ()
    assert layout.device_inside("cuda:1") == "cuda"


@pytest.mark.parametrize("device", ["cuda", "cuda:3", "tpu", "cuda:../../sda", ""])
def test_a_device_that_is_not_here_is_refused(tmp_path: Path, device: str) -> None:
    with pytest.raises(PlatformError) as caught:
        layout.device_nodes(device, tmp_path)
    assert caught.value.code == "device_unavailable"


@pytest.mark.isolation
def test_a_model_of_the_hub_is_found_without_network(
    bubblewrap: Bubblewrap, submit: Submit, tmp_path: Path
) -> None:
    revision = "0123456789abcdef0123456789abcdef01234567"
    model = ModelFiles("ada/tiny", revision, tmp_path / "model")
    snapshot = model.folder / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text('{"size": 7}')
    (model.folder / "refs").mkdir()
    (model.folder / "refs/main").write_text(revision)
    folder = submit("""
        import json
        from pathlib import Path
        from huggingface_hub import hf_hub_download, snapshot_download
        class Scorer:
            def __init__(self, models):
                self.models = models
            def score(self, images, prompts):
                found = snapshot_download("ada/tiny", local_files_only=True)
                by_name = hf_hub_download("ada/tiny", "config.json")
                size = json.loads(Path(found, "config.json").read_text())["size"]
                return [float(found == self.models["ada/tiny"]), float(Path(by_name).parent == Path(found)), size]
        """)
    job = Job(folder, limits=replace(SHORT, start_s=60.0), models=(model,))
    with bubblewrap.start(job) as session:
        assert list(session.score([png()], [(0, "a cat")] * 3)) == [1.0, 1.0, 7.0]


def test_usual_limits_leave_room_for_a_scorer_of_the_processor() -> None:
    assert Limits().memory_bytes >= 2 * 2**30


class Held:
    """A backend that says of itself which layers hold."""

    name = "held"

    def probe(self) -> Probe:
        return Probe(ok=True, layers=("process", "memory: watchdog"))

    def start(self, job: Job) -> ScorerSession:
        raise NotImplementedError


def test_a_layer_that_an_operator_requires_is_required() -> None:
    assert isolation_status([Held()], [Layer.PROCESS]).ok
    status = isolation_status([Held()], [Layer.PROCESS, Layer.MEMORY_CGROUP])
    assert not status.ok
    assert "memory: cgroup" in status.reason
