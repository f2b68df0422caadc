"""A checkout in processes of its own, and its published rows through its commands and `/v1` alone.

Modules may move and names may change: what is used here are contracts that stay. `demo`, `meta` and
`compare` of `python -m evaluator`, `python app.py` with ASSAY_STORE and PORT, and the API
(docs/api.md). Left unread is what holds no figure of its own: `/v1/ledger` (times and hashes of
them), `/v1/moved` (a fresh store has no earlier boards), prompts and images.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx

from tools.row_differences import Table, labels_of, make_table

START_LIMIT_S = 300.0
ANSWER_LIMIT_S = 600.0
STOP_LIMIT_S = 20.0
LOG_LINES = 20
_SETTINGS = ("ASSAY_", "GRADIO_", "SPACE_", "OAUTH_", "HF_", "PYTHONPATH", "PYTHONHOME", "PORT")
"""Variables that change what a checkout does; both sides run without those of the caller."""


class SideError(Exception):
    """A checkout did not run."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = "\n".join(log.rstrip().splitlines()[-LOG_LINES:])


@dataclass(frozen=True)
class Side:
    """A checkout to run."""

    name: str  # `A` or `B`
    checkout: Path  # its folder
    python: Path  # the interpreter
    folder: Path  # for its store and logs; there already
    scratch: Path  # for the temporary files of its processes; there already

    def environment(self, **more: str) -> dict[str, str]:
        """Variables of its processes: the caller's without settings, and no settings file."""
        empty = self.folder / "settings.toml"
        empty.touch()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_SETTINGS)}
        own = {"ASSAY_SETTINGS": str(empty), "TMPDIR": str(self.scratch), "PYTHONUNBUFFERED": "1"}
        return {**kept, **own, **more}

    def evaluator(self, *words: str, log: str) -> str:
        """What `python -m evaluator ...` prints; its messages go to a log."""
        file = self.folder / f"{log}.log"
        command = [str(self.python), "-m", "evaluator", *words]
        try:
            with file.open("wb") as messages:
                done = subprocess.run(
                    command,
                    cwd=self.checkout,
                    env=self.environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=messages,
                    check=False,
                )
        except OSError as error:
            raise SideError(f"{self.name}: {self.python} does not start: {error}.") from error
        said = done.stdout.decode(errors="replace")
        if done.returncode:
            raise SideError(
                f"{self.name}: evaluator {' '.join(words)} ended with {done.returncode}.",
                said + file.read_text(errors="replace"),
            )
        return said


