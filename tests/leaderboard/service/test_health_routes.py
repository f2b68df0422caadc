"""Health and metrics over HTTP, as the site serves them."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.testclient import TestClient

from leaderboard.service.health import DiskSpace
from leaderboard.service.health_routes import routes
from leaderboard.service.looking import HealthWatch
from tests.leaderboard.house import House


def client(house: House, free: int) -> TestClient:
    disk = DiskSpace(free_bytes=free, total_bytes=100 << 30)
    watch = HealthWatch(house.store, Path("/"), disk=lambda _: disk)
    return TestClient(Starlette(routes=routes(watch)))


def test_an_installation_that_is_well_answers_200_with_its_figures() -> None:
    house = House()
    house.done()
    answered = client(house, 50 << 30).get("/health")
    assert answered.status_code == 200
    assert answered.headers["Cache-Control"] == "no-store"
    told = answered.json()
    assert (told["status"], told["submissions"]) == ("ok", {"published": 1})


def test_an_installation_that_is_down_answers_503_and_still_says_why() -> None:
    site = client(House(), 0)
    answered = site.get("/health")
    assert answered.status_code == 503
    assert answered.json()["problems"][0]["code"] == "disk_full"
    scraped = site.get("/metrics")
    assert scraped.status_code == 200
    assert scraped.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'assay_health{status="down"} 1.0' in scraped.text


def test_nobody_can_write_to_them() -> None:
    site = client(House(), 50 << 30)
    assert site.post("/health").status_code == 405
    assert site.delete("/metrics").status_code == 405
