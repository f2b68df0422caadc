"""Runs the commands of one document by hand: `python -m tests.docs docs/start.md`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.docs.markdown_text import REPOSITORY, Document
from tests.docs.surroundings import Supplies, run_document


def main() -> int:
    """Run it; prints the output, and fails where a command did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document", type=Path)
    parser.add_argument("--store", type=Path, help="a finished demo: `evaluator demo --no-serve`")
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--keep", action="store_true", help="keep the folder it ran in")
    asked = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="assay-document-"))
    store = asked.store.resolve() if asked.store else home / "no-store-was-given"
    document = Document(asked.document.resolve())
    try:
        ran = run_document(document, home, Supplies(asked.data.resolve(), lambda: store))
    finally:
        if not asked.keep:
            shutil.rmtree(home, ignore_errors=True)
    print(ran.output)
    print(f"{document.name}: {'works' if ran.code == 0 else ran.told(document).splitlines()[0]}")
    if asked.keep:
        print(f"kept in {home}")
    return ran.code


if __name__ == "__main__":
    sys.exit(main())
