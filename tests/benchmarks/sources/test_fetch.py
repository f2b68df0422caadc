"""Fetching over HTTP with the real client: once, continued, checked, from one commit."""

from __future__ import annotations

import hashlib
import io
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from rich.console import Console

from benchmarks.errors import TransientError
from benchmarks.fetch import fetch
from benchmarks.registry import load_registry
from benchmarks.sources.folder import DataFile, DataFolder, data_row, folder_images
from benchmarks.sources.output import check_output, write_whole
from benchmarks.sources.remote import Hub, in_short
from benchmarks.sources.transfer import Bar, Lines, meter_for
from tests.benchmarks.sources.fetching import REPO, RecordedMeter, Remote, get, on_hub
from tests.kit.hub.accounts import Account
from tests.kit.hub.server import HubServer
from tests.kit.processes import running
from tests.kit.refusals import refused

BIG = random.Random(1).randbytes(3_000_000)
SMALL = b"pair_id,prompt\n1,a cat\n"
BIG_FILE, SMALL_FILE = on_hub("remote/big.bin"), on_hub("remote/small.csv")


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def on_web(hub: HubServer, name: str, content: bytes, path: str = "") -> DataFile:
    hub.web[name] = content
    return DataFile(path=path or f"remote/{name}", role="images", url=hub.web_address(name))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# What arrives.


def test_files_of_both_kinds_arrive_where_the_card_wants_them(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.add(REPO, {"deep/big.bin": BIG, "small.csv": SMALL})
    told, data = RecordedMeter(), tmp_path / "new" / "data"
    done = get(hub, data, on_hub("remote/b.bin", "deep/big.bin"), SMALL_FILE, meter=told)
    assert (data / "remote/b.bin").read_bytes() == BIG
    assert (data / "remote/small.csv").read_bytes() == SMALL
    assert done.downloaded == {"remote/b.bin": len(BIG), "remote/small.csv": len(SMALL)}
    assert told.planned == [(2, len(BIG) + len(SMALL))]
    assert told.bytes == len(BIG) + len(SMALL)
    assert sorted(told.lines) == [
        "remote/b.bin: fetched, 3.0 MB",
        "remote/small.csv: fetched, 23 bytes",
    ]


def test_nothing_is_fetched_twice(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG, "small.csv": SMALL, "images/1.png": b"1", "images/2.png": b"2"})
    files = (BIG_FILE, SMALL_FILE, on_hub("remote/images", folder=True))
    get(hub, tmp_path, *files)
    sent = hub.sent()
    again = get(hub, tmp_path, *files)
    assert hub.sent() == sent == len(BIG) + len(SMALL) + 2
    assert sorted(again.there) == ["remote/big.bin", "remote/images", "remote/small.csv"]
    assert again.downloaded == {}


def test_what_is_there_by_hash_needs_no_network(hub: HubServer, tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_bytes(SMALL)
    get(hub, tmp_path, on_hub("remote/small.csv", also=("small.csv",), sha256=sha(SMALL)))
    assert hub.served == []


def test_files_there_before_are_adopted_by_the_servers_hash(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG, "small.csv": SMALL})
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/big.bin").write_bytes(BIG)
    (tmp_path / "remote/small.csv").write_bytes(SMALL.replace(b"cat", b"dog"))
    done = get(hub, tmp_path, BIG_FILE, SMALL_FILE)
    assert done.there == ["remote/big.bin"]
    assert (tmp_path / "remote/small.csv").read_bytes() == SMALL


def test_folders_are_fetched_whole_and_listed_page_by_page(hub: HubServer, tmp_path: Path) -> None:
    hub.page = 7
    images = {f"images/{n // 10}/{n}.png": bytes([n]) * 10 for n in range(40)}
    hub.add(REPO, {**images, "x.txt": b"x"})
    hub.web |= {"pictures/1 a.png": b"1", "pictures/b/2.png": b"2"}
    web = on_hub("remote/web", repo="", url=hub.web_address("pictures"), folder=True)
    hub_files = on_hub("remote/images", folder=True), on_hub("remote/all", ".", folder=True)
    done = get(hub, tmp_path, *hub_files, web, names=("1 a.png", "b/2.png"))
    assert done.downloaded == {"remote/images": 400, "remote/all": 401, "remote/web": 2}
    for name, content in images.items():
        assert (tmp_path / "remote" / name).read_bytes() == content
        assert (tmp_path / "remote/all" / name).read_bytes() == content
    assert (tmp_path / "remote/web/1 a.png").read_bytes() == b"1"
    assert (tmp_path / "remote/web/b/2.png").read_bytes() == b"2"
    with refused("data_malformed"):
        get(hub, tmp_path, web, names=("../1.png",))


