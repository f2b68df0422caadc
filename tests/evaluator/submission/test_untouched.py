"""Which submissions are a template of `init` that nobody has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from evaluator.bundled import bundled_modules
from evaluator.submission.archives.archive import taken_in
from evaluator.submission.making.skeletons import SkeletonKind, module_files
from evaluator.submission.making.untouched import template_notes, template_of
from evaluator.submission.making.wrapping import ClassFile
from evaluator.submission.validate import examine_source, validated_source
from leaderboard.ledger.ledger import Ledger
from leaderboard.models.ranked_metrics import ranked_metrics
from leaderboard.publication.snapshot import read_snapshot
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, Rig
from tests.evaluator.submission.archives import folder_of

MODULES = [kind for kind in SkeletonKind if kind is not SkeletonKind.GENERATIONS]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REGISTRY = {"toy": Toy()}
Files = Mapping[str, bytes]


def found_in(folder: Path, files: Files) -> str:
    with taken_in(folder_of(folder, files)) as content:
        return template_of(content)


def sources(files: Files, change: Callable[[bytes], bytes]) -> Files:
    return {name: change(own) if name.endswith(".py") else own for name, own in files.items()}


@pytest.mark.parametrize("kind", MODULES)
def test_what_init_writes_is_known_whatever_its_manifest_says(
    kind: SkeletonKind, tmp_path: Path
) -> None:
    written = module_files(kind, "mine", model=f"me/model@{COMMIT}" if kind == "vlm" else "")
    assert found_in(tmp_path / "as-written", written) == kind
    own = b'name = "ours"\nversion = "7"\ndescription = "Quite another one."\n'
    assert found_in(tmp_path / "renamed", {**written, "assay.toml": own}) == kind


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize(
    "change",
    [
        lambda files: sources(files, lambda own: own.replace(b"\n", b"\r\n")),
        lambda files: sources(files, lambda own: b"\xef\xbb\xbf" + own),
        lambda files: sources(files, lambda own: own + b"\n\n" if own else own),
        lambda files: {**files, "README.md": b"Ours."},
        lambda files: {name: own for name, own in files.items() if name != "README.md"},
        lambda files: {**files, "LICENSE": b"MIT", "data/words.txt": b"red"},
        lambda files: {**files, "helpers/__init__.py": b""},
    ],
    ids=[
        "crlf",
        "bom",
        "newlines at the end",
        "readme",
        "no readme",
        "other files",
        "empty source",
    ],
)
def test_what_no_code_reads_makes_no_metric_of_it(
    kind: SkeletonKind, change: Callable[[Files], Files], tmp_path: Path
) -> None:
    assert found_in(tmp_path / "m", change(module_files(kind, "mine"))) == kind


@pytest.mark.parametrize("kind", MODULES)
def test_one_changed_new_or_missing_source_makes_it_a_metric_of_its_own(
    kind: SkeletonKind, tmp_path: Path
) -> None:
    files = module_files(kind, "mine")
    filled = [name for name, own in files.items() if name.endswith(".py") and own]
    for place, name in enumerate(filled):
        changed = {**files, name: files[name] + b"\nMORE = 1\n"}
        assert found_in(tmp_path / f"changed-{place}", changed) == ""
        fewer = {other: own for other, own in files.items() if other != name}
        assert found_in(tmp_path / f"fewer-{place}", fewer) == ""
    more = {**files, "words.py": b"WORDS = ('red',)\n"}
    assert found_in(tmp_path / "more", more) == ""
    assert found_in(tmp_path / "none", {"assay.toml": files["assay.toml"]}) == ""


@pytest.mark.parametrize("kind", [SkeletonKind.TS2, SkeletonKind.CROC])
def test_a_template_that_wraps_a_class_is_a_metric(kind: SkeletonKind, tmp_path: Path) -> None:
    wrapped = ClassFile(Path("mine.py"), b"class Mine: ...\n", "Mine", False, (), ())
    assert found_in(tmp_path / "m", module_files(kind, "mine", wrapped=wrapped)) == ""


def test_no_bundled_metric_is_a_template() -> None:
    for folder in bundled_modules():
        with taken_in(folder) as content:
            assert template_of(content) == ""


def test_a_check_and_the_door_say_it_of_the_same_modules(tmp_path: Path) -> None:
    files = module_files(SkeletonKind.PLAIN, "mine")
    folder = folder_of(tmp_path / "template", files)
    assert examine_source(folder, REGISTRY).notes == template_notes("plain") != ()
    with validated_source(folder, REGISTRY) as module:
        assert module.template == "plain"
    own = folder_of(tmp_path / "own", {**files, "more.py": b"MORE = 1"})
    assert examine_source(own, REGISTRY).notes == template_notes("") == ()
    with validated_source(own, REGISTRY) as module:
        assert module.template == ""


def test_the_record_and_the_boards_say_that_it_is_a_template(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    files = module_files(SkeletonKind.PLAIN, "grey")
    taken = rig.desk.submit_metric(rig.module(files), account=ADA)
    assert taken.notes == template_notes("plain")
    assert taken.status.submission.template == "plain"
    rig.worker().run_all()
    (status,) = Ledger(rig.store).statuses()
    assert status.on_boards and status.submission.template == "plain"
    snapshot = read_snapshot(rig.store.public)
    assert snapshot is not None
    (entry,) = snapshot.entries.values()
    assert entry.template == "plain"


@pytest.mark.parametrize(("more", "scores"), [({}, False), ({"more.py": b"MORE = 1"}, True)])
def test_no_time_is_spent_on_scoring_models_with_a_template(
    more: Files, scores: bool, tmp_path: Path
) -> None:
    rig = Rig(tmp_path)
    rig.send({**module_files(SkeletonKind.PLAIN, "grey"), **more})
    rig.worker().run_all()
    found = ranked_metrics(read_snapshot(rig.store.public), Ledger(rig.store).statuses())
    assert bool(found) is scores
