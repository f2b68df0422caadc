"""Programs on the boards page do as they stand what `/v1` answers; nothing else may be called."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from leaderboard.api.routes import routes
from leaderboard.api.source import Source
from leaderboard.governance.authentication import Authentication
from leaderboard.publication.snapshot import PATH
from leaderboard.store.hub.configurations import WHOLE, configurations
from leaderboard.store.hub.layout import Part
from leaderboard.views.addresses import params_of
from leaderboard.views.benchmark_board import data_of
from leaderboard.views.boards import BoardQuery, resolve
from leaderboard.views.citation import CitedAt
from leaderboard.web.benchmark_below import below_of, snippets
from leaderboard.web.site import create_app, launch_options
from tests.kit.boards import fill, site_of
from tests.kit.store import memory_store

pytestmark = pytest.mark.slow

HUB = "made-up-owner/assay"
Rows = list[dict[str, Any]]
QUERIES = {
    "the headline": "?benchmark=ratings",
    "a skill by another measure": "?benchmark=ratings&skill=spatial&measure=srcc",
    "the mean of skills": "?benchmark=ratings&skill=spatial,counting",
    "some entries": "?benchmark=ratings&kind=metric&untrained=1&search=clip,%F0%9F%98%80'%5C",
    "further columns, sorted": "?benchmark=ratings&columns=plcc~paper,srcc~assay@counting"
    "&sort=-plcc~paper",
}
ON_HUB = list(QUERIES)[:2]


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[Source, str]]:
    store = fill(memory_store())
    context = site_of(store, way=Authentication())
    app = create_app(context)
    _, address, _ = app.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True,
        **launch_options(context, routes(context)),
    )  # fmt: skip
    yield context, address
    app.close()


_RUN = """
import json, sys
found = {}
for name, code in json.load(sys.stdin).items():
    own = {}
    exec(compile(code, name, "exec"), own)
    found[name] = json.loads(own["board"].to_json(orient="records", double_precision=15))
print(json.dumps(found))
"""


def ran(programs: dict[str, str], folder: Path) -> dict[str, Rows]:
    """The rows of `board` after each program, in a process that knows nothing of the project."""
    kept = {k: v for k, v in os.environ.items() if k in {"PATH", "LANG", "SSL_CERT_FILE"}}
    home = {"HOME": str(folder), "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _RUN], cwd=folder, env=kept | home, text=True,
        input=json.dumps(programs), capture_output=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Rows] = json.loads(done.stdout.splitlines()[-1])
    return found


def shown_on(source: Source, address: str, query: str, hub: str) -> dict[str, str]:
    """Title to program, as the page shows them."""
    view = source.reader.view()
    choice = resolve(BoardQuery.from_params(params_of(query)), view.boards)
    page = below_of(choice, view, CitedAt(site=address), hub)
    block = page[page.index("as-snippets") :]
    titles = re.findall(r"<h3>(.+?)</h3>", block)
    codes = re.findall(r"(?s)<pre.*?>(.+?)</pre>", block)
    told = dict(zip(titles, map(html.unescape, codes), strict=True))
    assert told == dict(snippets(choice, data_of(choice), address, hub))
    return told


def told_by_api(source: Source, address: str, query: str) -> Rows:
    choice = resolve(BoardQuery.from_params(params_of(query)), source.reader.view().boards)
    rows = httpx.get(f"{address}{data_of(choice).removeprefix('./')}").json()["rows"]
    return [{k: row[k] for k in ("entry_id", "value", "ci_low")} for row in rows]


@pytest.fixture(scope="module")
def results(site: tuple[Source, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """What every program reads: `title of query`, and `hub of query`."""
    (source, address), place = site, tmp_path_factory.mktemp("programs")
    # A folder of that name is what the library takes first: the repository as it would be.
    folder = place / f"{HUB}-results"
    folder.mkdir(parents=True)
    (folder / PATH).write_bytes(source.store.public.read(PATH))
    configs = configurations(WHOLE[Part.RESULTS])
    (folder / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    programs = {}
    for name, query in QUERIES.items():
        for title, code in shown_on(source, address, query, "").items():
            programs[f"{title} of {name}"] = code
        if name in ON_HUB:
            programs[f"hub of {name}"] = shown_on(source, address, query, HUB)["datasets"]
            assert address not in programs[f"hub of {name}"]
    return ran(programs, place)


@pytest.mark.parametrize("title", ["pandas", "gradio_client", "datasets"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_program_reads_exactly_the_view_it_stands_on(
    site: tuple[Source, str], results: dict[str, Rows], name: str, title: str
) -> None:
    rows, expected = results[f"{title} of {name}"], told_by_api(*site, QUERIES[name])
    assert [row["entry_id"] for row in rows] == [row["entry_id"] for row in expected] != []
    for row, right in zip(rows, expected, strict=True):
        for figure in ("value", "ci_low"):
            assert row[figure] == pytest.approx(right[figure], abs=1e-12)


@pytest.mark.parametrize("name", QUERIES)
def test_of_a_store_on_the_hub_the_dataset_is_read_where_it_holds_the_view(
    site: tuple[Source, str], results: dict[str, Rows], name: str
) -> None:
    source, address = site
    if name not in ON_HUB:
        assert address in shown_on(source, address, QUERIES[name], HUB)["datasets"]
        return
    expected = {row["entry_id"]: row["value"] for row in told_by_api(*site, QUERIES[name])}
    found = {row["entry_id"]: row["value"] for row in results[f"hub of {name}"]}
    assert found == pytest.approx(expected)


def test_three_endpoints_are_public_and_no_event_of_a_page(site: tuple[Source, str]) -> None:
    _, address = site
    info = httpx.get(f"{address}gradio_api/info").json()
    assert set(info["named_endpoints"]) == {"/benchmarks", "/board", "/entry"}
    assert not info["unnamed_endpoints"]
    names = [one["parameter_name"] for one in info["named_endpoints"]["/board"]["parameters"]]
    assert names == ["benchmark", "skill", "measure", "kind", "untrained", "search",
                     "columns", "sort", "within"]  # fmt: skip


def test_the_endpoints_answer_as_the_api_does_and_refuse_in_words(site: tuple[Source, str]) -> None:
    source, address = site
    client = Client(address, verbose=False)
    told = httpx.get(f"{address}v1/benchmarks").json()
    assert client.predict(api_name="/benchmarks") == told
    entry = next(iter(source.reader.view().entries))
    found = client.predict(entry, api_name="/entry")
    assert found == httpx.get(f"{address}v1/entries/{entry}").json()
    for wrong in ("nothing", "x" * 3000, 7):
        with pytest.raises(AppError, match=r"\[(unknown_benchmark|bad_query)\]"):
            client.predict(wrong, api_name="/board")
    page = below_of(resolve(BoardQuery(), source.reader.view().boards), source.reader.view())
    assert "as-snippets" not in page  # Nothing is shown where the address is not known.