# What breaks off.


def test_a_cut_connection_is_continued_where_it_broke(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG})
    hub.spoil("/content/", cut_after=1_000_000, times=2)
    pauses: list[float] = []
    told = RecordedMeter()
    get(hub, tmp_path, BIG_FILE, pauses=pauses, meter=told)
    assert (tmp_path / "remote/big.bin").read_bytes() == BIG
    assert hub.sent("/content/") == told.bytes == len(BIG)
    starts = [each.range for each in hub.asked("/content/")]
    assert starts == ["", "bytes=1000000-", "bytes=2000000-"]
    assert pauses == [1.0, 2.0]


def test_a_web_file_is_continued_too(hub: HubServer, tmp_path: Path) -> None:
    file = on_web(hub, "big.bin", BIG)
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
        get(hub, tmp_path, BIG_FILE, pauses=pauses)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert not (tmp_path / "remote/big.bin").exists()
    get(hub, tmp_path, BIG_FILE)
    assert hub.sent("/content/") == len(BIG)


def test_a_part_of_another_state_of_the_file_is_not_continued(
    hub: HubServer, tmp_path: Path
) -> None:
    file = on_web(hub, "big.bin", BIG)
    hub.spoil("/web/", times=1)
    hub.spoil("/web/", cut_after=100_000, times=6)
    with pytest.raises(TransientError):
        get(hub, tmp_path, file)
    get(hub, tmp_path, on_web(hub, "big.bin", BIG[::-1]))
    assert (tmp_path / "remote/big.bin").read_bytes() == BIG[::-1]
    assert names_in(tmp_path / "remote") == ["big.bin", "pins.json"]


def test_a_source_that_tells_no_state_begins_anew(hub: HubServer, tmp_path: Path) -> None:
    hub.web["p/1.png"] = BIG
    folder = DataFile(path="remote/i", role="images", url=hub.web_address("p"), folder=True)
    hub.spoil("/web/", cut_after=1_000_000)
    told = RecordedMeter()
    get(hub, tmp_path, folder, names=("1.png",), meter=told)
    assert (tmp_path / "remote/i/1.png").read_bytes() == BIG
    assert [each.range for each in hub.asked("/web/")] == ["", ""]
    assert told.bytes == len(BIG)


KILLED = """
import sys
from pathlib import Path
from benchmarks.fetch import fetch
from benchmarks.sources.remote import Hub
from tests.benchmarks.sources.fetching import Remote, on_hub
fetch(Remote([on_hub("remote/first.bin"), on_hub("remote/big.bin")]), Path(sys.argv[2]), Hub(sys.argv[1]))
"""


def test_a_killed_process_loses_nothing(hub: HubServer, tmp_path: Path) -> None:
    first, parts = BIG[:500_000], tmp_path / "remote"
    hub.add(REPO, {"first.bin": first, "big.bin": BIG})
    hub.spoil(f"/content/{sha(BIG)}", hang_after=1_500_000)

    def arrived() -> int:
        return sum(part.stat().st_size for part in parts.glob(".big.bin.*.part"))

    with running([sys.executable, "-c", KILLED, hub.endpoint, tmp_path], grace_s=0.0):
        end = time.monotonic() + 60.0
        while not (parts / "first.bin").exists() or arrived() < 1_400_000:
            assert time.monotonic() < end
            time.sleep(0.05)
    kept = arrived()
    get(hub, tmp_path, on_hub("remote/first.bin"), BIG_FILE)
    assert (parts / "big.bin").read_bytes() == BIG
    assert [each.range for each in hub.asked(f"/content/{sha(BIG)}")] == ["", f"bytes={kept}-"]
    assert len(hub.asked(f"/content/{sha(first)}")) == 1
    assert names_in(parts) == ["big.bin", "first.bin", "pins.json"]


