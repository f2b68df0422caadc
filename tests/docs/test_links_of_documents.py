"""Links lead somewhere, and no document knows a particular machine."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest

from tests.docs.markdown_text import REPOSITORY, Document, every_document, project_files

MACHINES = re.compile(r"(?<![\w.~$}-])/(?:root|work|home|Users|mnt|scratch|nfs|media)/[\w.-]+")
"""Folders that some machine has and others have not."""
ELSEWHERE = re.compile(r"[a-z]+:")


@pytest.mark.parametrize("document", every_document(), ids=lambda document: document.name)
def test_every_link_leads_to_a_file_of_the_project_and_a_heading_in_it(document: Document) -> None:
    files = set(project_files())
    folders = {str(parent) for name in files for parent in (REPOSITORY / name).parents}
    lost = []
    for line, target in document.links():
        if ELSEWHERE.match(target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.path.parent / unquote(path)).resolve() if path else document.path
        known = file.is_relative_to(REPOSITORY) and (
            file.relative_to(REPOSITORY).as_posix() in files or str(file) in folders
        )
        if not known:
            lost.append(f"{document.name}:{line}: there is no {target}")
        elif anchor and file.suffix == ".md" and anchor not in Document(file).anchors:
            lost.append(f"{document.name}:{line}: {target} has no such heading")
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("document", every_document(), ids=lambda document: document.name)
def test_no_document_names_a_folder_of_a_particular_machine(document: Document) -> None:
    named = [
        f"{document.name}:{number}: {found[0]}"
        for number, line in enumerate(document.text.splitlines(), 1)
        if (found := MACHINES.search(line))
    ]
    assert not named, "\n".join(named)


def test_every_document_can_be_reached_from_the_first_page() -> None:
    by_name = {document.name: document for document in every_document()}
    reached, waiting = set[str](), ["README.md"]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in by_name:
            continue
        reached.add(name)
        for _, target in by_name[name].links():
            file = (by_name[name].path.parent / unquote(target.partition("#")[0])).resolve()
            if file.is_relative_to(REPOSITORY):
                waiting.append(file.relative_to(REPOSITORY).as_posix())
    guides = {name for name in by_name if name.startswith("docs/")}
    assert guides <= reached, f"no link leads to {sorted(guides - reached)}"
