"""Writes golden files of the kinds whose models have changed: `... write LABEL`.

The label names the release. A file of an earlier release is never written again: it stands for
what lies in stores.
"""

from __future__ import annotations

import json
import sys

from tests.leaderboard.golden.kinds import FIELDS, FOLDER, KINDS, golden_files


def write(label: str) -> list[str]:
    """Write what is missing; returns the names of the files."""
    known = json.loads(FIELDS.read_text()) if FIELDS.exists() else {}
    written: list[str] = []
    for name, kind in KINDS.items():
        folder = FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        if name in known and known[name]["fields"] == kind.fields():
            continue
        earlier = [path for path in golden_files(name) if not path.stem.endswith(f"-{label}")]
        path = folder / f"{len(earlier) + 1:02d}-{label}{kind.suffix}"
        content = kind.write(kind.a_record())
        same_form = bool(earlier) and earlier[-1].suffix == kind.suffix
        if same_form and kind.legible(earlier[-1].read_bytes()) == kind.legible(content):
            path = earlier[-1]  # Another type that is written in the same way.
        else:
            path.write_bytes(content)
            written.append(f"{name}/{path.name}")
        known[name] = {"file": path.name, "fields": kind.fields()}
    FIELDS.write_text(json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return written


if __name__ == "__main__":
    print(*write(sys.argv[1]), sep="\n")
