"""Fetching over HTTP with the real client: once, continued, checked, from one commit."""

from __future__ import annotations

import hashlib
import io
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from rich.console import Console

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.fetch import fetch
from benchmarks.sources.folder import DataFile, DataFolder
from benchmarks.sources.remote import Hub, in_short
from benchmarks.sources.transfer import Bar, Lines, meter_for
from tests.benchmarks.refusals import refused
from tests.benchmarks.sources.fetching import REPO, RecordedMeter, Remote, get, on_hub
from tests.hub.accounts import Account
from tests.hub.server import HubServer
from tests.processes import running

BIG = random.Random(1).randbytes(3_000_000)
SMALL = b"pair_id,prompt\n1,a cat\n"


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_files_of_both_kinds_arrive_where_the_card_wants_them(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.add(REPO, {"deep/big.bin": BIG, "small.csv": SMALL})
    told = RecordedMeter()
    done = get(
        hub,
        tmp_path / "new" / "data",
        on_hub("remote/b.bin", "deep/big.bin"),
        on_hub("remote/small.csv"),
        meter=told,
    )
    assert (tmp_path / "new/data/remote/b.bin").read_bytes() == BIG
    assert (tmp_path / "new/data/remote/small.csv").read_bytes() == SMALL
    assert done.downloaded == {"remote/b.bin": len(BIG), "remote/small.csv": len(SMALL)}
    assert told.planned == [(2, len(BIG) + len(SMALL))]
    assert told.bytes == len(BIG) + len(SMALL)
    assert sorted(told.lines) == [
        "remote/b.bin: fetched, 3.0 MB",
        "remote/small.csv: fetched, 23 bytes",
    ]


def test_nothing_is_fetched_twice(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG, "small.csv": SMALL, "images/1.png": b"1", "images/2.png": b"2"})
    files = (
        on_hub("remote/big.bin"),
        on_hub("remote/small.csv"),
        on_hub("remote/images", folder=True),
    )
    get(hub, tmp_path, *files)
    sent = hub.sent()
    again = get(hub, tmp_path, *files)
    assert hub.sent() == sent == len(BIG) + len(SMALL) + 2
    assert sorted(again.there) == ["remote/big.bin", "remote/images", "remote/small.csv"]
    assert again.downloaded == {}


def test_what_is_there_by_hash_needs_no_network(hub: HubServer, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/small.csv").write_bytes(SMALL)
    get(hub, tmp_path, on_hub("remote/small.csv", also=("elsewhere/small.csv",), sha256=sha(SMALL)))
    assert hub.served == []


def test_files_there_before_are_adopted_by_the_servers_hash(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG, "small.csv": SMALL})
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/big.bin").write_bytes(BIG)
    (tmp_path / "remote/small.csv").write_bytes(SMALL.replace(b"cat", b"dog"))
    done = get(hub, tmp_path, on_hub("remote/big.bin"), on_hub("remote/small.csv"))
    assert done.there == ["remote/big.bin"]
    assert (tmp_path / "remote/small.csv").read_bytes() == SMALL


def test_a_folder_is_listed_page_by_page_and_fetched_whole(hub: HubServer, tmp_path: Path) -> None:
    hub.page = 7
    images = {f"images/{n // 10}/{n}.png": bytes([n]) * 10 for n in range(40)}
    hub.add(REPO, {**images, "other.txt": b"x"})
    done = get(hub, tmp_path, on_hub("remote/images", folder=True))
    assert done.downloaded == {"remote/images": 400}
    for name, content in images.items():
        assert (tmp_path / "remote" / name).read_bytes() == content


def test_a_cut_connection_is_continued_where_it_broke(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG})
    hub.spoil("/content/", cut_after=1_000_000, times=2)
    pauses: list[float] = []
    told = RecordedMeter()
    get(hub, tmp_path, on_hub("remote/big.bin"), pauses=pauses, meter=told)
    assert (tmp_path / "remote/big.bin").read_bytes() == BIG
    assert hub.sent("/content/") == len(BIG)
    assert told.bytes == len(BIG)
    starts = [each.range for each in hub.asked("/content/")]
    assert starts == ["", "bytes=1000000-", "bytes=2000000-"]
    assert pauses == [1.0, 2.0]


def test_a_web_file_is_continued_too(hub: HubServer, tmp_path: Path) -> None:
    hub.web["big.bin"] = BIG
    file = DataFile(path="remote/big.bin", role="images", url=hub.web_address("big.bin"))
    hub.spoil("/web/", times=1)  # the question for the size stays whole
    hub.spoil("/web/", cut_after=2_000_000)
    get(hub, tmp_path, file)
    assert (tmp_path / "remote/big.bin").read_bytes() == BIG
    assert hub.sent("/web/") == len(BIG) + 1


