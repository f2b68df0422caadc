"""What is uploaded and never submitted does not stay."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path

import gradio as gr
import pytest

from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.pages import site
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import NOW, StubDesk, cards

pytestmark = pytest.mark.slow

LOCAL = SignIn(Way.LOCAL, local="ada")
BODY = (
    b'--B\r\nContent-Disposition: form-data; name="files"; filename="left.zip"\r\n'
    b"Content-Type: application/octet-stream\r\n\r\nleft behind\r\n--B--\r\n"
)


def app_over_nothing() -> gr.Blocks:
    return site.create_app(memory_store(), StubDesk(), cards(), clock=lambda: NOW, sign_in=LOCAL)


def test_uploads_are_kept_for_two_hours() -> None:
    assert app_over_nothing().delete_cache == (3600, 7200)


def test_a_file_that_was_uploaded_and_left_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    monkeypatch.setattr(site, "UPLOADS_SWEPT_EVERY_S", 1)
    monkeypatch.setattr(site, "UPLOADS_KEPT_S", 1)
    app = app_over_nothing()
    _, address, _ = app.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **site.launch_options(LOCAL)
    )
    try:
        send(f"{address}gradio_api/upload")
        assert len(uploads(tmp_path)) == 1
        wait_until_none(tmp_path)
    finally:
        app.close()


def send(address: str) -> None:
    asked = urllib.request.Request(
        address, data=BODY, headers={"Content-Type": "multipart/form-data; boundary=B"}
    )
    with urllib.request.urlopen(asked) as answer:
        assert answer.status == 200


def uploads(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("left*") if path.is_file()]


def wait_until_none(folder: Path) -> None:
    end = time.monotonic() + 120
    while uploads(folder):
        assert time.monotonic() < end, "the upload is still there"
        time.sleep(0.2)
