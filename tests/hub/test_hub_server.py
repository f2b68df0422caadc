"""The test Hub answers the real client as the Hub does: writing, reading, conflicts, history."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationCopy,
    CommitOperationDelete,
    HfApi,
    get_session,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from tests.hub.client import NAME, api_of, commit, content
from tests.hub.server import HubServer

PARQUET = b"PAR1" * 5000


def head(api: HfApi) -> str:
    return str(api.dataset_info(NAME, expand=["sha"]).sha)


def status_of(error: HfHubHTTPError) -> int:
    return int(error.response.status_code)


# Writing and reading --------------------------------------------------------------------------


def test_a_commit_of_small_and_large_files_is_read_back(hub: HubServer, api: HfApi) -> None:
    made = commit(api, {"events/1.json": b"{}", "results/a.parquet": PARQUET, "empty": b""})
    assert made.oid == head(api)
    assert content(api, "events/1.json", made.oid) == b"{}"
    assert content(api, "results/a.parquet", made.oid) == PARQUET
    assert content(api, "empty", made.oid) == b""
    (sent,) = hub.asked("/upload/", "PUT")
    assert sent.token == "", "the token must not leave the Hub"
    assert {each.token for each in hub.asked("/content/")} == {""}


def test_a_content_that_is_there_is_not_uploaded_again(hub: HubServer, api: HfApi) -> None:
    commit(api, {"a.parquet": PARQUET})
    made = commit(api, {"b.parquet": PARQUET})
    assert len(hub.asked("/upload/", "PUT")) == 1
    assert content(api, "b.parquet", made.oid) == PARQUET


def test_what_did_not_change_is_dropped_by_the_client_unchecked(hub: HubServer, api: HfApi) -> None:
    first = commit(api, {"a.json": b"1", "b.parquet": PARQUET})
    commit(api, {"c.json": b"3"})
    commits = hub.tally.commits()
    told = commit(api, {"a.json": b"1", "b.parquet": PARQUET}, parent=first.oid)
    assert told.oid == head(api)
    assert hub.tally.commits() == commits


def test_files_and_folders_are_deleted_and_copied(api: HfApi) -> None:
    commit(api, {"a/1.json": b"1", "a/2.json": b"2", "b.json": b"b", "c.parquet": PARQUET})
    api.create_commit(
        NAME,
        [
            CommitOperationDelete("a/"),
            CommitOperationDelete("b.json"),
            CommitOperationCopy("c.parquet", "d.parquet"),
            CommitOperationCopy(".gitattributes", "e.txt"),
        ],
        commit_message="Tidy",
        repo_type="dataset",
    )
    listed = api.list_repo_files(NAME, repo_type="dataset")
    assert sorted(listed) == [".gitattributes", "c.parquet", "d.parquet", "e.txt"]
    assert content(api, "d.parquet") == PARQUET
    with pytest.raises(EntryNotFoundError, match="Make sure to differentiate"):
        commit(api, {"b.json": None})


def test_a_name_is_not_a_file_and_a_folder_at_once(api: HfApi) -> None:
    commit(api, {"a/b": b"1"})
    for path in ("a", "a/b/c", "../x"):
        with pytest.raises((HfHubHTTPError, ValueError)):
            commit(api, {path: b"2"})
    commit(api, {"a/b": None, "a": b"2"})
    assert content(api, "a") == b"2"


def test_trees_and_paths_are_told_with_sizes_and_ids(hub: HubServer, api: HfApi) -> None:
    hub.page = 7
    commit(api, {f"many/{n:02}.json": b"x" * n for n in range(1, 31)} | {"l.parquet": PARQUET})
    tree = list(api.list_repo_tree(NAME, repo_type="dataset", recursive=True))
    assert [each.path for each in tree] == sorted(each.path for each in tree)
    assert len(tree) == 33
    found = api.get_paths_info(NAME, ["many", "l.parquet", "no"], repo_type="dataset")
    assert [each.path for each in found] == ["many", "l.parquet"]
    assert found[1].lfs.size == len(PARQUET)  # type: ignore[union-attr]
    blobs = api.dataset_info(NAME, files_metadata=True)
    assert {each.rfilename: each.size for each in blobs.siblings or ()}["many/07.json"] == 7


# Conflicts and history ------------------------------------------------------------------------


def test_a_commit_on_an_older_parent_is_refused(api: HfApi) -> None:
    first = commit(api, {"a": b"1"}).oid
    commit(api, {"b": b"2"}, parent=first)
    with pytest.raises(HfHubHTTPError, match="A commit has happened since") as error:
        commit(api, {"c": b"3"}, parent=first)
    assert status_of(error.value) == 412
    assert "c" not in api.list_repo_files(NAME, repo_type="dataset")


def test_of_eight_writers_on_one_parent_one_wins(hub: HubServer, api: HfApi) -> None:
    parent = head(api)
    won: list[int] = []
    lost: list[int] = []

    def write(number: int) -> None:
        try:
            commit(api_of(hub), {f"{number}": b"x"}, parent=parent)
            won.append(number)
        except HfHubHTTPError as error:
            lost.append(status_of(error))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(won) == 1
    assert lost == [412] * 7


def test_history_is_told_page_by_page_with_the_servers_dates(hub: HubServer, api: HfApi) -> None:
    hub.commits_page = 3
    hub.clock.set(datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC))
    hub.clock.run(0)
    for number in range(7):
        commit(api, {"n": b"%d" % number}, message=f"Step {number}", description="nonce-1")
        hub.clock.advance(60)
    told = api.list_repo_commits(NAME, repo_type="dataset")
    assert [each.title for each in told[:-1]] == [f"Step {n}" for n in reversed(range(7))]
    assert (told[0].message, told[0].authors) == ("nonce-1", ["keeper"])
    assert told[-2].created_at == datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    older = api.list_repo_commits(NAME, repo_type="dataset", revision=told[3].commit_id)
    assert [each.commit_id for each in older] == [each.commit_id for each in told[3:]]


def test_every_reply_tells_the_servers_time(hub: HubServer, api: HfApi) -> None:
    hub.clock.set(datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC))
    hub.clock.run(0)
    response = get_session().get(f"{hub.endpoint}/api/datasets/{NAME}")
    assert (response.status_code, response.headers["date"]) == (
        401,
        "Tue, 06 May 2031 07:08:09 GMT",
    )


def test_older_commits_stay_readable_until_history_is_squashed(api: HfApi) -> None:
    old = commit(api, {"a": b"1", "gone": b"x"}).oid
    commit(api, {"a": b"2", "gone": None})
    assert content(api, "gone", old) == b"x"
    api.super_squash_history(NAME, repo_type="dataset", commit_message="Squash")
    assert [each.title for each in api.list_repo_commits(NAME, repo_type="dataset")] == ["Squash"]
    assert content(api, "a") == b"2"
    with pytest.raises(RevisionNotFoundError):
        content(api, "a", old)
    with pytest.raises(HfHubHTTPError) as error:
        commit(api, {"a": b"3"}, parent=old)
    assert status_of(error.value) == 412


def test_branches_and_tags_are_apart(api: HfApi) -> None:
    first = head(api)
    api.create_branch(NAME, branch="side/one", repo_type="dataset")
    api.create_tag(NAME, tag="v1", repo_type="dataset")
    commit(api, {"a": b"side"}, branch="side/one", parent=first)
    commit(api, {"a": b"main"}, parent=first)
    assert (content(api, "a"), content(api, "a", "side/one")) == (b"main", b"side")
    refs = api.list_repo_refs(NAME, repo_type="dataset")
    assert {each.name for each in refs.branches} == {"main", "side/one"}
    assert [each.target_commit for each in refs.tags] == [first]
    with pytest.raises(HfHubHTTPError):
        api.create_branch(NAME, branch="side/one", repo_type="dataset")
    api.delete_branch(NAME, branch="side/one", repo_type="dataset")
    with pytest.raises(RevisionNotFoundError):
        content(api, "a", "side/one")


def test_a_card_is_validated_before_it_is_committed(api: HfApi) -> None:
    commit(api, {"README.md": b"---\nlicense: mit\n---\nA board."})
    with pytest.raises(ValueError, match="Invalid metadata"):
        commit(api, {"README.md": b"---\na: [\n---\n"})


# Repositories ---------------------------------------------------------------------------------


def test_a_repository_is_created_once_and_deleted(hub: HubServer) -> None:
    api = api_of(hub)
    address = api.create_repo("lab/new", repo_type="dataset", private=True)
    assert address.repo_id == "lab/new"
    with pytest.raises(HfHubHTTPError) as error:
        api.create_repo("lab/new", repo_type="dataset")
    assert status_of(error.value) == 409
    assert api.create_repo("lab/new", repo_type="dataset", exist_ok=True) == address
    api.update_repo_settings("lab/new", repo_type="dataset", private=False)
    assert api_of(hub, token=False).dataset_info("lab/new").private is False
    api.delete_repo("lab/new", repo_type="dataset")
    with pytest.raises(RepositoryNotFoundError):
        api.dataset_info("lab/new")


def test_models_and_data_sets_of_one_name_are_two(hub: HubServer) -> None:
    api = api_of(hub)
    for kind in ("model", "dataset"):
        api.create_repo("lab/both", repo_type=kind)
        api.create_commit(
            "lab/both",
            [CommitOperationAdd("kind.bin", io.BytesIO(kind.encode()))],
            commit_message="Kind",
            repo_type=kind,
        )
    assert content(api, "kind.bin", repo="lab/both") == b"dataset"
    assert set(hub.repositories) == {"lab/both", "models/lab/both"}


def test_another_process_uses_it_by_its_address(hub: HubServer, api: HfApi) -> None:
    code = "from huggingface_hub import HfApi; print(HfApi().whoami()['name'])"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **hub.environment()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "keeper"


def test_it_can_be_started_by_hand() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.hub.server", "--port", "0"],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    endpoint = process.stdout.readline().strip().removeprefix("export HF_ENDPOINT=")
    try:
        assert HfApi(endpoint=endpoint, token="hf_open_sesame").whoami()["name"] == "keeper"
    finally:
        process.kill()
        process.wait()