def test_two_fetches_into_one_folder_do_not_mix(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    with FileLock(tmp_path / ".fetch.lock"), refused("fetch_running"):
        get(hub, tmp_path, SMALL_FILE)
    get(hub, tmp_path, SMALL_FILE)


# One commit, and nothing that changed since.


def test_the_first_fetch_pins_a_commit_and_later_ones_keep_it(
    hub: HubServer, tmp_path: Path
) -> None:
    repository = hub.add(REPO, {"small.csv": SMALL, "more.csv": b"old"})
    old = repository.branches["main"]
    get(hub, tmp_path, SMALL_FILE)
    repository.commit({"small.csv": b"new", "more.csv": b"new"})
    more = on_hub("remote/more.csv")
    assert get(hub, tmp_path, SMALL_FILE, more).commits == {REPO: old}
    assert (tmp_path / "remote/more.csv").read_bytes() == b"old"
    pins = json.loads((tmp_path / "remote/pins.json").read_text())
    assert pins["repositories"] == {REPO: old}
    pin = pins["files"]["remote/small.csv"]
    assert pin.pop("fetched").endswith("+00:00")
    assert pin.items() >= {
        "size": len(SMALL), "sha256": sha(SMALL), "commit": old, "source": f"{REPO}/small.csv",
    }.items()  # fmt: skip
    # A commit that was rewritten away is not replaced in silence.
    repository.forget(old)
    (tmp_path / "remote/more.csv").unlink()
    with refused("unknown_revision", match=old):
        get(hub, tmp_path, SMALL_FILE, more)


def test_the_cards_commit_wins_even_written_short(hub: HubServer, tmp_path: Path) -> None:
    old = hub.add(REPO, {"small.csv": b"old", "more.csv": b"old"}).branches["main"]
    hub.repositories[REPO].commit({"small.csv": b"new", "more.csv": b"new"})
    files = (on_hub("remote/more.csv"), on_hub("remote/small.csv", revision=old[:7]))
    assert get(hub, tmp_path, *files).commits == {REPO: old}
    for name in ("small.csv", "more.csv"):  # one commit for all
        assert (tmp_path / "remote" / name).read_bytes() == b"old"
    with refused("unknown_revision", match="'0000000'"):
        get(hub, tmp_path, on_hub("remote/small.csv", revision="0000000"))


def test_a_web_file_that_changed_since_the_first_fetch_is_refused(
    hub: HubServer, tmp_path: Path
) -> None:
    get(hub, tmp_path, on_web(hub, "t.csv", b"first"))
    file = on_web(hub, "t.csv", b"later")
    assert get(hub, tmp_path, file).there == ["remote/t.csv"]
    (tmp_path / "remote/t.csv").unlink()
    with refused("download_wrong"):
        get(hub, tmp_path, file)
    assert not (tmp_path / "remote/t.csv").exists()


def test_a_loader_refuses_what_differs_from_what_was_fetched(
    hub: HubServer, tmp_path: Path
) -> None:
    commit = hub.add(REPO, {"small.csv": SMALL}).branches["main"]
    file = on_hub("remote/small.csv", role="answers")
    get(hub, tmp_path, file)

    def hashes() -> dict[str, str]:
        folder = DataFolder(tmp_path, "remote", [file], {})
        folder.path(file.path)
        return folder.verified()

    assert hashes() == {"remote/small.csv": sha(SMALL), f"{REPO}/small.csv": commit}
    (tmp_path / "remote/small.csv").write_bytes(SMALL + b"2,a dog\n")
    with refused("data_malformed"):
        hashes()
    (tmp_path / "remote/pins.json").write_text('{"files": 3}')
    with refused("data_malformed", match=r"pins\.json.*files"):
        get(hub, tmp_path, SMALL_FILE)


# What cannot be had.


def test_a_full_disk_is_refused_before_anything_is_written(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(REPO, {"big.bin": BIG})
    room = type("Usage", (), {"free": 66_000_000})
    monkeypatch.setattr("benchmarks.sources.transfer.shutil.disk_usage", lambda _: room)
    with refused("disk_full", match=r"3\.0 MB in .*not/yet.* 66\.0 MB"):
        get(hub, tmp_path / "not/yet", BIG_FILE)
    assert (names_in(tmp_path), hub.sent()) == ([], 0)


def test_a_gated_repository_says_what_to_do(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG}, gated=True)
    stranger = hub.enroll("hf_stranger", Account("stranger"))
    with refused("gated_repository", match="terms.*HF_TOKEN"):
        get(hub, tmp_path, BIG_FILE, token=stranger)
    get(hub, tmp_path, BIG_FILE, token=hub.token)
    assert (tmp_path / "remote/big.bin").read_bytes() == BIG
    tokens = {each.token for each in hub.asked("/content/")}
    assert tokens == {""}, "the token must not leave the Hub"


@pytest.mark.parametrize(
    "target", ["/api/datasets/authors/data/revision", "/paths-info/", "/resolve/"]
)
def test_a_failing_server_is_asked_again_and_then_called_transient(
    hub: HubServer, tmp_path: Path, target: str
) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    pauses: list[float] = []
    hub.spoil(target, status=503, times=2)
    get(hub, tmp_path, SMALL_FILE, pauses=pauses)
    assert pauses == [1.0, 2.0]
    hub.spoil(target, status=500, times=6)
    with refused("server_unavailable") as error:
        get(hub, tmp_path / "b", SMALL_FILE)
    assert error.value.exit_code == 3


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    pauses: list[float] = []
    hub.spoil("/resolve/", status=429, headers={"Retry-After": "17"})
    hub.spoil("/resolve/", status=429, headers={"RateLimit": '"resolvers";r=0;t=55'})
    hub.spoil("/resolve/", status=429, headers={"Retry-After": "²"})
    get(hub, tmp_path, SMALL_FILE, pauses=pauses)
    assert pauses == [17.0, 56.0, 4.0]


def test_no_network_is_transient(hub: HubServer, tmp_path: Path) -> None:
    hub.endpoint = "http://127.0.0.1:9"  # nobody listens there
    with pytest.raises(TransientError, match="authors/data"):
        get(hub, tmp_path, BIG_FILE)


def test_supplied_and_optional_files_are_told_and_an_error_only_alone(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.add(REPO, {"small.csv": SMALL})
    secret = DataFile(path="remote/s.csv", role="answers", supplied="Ask the authors.")
    done = get(hub, tmp_path, SMALL_FILE, secret, on_hub("remote/x.csv", optional=True))
    assert done.supplied == {"remote/s.csv": secret.supplied}
    assert list(done.downloaded) == ["remote/small.csv"]
    assert list(done.left_out) == ["remote/x.csv"]
    with refused("supplied_only"):
        get(hub, tmp_path, secret)


def test_the_words_of_an_error_open_no_file_to_their_reader() -> None:
    error = OSError("reset by https://files.example/ab?X-Signature=abc&Expires=9 at once\nmore")
    assert in_short(error) == "reset by https://files.example/ab at once"
    assert in_short(OSError()) == "OSError"


def test_a_terminal_gets_a_bar_that_the_download_moves(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"big.bin": BIG, "b.bin": BIG[:1_000_000]})
    screen = io.StringIO()
    with Bar(Console(file=screen, force_terminal=True, width=160)) as bar:
        files = [BIG_FILE, on_hub("remote/b.bin")]
        fetch(Remote(files), tmp_path, Hub(hub.endpoint), meter=bar)
    for shown in ("file 2 of 2", "4.0/4.0 MB", "remote/big.bin: fetched, 3.0 MB"):
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
    # A wrong hash is seen before, or where none is told, after.
    assert hub.sent() in {0, len(SMALL)}
    assert not (tmp_path / file["path"]).exists()


# The folder of data.

TABLE = DataFile(path="toy/table.csv", role="answers", supplied="Ask the authors.")


def toy_folder(root: Path, **counts: int) -> DataFolder:
    return DataFolder(root, "toy", [TABLE], counts)


def test_rows_are_counted_after_the_header_whatever_the_lines_are(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / TABLE.path).write_text('name\n\na\n"two\nlines"\n\nwrong\n')
    table = toy_folder(tmp_path).read_table(TABLE.path, ["name"])
    assert data_row(table.index[table["name"] == "wrong"][0]) == "data row 3"


def test_a_count_out_of_its_bounds_is_refused(tmp_path: Path) -> None:
    bounds = {"images, at least": 32_000, "images, at most": 33_500}
    for fits in (32_000, 33_500):
        toy_folder(tmp_path, **bounds).check_range(TABLE.path, "images", fits)
    for found in (31_999, 33_501):
        with refused("data_malformed", match=f"{found} images"):
            toy_folder(tmp_path, **bounds).check_range(TABLE.path, "images", found)
        toy_folder(tmp_path).check_range(TABLE.path, "images", found)


def test_what_an_operator_supplies_is_asked_of_the_operator(tmp_path: Path) -> None:
    remedy = toy_folder(tmp_path).remedy(TABLE.path)
    with refused("images_missing") as caught:
        folder_images("toy", tmp_path, {"a": "a.png"}, remedy=remedy)
    assert caught.value.hint == TABLE.supplied
    with refused("images_missing", match="fetch toy"):
        folder_images("toy", tmp_path, {"a": "a.png"})
    for benchmark in load_registry().values():
        data = benchmark.folder(tmp_path)
        for file in benchmark.card.files:
            assert ("benchmarks fetch" in data.remedy(file.path)) == (not file.supplied)


def test_a_file_that_cannot_be_written_leaves_nothing_and_keeps_what_was_there(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("before")

    def fail(place: Path) -> None:
        place.write_text("ha")
        raise OSError(28, "No space left on device")

    write: Callable[[Path], object] = lambda place: place.write_text("x")  # noqa: E731
    for action in (lambda: write_whole(out, fail), lambda: write_whole(tmp_path / "no/x", write)):
        with refused("cannot_write"):
            action()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("out.csv", "before")]
    with refused("cannot_write", match="folder"):
        check_output(tmp_path, force=True)
