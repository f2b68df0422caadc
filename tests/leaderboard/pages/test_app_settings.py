"""What `python app.py` reads from its environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import Settings
from benchmarks.errors import SubmitterError
from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.store.opening import StoreName


def test_without_any_setting_the_app_listens_at_this_machine_only() -> None:
    local = SignIn(Way.LOCAL, local="me")
    expected = Settings(StoreName(".assay/store"), None, "127.0.0.1", 7860, local)
    assert Settings.read({}, "me") == expected


def test_every_setting_can_be_given() -> None:
    given = {
        "ASSAY_STORE": "s", "ASSAY_DATA": "d", "ASSAY_HOST": "0.0.0.0", "PORT": "80",
        "ASSAY_USER": "ada", "ASSAY_OPERATORS": "hub:grace, local:ada",
        "ASSAY_LIVE_SECRET": "a-secret-of-the-house",
    }  # fmt: skip
    operators = frozenset({"hub:grace", "local:ada"})
    local = SignIn(Way.LOCAL, local="ada", operators=operators)
    expected = Settings(StoreName("s"), Path("d"), "0.0.0.0", 80, local, "a-secret-of-the-house")
    assert Settings.read(given, "me") == expected


def test_a_space_says_where_to_listen() -> None:
    assert Settings.read({"GRADIO_SERVER_NAME": "0.0.0.0"}, "me").host == "0.0.0.0"


@pytest.mark.parametrize("port", ["", "http", "-1", "0", "65536"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(SubmitterError, match="PORT"):
        Settings.read({"PORT": port}, "me")
