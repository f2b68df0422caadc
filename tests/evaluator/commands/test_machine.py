"""What an operator looks at: `doctor`, `health`, `models` and `settings`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.released import bundle
from benchmarks.released.bundle import read_manifest
from benchmarks.schema import Benchmark
from benchmarks.settings.model import KEYS, SettingsFile
from benchmarks.ts2.protocol import Ts2
from evaluator.commands.demo import with_absolute_paths
from evaluator.hub.model_cache import ModelCache
from evaluator.isolation.backend import IsolationStatus, Probe
from leaderboard.publication.snapshot import PATH
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import transact
from tests.conftest import REPOSITORY
from tests.evaluator.commands.submitting import Run, id_of, sent, submit_words

# doctor ---------------------------------------------------------------------------------------------


@pytest.fixture
def doctor(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`run`, on a machine without isolation and without models."""
    probe = Probe(ok=False, reason="Not here.", remedy="Do.")
    nothing = IsolationStatus(None, (("bubblewrap", probe),))
    monkeypatch.setattr("evaluator.commands.doctor.machine_isolation", lambda *_: nothing)
    monkeypatch.setenv("ASSAY_MODELS", str(tmp_path / "models"))
    return run


def states(run: Run, *words: str, code: int = 0) -> dict[str, str]:
    """Of each part."""
    told = run("doctor", *words, "--json")
    assert told.code == code, told.err
    return {row["part"]: row["state"] for row in told.json}


def test_all_parts_are_looked_at_also_where_there_is_no_store(doctor: Run, tmp_path: Path) -> None:
    store = f"store {tmp_path / 'store'}"
    assert "no store" in states(doctor)[store]
    assert not (tmp_path / "store").exists()
    sent(doctor, tmp_path)
    found = states(doctor)
    said = {
        "isolation of code": "Not here.", store: "1 published", "queue": "nobody waits, 0 in work",
        "failures": "none", "disk of the store": "free", "models": "0 kept", "environments": "0 kept",
        "benchmark toy": "",
    }  # fmt: skip
    assert [part for part, word in said.items() if word not in found[part]] == []
    assert all(part in doctor("doctor").out for part in said)


def test_boards_that_do_not_follow_are_told_and_repaired(doctor: Run, tmp_path: Path) -> None:
    sent(doctor, tmp_path)
    public = folder_store(tmp_path / "store").public
    assert "queue and boards" in states(doctor, "--rebuild")
    before = public.read(PATH)
    second = id_of(sent(doctor, tmp_path, text="pair_id,x\na,3\nb,2\nc,1\n", name="x"))
    for spoilt in (before, b"no snapshot"):
        transact(public, lambda content=spoilt: {PATH: content}, "spoilt")  # type: ignore[misc]
        told = doctor("doctor", "--rebuild", "--json")
        assert told.code == 3 and public.read(PATH) == spoilt
        if spoilt is before:
            assert any(second in row["part"] for row in told.json)
        else:
            assert doctor("doctor").code == 3
        assert doctor("doctor", "--repair").code == doctor("doctor", "--rebuild").code == 0
        assert public.read(PATH) not in (before, b"no snapshot")