def test_tries_are_bounded_and_what_came_is_kept(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG})
    hub.spoil("/content/", cut_after=100_000, times=6)
    pauses: list[float] = []
    with pytest.raises(TransientError, match=r"authors/data/big\.bin"):
        get(hub, tmp_path, on_hub("remote/big.bin"), pauses=pauses)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert not (tmp_path / "remote/big.bin").exists()
    get(hub, tmp_path, on_hub("remote/big.bin"))
    assert hub.sent("/content/") == len(BIG)


def test_a_part_of_another_state_of_the_file_is_not_continued(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.web["big.bin"] = BIG
    file = DataFile(path="remote/big.bin", role="images", url=hub.web_address("big.bin"))
    hub.spoil("/web/", times=1)
    hub.spoil("/web/", cut_after=100_000, times=6)
    with pytest.raises(TransientError):
        get(hub, tmp_path, file)
    hub.web["big.bin"] = BIG[::-1]
    get(hub, tmp_path, file)
    assert (tmp_path / "remote/big.bin").read_bytes() == BIG[::-1]
    assert sorted(p.name for p in (tmp_path / "remote").iterdir()) == ["big.bin", "pins.json"]


KILLED = """
import sys
from pathlib import Path
from benchmarks.fetch import fetch
from benchmarks.sources.remote import Hub
from tests.benchmarks.sources.fetching import Remote, on_hub
fetch(Remote([on_hub("remote/first.bin"), on_hub("remote/big.bin")]), Path(sys.argv[2]), Hub(sys.argv[1]))
"""


def test_a_killed_process_loses_nothing(hub: HubServer, tmp_path: Path) -> None:
    first = BIG[:500_000]
    hub.add(REPO, {"first.bin": first, "big.bin": BIG})
    hub.spoil(f"/content/{sha(BIG)}", hang_after=1_500_000)
    parts = tmp_path / "remote"
    with running([sys.executable, "-c", KILLED, hub.endpoint, tmp_path], grace_s=0.0):
        wait_until(lambda: (parts / "first.bin").exists() and arrived(parts) >= 1_400_000)
    kept = arrived(parts)
    get(hub, tmp_path, on_hub("remote/first.bin"), on_hub("remote/big.bin"))
    assert (parts / "big.bin").read_bytes() == BIG
    assert [each.range for each in hub.asked(f"/content/{sha(BIG)}")] == ["", f"bytes={kept}-"]
    assert len(hub.asked(f"/content/{sha(first)}")) == 1
    assert sorted(p.name for p in parts.iterdir()) == ["big.bin", "first.bin", "pins.json"]


def arrived(folder: Path) -> int:
    return sum(part.stat().st_size for part in folder.glob(".big.bin.*.part"))


def wait_until(true: object, seconds: float = 60.0) -> None:
    assert callable(true)
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_two_fetches_into_one_folder_do_not_mix(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    with FileLock(tmp_path / ".fetch.lock"), refused("fetch_running"):
        get(hub, tmp_path, on_hub("remote/small.csv"))
    get(hub, tmp_path, on_hub("remote/small.csv"))


def test_a_source_that_tells_no_state_begins_anew(hub: HubServer, tmp_path: Path) -> None:
    hub.web["p/1.png"] = BIG
    folder = DataFile(path="remote/i", role="images", url=hub.web_address("p"), folder=True)
    hub.spoil("/web/", cut_after=1_000_000)
    told = RecordedMeter()
    get(hub, tmp_path, folder, names=("1.png",), meter=told)
    assert (tmp_path / "remote/i/1.png").read_bytes() == BIG
    assert [each.range for each in hub.asked("/web/")] == ["", ""]
    assert told.bytes == len(BIG)


def test_the_first_fetch_pins_a_commit_and_later_ones_keep_it(
    hub: HubServer, tmp_path: Path
) -> None:
    old = hub.add(REPO, {"small.csv": SMALL, "more.csv": b"old"}).branches["main"]
    get(hub, tmp_path, on_hub("remote/small.csv"))
    hub.repositories[REPO].commit({"small.csv": b"new", "more.csv": b"new"})
    done = get(hub, tmp_path, on_hub("remote/small.csv"), on_hub("remote/more.csv"))
    assert done.commits == {REPO: old}
    assert (tmp_path / "remote/more.csv").read_bytes() == b"old"
    pins = json.loads((tmp_path / "remote/pins.json").read_text())
    assert pins["repositories"] == {REPO: old}
    pin = pins["files"]["remote/small.csv"]
    assert (pin["size"], pin["sha256"], pin["commit"]) == (len(SMALL), sha(SMALL), old)
    assert pin["source"] == f"{REPO}/small.csv"
    assert pin["fetched"].endswith("+00:00")


def test_the_cards_commit_wins_even_written_short(hub: HubServer, tmp_path: Path) -> None:
    old = hub.add(REPO, {"small.csv": b"old", "more.csv": b"old"}).branches["main"]
    hub.repositories[REPO].commit({"small.csv": b"new", "more.csv": b"new"})
    files = (on_hub("remote/more.csv"), on_hub("remote/small.csv", revision=old[:7]))
    assert get(hub, tmp_path, *files).commits == {REPO: old}
    assert (tmp_path / "remote/small.csv").read_bytes() == b"old"
    assert (tmp_path / "remote/more.csv").read_bytes() == b"old"  # one commit for all

    with refused("unknown_revision", "has 0 commits that begin with '0000000'"):
        get(hub, tmp_path, on_hub("remote/small.csv", revision="0000000"))


def test_a_web_file_that_changed_since_the_first_fetch_is_refused(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.web["t.csv"] = b"first"
    file = DataFile(path="remote/t.csv", role="answers", url=hub.web_address("t.csv"))
    get(hub, tmp_path, file)
    hub.web["t.csv"] = b"later"
    assert get(hub, tmp_path, file).there == ["remote/t.csv"]
    (tmp_path / "remote/t.csv").unlink()
    with refused("download_wrong"):
        get(hub, tmp_path, file)
    assert not (tmp_path / "remote/t.csv").exists()


def test_a_loader_refuses_what_differs_from_what_was_fetched(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    file = on_hub("remote/small.csv", role="answers")
    get(hub, tmp_path, file)

    def hashes() -> dict[str, str]:
        folder = DataFolder(tmp_path, "remote", [file], {})
        folder.path(file.path)
        return folder.verified()

    commit = json.loads((tmp_path / "remote/pins.json").read_text())["repositories"][REPO]
    assert hashes() == {"remote/small.csv": sha(SMALL), f"{REPO}/small.csv": commit}
    (tmp_path / "remote/small.csv").write_bytes(SMALL + b"2,a dog\n")
    with refused("data_malformed"):
        hashes()


def test_a_broken_record_is_named(hub: HubServer, tmp_path: Path) -> None:
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/pins.json").write_text('{"files": 3}')
    with pytest.raises(SubmitterError, match=r"pins\.json is no record of fetched files: files"):
        get(hub, tmp_path, on_hub("remote/small.csv"))


def test_a_full_disk_is_refused_before_anything_is_written(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(REPO, {"big.bin": BIG})
    room = type("Usage", (), {"free": 66_000_000})
    monkeypatch.setattr("benchmarks.sources.transfer.shutil.disk_usage", lambda _: room)
    with refused("disk_full", r"needs 3\.0 MB in .*not/yet.* 66\.0 MB free"):
        get(hub, tmp_path / "not/yet", on_hub("remote/big.bin"))
    assert list(tmp_path.iterdir()) == []
    assert hub.sent() == 0


def test_a_gated_repository_says_what_to_do(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG}, gated=True)
    stranger = hub.enroll("hf_stranger", Account("stranger"))
    with refused("gated_repository", r"accepted its terms.*HF_TOKEN"):
        get(hub, tmp_path, on_hub("remote/big.bin"), token=stranger)
    get(hub, tmp_path, on_hub("remote/big.bin"), token=hub.token)
    assert (tmp_path / "remote/big.bin").read_bytes() == BIG
    tokens = {each.token for each in hub.asked("/content/")}
    assert tokens == {""}, "the token must not leave the Hub"


def test_a_commit_that_was_rewritten_away_is_not_replaced_in_silence(
    hub: HubServer, tmp_path: Path
) -> None:
    repository = hub.add(REPO, {"small.csv": SMALL, "more.csv": b"old"})
    old = repository.branches["main"]
    get(hub, tmp_path, on_hub("remote/small.csv"))
    repository.commit({"small.csv": SMALL, "more.csv": b"new"})
    repository.forget(old)
    with refused("unknown_revision", old):
        get(hub, tmp_path, on_hub("remote/small.csv"), on_hub("remote/more.csv"))


@pytest.mark.parametrize(
    "target", ["/api/datasets/authors/data/revision", "/paths-info/", "/resolve/"]
)
def test_a_failing_server_is_asked_again_and_then_called_transient(
    hub: HubServer, tmp_path: Path, target: str
) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    pauses: list[float] = []
    hub.spoil(target, status=503, times=2)
    get(hub, tmp_path, on_hub("remote/small.csv"), pauses=pauses)
    assert pauses == [1.0, 2.0]
    hub.spoil(target, status=500, times=6)
    with refused("server_unavailable") as error:
        get(hub, tmp_path / "b", on_hub("remote/small.csv"))
    assert error.value.exit_code == 3


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    pauses: list[float] = []
    hub.spoil("/resolve/", status=429, headers={"Retry-After": "17"})
    hub.spoil("/resolve/", status=429, headers={"RateLimit": '"resolvers";r=0;t=55'})
    get(hub, tmp_path, on_hub("remote/small.csv"), pauses=pauses)
    assert pauses == [17.0, 56.0]


def test_no_network_is_transient(hub: HubServer, tmp_path: Path) -> None:
    hub.endpoint = "http://127.0.0.1:9"  # nobody listens there
    with pytest.raises(TransientError, match="The connection failed while fetching authors/data"):
        get(hub, tmp_path, on_hub("remote/big.bin"))


def test_supplied_files_are_listed_and_an_error_only_alone(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    secret = DataFile(path="remote/s.csv", role="answers", supplied="Ask the authors.")
    done = get(hub, tmp_path, on_hub("remote/small.csv"), secret)
    assert done.supplied == {"remote/s.csv": "Ask the authors."}
    with refused("supplied_only"):
        get(hub, tmp_path, secret)


def test_an_optional_file_that_is_gone_is_left_out(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    done = get(hub, tmp_path, on_hub("remote/small.csv"), on_hub("remote/x.csv", optional=True))
    assert list(done.downloaded) == ["remote/small.csv"]
    assert "does not exist" in done.left_out["remote/x.csv"]


def test_the_words_of_an_error_open_no_file_to_their_reader() -> None:
    error = OSError("reset by https://files.example/ab?X-Signature=abc&Expires=9 at once\nmore")
    assert in_short(error) == "reset by https://files.example/ab at once"
    assert in_short(OSError()) == "OSError"


def test_a_terminal_gets_a_bar_that_the_download_moves(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"a.bin": b"a" * 3_000_000, "b.bin": b"b" * 1_000_000})
    screen = io.StringIO()
    with Bar(Console(file=screen, force_terminal=True, width=160)) as bar:
        files = [on_hub("remote/a.bin"), on_hub("remote/b.bin")]
        fetch(Remote(files), tmp_path, Hub(hub.endpoint), meter=bar)
    for shown in ("file 2 of 2", "4.0/4.0 MB", "remote/a.bin: fetched, 3.0 MB"):
        assert shown in screen.getvalue()
    assert type(meter_for(Console(file=io.StringIO()))) is Lines


@pytest.mark.parametrize(
    ("there", "file", "code"),
    [
        (False, {"path": "remote/big.bin"}, "unknown_repository"),
        (True, {"path": "remote/nope.bin"}, "not_in_repository"),
        (True, {"path": "remote/nope", "folder": True}, "not_in_repository"),
        (True, {"path": "remote/big.bin", "revision": "v9"}, "unknown_revision"),
        (True, {"path": "remote/x.csv", "repo": "", "url": "x.csv"}, "download_refused"),
        (True, {"path": "remote/big.bin", "sha256": sha(b"another")}, "download_wrong"),
        (True, {"path": "remote/small.csv", "sha256": sha(b"another")}, "download_wrong"),
    ],
)
def test_each_file_that_cannot_be_had_has_its_own_code(
    hub: HubServer, tmp_path: Path, there: bool, file: dict[str, Any], code: str
) -> None:
    if there:
        hub.add(REPO, {"big.bin": BIG, "small.csv": SMALL})
    if "url" in file:
        file = {**file, "url": hub.web_address(file["url"])}
    with refused(code):
        get(hub, tmp_path, on_hub(**file))
    assert hub.sent() in {0, len(SMALL)}, (
        "a wrong hash is seen before, or where none is told, after"
    )
    assert not (tmp_path / file["path"]).exists()


def test_folders_of_a_whole_repository_and_of_the_web(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"a/1.png": b"1", "2.png": b"2"})
    hub.web |= {"pictures/1 a.png": b"1", "pictures/b/2.png": b"2"}
    web = on_hub("remote/web", repo="", url=hub.web_address("pictures"), folder=True)
    whole = on_hub("remote/hub", ".", folder=True)
    done = get(hub, tmp_path, whole, web, names=("1 a.png", "b/2.png"))
    assert done.downloaded == {"remote/hub": 2, "remote/web": 2}
    for name, content in {
        "hub/a/1.png": b"1",
        "hub/2.png": b"2",
        "web/1 a.png": b"1",
        "web/b/2.png": b"2",
    }.items():
        assert (tmp_path / "remote" / name).read_bytes() == content
    with refused("data_malformed"):
        get(hub, tmp_path, web, names=("../1.png",))
