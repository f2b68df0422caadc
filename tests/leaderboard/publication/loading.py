"""Datasets loaded by the `datasets` library, in a process of its own as a visitor has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
path, how, *names = sys.argv[1:]
found = {"configs": get_dataset_config_names(path)}
for name in names:
    rows = load_dataset(path, name, split="train", streaming=how == "streaming")
    told = "[]" if how == "streaming" and not list(rows) else rows.to_pandas().to_json(orient="records")
    found[name] = {"columns": list(rows.features), "rows": json.loads(told)}
print(json.dumps(found))
"""


def loaded(
    path: str, *names: str, home: Path, how: str = "whole", **environment: str
) -> dict[str, Any]:
    """What a visitor's `load_dataset` makes of a dataset, in a process of its own.

    Empty tables it loads with `streaming` only: a whole one of no rows the library refuses.
    """
    known = {**os.environ, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, path, how, *names],
        env={**known, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
