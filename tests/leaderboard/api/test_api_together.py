"""Many who ask for the same at once: it is computed once, and nobody else waits for it longer."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field, replace

import anyio
import anyio.to_thread
import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from benchmarks.errors import TransientError
from leaderboard.api.operations import Asked, Operation
from leaderboard.api.serving import Api, application
from leaderboard.api.source import AT_ONCE, IN_LINE, THREADS, Source
from leaderboard.tables import Column, Table, Type
from tests.leaderboard.api.asking import asking

MANY = 60


@dataclass
class Heavy:
    """A table that takes a turn, and until it is let go."""

    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    times: int = 0
    fails: bool = False

    def __call__(self, source: Source, _: Asked) -> Table:
        with source.turn():
            self.times += 1
            self.begun.set()
            assert self.go.wait(60)
            if self.fails:
                raise TransientError("store_down", "The store does not answer.", "Wait.")
            return Table("heavy", (Column("a", Type.TEXT),), [{"a": "x"}])


def client_of(heavy: Heavy) -> httpx.AsyncClient:
    source = replace(asking().source, wait_s=5.0)
    api = Api(source)
    light = Operation("/light", "light", "x", lambda *_: Table("light", ()))
    own = [api.route(Operation("/heavy", "heavy", "x", heavy)), api.route(light)]
    app = Starlette(routes=[Mount("/v1", application(own))])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://made.up")


async def begun(heavy: Heavy) -> None:
    assert await anyio.to_thread.run_sync(heavy.begun.wait, 20)


def test_it_is_computed_once_and_others_are_answered_meanwhile() -> None:
    heavy = Heavy()

    async def go() -> list[httpx.Response]:
        async with client_of(heavy) as client:
            asked = [asyncio.create_task(client.get("/v1/heavy")) for _ in range(MANY)]
            await begun(heavy)
            with anyio.fail_after(20):
                assert (await client.get("/v1/light")).status_code == 200
            heavy.go.set()
            return list(await asyncio.gather(*asked))

    answers = asyncio.run(go())
    assert MANY > AT_ONCE + IN_LINE and MANY > THREADS
    assert heavy.times == 1
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (200, answers[0].content)
    }


def test_who_hangs_up_ends_nobody_elses_waiting() -> None:
    heavy = Heavy()

    async def go() -> httpx.Response:
        async with client_of(heavy) as client:
            first = asyncio.create_task(client.get("/v1/heavy"))
            await begun(heavy)
            impatient, patient = (asyncio.create_task(client.get("/v1/heavy")) for _ in range(2))
            await anyio.sleep(0.05)
            impatient.cancel()
            with pytest.raises(asyncio.CancelledError):
                await impatient
            heavy.go.set()
            assert (await first).status_code == 200
            return await patient

    assert asyncio.run(go()).status_code == 200
    assert heavy.times == 1


def test_a_failure_is_nobodys_but_tried_again_by_those_who_waited() -> None:
    heavy = Heavy(fails=True)

    async def go() -> list[httpx.Response]:
        async with client_of(heavy) as client:
            asked = [asyncio.create_task(client.get("/v1/heavy")) for _ in range(3)]
            await begun(heavy)
            heavy.go.set()
            found = list(await asyncio.gather(*asked))
            heavy.fails = False
            return [*found, await client.get("/v1/heavy")]

    *failed, last = asyncio.run(go())
    assert [answer.status_code for answer in failed] == [503] * 3
    assert last.status_code == 200
