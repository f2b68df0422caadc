"""Tiny checkouts: an `evaluator` and an `app.py` that answer what `answers.json` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EVALUATOR = """\
import json, pathlib, sys

answers = json.loads(pathlib.Path("answers.json").read_text())
command, *words = sys.argv[1:]
if command in answers["broken"]:
    print("began well")
    sys.exit("line 1\\nit broke at the end")
if command == "demo":
    pathlib.Path(words[words.index("--store") + 1]).mkdir()
else:
    given = pathlib.Path(words[words.index("--scores") + 1])
    assert given.read_text() == "scores"
    rows = answers[command]
    print(json.dumps([{**row, "lower": "--lower-is-better" in words} for row in rows]))
"""
APP = """\
import http.server, json, os, pathlib, sys
from urllib.parse import unquote

answers = json.loads(pathlib.Path("answers.json").read_text())
if "app" in answers["broken"]:
    sys.exit("no site today")
assert pathlib.Path(os.environ["ASSAY_STORE"]).is_dir()


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = unquote(self.path).removeprefix("/v1/")
        found = answers["v1"].get(path) or answers["v1"].get(path.partition("?")[0])
        absent = {"error": {"code": "not_found", "message": "", "hint": ""}}
        content = json.dumps(found or absent).encode()
        self.send_response(200 if found or path == "/health" else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Site).serve_forever()
"""
RELEASED = """\
[[scores]]
name = "tiny-results"
benchmark = "tiny"
path = "tiny/scores.parquet"
lower_is_better = ["distance"]
"""
CLIP, BLIP = "clip-0a1b/clip", "blip-2c3d/blip"


def answers() -> dict[str, Any]:
    """One benchmark with two metrics, one of them better."""
    return {
        "broken": [],
        "meta": [_measured("clip", 0.1 + 0.2), _measured("blip", None)],
        "compare": [{"metric_a": "clip", "metric_b": "blip", "p_value": 0.03}],
        "v1": {
            "entries": {"rows": [_entry(CLIP), _entry(BLIP)]},
            "queue": {"rows": [_submission("clip"), _submission("blip")]},
            "benchmarks": {"rows": [{"name": "tiny", "headline": "srcc~paper"}]},
            "benchmarks/tiny": {
                "about": {"card": {"description": "Small."}},
                "rows": [{"token": "srcc~paper", "measure": "srcc", "skill": None}],
            },
            "boards/tiny": {
                "about": {"as_of": "2026-11-22T12:00:00+00:00"},
                "rows": [_ranked(CLIP, 1, 0.1 + 0.2), _ranked(BLIP, 2, 0.25)],
            },
            "boards/tiny/pairs": {
                "about": {"correction": "holm"},
                "rows": [{"entry_a": CLIP, "entry_b": BLIP, "p_value": 0.03, "p_holm": 0.03}],
            },
        },
    }


def make_checkout(folder: Path, said: dict[str, Any], *, bundle: bool = False) -> Path:
    """Write a checkout.

    Args:
        folder: where; made here.
        said: what its commands and its site answer.
        bundle: whether it has released results.
    """
    (folder / "evaluator").mkdir(parents=True)
    (folder / "evaluator" / "__init__.py").touch()
    (folder / "evaluator" / "__main__.py").write_text(EVALUATOR)
    (folder / "app.py").write_text(APP)
    (folder / "answers.json").write_text(json.dumps(said))
    if bundle:
        released = folder / "benchmarks" / "released"
        (released / "tiny").mkdir(parents=True)
        (released / "released.toml").write_text(RELEASED)
        (released / "tiny" / "scores.parquet").write_text("scores")
    return folder


def _entry(entry_id: str) -> dict[str, Any]:
    metric = entry_id.partition("/")[2]
    return {"entry_id": entry_id, "metric": metric, "version": "1", "submitter": "us",
            "benchmarks": "tiny", "published_at": "2026-11-22T12:00:00+00:00"}  # fmt: skip


def _submission(name: str) -> dict[str, Any]:
    of = next(one.partition("/")[0] for one in (CLIP, BLIP) if one.startswith(name))
    return {"submission_id": of, "name": name, "version": "1", "submitter": "us",
            "state": "published", "wait_s": None}  # fmt: skip


def _ranked(entry_id: str, rank: int, value: float) -> dict[str, Any]:
    return {"entry_id": entry_id, "measure": "srcc", "rank": rank, "value": value,
            "tier_holm_5_percent": rank, "pairs_per_s": 17.5}  # fmt: skip


def _measured(metric: str, value: float | None) -> dict[str, Any]:
    return {"metric": metric, "measure": "srcc", "value": value, "versions": "numpy 2"}
