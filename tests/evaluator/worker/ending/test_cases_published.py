"""What people said of a benchmark is published with its first results, and once."""

from __future__ import annotations

from pathlib import Path

from benchmarks.cases import cases_path, read_cases
from tests.benchmarks.toy import PAIRS
from tests.evaluator.rig import Rig
from tests.leaderboard.publication.test_case_files import Looked

PATH = cases_path("toy", "1")
SCORES = "pair_id,m{n}\na,{n}\nb,2\nc,3\n"


def test_cases_come_in_the_commit_of_the_first_results_and_stay(tmp_path: Path) -> None:
    toy = Looked()
    rig = Rig(tmp_path, toy=toy)
    commits: list[list[str]] = []
    commit = rig.store.public.commit

    def counted(changes, **more):  # type: ignore[no-untyped-def]
        commits.append(sorted(changes))
        return commit(changes, **more)

    rig.store.public.commit = counted  # type: ignore[method-assign]
    for n in range(2):
        rig.send_scores(SCORES.format(n=n), name=f"metric-{n}")
        rig.worker().run_next()
    with_cases = [paths for paths in commits if PATH in paths]
    assert len(with_cases) == 1
    assert any(path.endswith("toy.json") for path in with_cases[0])
    assert read_cases(rig.store.public.read(PATH))["pair_id"].tolist() == list(PAIRS)
    assert toy.made == 1


def test_a_result_that_its_author_holds_back_publishes_no_cases(tmp_path: Path) -> None:
    rig = Rig(tmp_path, toy=Looked())
    rig.send_scores(SCORES.format(n=1), private=True)
    rig.worker().run_next()
    assert not rig.store.public.has(PATH)
