"""`python app.py` with a settings file; a secret is changed while it serves."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from leaderboard.store.live.wire import SECRET_HEADER
from tests.leaderboard.pages.running_app import running_app

pytestmark = pytest.mark.slow

FIRST, SECOND = "the-first-secret-of-all", "the-second-secret-of-all"


def taken(address: str, secret: str) -> bool:
    """Whether the site knows a secret: what is told beside it cannot be read."""
    told = httpx.post(f"{address}live/told", content=b"{}", headers={SECRET_HEADER: secret})
    assert told.status_code in {401, 422}
    return told.status_code == 422


def test_the_site_is_set_by_a_file_and_reads_its_secret_again(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(FIRST)
    file = tmp_path / "settings.toml"
    file.write_text(
        f'data = "{tmp_path}"\n[hub]\nhome = "{tmp_path / "hub"}"\n'
        f'[live]\nsecret_file = "{tmp_path / "secret"}"\n'
    )
    with running_app(tmp_path, ASSAY_SETTINGS=str(file), ASSAY_OPERATOR="x") as address:
        assert taken(address, FIRST)
        assert not taken(address, SECOND)
        (tmp_path / "secret").write_text(SECOND)
        end = time.monotonic() + 120
        while not taken(address, SECOND):
            assert time.monotonic() < end, "it never read its secret again"
            time.sleep(0.5)
        assert not taken(address, FIRST)
    said = (tmp_path / "app.log").read_text()
    assert said.count("Did you mean ASSAY_OPERATORS?") == 1
    assert FIRST not in said
    assert SECOND not in said
