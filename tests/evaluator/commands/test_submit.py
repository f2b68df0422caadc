"""What a submitter does from a terminal: submit, read, count, withdraw, publish; and odd input."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.commands import progress as sources
from evaluator.commands import status as status_command
from evaluator.commands import submit
from evaluator.hub.source import HubSource
from evaluator.worker.worker import Worker
from leaderboard.governance.authentication import os_user, this_person
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import Policy, Quota
from leaderboard.records import Event, Kind, Status
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store, transact
from tests.evaluator.commands.submitting import SCORES, Run, id_of, sent, submit_words
from tests.evaluator.submission.generations.made_images import made_of_demo
from tests.kit.hub.server import HubServer


def state(run: Run, own_id: str) -> str:
    return str(run("status", own_id, "--json", user="bob").json[0]["state"])


def test_a_scores_file_is_scored_reported_and_recognised(run: Run, tmp_path: Path) -> None:
    status = sent(run, tmp_path)
    assert (status["state"], status["submission"]["account"]) == ("published", "local:ada")
    told = run("report", id_of(status))
    assert told.code == 0
    assert "mean" in told.out and "not re-run" in told.out and "rank" in told.out
    again = run("report", id_of(status), "--recompute", "--json")
    assert again.code == 0
    (recomputed,) = again.json["recomputed"]
    assert recomputed["same"]
    assert recomputed["rows"] == len(again.json["results"][0]["rows"]) == 2
    second = run(*submit_words(tmp_path))
    assert second.code == 0 and "before" in second.err
    assert run("status", "--json").json == [status]


@pytest.mark.slow
def test_a_private_submission_is_its_authors_to_read_and_publish(run: Run, tmp_path: Path) -> None:
    status = sent(run, tmp_path, "--private", "--name", "secret-metric")
    own_id = id_of(status)
    assert status["state"] == "held"
    assert "secret-metric" in run("status").out
    assert "mean" in run("report", own_id, "--recompute").out
    others = run("status", user="bob")
    assert "private submission" in others.out
    assert "secret-metric" not in others.out + run("logs", own_id, user="bob").out
    assert run("status", "--mine", "--json", user="bob").json == []
    for command in ("report", "publish"):
        assert run(command, own_id, user="bob").code == 1
    assert run("publish", own_id).code == 0
    assert state(run, own_id) == "published"
    assert run("report", own_id, "--recompute", user="bob").code == 0


def test_only_ones_own_is_withdrawn_and_only_when_asked(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    assert run("withdraw", own_id).code != 0  # Nobody answers.
    refused = run("withdraw", own_id, "--yes", user="bob")
    assert refused.code == 1 and "not_yours" in refused.err
    assert state(run, own_id) == "published"
    assert run("withdraw", own_id, "--yes", "--reason", "a bug").code == 0
    (status,) = run("status", own_id, "--json").json
    assert (status["state"], status["reason"]) == ("withdrawn", "a bug")


@pytest.mark.slow
def test_a_quota_is_visible_counted_and_holds(run: Run, tmp_path: Path) -> None:
    tight = {Kind.SCORES: Quota(scored=1, unfinished=1)}
    policy = Policy(allowances=Policy().allowances | tight).model_dump_json().encode()
    public = folder_store(tmp_path / "store").public
    transact(public, lambda: {"policy.json": policy}, "tight")

    def left() -> dict[str, int]:
        return {line["kind"]: line["left"] for line in run("quota", "--json").json["standings"]}

    before = left()
    sent(run, tmp_path)
    assert left() == before | {"scores": before["scores"] - 1}
    assert "local:ada" in run("quota").out
    refused = run(*submit_words(tmp_path, text=SCORES.replace("1", "9"), name="t"))
    assert refused.code == 1 and "quota_exceeded" in refused.err
    assert len(run("status", "--json").json) == 1


def test_a_submission_that_a_worker_took_first_is_waited_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, polls = folder_store(tmp_path / "store"), []

    def happens(own_id: str, state: State, **more: Any) -> None:
        Ledger(store).append(own_id, [Event(at=store.clock(), state=state, by="w2", **more)])

    def taken(_: Worker, own_id: str) -> bool:
        happens(own_id, State.CLAIMED, lease_until=store.clock() + timedelta(minutes=5))
        return False

    def watched(opened: Store, own_id: str, *, follow: bool) -> Iterator[Status]:
        for status in status_command.watched(opened, own_id, follow=follow, sleep=lambda _: None):
            polls.append(status.state)
            yield status
            happens(own_id, State.FAILED, reason="It stopped.", fault="submitter")

    monkeypatch.setattr(Worker, "run", taken)
    monkeypatch.setattr(submit, "watched", watched)
    ended = run(*submit_words(tmp_path), "--json")
    assert polls == [State.CLAIMED, State.FAILED]
    assert (ended.code, ended.json["state"], ended.json["by"]) == (1, "failed", "w2")


# Generations -----------------------------------------------------------------------------------------

KIND = ("--kind", "generations", "--no-wait", "--json")


def test_images_are_queued_once_and_charged_to_generations(run: Run, tmp_path: Path) -> None:
    path = made_of_demo().zipped(tmp_path / "a.zip")
    first = run("submit", path, *KIND, "--submitter", "Ada's team")
    assert first.code == 0, first.err
    own = first.json["submission"]
    facts = {"kind": "generations", "name": "painter", "benchmarks": ["demo_prompts"]}
    assert own == own | facts | {"submitter": "Ada's team"}
    assert own["images"]["present"] == own["images"]["wanted"]
    assert "before" in run("submit", path, *KIND).err
    lines = run("quota", "--json").json["standings"]
    assert [one["unfinished"] for one in lines if one["kind"] == "generations"] == [1]


def test_private_parquet_takes_its_manifest_from_the_options(run: Run, tmp_path: Path) -> None:
    path = made_of_demo().parquet(tmp_path / "a.parquet")
    named = ("--name", "painter", "--version", "2", "--benchmark", "demo_prompts", "--private")
    done = run("submit", path, *KIND, *named)
    assert done.code == 0, done.err
    own = done.json["submission"]
    assert (own["name"], own["version"], own["private"]) == ("painter", "2", True)


@pytest.mark.slow
def test_a_dataset_of_the_hub_is_fetched(
    run: Run, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = partial(HubSource.parse, endpoint=hub.endpoint)
    monkeypatch.setattr(sources, "HubSource", SimpleNamespace(parse=parse))
    sha = hub.add("ada/images", dict(made_of_demo().all_files())).branches["main"]
    done = run("submit", "hub:datasets/ada/images@main", *KIND)
    checked = run("check", "hub:datasets/ada/images@main", "--json")
    assert done.json["submission"]["source"] == f"hub:datasets/ada/images@{sha}"
    assert (checked.code, checked.json["counts"]) == (0, {})


def test_wrong_images_are_counted_and_are_no_metric(run: Run, tmp_path: Path) -> None:
    one = made_of_demo()
    for name in list(one.files)[:50]:
        del one.files[name]
    folder = one.folder(tmp_path / "f")
    done = run("submit", folder, *KIND)
    assert done.code == 1 and "50 things" in done.err and "50 missing" in done.err
    done = run("submit", folder)
    assert done.code == 2 and "--kind generations" in done.err
    for more in (("--receipt", "r.json"), ("--lower-is-better", "x")):
        assert run("submit", folder, *KIND, *more).code == 2


# What strangers type, and worse ----------------------------------------------------------------------

ODD_IDS = (
    "no-such-0123456789", "../../etc/passwd", "", " ", "[red]x[/red]", "\x1b[31mx", "a\nb",
    "x" * 10_000, "é", "private-0000000000", "%s", "\udcff",
)  # fmt: skip


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "words",
    [
        ("logs",), ("report",), ("publish",), ("withdraw", "--yes"), ("show",),
        ("hide", "--reason", "x"), ("rerun", "--reason", "x"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_odd_ids_are_refused_harmlessly(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    head = folder_store(tmp_path / "store").public.head()
    for odd in ODD_IDS:
        ended = run(*words, "--", odd)
        assert (ended.code, ended.out) == (1, ""), odd
        assert "unknown_submission" in ended.err and "\x1b[31mx" not in ended.err
    assert run("status", ODD_IDS[0], "--follow").code == 1
    assert folder_store(tmp_path / "store").public.head() == head


@pytest.mark.slow
def test_a_reason_that_nobody_can_read_is_refused_and_markup_does_nothing(
    run: Run, tmp_path: Path
) -> None:
    own_id = id_of(sent(run, tmp_path))
    for command in ("hide", "rerun"):
        assert run(command, own_id).code == 2
        for odd, code in ((" \n\u202e\x1b", "reason_missing"), ("x" * 10_000, "reason_too_long")):
            ended = run(command, own_id, "--reason", odd, user="root")
            assert ended.code == 1 and code in ended.err
    assert state(run, own_id) == "published"
    reason = "[red]x[/red] [/] \x1b[31mred\x1b[0m \r\nline\u202e [link=file:///]y[/link]"
    shown = "[red]x[/red] [/] [31mred[0m line [link=file:///]y[/link]"
    assert run("hide", own_id, "--reason", reason, user="root").out.strip().endswith(shown)
    for words in (("status", own_id), ("logs", own_id), ("ledger",)):
        told = run(*words)
        assert told.code == 0
        assert "\x1b[31m" not in told.out and "[red]x[/red]" in told.out
    assert run("report", own_id, "--json").json["status"]["reason"] == shown


@pytest.mark.parametrize(
    ("words", "odd", "code"),
    [
        *((("ban", "--reason", "x", "--", account), account, "bad_account")
          for account in ("", "ada", "hub:", "hub:a b", "HUB:ada", "hub:" + "x" * 200)),
        (("unban", "--reason", "x", "--", "hub:a b"), "hub:a b", "not_banned"),
        *((("policy", "--reason", "x", "--scored", f"metric={number}"), number, "bad_allowance")
          for number in ("", "-1", "1.5", "x", "9" * 5000, "٣")),
    ],
    ids=lambda value: value[:9] if isinstance(value, str) else "",
)  # fmt: skip
def test_odd_accounts_and_numbers_are_refused(
    run: Run, words: tuple[str, ...], odd: str, code: str
) -> None:
    ended = run(*words, user="root")
    assert ended.code == 1 and code in ended.err
    assert len(ended.err) < 500


@pytest.mark.parametrize(
    "words",
    [
        ("scores.csv",), ("x", "--kind", "scores"), ("x", "--name", "m"), ("x", "--version", "2"),
        ("x", "--description", "d"), ("x", "--lower-is-better", "m"),
        ("s.csv", "--kind", "scores", "--benchmark", "toy", "--receipt", "r.json"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_a_usage_error(run: Run, words: tuple[str, ...]) -> None:
    assert run("submit", *words).code == 2


def test_a_file_of_any_name_gets_a_name_people_can_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"[red]\xff\x1b[31m \xe2\x80\xae.csv")
    path.write_text("pair_id,score\na,1\nb,2\nc,3\n")
    ended = run("submit", path, "--kind", "scores", "--benchmark", "toy", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["submission"]["name"] == "red-31m"


def test_an_endless_receipt_is_not_read_to_its_end(run: Run, tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('name = "m"')
    for receipt, code in (("/dev/zero", "bad_receipt"), (tmp_path, "receipt_missing")):
        ended = run("submit", tmp_path, "--receipt", receipt, "--isolation", "none")
        assert ended.code == 1 and code in ended.err


@pytest.mark.parametrize("command", ["status", "quota", "ledger", "policy"])
def test_a_store_that_is_a_file_is_ours_and_said(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("")
    ended = run(command, "--store", tmp_path / "file")
    assert ended.code == 3 and "store_not_writable" in ended.err


@pytest.mark.slow
def test_a_stranger_is_told_nothing_of_what_is_private(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path, "--private", "--description", "hush", name="secret"))
    shown = [("status",), ("status", own_id), ("report", own_id), ("quota",), ("ledger",)]
    acts = [("logs", own_id), ("withdraw", "--yes", own_id), ("publish", own_id)]
    for words in [*shown, *acts, ("status", own_id, "--follow", "--json")]:
        ended = run(*words, user="bob")
        said = (ended.out + ended.err).replace(str(tmp_path), "")
        assert [one for one in ("secret", "hush", "local:ada", "mean") if one in said] == [], words
    for words in shown:
        ended = run(*words, "--json", user="bob")
        assert "secret" not in ended.out.replace(str(tmp_path), "")
        assert ended.out == "" if ended.code else json.loads(ended.out) is not None
        json.loads(run(*words, "--json").out)


def test_a_person_is_named_by_system_or_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("ASSAY_USER", raising=False)
    for name in ("LOGNAME", "USER", "USERNAME"):
        monkeypatch.setenv(name, "mallory")
    assert this_person().name == os_user()
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert this_person().key == f"local:uid-{os.getuid()}"
