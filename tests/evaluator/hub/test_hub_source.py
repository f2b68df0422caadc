"""Submissions taken from a repository of the Hub: one commit, bounded, and recorded by its id."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.hub.source import Fetched, HubSource, fetched
from tests.evaluator.scorers.common import refusal
from tests.kit.hub.server import HubServer

REPO = "ada/metric"
FILES = {
    "assay.toml": b'name = "grey"',
    "scorer.py": b"class Scorer: ...",
    "weights/model.safetensors": b"w" * 3000,
    ".gitattributes": b"*.safetensors filter=lfs",
}


def taken(
    hub: HubServer, text: str = f"hub:{REPO}", *, token: bool = False, **limits: Any
) -> tuple[Fetched, dict[str, bytes]]:
    source = HubSource.parse(text, endpoint=hub.endpoint, token=token)
    with fetched(source, **{"most_files": 10, "most_bytes": 10_000} | limits) as found:
        files = [path for path in found.folder.rglob("*") if path.is_file()]
        content = {path.relative_to(found.folder).as_posix(): path.read_bytes() for path in files}
    assert not found.folder.exists()
    return found, content


@pytest.mark.parametrize(("kind", "prefix"), [("models", ""), ("datasets", "datasets/")])
def test_a_repository_is_fetched_whole_and_without_what_git_needs(
    hub: HubServer, kind: str, prefix: str
) -> None:
    sha = hub.add(REPO, FILES, kind=kind).branches["main"]
    found, files = taken(hub, f"hub:{prefix}{REPO}")
    assert files == {name: data for name, data in FILES.items() if name != ".gitattributes"}
    assert found.source == f"hub:{prefix}{REPO}@{sha}"


def test_a_branch_is_recorded_as_the_commit_it_stood_at(hub: HubServer) -> None:
    repository = hub.add(REPO, FILES, kind="models")
    first = repository.branches["main"]
    repository.commit({"assay.toml": b'name = "other"'})
    assert taken(hub, f"hub:{REPO}@{first}")[0].source.endswith(first)
    assert taken(hub, f"hub:{REPO}@main")[1] == {"assay.toml": b'name = "other"'}


@pytest.mark.parametrize(
    ("files", "limits", "code"),
    [
        (FILES, {"most_files": 2}, "too_many_files"),
        (FILES, {"most_bytes": 99}, "too_large"),
        ({"../out.py": b"x"}, {}, "unsafe_name"),
    ],
)
def test_what_is_too_much_or_leads_out_is_refused_before_it_is_fetched(
    hub: HubServer, files: dict[str, bytes], limits: dict[str, Any], code: str
) -> None:
    hub.add(REPO, files, kind="models")
    with refusal(code):
        taken(hub, **limits)
    assert not [path for path in hub.served if "/resolve/" in path.target]


def test_a_private_repository_is_fetched_with_ones_own_token_only(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(REPO, FILES, kind="models").private = True
    monkeypatch.setenv("HF_TOKEN", hub.token)
    with refusal("repository_missing"):
        taken(hub)
    assert "scorer.py" in taken(hub, token=True)[1]


@pytest.mark.parametrize(
    "text", ["ada/metric", "hub:ada", "hub:ada/../x", "hub:ada/metric@a b", "hub:ada/metric@"]
)
def test_a_source_is_written_in_one_way(text: str) -> None:
    with refusal("bad_source"):
        HubSource.parse(text)
