"""The lists of parts: valid, complete, and the same for the same locks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from supply.locks import read_lock
from supply.sbom import PARTS, ROOT, write


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sbom")
    assert [path.name for path in write(folder, check=False)] == [
        f"{image}.cdx.json" for image in PARTS
    ]
    return folder


def read(folder: Path, image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{image}.cdx.json").read_text())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("image", PARTS)
def test_it_follows_the_standard(written: Path, image: str) -> None:
    text = (written / f"{image}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


@pytest.mark.parametrize("image", PARTS)
def test_it_lists_every_package_with_the_hashes_of_its_files(written: Path, image: str) -> None:
    listed = {
        (part["name"], part["version"]): {
            each["content"]
            for reference in part["externalReferences"]
            for each in reference.get("hashes", ())
        }
        for part in read(written, image)["components"]
    }
    pins = read_lock(ROOT / PARTS[image])
    assert listed == {(pin.name, str(pin.version)): set(pin.hashes) for pin in pins}


def test_it_names_the_project_and_no_moment(written: Path) -> None:
    found = read(written, "assay-app")
    assert found["metadata"]["component"]["name"] == "assay"
    assert "timestamp" not in found["metadata"]
    assert "serialNumber" not in found


def test_the_same_locks_give_the_same_bytes(written: Path, tmp_path: Path) -> None:
    for path in write(tmp_path, check=False):
        assert path.read_bytes() == (written / path.name).read_bytes()