@contextmanager
def served(side: Side, store: Path) -> Iterator[httpx.Client]:
    """The site of a checkout, on a free port of this machine alone."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    log = side.folder / "app.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(side.python), "app.py"],
            cwd=side.checkout,
            env=side.environment(ASSAY_STORE=str(store), PORT=str(port)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        # Loopback is asked directly, whatever proxy the environment names.
        with httpx.Client(base_url=address, timeout=ANSWER_LIMIT_S, trust_env=False) as client:
            _wait_for(client, process, side, log)
            try:
                yield client
            except httpx.HTTPError as error:
                raise SideError(f"{side.name}: the site: {error!r}", _text(log)) from error
    finally:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(
    client: httpx.Client, process: subprocess.Popen[bytes], side: Side, log: Path
) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        if process.poll() is not None:
            raise SideError(f"{side.name}: app.py ended with {process.returncode}.", _text(log))
        try:
            client.get("/health", timeout=5.0)
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                message = f"{side.name}: app.py did not answer for {START_LIMIT_S:.0f} s."
                raise SideError(message, _text(log)) from None
            time.sleep(0.2)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _text(log: Path) -> str:
    return log.read_text(errors="replace")


# Rows of a checkout.


BUNDLE = Path("benchmarks/released")
INDEX = BUNDLE / "released.toml"
MOST_PER_PAGE = 1000
BUSY_TRIES = 30
Say = Callable[[str], object]
Record = Mapping[str, Any]


def read_demo(side: Side, say: Say) -> tuple[Table, ...]:
    """Every table of the site over a store with the demo, freshly published."""
    store = side.folder / "store"
    say("running the demo")
    side.evaluator("demo", "--no-serve", "--store", str(store), log="demo")
    say("starting the site")
    with served(side, store) as client:
        try:
            return BoardReader(side.name, client, say).read()
        except KeyError as error:
            raise SideError(f"{side.name}: a table of /v1 has no {error}.") from error


class BoardReader:
    """Reads all tables of a running site."""

    def __init__(self, name: str, client: httpx.Client, say: Say) -> None:
        self._name = name
        self._client = client
        self._say = say
        self._tables: list[Table] = []
        self._labels: dict[str, str] = {}

    def read(self) -> tuple[Table, ...]:
        """All tables."""
        entries, submissions = self._pages("entries"), self._pages("queue")
        self._labels = labels_of(entries, submissions)
        self._add("submissions", "submissions", "queue", submissions)
        self._add("entries", "entries", "entries", entries)
        benchmarks = self._table("benchmarks", "benchmarks", "benchmarks")
        for benchmark in benchmarks:
            name = str(benchmark["name"])
            on = [e["entry_id"] for e in entries if name in e["benchmarks"].split(", ")]
            self._board(name, benchmark["headline"], sorted(on, key=self._label))
        for entry in entries:
            self._entry(entry["entry_id"])
        self._table("index", "index", "index")
        for skill in sorted(self._facts("skills").get("known", {})):
            self._table("skills", "metrics by skill", "skills", skill=skill)
        models = self._table("models", "models", "models")
        for prompt_set in dict.fromkeys(str(one["prompt_set"]) for one in models):
            self._models(prompt_set, [m for m in models if m["prompt_set"] == prompt_set])
        return tuple(self._tables)

    def _board(self, benchmark: str, headline: str, entry_ids: Sequence[str]) -> None:
        """All slices of a benchmark, with the tests on each."""
        path = f"boards/{benchmark}"
        measures = self._table(benchmark, "measures", f"benchmarks/{benchmark}")
        self._table(benchmark, "printed figures", f"{path}/published")
        if not entry_ids:
            return
        skills = dict.fromkeys(one["skill"] for one in measures)
        for one in measures:
            self._ranking(benchmark, measure=one["token"], skill=one["skill"])
        for token in dict.fromkeys(one["token"] for one in measures if one["skill"] is None):
            self._table(benchmark, "values by skill", f"{path}/skills", measure=token)
        self._ranking(benchmark, measure=headline, untrained="1")
        two = [one["skill"] for one in measures if one["skill"] and one["token"] == headline][:2]
        self._ranking(benchmark, skill=",".join(two or [s for s in skills if s][:2]))
        for a, b in combinations(entry_ids, 2):
            self._table(benchmark, "comparisons", "compare", benchmark=benchmark, a=a, b=b)
        for a in entry_ids:
            self._table(benchmark, "cases", "items", benchmark=benchmark, a=a, show="all")

    def _ranking(self, benchmark: str, **query: str | None) -> None:
        self._table(benchmark, "rankings", f"boards/{benchmark}", **query)
        self._table(benchmark, "tests", f"boards/{benchmark}/pairs", **query)

    def _entry(self, entry_id: str) -> None:
        """All values of a metric, and what the run found out about it."""
        answer = self._answer(f"entries/{entry_id}")
        about = answer.get("about", {}).get("entry", {})
        facts = {
            **_refused(answer),
            "findings": about.get("findings"),
            "provenance": about.get("provenance"),
            # The pairs of a trust check are drawn anew in every run, so that nobody can know them:
            # its verdict is compared and its figures are not.
            "trust": {
                benchmark: {check["name"]: check["passed"] for check in report["checks"]}
                for benchmark, report in about.get("trust", {}).items()
            },
        }
        name = f"entries/{self._label(entry_id)}"
        self._add("entries", "values", name, answer.get("rows", ()), facts)

    def _models(self, prompt_set: str, models: Sequence[Record]) -> None:
        """The board of the models of a prompt set, by each judge and by each seed too."""
        path = f"models/{prompt_set}"
        rows = self._table(prompt_set, "model rankings", path)
        for skill in dict.fromkeys(one["skill"] for one in rows):
            self._table(prompt_set, "model tests", f"{path}/pairs", skill=skill)
        ids = sorted((one["submission_id"] for one in models), key=self._label)
        for a, b in combinations(ids, 2):
            self._table(prompt_set, "model tests", f"{path}/pairs", a=a, b=b)
        for judge in sorted({one["metric"] for one in rows}, key=self._label):
            self._table(prompt_set, "model rankings", path, judge=judge)
            self._table(prompt_set, "model tests", f"{path}/pairs", judge=judge)
        seeds = max((len(one["seeds"].split(",")) for one in models), default=0)
        for seed in range(1, seeds + 1):
            self._table(prompt_set, "model rankings", path, seed=str(seed))

    def _label(self, id_: str) -> str:
        return self._labels.get(id_, id_)

    def _table(self, board: str, kind: str, path: str, **query: str | None) -> Sequence[Record]:
        """Read a table, add it, and give its rows as they came."""
        given = {name: value for name, value in query.items() if value}
        answer = self._answer(path, given)
        said = "&".join(f"{name}={self._label(value)}" for name, value in given.items())
        rows: Sequence[Record] = answer.get("rows", ())
        facts = {**_refused(answer), **answer.get("about", {})}
        self._add(board, kind, f"{path}?{said}" if said else path, rows, facts)
        return rows

    def _add(
        self, board: str, kind: str, name: str, rows: Sequence[Record], facts: Record | None = None
    ) -> None:
        self._tables.append(make_table(board, kind, name, rows, facts=facts, labels=self._labels))
        self._say(f"reading {board}: {len(self._tables)} tables")

    def _facts(self, path: str) -> Record:
        about: Record = self._answer(path).get("about", {})
        return about

    def _pages(self, path: str) -> list[Record]:
        rows: list[Record] = []
        while True:
            number = str(1 + len(rows) // MOST_PER_PAGE)
            answer = self._answer(path, {"page": number, "per_page": str(MOST_PER_PAGE)})
            rows += answer.get("rows", ())
            if len(answer.get("rows", ())) < MOST_PER_PAGE:
                return rows

    def _answer(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """An answer of the API, a refusal too; a busy site is asked again."""
        for _ in range(BUSY_TRIES):
            reply = self._client.get(f"/v1/{path}", params=query)
            if reply.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                break
            time.sleep(float(reply.headers.get("Retry-After", "1")))
        try:
            answer = json.loads(reply.content)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not answer.keys() & {"rows", "error"}:
            message = f"{self._name}: {reply.url} answers {reply.status_code} and no table."
            raise SideError(message, reply.text)
        if reply.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise SideError(f"{self._name}: {reply.url} fails.", reply.text)
        return answer


def _refused(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The code of a refusal, as a fact of its table; null where there is a table."""
    return {"refused": answer["error"].get("code") if "error" in answer else None}


