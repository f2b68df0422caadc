"""The modules that a submission enters from archive to board: `python -m tests.house.submission_path`.

A bundled module is sent, run and published on a store in a folder, and every function that is entered
is noted. What only imports run, and templates, do not count.
"""

from __future__ import annotations

import inspect
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from benchmarks.prompt_sets.prompt_set import load_prompt_sets
from benchmarks.registry import load_registry
from evaluator.bundled import bundled_modules
from evaluator.commands.worker_loop import make_worker
from evaluator.isolation.availability import isolation_gate
from evaluator.submission.service import SubmissionService
from leaderboard.accounts import ASSAY
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.store.opening import StoreName
from tests.conftest import REPOSITORY

_OURS = tuple(f"{REPOSITORY / name}/" for name in ("benchmarks", "leaderboard", "evaluator"))


def modules_entered(folder: Path) -> dict[str, set[str]]:
    """Each module to its functions that were entered."""
    entered: dict[str, set[str]] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        named = code.co_filename.startswith(_OURS) and code.co_filename.endswith(".py")
        if event == "call" and named and code.co_flags & inspect.CO_OPTIMIZED:
            file = Path(code.co_filename).relative_to(REPOSITORY).as_posix()
            entered.setdefault(file, set()).add(code.co_qualname)

    module = bundled_modules()[0]
    load_prompt_sets()  # which imports them
    name, registry = StoreName(str(folder)), load_registry()
    store = name.open()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        service = SubmissionService(store, registry, None, isolation_gate, store.clock)
        service.submit_metric(module, account=ASSAY)
        make_worker(store, name, registry, None).run_all()
        shown = read_snapshot(store.public)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert shown is not None and len(shown.entries) == 1
    return entered


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        for file, functions in sorted(modules_entered(Path(place, "store")).items()):
            print(file, len(functions), *sorted(functions))
