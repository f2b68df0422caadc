"""A service on this machine that answers as OSV does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Known = Mapping[tuple[str, str], str]
"""(package, version) to the id of a defect."""


def _answer(known: Known, name: str, version: str) -> dict[str, Any]:
    if (name, version) not in known:
        return {}
    affected = {"package": {"name": name, "ecosystem": "PyPI"}, "ranges": []}
    found = {"id": known[name, version], "summary": "It is broken.", "affected": [affected]}
    return {"vulns": [{**found, "published": "2026-01-01T00:00:00Z", "aliases": []}]}


@contextmanager
def service(known: Known, *, status: int = 200, body: bytes | None = None) -> Iterator[str]:
    """Its address, while it runs; `status` and `body` spoil every answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = _answer(known, asked["package"]["name"], asked["version"])
            content = json.dumps(answer).encode() if body is None else body
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()