@dataclass(frozen=True)
class ReleasedScores:
    """A scores table of the bundle of released results."""

    name: str  # of the table
    benchmark: str  # whose items are scored
    path: Path  # of the file
    lower_is_better: tuple[str, ...]  # metrics for which lower is better


def released_scores(side: Side) -> tuple[ReleasedScores, ...] | None:
    """The scores tables in the bundle of a checkout; None where it has no bundle."""
    file = side.checkout / INDEX
    if not file.is_file():
        return None
    try:
        listed = tomllib.loads(file.read_text(encoding="utf-8")).get("scores", [])
        return tuple(
            ReleasedScores(
                name=one["name"],
                benchmark=one["benchmark"],
                path=(side.checkout / BUNDLE / one["path"]).absolute(),
                lower_is_better=tuple(one.get("lower_is_better", ())),
            )
            for one in listed
        )
    except (KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise SideError(f"{side.name}: {INDEX} cannot be read: {error!r}.") from error


def read_bundle(side: Side, listed: Sequence[ReleasedScores], say: Say) -> tuple[Table, ...]:
    """Measures of every released scores table, and tests between the metrics of each."""
    tables: list[Table] = []
    for number, scores in enumerate(listed, 1):
        say(f"released results: {scores.name}, {number} of {len(listed)}")
        words = [scores.benchmark, "--scores", str(scores.path), "--json"]
        for metric in scores.lower_is_better:
            words += ["--lower-is-better", metric]
        measures = _rows(side, "meta", words, f"meta-{number}")
        name = f"meta {scores.name}"
        tables.append(make_table(scores.benchmark, "released measures", name, measures))
        if len({one.get("metric") for one in measures}) > 1:
            tests = _rows(side, "compare", words, f"compare-{number}")
            name = f"compare {scores.name}"
            tables.append(make_table(scores.benchmark, "released tests", name, tests))
    return tuple(tables)


def _rows(side: Side, command: str, words: Sequence[str], log: str) -> list[dict[str, Any]]:
    printed = side.evaluator(command, *words, log=log)
    try:
        rows = json.loads(printed)
    except ValueError:
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SideError(f"{side.name}: evaluator {command} --json prints no rows.", printed)
    return rows
