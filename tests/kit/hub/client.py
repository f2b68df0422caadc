"""The real client of the Hub, as tests use it on the server here."""

from __future__ import annotations

import io
from collections.abc import Mapping

from huggingface_hub import (
    CommitInfo,
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    get_session,
    hf_hub_url,
)
from huggingface_hub.utils._http import hf_raise_for_status

from tests.kit.hub.server import HubServer

NAME = "lab/board"


def api_of(hub: HubServer, token: str | bool | None = None) -> HfApi:
    """A client with the keeper's token, unless told otherwise; False for none."""
    return HfApi(endpoint=hub.endpoint, token=hub.token if token is None else token)


def commit(
    api: HfApi,
    files: Mapping[str, bytes | None],
    *,
    parent: str | None = None,
    branch: str | None = None,
    message: str = "Change",
    description: str = "",
    repo: str = NAME,
) -> CommitInfo:
    """One commit; None deletes a file.

    Contents are passed as file objects: whatever else is given, the client sends large ones by
    Xet, which this server does not speak.
    """
    operations = [
        CommitOperationDelete(path)
        if content is None
        else CommitOperationAdd(path, io.BytesIO(content))
        for path, content in files.items()
    ]
    return api.create_commit(
        repo,
        operations,
        commit_message=message,
        commit_description=description,
        repo_type="dataset",
        parent_commit=parent,
        revision=branch,
    )


def content(api: HfApi, path: str, revision: str = "main", repo: str = NAME) -> bytes:
    """A file at a revision, past every cache."""
    address = hf_hub_url(repo, path, repo_type="dataset", revision=revision, endpoint=api.endpoint)
    headers = {"authorization": f"Bearer {api.token}"} if api.token else {}
    response = get_session().get(address, headers=headers, follow_redirects=True)
    hf_raise_for_status(response)
    return bytes(response.content)