def test_a_changed_table_of_released_results_is_broken_and_named(
    doctor: Run, registry: dict[str, Benchmark], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    assert states(doctor)["released results"].startswith(f"{len(read_manifest().files)} tables")
    shutil.copytree(bundle.FOLDER, tmp_path / "released")
    monkeypatch.setattr(bundle, "FOLDER", tmp_path / "released")
    registry["ts2"] = Ts2()
    (tmp_path / "released" / "ts2" / "structure.parquet").write_bytes(b"PAR1")
    (tmp_path / "released" / "ts2" / "scores.parquet").unlink()
    found = states(doctor, code=3)
    assert "structure.parquet has sha256" in found["benchmark ts2"]
    assert any("scores" in state for state in found.values())


# health ---------------------------------------------------------------------------------------------


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_health_tells_well_from_down(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(run, tmp_path)
    told = run("health", "--json")
    assert (told.code, told.json["status"]) == (0, "ok")
    assert told.json["submissions"] == {"published": 1}
    assert run("health").out.startswith("ok: store ")
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(1 << 40, 1 << 40, 1 << 20))
    told = run("health")
    assert told.code == 3 and "Make room" in told.out
    assert run("health", "--json").json["status"] == "down"


def test_what_is_only_degraded_exits_with_3_where_asked_to(run: Run, tmp_path: Path) -> None:
    assert run(*submit_words(tmp_path), "--no-wait").code == 0
    told = run("health", "--json")
    assert (told.code, told.json["status"]) == (0, "degraded")
    assert told.json["problems"][0]["code"] == "no_worker"
    assert run("health", "--strict").code == 3
    elsewhere = run("health", "--store", tmp_path / "elsewhere")
    assert elsewhere.code == 3 and "no_store" in elsewhere.err
    assert not (tmp_path / "elsewhere").exists()


# models ---------------------------------------------------------------------------------------------


def test_models_are_listed_and_forgotten(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = f"owner/model@{'0' * 40}"
    place = tmp_path / "models" / model.replace("/", "--")
    place.mkdir(parents=True)
    (place / "model.safetensors").write_bytes(b"w" * 4096)
    monkeypatch.setenv("ASSAY_MODELS", str(tmp_path / "models"))
    (listed,) = run("models", "list", "--json").json
    assert (listed["model"], listed["bytes"], listed["in_use"]) == (model, 4096, False)
    assert model in run("models", "list").out
    with ModelCache(tmp_path / "models").lent([model]):
        used = run("models", "forget", model)
    assert used.code == 3 and "model_in_use" in used.err
    assert run("models", "forget", model).code == 0
    gone = run("models", "forget", model)
    assert gone.code == 1 and "unknown_model" in gone.err
    assert run("models", "list", "--json").json == []


# settings -------------------------------------------------------------------------------------------


def by_variable(told: Any) -> dict[str, Any]:
    return {one["variable"]: one for one in told.json["settings"]}


def process(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_", "HF_"))}
    env = {**clean, "PYTHONPATH": str(REPOSITORY), **more}
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )  # fmt: skip


def test_settings_have_an_origin(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = "a-secret-of-the-house"
    monkeypatch.setenv("ASSAY_LIVE_SECRET", secret)
    shown, people = run("settings", "--data", tmp_path, "--json"), run("settings")
    found = {name: (one["value"], one["origin"]) for name, one in by_variable(shown).items()}
    assert found["ASSAY_DATA"] == (str(tmp_path), "option")
    assert found["ASSAY_STORE"][1] == "environment"
    assert (found["PORT"], found["ASSAY_LIVE_SECRET"][0]) == (("7860", "default"), "set")
    assert shown.code == 0 and "limits.log_days" in people.out
    assert secret not in shown.out + people.out
    monkeypatch.setenv("ASSAY_LOGS_KEPT", "many")
    ended = run("settings", "--json")
    assert ended.code == 1 and "bad_setting" in ended.err
    assert "ASSAY_LOGS_KEPT" in by_variable(ended)["ASSAY_LOGS_KEPT"]["problem"]


def test_the_example_explains_every_key_and_can_be_used(run: Run, tmp_path: Path) -> None:
    example = run("settings", "--example").out
    assert set(tomllib.loads(example)) >= {"hub", "live", "limits"}
    file = tmp_path / "settings.toml"
    in_force = {s.file_variable or s.variable for s in KEYS.values()}
    uncommented = re.sub(r"(?m)^# (?=[a-z_]+ = )", "", example)
    for text, keys in ((example, set()), (uncommented, in_force)):
        file.write_text(text)
        assert set(SettingsFile(file, named=True).texts()) == keys


@pytest.mark.slow
def test_a_command_finds_the_file_and_says_what_is_mistyped(tmp_path: Path) -> None:
    file = tmp_path / ".assay" / "settings.toml"
    file.parent.mkdir()
    file.write_text('store = "elsewhere"\n')
    status = process(tmp_path, "-m", "evaluator", "health", ASSAY_OPERATOR="hub:ada")
    assert "elsewhere" in status.stderr and "ASSAY_OPERATORS?" in status.stderr
    file.write_text('[hub]\ntoken_fil = "x"\n')
    wrong = process(tmp_path, "-m", "benchmarks", "list")
    assert wrong.returncode == 1
    assert "settings.toml:2" in wrong.stderr and "hub.token_file?" in wrong.stderr
    how = process(tmp_path, "-m", "evaluator", "settings", "--example")
    assert how.returncode == 0 and "token_file" in how.stdout


def test_what_libraries_read_when_they_are_imported_counts_all_the_same(tmp_path: Path) -> None:
    """The process begins anew, once, with the same command line."""
    (tmp_path / "mine.toml").write_text('[hub]\nendpoint = "http://mirror.example"\n')
    program = (
        "from huggingface_hub import constants\n"
        "from benchmarks.settings.model import load_process\n"
        "import sys\n"
        "print('begun', flush=True)\n"
        "load_process()\n"
        "print(constants.ENDPOINT, sys.argv[1:])\n"
    )
    ended = process(tmp_path, "-c", program, "a b", ASSAY_SETTINGS="mine.toml")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["begun", "begun", "http://mirror.example ['a b']"]


def test_an_environment_for_another_folder_means_the_same_there() -> None:
    environment = {"ASSAY_MODELS": "models", "ASSAY_STORE": "s", "HF_HOME": "h", "PORT": "1"}
    absolute = str(Path("models").absolute())
    assert with_absolute_paths(environment) == {**environment, "ASSAY_MODELS": absolute}
