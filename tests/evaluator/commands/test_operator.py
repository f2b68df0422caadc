"""What an operator does from a terminal, and that everybody can read it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.schema import Benchmark
from evaluator.commands.judges import in_role
from leaderboard.ledger.judge_pins import Pins
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import read_policy
from leaderboard.models.judges import Judging
from leaderboard.models.reading import BoardCache
from leaderboard.models.selection import BLIND
from leaderboard.publication.publisher import Publisher
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import transact
from tests.evaluator.commands.submitting import SCORES, Run, id_of, sent, submit_words
from tests.evaluator.revised import Revised, publish
from tests.kit.worker import Rig
from tests.leaderboard.models.made_up_models import World, prompt_set, prompts_of, trusting


def states(run: Run) -> list[str]:
    return [status["state"] for status in run("status", "--json").json]


@pytest.mark.slow
def test_hide_show_rerun_ban_and_unban_do_what_they_say(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    assert run("hide", own_id, "--reason", "copied", user="root").code == 0
    assert states(run) == ["hidden"]
    assert "copied" in run("status", own_id).out
    assert run("show", own_id, user="root").code == 0
    assert states(run) == ["published"]
    assert run("rerun", own_id, "--reason", "new data").code == 0
    (status,) = run("status", own_id, "--json").json
    assert (status["state"], status["on_boards"]) == ("queued", True)
    assert run("ban", "local:mallory", "--reason", "copied labels").code == 0
    words = submit_words(tmp_path)
    refused = run(*words, user="mallory")
    assert refused.code == 1 and "copied labels" in refused.err
    assert run("unban", "local:mallory", "--reason", "a mistake").code == 0
    assert run(*words, user="mallory").code == 0


def failed(run: Run, folder: Path, fault: str, name: str, *, private: bool = False) -> str:
    """A submission that a worker failed, by the fault of this one."""
    more = ("--private",) if private else ()
    text = SCORES.replace("m,n", f"{name}1,{name}2")
    own_id = id_of(run(*submit_words(folder, text=text, name=name), "--no-wait", *more).json)
    store = folder_store(folder / "store")
    reason = {"reason": f"{name} failed.", "code": "worker_lost", "fault": fault}
    for state in ({"state": State.CLAIMED}, {"state": State.FAILED} | reason):
        event = Event.model_validate({"at": store.clock(), "by": "w1"} | state)
        Ledger(store).append(own_id, [event])
    return own_id


def test_what_failed_by_the_platforms_fault_is_queued_again_once(run: Run, tmp_path: Path) -> None:
    ours = [failed(run, tmp_path, "platform", "a"), failed(run, tmp_path, "world", "b")]
    ours.append(failed(run, tmp_path, "platform", "c", private=True))
    theirs = failed(run, tmp_path, "submitter", "d")
    words = ("rerun", "--all-platform")
    public = folder_store(tmp_path / "store").public
    before = public.head()
    listed = run(*words, "--dry-run")
    assert listed.code == 0 and all(f"{name}: failed" in listed.out for name in ours)
    assert theirs not in listed.out and public.head() == before
    assert run(*words).code == 2
    assert public.head() == before
    done = run(*words, "--reason", "the disk was full")
    assert done.code == 0 and all(f"{name}: queued" in done.out for name in ours)
    queued = {id_of(one): (one["state"], one["attempts"]) for one in run("status", "--json").json}
    assert queued == {**dict.fromkeys(ours, ("queued", 0)), theirs: ("failed", 1)}
    again = public.head()
    assert again != before
    assert run(*words, "--reason", "again").code == 0
    assert public.head() == again, "nothing is left to queue"


@pytest.mark.parametrize(
    "words", [(), ("some-0123456789", "--all-platform"), ("some-0123456789", "--dry-run")]
)
def test_a_rerun_is_of_one_submission_or_of_all_that_the_platform_failed(
    run: Run, words: tuple[str, ...]
) -> None:
    assert run("rerun", *words, "--reason", "x").code == 2


def test_a_policy_is_changed_with_a_reason_and_read_by_everyone(run: Run, tmp_path: Path) -> None:
    assert run("policy", "--scored", "metric=2").code == 1
    changed = ("--scored", "metric=2", "--days", "30", "--no-reevaluate")
    public = folder_store(tmp_path / "store").public
    before = read_policy(public)
    assert run("policy", *changed, "--reason", "one GPU").code == 0
    policy = run("policy", "--json", user="bob").json
    assert (policy["period_days"], policy["reevaluate"]) == (30, False)
    assert policy["allowances"]["metric"] == {"scored": 2, "unfinished": 3}
    assert run("policy", "--days", "3", "--reason", "shorter").code == 0
    after = read_policy(public)
    assert before.reevaluate and not after.reevaluate and after.period_days == 3
    wrong = run("policy", "--scored", "metrics=2", "--reason", "x")
    assert wrong.code == 1 and "bad_allowance" in wrong.err


def test_the_ledger_tells_all_in_order_and_of_tampering(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    run("hide", own_id, "--reason", "copied", user="root")
    run("ban", "local:ada", "--reason", "copied twice", user="root")
    told = run("ledger", "--json").json
    assert told["problems"] == []
    lines = [(line["action"], line["subject"]) for line in told["lines"]]
    assert lines[-2:] == [("hidden", own_id), ("ban", "local:ada")]
    assert run("ledger", "--subject", own_id).code == 0
    public = folder_store(tmp_path / "store").public
    path = public.list("chronicle/")[0]
    first, *others = public.read(path).splitlines()
    changed = json.dumps(json.loads(first) | {"reason": "nothing"}).encode()
    transact(public, lambda: {path: b"\n".join([changed, *others]) + b"\n"}, "tampered")
    assert run("ledger").code == 3 and run("ledger", "--json").json["problems"]


# Who judges models -----------------------------------------------------------------------------------

SET = "demo_prompts"


@pytest.fixture(name="begun")
def _begun(run: Run) -> Run:
    """A store in which something was done."""
    assert run("ban", "local:mallory", "--reason", "labels").code == 0
    return run


def test_without_boards_nobody_judges_and_the_rule_is_shown(begun: Run) -> None:
    shown = begun("judges", SET)
    assert shown.code == 0 and "no qualified metric" in shown.out
    skills = {one["skill"] for one in begun("judges", SET, "--json").json["skills"]}
    assert skills >= {None, "count"}


@pytest.mark.slow
def test_a_decision_is_public_is_in_the_ledger_and_can_be_taken_back(begun: Run) -> None:
    words = ("vqa", "--skill", "count", "--prompt-set", SET)
    why = "trained on it"
    assert begun("pin", "vqa", "distrust", *words[1:], "--reason", why, user="root").code == 0
    (pin,) = begun("judges", SET, "--json").json["pins"]
    assert (pin["metric"], pin["skill"], pin["verdict"]) == ("vqa", "count", "distrust")
    assert (pin["reason"], pin["by"]) == (why, "local:root")
    told = begun("ledger", "--subject", "vqa")
    assert told.code == 0 and f"by local:root: {why}" in told.out
    assert begun("unpin", *words, "--reason", "a mistake").code == 0
    assert begun("judges", SET, "--json").json["pins"] == []
    assert begun("unpin", *words, "--reason", "again").code == 1
    assert begun("ledger").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("pin", "vqa", "maybe", "--reason", "r"),
        ("pin", "vqa", "trust", "--reason", " "),
        ("pin", "", "trust", "--reason", "r"),
        ("pin", "vqa", "trust", "--reason", "r", "--prompt-set", "unheard"),
        ("pin", "vqa", "trust", "--reason", "r", "--skill", "unheard"),
        ("judges", "unheard"),
        ("judges", SET, "--skill", "unheard"),
    ],
)
def test_what_does_not_exist_is_refused_in_words(begun: Run, words: tuple[str, ...]) -> None:
    refused = begun(*words)
    assert refused.code == 1 and refused.err


def test_a_metric_blind_to_the_images_judges_no_more_here_than_on_the_board() -> None:
    made = World(prompt_set(prompts_of(20)), trusting("vqa/vqa", "clip/clip"))
    rng = np.random.default_rng(1)
    blind = rng.uniform(size=20)
    for model, n in (("a", 6), ("b", 1)):
        made.add(model, {"vqa/vqa": rng.uniform(size=(n, 20)), "clip/clip": np.tile(blind, (n, 1))})
    judging = Judging(made.view, made.known.card, Pins(), BoardCache())
    found = {one.entry_id: one for one in in_role(judging, made.reader, None, made.metrics)}
    assert found["vqa/vqa"].trusted and not found["clip/clip"].trusted
    assert found["clip/clip"].why == BLIND


# A new revision of a benchmark: `reevaluate`, `moved` and `report --revision` ------------------------


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    (tmp_path / "work").mkdir()
    return Rig(tmp_path / "work", store=folder_store(tmp_path / "store"))


def revise(rig: Rig, registry: dict[str, Benchmark], *value: float) -> None:
    registry["toy"] = rig.toy = Revised(*value)


def scored_again(rig: Rig, run: Run) -> None:
    run("reevaluate", "--all", "--reason", "new labels", user="root")
    # Commands have the time of this machine, and the rig stands still before it.
    rig.clock.time = max(s.since for s in Ledger(rig.store).statuses()) + timedelta(minutes=1)
    Publisher(rig.store, {"toy": rig.toy.card}).publish_cards(rig.clock())
    rig.worker("second").run_all()


def test_what_is_outdated_is_said_and_then_queued_with_the_operators_reason(
    rig: Rig, run: Run, registry: dict[str, Benchmark]
) -> None:
    (name,) = publish(rig, ["grey"]).values()
    assert name not in run("reevaluate", "--all", "--dry-run").out
    revise(rig, registry)
    head = rig.store.public.head()
    done = run("reevaluate", "--all", "--dry-run")
    assert done.code == 0 and name in done.out and "revision 2 (was revision 1)" in done.out
    for words, code in (
        (("--all",), 1), (("--reason", "x"), 2), (("--all", "--benchmark", "toy", "--reason", "x"), 2),
        (("--benchmark", "nothing", "--reason", "x"), 1),
    ):  # fmt: skip
        assert run("reevaluate", *words).code == code
    assert rig.store.public.head() == head
    words = ("--benchmark", "toy", "--reason", "new labels", "--json")
    (found,) = run("reevaluate", *words, user="root").json["found"]
    assert (found["submission_id"], found["act"]) == (name, "rerun")
    queued = Ledger(rig.store).status(name)
    assert (queued.state, queued.code) == (State.QUEUED, "new_revision")
    assert queued.reason.endswith("new labels")
    assert run("reevaluate", *words).json["found"] == []


def test_what_moved_is_printed_and_old_results_are_reported_by_their_revision(
    rig: Rig, run: Run, registry: dict[str, Benchmark]
) -> None:
    name, _ = publish(rig, ["grey", "white"]).values()
    assert run("moved", "toy").code == 1
    revise(rig, registry, 3.0)
    scored_again(rig, run)
    shown = run("moved", "toy")
    assert shown.code == 0 and "2 metrics" in shown.out and "+2.000" in shown.out
    record = run("moved", "toy", "--json").json
    assert (record["from"], record["to"], record["measure"]) == ("1", "2", "mean")
    assert [one["difference"] for one in record["moved"]] == [2.0, 2.0]
    for words in (("--from", "../x"), ("--measure", "nothing")):
        assert run("moved", "toy", *words).code == 1

    def results(*words: str) -> list[float]:
        found = run("report", name, *words, "--json").json["results"]
        return [one["rows"][0]["value"] for one in found]

    assert results("--revision", "1") == [1.0]
    assert results() == results("--revision", "2") == [3.0]
    assert "(revision 1)" in run("report", name, "--revision", "1").out
    unknown = run("report", name, "--revision", "9")
    assert unknown.code == 1 and "1, 2" in unknown.err
    assert run("report", name, "--revision", "1", "--recompute").code == 2
