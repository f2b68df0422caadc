"""A store on the Hub as release 0.1.0 left it: four repositories, half a commit beyond the pins.

`golden/stores/hub-0.1.0.zip` was written by that release: `REPOSITORY/branch/PATH` is what the
branch has, `REPOSITORY/pinned/PATH` what the pins name.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from leaderboard.store.hub.multi_repository import PINS
from tests.kit.hub.repositories import StoredFile, belongs_to_lfs
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME

_ZIP = Path(__file__).parents[1] / "leaderboard" / "golden" / "stores" / "hub-0.1.0.zip"
_PARTS = ("scores", "results", "requests", "submissions")


def add_old_store(hub: HubServer) -> dict[str, bytes]:
    """Put it on a Hub; returns the files of its public side, as they are read at the pins."""
    trees: dict[str, dict[str, dict[str, bytes]]] = {}
    with zipfile.ZipFile(_ZIP) as archive:
        for name in archive.namelist():
            part, which, path = name.split("/", 2)
            trees.setdefault(part, {}).setdefault(which, {})[path] = archive.read(name)
    pins: dict[str, str] = {}
    public: dict[str, bytes] = {}
    for part in _PARTS:
        repository = hub.add(f"{NAME}-{part}", {})
        repository.private = part == "submissions"
        for which in ("pinned", "branch"):
            files = trees[part].get(which, {})
            if part == "requests" and files:
                files[PINS] = json.dumps({**json.loads(files[PINS]), "pins": pins}).encode()
            gone = dict.fromkeys(repository.files(repository.branches["main"]))
            kept = {path: StoredFile(c, belongs_to_lfs(path, len(c))) for path, c in files.items()}
            if files:
                sha = repository.change({**gone, **kept}).sha
                pins.setdefault(part, sha)
        if part != "submissions":
            public |= trees[part].get("pinned", trees[part]["branch"])
        if part == "results":
            pins = {name: pins[name] for name in ("scores", "results")}
    hidden = (".commits/", ".gitattributes", "README.md")
    return {path: content for path, content in public.items() if not path.startswith(hidden)}
