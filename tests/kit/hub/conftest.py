"""The test Hub, the real client on it, and one repository."""

from __future__ import annotations

import pytest
from huggingface_hub import HfApi

from tests.kit.hub.client import NAME, api_of
from tests.kit.hub.server import HubServer


@pytest.fixture
def api(hub: HubServer) -> HfApi:
    """The real client, with the keeper's token, and `lab/board` to write to."""
    client = api_of(hub)
    client.create_repo(NAME, repo_type="dataset", private=True)
    return client
