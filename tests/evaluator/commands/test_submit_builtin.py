"""Built-in metrics from a terminal: queued by name, or told everything that stands in the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.problems import ProblemsError
from evaluator.scorers.checkpoints import ModelHub
from evaluator.scorers.fitting import Capacity
from evaluator.scorers.questions.files import write_records
from evaluator.submission.builtin import source_from
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from tests.evaluator.commands.submitting import Run
from tests.evaluator.scorers.questions.fakes import yes_no
from tests.evaluator.submission.builtins import (
    BLIP2,
    CLIP,
    DUAL,
    ROWS,
    VLM,
    add_clip,
    add_vlm,
    change_row,
    form,
    models_hub,
    use,
)
from tests.kit.hub.server import HubServer
from tests.kit.refusals import refused
from tests.kit.worker import ADA, ROOT, Rig

PICKLED, ASKING, OWN, LARGE = "imagereward", "dsg-blip2", "score-table", "viescore-sc"
SMALL = Capacity("a small machine", 1e9)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with models_hub(monkeypatch, tmp_path) as state:
        yield state


def queued(tmp_path: Path) -> list[str]:
    store = folder_store(tmp_path / "store")
    return [status.submission.name for status in Ledger(store).statuses()]


@pytest.mark.slow
def test_several_are_queued_by_name_and_run_here(run: Run, hub: HubServer, tmp_path: Path) -> None:
    add_clip(hub, tmp_path)
    add_vlm(hub, tmp_path)
    done = run("submit", f"builtin:{DUAL}", f"builtin:{VLM}", "--benchmark", "toy", "--json")
    assert done.code == 0, done.err
    assert [one["state"] for one in done.json] == ["published", "published"]
    assert [one["submission"]["account"] for one in done.json] == ["assay:assay"] * 2
    again = run("submit", f"builtin:{DUAL}", "--no-wait", "--json")
    assert again.code == 0 and again.json["state"] == "published"
    standings = run("quota", "--json").json["standings"]
    assert {line["scored"] for line in standings} == {0}, "nobody is charged"


def test_all_that_is_wrong_is_told_at_once_and_nothing_is_queued(
    run: Run, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_clip(hub, tmp_path)
    hub.add(BLIP2, {"model.safetensors": b"w" * 2000}, kind="models", gated=True)
    monkeypatch.setattr("evaluator.scorers.fitting.this_machine", lambda: SMALL)
    names = (DUAL, "clipscore-hesel", VLM, PICKLED, ASKING, OWN, LARGE)
    done = run("submit", *(f"builtin:{name}" for name in names), "--no-wait")
    assert done.code == 1
    for said in (
        "clipscore-hessel",  # a near name
        f"{VLM} (checkpoint model, {BLIP2})",
        "accepted its terms",
        "HF_TOKEN",
        "ImageReward.pt",
        "--questions",
        "scorers run",
        "a small machine",
        "--gpu",
        f"{LARGE} needs about",
        f"{ASKING} asks questions",
        f"{PICKLED} (checkpoint tokenizer",  # each metric with all that it lacks
    ):
        assert said in done.err, said
    assert queued(tmp_path) == []
    assert not [each for each in hub.served if each.method == "GET" and "/resolve/" in each.target]


@pytest.mark.parametrize(
    ("name", "code", "named"),
    [
        ("clipscore-hesel", "unknown_scorer", (DUAL,)),
        (PICKLED, "checkpoint_unsafe", ("ImageReward.pt",)),
        (OWN, "file_of_yours", ("scorers run",)),
        ("vqascore-any", "file_of_yours", ()),
        (VLM, "checkpoint_missing", (BLIP2,)),
    ],
)
def test_each_fault_names_the_metric_and_what_to_do(
    rig: Rig, hub: HubServer, name: str, code: str, named: tuple[str, ...]
) -> None:
    report = rig.desk.examine_builtin(form(name), ROOT)
    found = {problem.code: problem for problem in report.problems}
    told = f"{found[code].message} {found[code].hint}"
    assert all(each in told for each in (name, *named))
    assert "0.0 GB;" not in " ".join(report.notes), "what is not known is not said to be nothing"
    with pytest.raises(SubmitterError):
        rig.desk.submit_builtin(form(name), account=ROOT)
    assert rig.ledger.statuses() == ()


@pytest.mark.parametrize(
    ("weights", "gated", "code", "named"),
    [
        ("pytorch_model.bin", False, "checkpoint_unsafe", "pytorch_model.bin"),
        ("model.safetensors", True, "checkpoint_missing", "HF_TOKEN"),
    ],
)
def test_weights_that_may_not_be_read_are_told_before_they_are_fetched(
    rig: Rig, hub: HubServer, *, weights: str, gated: bool, code: str, named: str
) -> None:
    hub.add(CLIP, {"config.json": b"{}", weights: b"p" * 2000}, kind="models", gated=gated)
    (problem,) = rig.desk.examine_builtin(form(), ROOT).problems
    assert problem.code == code and CLIP in problem.message
    assert named in f"{problem.message} {problem.hint}"
    assert not [each for each in hub.served if each.method == "GET" and "/resolve/" in each.target]


@pytest.mark.slow
def test_without_a_network_weights_must_be_in_the_cache(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_clip(hub, tmp_path)
    rig.desk.submit_builtin(form(), account=ROOT)
    rig.worker().run_all()  # Now its weights are in the cache.
    offline = ModelHub.of_environment()
    hub.spoil("/", times=500, status=503)
    monkeypatch.setattr("time.sleep", lambda *_: None)
    use(monkeypatch, offline)
    assert rig.desk.examine_builtin(form(), ROOT).problems == ()
    (problem,) = rig.desk.examine_builtin(form(VLM), ROOT).problems
    assert problem.code == "hub_unreachable" and VLM in problem.message
    assert "not in the cache" in problem.message and "HF_HOME" in problem.hint


def test_memory_is_that_of_this_machine_or_of_a_named_gpu(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(ROWS[LARGE].checkpoints["model"].id, {"model.safetensors": b"w"}, kind="models")
    monkeypatch.setattr("evaluator.scorers.fitting.this_machine", lambda: SMALL)

    def codes(gpu: str) -> list[str]:
        report = rig.desk.examine_builtin(form(LARGE, gpu=gpu), ROOT)
        return [problem.code for problem in report.problems]

    assert codes("") == codes("t4") == ["memory_too_small"]
    assert codes("a100") == []
    assert codes("l5") == ["unknown_gpu"]


def test_only_operators_may(rig: Rig, hub: HubServer, tmp_path: Path) -> None:
    add_clip(hub, tmp_path)
    for account, code in ((ADA, "not_operator"), (None, "not_signed_in")):
        with refused(code):
            rig.desk.examine_builtin(form(), account)
    with refused("not_operator"):
        rig.desk.submit_builtin(form(), account=ADA)
    assert rig.ledger.statuses() == ()


def test_unknown_benchmarks_and_those_without_images_are_told(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_clip(hub, tmp_path)
    (problem,) = rig.desk.examine_builtin(form(benchmarks=("toi",)), ROOT).problems
    assert problem.code == "unknown_benchmark" and "toy" in f"{problem.message} {problem.hint}"
    monkeypatch.setattr(rig.toy, "has_questions", lambda _: False)
    (problem,) = rig.desk.examine_builtin(form(benchmarks=("toy",)), ROOT).problems
    assert problem.code == "images_missing"


def test_all_fitting_takes_what_nothing_stands_against_and_names_the_rest(
    run: Run, hub: HubServer, tmp_path: Path
) -> None:
    add_clip(hub, tmp_path)
    done = run("submit", "--all-fitting", "--no-wait")
    assert done.code == 0, done.err
    assert set(queued(tmp_path)) == {
        name
        for name, row in ROWS.items()
        if [each.id for each in row.checkpoints.values()] == [CLIP]
    }
    assert f"Left out: {PICKLED}" in done.err


def test_a_judge_behind_an_api_is_queued_by_name_where_its_endpoint_is_known(
    run: Run, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("submit", "builtin:vqascore-gpt-4o", "--no-wait")
    assert done.code == 1 and "ASSAY_ENDPOINTS" in done.err
    path = tmp_path / "endpoints.toml"
    path.write_text(
        '[[endpoint]]\nname = "openai"\naddress = "http://127.0.0.1:9/v1"\nbudget_usd = 1\n'
        'key_variable = "JUDGE_KEY"\n[endpoint.models."gpt-4o-2024-11-20"]\n'
        "input_usd = 2.5\noutput_usd = 10\n"
    )
    monkeypatch.setenv("ASSAY_ENDPOINTS", str(path))
    done = run("submit", "builtin:vqascore-gpt-4o", "--no-wait")
    assert done.code == 1 and "JUDGE_KEY" in done.err and queued(tmp_path) == []
    monkeypatch.setenv("JUDGE_KEY", "sk-1")
    add_clip(hub, tmp_path)
    assert run("submit", "--all-fitting", "--no-wait").code == 0
    assert not any(ROWS[name].endpoint for name in queued(tmp_path))
    done = run("submit", "builtin:vqascore-gpt-4o", "--no-wait")
    assert done.code == 0, done.err
    assert "vqascore-gpt-4o" in queued(tmp_path)


def test_where_nothing_fits_all_reasons_are_one_error(
    rig: Rig, run: Run, hub: HubServer, tmp_path: Path
) -> None:
    done = run("submit", "--all-fitting", "--no-wait")
    assert done.code == 1 and queued(tmp_path) == []
    with pytest.raises(ProblemsError) as refused:
        rig.desk.submit_builtin(form(), account=ROOT)
    assert CLIP in refused.value.message


@pytest.mark.parametrize(
    "words",
    [
        ["builtin:pickscore", "module"],
        ["builtin:pickscore", "--kind", "scores", "--benchmark", "toy"],
        ["builtin:pickscore", "--private"],
        ["builtin:pickscore", "--name", "mine"],
        ["builtin:pickscore", "--all-fitting"],
        ["module", "--gpu", "t4"],
        [],
    ],
)
def test_words_that_do_not_go_together_are_a_wrong_use(run: Run, words: list[str]) -> None:
    assert run("submit", *words).code == 2


def test_two_modules_at_once_are_refused(run: Run) -> None:
    done = run("submit", "one", "two")
    assert done.code == 1 and "one, two" in done.err


@pytest.mark.slow
def test_a_changed_row_is_told_by_rerun_and_sent_anew_by_reevaluate(
    run: Run, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_clip(hub, tmp_path)
    own_id = run("submit", f"builtin:{DUAL}", "--json").json["submission"]["submission_id"]
    change_row(monkeypatch, options={**ROWS[DUAL].options, "formula": "cos"})
    refused = run("rerun", own_id, "--reason", "again")
    assert refused.code == 3 and "builtin_row_changed" in refused.err
    words = ("reevaluate", "--all", "--reason", "a new row", "--json")
    assert run(*words, "--dry-run").json["new_rows"] == [own_id]
    assert len(queued(tmp_path)) == 1
    assert run(*words).json["new_rows"] == [own_id]
    assert queued(tmp_path) == [DUAL, DUAL]
    assert run(*words).json["new_rows"] == []


@pytest.mark.slow
def test_weights_that_a_row_does_not_count_are_counted_in_its_checkpoints(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "blip2"
    add_vlm(hub, tmp_path)
    n_bytes = (place / "model.safetensors").stat().st_size
    uncounted = {**ROWS, VLM: ROWS[VLM].model_copy(update={"parameters": None})}
    monkeypatch.setattr("evaluator.submission.builtin.load_rows", lambda: uncounted)
    assert rig.desk.examine_builtin(form(VLM), ROOT).problems == ()  # The test Hub counts none.
    rig.desk.submit_builtin(form(VLM), account=ROOT)
    rig.worker().run_all()  # Now they are in the cache.
    for share, codes in ((0.5, ["memory_too_small"]), (1.0, [])):
        room = Capacity("a small machine", share * n_bytes)  # Of float32, for half as many bytes.
        monkeypatch.setattr("evaluator.scorers.fitting.this_machine", lambda room=room: room)
        report = rig.desk.examine_builtin(form(VLM), ROOT)
        assert [problem.code for problem in report.problems] == codes


def test_libraries_are_needed_where_it_is_to_run(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_clip(hub, tmp_path)
    monkeypatch.setattr("evaluator.scorers.fitting.this_machine", lambda: Capacity("here", 1e12))
    monkeypatch.setattr(
        "evaluator.scorers.fitting.find_spec", lambda name: None if name == "torch" else name
    )
    (problem,) = rig.desk.examine_builtin(form(), ROOT).problems
    assert problem.code == "libraries_missing" and "torch" in problem.message
    assert rig.desk.examine_builtin(form(gpu="t4"), ROOT).problems == ()
    name = rig.desk.submit_builtin(form(gpu="t4"), account=ROOT).status.submission.submission_id
    rig.worker().run_all()
    assert rig.state(name) is State.QUEUED, "a worker without them leaves it to others"


def test_a_question_file_goes_with_the_metric_that_asks_and_is_read_where_it_runs(
    rig: Rig, hub: HubServer, tmp_path: Path
) -> None:
    hub.add(ROWS[ASKING].checkpoints["model"].id, {"model.safetensors": b"w"}, kind="models")
    file, bad = tmp_path / "q.jsonl", tmp_path / "bad.jsonl"
    write_records(file, [yes_no("a grey pixel", "1", "Grey?")])
    bad.write_text("{}\n")
    (problem,) = rig.desk.examine_builtin(form(ASKING, questions=bad), ROOT).problems
    assert problem.code == "bad_questions"
    sent = rig.desk.submit_builtin(form(ASKING, questions=file), account=ROOT).status.submission
    kept = tmp_path / "kept.json"
    rig.ledger.fetch_upload(sent, kept)
    with source_from(sent, kept)._model() as model:
        asked = model.runtime.questions
        assert asked is not None and asked.name == "q.jsonl"
        assert asked.read_bytes() == file.read_bytes()
        assert not (model.runtime.allow_pickle or model.runtime.trust_remote_code)
