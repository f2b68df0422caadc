"""`export` writes results in the forms of others, and proposes them to the Hub when it is told to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from leaderboard.store.folder import folder_store
from tests.evaluator.commands.submitting import Run
from tests.kit.boards import keep
from tests.kit.hub.server import HubServer
from tests.kit.toy import Toy
from tests.leaderboard.exports.made_up import faults
from tests.leaderboard.views.model_track import IDS, SET, filled, prompt_sets
from tests.leaderboard.web.skills_fixture import cards

FILE = f".eval_results/assay-{SET}-{IDS[0]}.yaml"
DATASET = ("--dataset", "someone/prompts")


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    made = filled(2)
    return {path: made.public.read(path) for path in made.public.list("")}


@pytest.fixture
def store(files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Boards of metrics and of two models."""
    known = {name: Toy(card) for name, card in cards().items()}
    monkeypatch.setattr("benchmarks.registry.load_registry", lambda: known)
    monkeypatch.setattr("benchmarks.prompt_sets.prompt_set.load_prompt_sets", prompt_sets)
    keep(folder_store(tmp_path / "store"), files)
    return tmp_path / "store"


@pytest.mark.slow
def test_records_and_logs_of_everything_are_written(run: Run, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = run("export", "every-eval-ever", "--out", out, "--site", "https://assay.example")
    assert ended.code == 0 and "files written" in ended.told
    records = [json.loads(path.read_text()) for path in out.glob("data/*/*/*/*.json")]
    assert faults("eval", records) == [] and len(records) > len(IDS)
    assert len(list(out.glob(f"data/assay-{SET}/*/*/*_samples.jsonl"))) == 2
    assert run("export", "inspect", IDS[0], "--out", out / "logs").code == 0
    (log,) = (out / "logs").iterdir()
    assert json.loads(log.read_text())["eval"]["metadata"]["submission_id"] == IDS[0]
    assert run("export", "inspect", "nobody", "--out", out).code == 1
    cited = run("export", "citation", IDS[0], "--form", "cff")
    commit = folder_store(store).public.head()
    assert yaml.safe_load(cited.out)["version"] == commit
    assert commit in run("export", "citation", IDS[0]).out


@pytest.mark.parametrize("ids", [(), (IDS[0],)])
def test_nothing_to_export_is_told(
    run: Run, store: Path, tmp_path: Path, ids: tuple[str, ...]
) -> None:
    words = (*ids, "--benchmark", "nowhere", "--out", tmp_path / "out")
    ended = run("export", "every-eval-ever", *words)
    assert ended.code == 1 and "[nothing_to_export]" in ended.err


def test_results_are_proposed_to_the_repository_of_the_model(
    run: Run, store: Path, hub: HubServer, tmp_path: Path
) -> None:
    repository = hub.add("someone/model", {"README.md": b"A model."}, kind="models")
    words = ("export", "eval-results", IDS[0], "--out", tmp_path / "out", *DATASET)
    written = run(*words, "--benchmark-file")
    assert written.code == 0, written.err
    content = (tmp_path / "out" / FILE).read_bytes()
    assert parse_eval_result_entries(yaml.safe_load(content))[0].dataset_id == "someone/prompts"
    assert yaml.safe_load((tmp_path / "out" / "eval.yaml").read_text())["tasks"]
    shown = run(*words, "--pull-request", "--dry-run")
    assert "someone/model" in shown.told and FILE in shown.told
    assert "already" not in shown.told
    assert list(repository.branches) == ["main"]  # Nothing was sent.
    sent = run(*words, "--pull-request")
    assert sent.code == 0 and "/someone/model/discussions/1" in sent.told
    assert repository.files(repository.branches["refs/pr/1"])[FILE].content == content
    assert FILE not in repository.files(repository.branches["main"])
    hub.add("someone/model", {FILE: b"of before"}, kind="models")
    assert "already" in run(*words, "--pull-request", "--dry-run").told


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((IDS[0],), "nothing_to_export"),  # Its prompt set is no dataset of the Hub.
        ((IDS[1], *DATASET, "--pull-request"), "no_repository"),
        (("nobody",), "unknown_entry"),
    ],
)
def test_what_cannot_be_proposed_is_refused(
    run: Run, store: Path, tmp_path: Path, words: tuple[str, ...], code: str
) -> None:
    ended = run("export", "eval-results", *words, "--out", tmp_path / "out")
    assert ended.code == 1 and f"[{code}]" in ended.err


def test_without_a_token_or_a_repository_nothing_is_proposed(
    run: Run, store: Path, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("export", "eval-results", IDS[0], "--out", tmp_path, *DATASET, "--pull-request")
    assert "[repository_missing]" in run(*words).err
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    assert "[token_missing]" in run(*words).err
