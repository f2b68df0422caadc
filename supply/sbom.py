"""`python -m supply.sbom FOLDER`: what the images hold, as CycloneDX, from the lock files alone.

The same locks give the same bytes: no time and no serial number is in them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parent.parent
PARTS: Mapping[str, str] = MappingProxyType(
    {"assay-app": "requirements-app.txt", "assay-worker": "requirements.txt"}
)
"""Image to the lock it is made of."""


def write(folder: Path, root: Path = ROOT, *, check: bool = True) -> Iterator[Path]:
    """Write a list of parts for each image, as CycloneDX 1.6 says.

    Args:
        folder: to write into.
        root: the folder with the locks and `pyproject.toml`.
        check: whether what is written is held against the schema, which takes seconds.

    Yields:
        Each file.

    Raises:
        subprocess.CalledProcessError: a lock or the list made of it is malformed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for image, lock in PARTS.items():
        out = folder.absolute() / f"{image}.cdx.json"
        command = [
            *(sys.executable, "-W", "ignore::UserWarning", "-m", "cyclonedx_py"),
            *("requirements", str(root / lock)),
            *("--pyproject", str(root / "pyproject.toml"), "--mc-type", "application"),
            *("--spec-version", "1.6", "--output-reproducible", "--short-PURLs"),
            "--validate" if check else "--no-validate",
            *("--output-format", "JSON", "--output-file", str(out)),
        ]
        # It must not be changed by the variables and settings of pip on one machine.
        subprocess.run(command, check=True, cwd=folder, env={"PYTHONDONTWRITEBYTECODE": "1"})
        yield out


def main() -> int:
    """Write them where the command line says; returns the exit code."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m supply.sbom FOLDER\n")
        return 2
    for out in write(Path(sys.argv[1])):
        sys.stdout.write(f"{out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
