"""What strangers type, and worse: every refusal names what is wrong and ends with its exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from evaluator.commands.person import os_user, this_person
from leaderboard.ledger.ledger import Ledger
from leaderboard.store.folder import folder_store
from tests.evaluator.commands.submitting import SCORES, Run, id_of, sent

ODD_IDS = (
    "no-such-0123456789", "../../etc/passwd", "", " ", "[red]x[/red]", "\x1b[31mx", "a\nb",
    "x" * 10_000, "é", "private-0000000000", "%s", "\udcff",
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD_IDS)
@pytest.mark.parametrize(
    "words",
    [
        ("logs",), ("report",), ("publish",), ("withdraw", "--yes"), ("show",),
        ("hide", "--reason", "x"), ("rerun", "--reason", "x"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_an_id_that_is_none_is_refused_and_shown_harmlessly(
    run: Run, tmp_path: Path, words: tuple[str, ...], odd: str
) -> None:
    folder_store(tmp_path / "store")
    ended = run(*words, "--", odd)
    assert (ended.code, ended.out) == (1, "")
    assert "unknown_submission" in ended.err
    assert "\x1b[31mx" not in ended.err


@pytest.mark.parametrize("command", ["hide", "rerun"])
@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("", "reason_missing"),
        (" \n\u202e\x1b", "reason_missing"),
        ("x" * 10_000, "reason_too_long"),
    ],
)
def test_a_reason_that_nobody_can_read_is_refused(
    run: Run, tmp_path: Path, command: str, reason: str, code: str
) -> None:
    own_id = id_of(sent(run, tmp_path))
    ended = run(command, own_id, "--reason", reason, user="root")
    assert ended.code == 1
    assert code in ended.err
    assert run("status", own_id, "--json").json[0]["state"] == "published"


def test_markup_and_control_characters_in_a_reason_do_nothing(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    reason = "[red]x[/red] [/] \x1b[31mred\x1b[0m \r\nline\u202e [link=file:///]y[/link]"
    shown = "[red]x[/red] [/] [31mred[0m line [link=file:///]y[/link]"
    assert run("hide", own_id, "--reason", reason, user="root").out.strip().endswith(shown)
    for words in (("status", own_id), ("logs", own_id), ("ledger",)):
        told = run(*words)
        assert told.code == 0
        assert "\x1b[31m" not in told.out
        assert "[red]x[/red]" in told.out
    assert run("report", own_id, "--json").json["status"]["reason"] == shown


@pytest.mark.parametrize("account", ["", "ada", "hub:", "hub:a b", "HUB:ada", "hub:" + "x" * 200])
def test_what_is_no_account_is_not_banned(run: Run, account: str) -> None:
    ended = run("ban", "--reason", "x", "--", account, user="root")
    assert ended.code == 1
    assert "bad_account" in ended.err
    ended = run("unban", "--reason", "x", "--", account, user="root")
    assert ended.code == 1
    assert "not_banned" in ended.err


@pytest.mark.parametrize("number", ["", "-1", "1.5", "x", "9" * 5000, "٣"])
def test_what_is_no_number_is_no_allowance(run: Run, number: str) -> None:
    ended = run("policy", "--scored", f"metric={number}", "--reason", "x")
    assert ended.code == 1
    assert "bad_allowance" in ended.err
    assert len(ended.err) < 500


@pytest.mark.parametrize(
    "words",
    [
        ("x", "--name", "m"),
        ("x", "--version", "2"),
        ("x", "--description", "d"),
        ("x", "--lower-is-better", "m"),
        ("s.csv", "--kind", "scores", "--benchmark", "toy", "--receipt", "r.json"),
    ],
)
def test_an_option_that_would_be_passed_over_is_a_usage_error(
    run: Run, words: tuple[str, ...]
) -> None:
    assert run("submit", *words).code == 2


def test_a_file_with_any_name_is_taken_under_a_name_people_can_read(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / os.fsdecode(b"[red]\xff\x1b[31m \xe2\x80\xae.csv")
    path.write_text("pair_id,score\na,1\nb,2\nc,3\n")
    ended = run("submit", path, "--kind", "scores", "--benchmark", "toy", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["submission"]["name"] == "red-31m"


def test_an_endless_receipt_is_not_read_to_its_end(run: Run, tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('name = "m"')
    ended = run("submit", tmp_path, "--receipt", "/dev/zero", "--isolation", "none")
    assert ended.code == 1
    assert "bad_receipt" in ended.err
    ended = run("submit", tmp_path, "--receipt", tmp_path, "--isolation", "none")
    assert (ended.code, "receipt_missing" in ended.err) == (1, True)


def test_a_store_that_is_a_file_is_ours_and_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words in (("status",), ("quota",), ("ledger",), ("policy",)):
        ended = run(*words, "--store", tmp_path / "file")
        assert ended.code == 3
        assert "store_not_writable" in ended.err


@pytest.mark.slow
def test_with_json_nothing_else_is_on_standard_output(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path, "--private"))
    sent(run, tmp_path)
    for words in (("status",), ("status", own_id), ("report", own_id), ("quota",), ("ledger",)):
        for user in ("ada", "bob"):
            ended = run(*words, "--json", user=user)
            if ended.code == 0:
                json.loads(ended.out)
            else:
                assert ended.out == ""


@pytest.mark.slow
def test_a_stranger_is_told_nothing_of_a_private_submission(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path, "--private", "--description", "hush", name="secret"))
    for words in (
        ("status",), ("status", own_id), ("status", own_id, "--follow", "--json"),
        ("logs", own_id), ("report", own_id), ("ledger",), ("withdraw", "--yes", own_id),
        ("publish", own_id), ("status", "--json"), ("ledger", "--json"), ("quota", "--json"),
    ):  # fmt: skip
        ended = run(*words, user="bob")
        for word in ("secret", "hush", "local:ada", "mean"):
            assert word not in (ended.out + ended.err).replace(str(tmp_path), ""), words


@pytest.mark.slow
def test_scores_of_two_benchmarks_under_one_name_stand_side_by_side(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.benchmarks.toy import Toy

    class Other(Toy):
        card = Toy.card.model_copy(update={"name": "other"})

    for module in ("submit", "report", "mine"):
        monkeypatch.setattr(
            f"evaluator.commands.{module}.load_registry", lambda: {"toy": Toy(), "other": Other()}
        )
    first = id_of(sent(run, tmp_path))
    path = tmp_path / "s.csv"
    assert run("submit", path, "--kind", "scores", "--benchmark", "other").code == 0
    newer = tmp_path / "newer.csv"
    newer.write_text(SCORES.replace("a,1", "a,2"))
    options = ("--kind", "scores", "--benchmark", "toy", "--name", "s", "--version", "2")
    assert run("submit", newer, *options).code == 0
    states = [s["state"] for s in run("status", "--json").json]
    assert states == ["superseded", "published", "published"]
    assert run("status", first, "--json").json[0]["state"] == "superseded"


def test_a_user_without_a_name_has_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("ASSAY_USER", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert this_person().key == f"local:uid-{os.getuid()}"


def test_the_environment_names_nobody_but_by_the_variable_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ASSAY_USER", raising=False)
    for name in ("LOGNAME", "USER", "USERNAME"):
        monkeypatch.setenv(name, "mallory")
    assert this_person().name == os_user()


def test_following_what_never_was_leaves_the_store_as_it_is(run: Run, tmp_path: Path) -> None:
    assert run("status", "no-such-0123456789", "--follow").code == 1
    assert Ledger(folder_store(tmp_path / "store")).statuses() == ()
