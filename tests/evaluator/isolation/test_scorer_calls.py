"""How a module is imported, made and asked, and what its author is told when that fails."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.isolation.backend import Backend
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.job import Job
from tests.evaluator.isolation.asking import keep_namespace
from tests.evaluator.isolation.boxes import SHORT, Open, Submit, png
from tests.kit.processes import open_files

pytestmark = pytest.mark.isolation

IMAGES = [png("red"), png("blue")]
PAIRS = [(0, "a cat"), (0, "a dog"), (1, "a cat")]


def returning(expression: str, setup: str = "") -> str:
    return f"""
import math
{setup}
class Scorer:
    def score(self, images, prompts):
        return {expression}
"""


def test_a_scorer_is_asked_in_either_backend(backend: Backend, submit: Submit) -> None:
    folder = submit(returning("np.array([1, 2.5, np.nan], np.float32)", "import numpy as np"))
    with backend.start(Job(folder, limits=SHORT)) as session:
        assert session.capabilities == Capability.SCORE
        scores = session.score(IMAGES, PAIRS)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(scores, [1.0, 2.5, np.nan])


def test_a_scorer_that_compares_is_asked_in_either_backend(
    backend: Backend, submit: Submit
) -> None:
    source = """
class Scorer:
    def compare(self, prompts, images_a, images_b):
        return [a.getpixel((0, 0))[0] - b.getpixel((0, 0))[0] for a, b in zip(images_a, images_b)]
"""
    with backend.start(Job(submit(source), limits=SHORT)) as session:
        assert session.capabilities == Capability.COMPARE
        margins = session.compare(IMAGES, [(0, 1, "a cat"), (1, 0, "a cat")])
    assert margins[0] == -margins[1] == 255.0


def test_a_scorer_with_several_outputs_is_asked_once_in_either_backend(
    backend: Backend, submit: Submit
) -> None:
    source = """
class Scorer:
    def score(self, images, prompts):
        return [[im.getpixel((0, 0))[0], None] for im in images]
    def score_texts(self, images, prompts):
        raise RuntimeError("it was asked otherwise")
"""
    with backend.start(Job(submit(source), limits=SHORT)) as session:
        rows = session.score_rows(IMAGES, PAIRS, 2)
    np.testing.assert_array_equal(rows, [[255, np.nan], [255, np.nan], [0, np.nan]])


def test_an_error_comes_with_its_code_its_place_and_a_hint(
    backend: Backend, submit: Submit
) -> None:
    with (
        backend.start(Job(submit(returning("[1 / 0]")), limits=SHORT)) as session,
        pytest.raises(SubmitterError) as caught,
    ):
        session.score(IMAGES, PAIRS)
    assert caught.value.code == "scorer_raised"
    assert "ZeroDivisionError: division by zero (scorer.py:6)" in caught.value.message
    assert caught.value.hint


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("import nothing_of_the_kind", "import_failed", "No module named"),
        ("import sys; sys.exit(3)", "import_failed", "SystemExit: 3"),
        ("import os; os._exit(7)", "crashed", "ended by itself with exit code 7"),
        ("import os; os.kill(os.getpid(), 11)", "crashed", "killed by SIGSEGV"),
        ("x = 1\ny = (", "import_failed", "scorer.py:2"),
        ("from helper import gone", "import_failed", "helper.py:2"),
        ("class Other: pass", "import_failed", "Module scorer has no class Scorer"),
        (
            "class Scorer: pass",
            "import_failed",
            "Class Scorer has no method score or compare (scorer.py:1)",
        ),
        (
            "class Scorer:\n  def __init__(self, model): pass\n  def score(self): pass",
            "init_failed",
            "needs model; only the keywords device, models, weights",
        ),
        (
            "class Scorer:\n  def __init__(self): raise OSError('no file')\n  score = print",
            "init_failed",
            "OSError: no file (scorer.py:2)",
        ),
    ],
)
def test_a_module_that_cannot_be_made_is_told_with_its_place(
    bubblewrap: Backend, submit: Submit, source: str, code: str, said: str
) -> None:
    folder = submit(source, helper__py="import os\nraise RuntimeError('broken helper')")
    session = bubblewrap.start(Job(folder, limits=SHORT))
    with pytest.raises(SubmitterError) as caught, session:
        pass
    assert caught.value.code == code
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_the_log_of_a_failed_start_can_be_read(bubblewrap: Backend, submit: Submit) -> None:
    session = bubblewrap.start(Job(submit("print('so far')\n1 / 0"), limits=SHORT))
    with pytest.raises(SubmitterError), session:
        pass
    assert session.log.startswith("so far\n")
    assert "ZeroDivisionError" in session.log


def test_the_constructor_gets_what_it_names(backend: Backend, submit: Submit) -> None:
    folder = submit(
        """
        class Scorer:
            def __init__(self, *, weights, device="?"):
                self.value = float(open(weights).read())
                assert device == "cpu"
            def score(self, images, prompts):
                return [self.value for _ in prompts]
        """,
        weights__txt="0.75",
    )
    with backend.start(Job(folder, weights="weights.txt", limits=SHORT)) as session:
        assert session.score(IMAGES, PAIRS).tolist() == [0.75] * 3


def test_weights_that_are_not_there_are_told(bubblewrap: Backend, submit: Submit) -> None:
    folder = submit("class Scorer:\n  score = print")
    with (
        pytest.raises(SubmitterError, match=r"weights file w\.bin is not there"),
        bubblewrap.start(Job(folder, weights="w.bin", limits=SHORT)),
    ):
        pass


def test_images_arrive_as_they_were_and_pairs_share_them(backend: Backend, submit: Submit) -> None:
    folder = submit("""
        class Scorer:
            def score(self, images, prompts):
                assert images[0] is images[1] and images[0] is not images[2]
                return [i.getpixel((0, 0))[0] + len(p) for i, p in zip(images, prompts)]
        """)
    with backend.start(Job(folder, limits=SHORT)) as session:
        assert session.score(IMAGES, PAIRS).tolist() == [260.0, 260.0, 5.0]


def test_elements_are_scored_on_the_images_of_the_request_before(
    backend: Backend, submit: Submit
) -> None:
    folder = submit("""
        import PIL.Image
        decoded = 0
        original = PIL.Image.open
        def counting(*args):
            global decoded
            decoded += 1
            return original(*args)
        PIL.Image.open = counting
        class Scorer:
            def score(self, images, prompts):
                return [0.0] * len(images)
            def score_elements(self, images, prompts, elements):
                return [[decoded * 100 + len(e) for e in row] for row in elements]
        """)
    items = [(0, "a cat", ["cat", "a"]), (1, "none", []), (1, "a dog", ["dog!"])]
    with backend.start(Job(folder, limits=SHORT)) as session:
        assert session.capabilities == Capability.SCORE | Capability.SCORE_ELEMENTS
        session.score(IMAGES, PAIRS)
        again = session.score_elements(None, items)
        anew = session.score_elements(IMAGES, items)
        assert session.score_elements(IMAGES, []) == []
    assert [row.tolist() for row in again] == [[203.0, 201.0], [], [204.0]]
    assert [row.tolist() for row in anew] == [[403.0, 401.0], [], [404.0]]


def test_a_submission_may_be_called_like_a_library(bubblewrap: Backend, submit: Submit) -> None:
    folder = submit("", numpy__py="class Scorer:\n  def score(self, i, p): return [2.0] * len(i)")
    with bubblewrap.start(Job(folder, "numpy:Scorer", limits=SHORT)) as session:
        assert session.score(IMAGES, PAIRS).tolist() == [2.0] * 3


def test_a_session_that_is_over_says_so(bubblewrap: Backend, submit: Submit) -> None:
    folder = submit("class Scorer:\n  score = print")
    with bubblewrap.start(Job(folder, limits=SHORT)) as session:
        pass
    with pytest.raises(PlatformError, match="has ended"):
        session.score(IMAGES, PAIRS)
    session.close()


def test_no_process_and_no_descriptor_is_left(backend: Backend, submit: Submit) -> None:
    folder = submit(returning("[1.0] * 3"))
    before = open_files()
    with ExitStack() as stack:
        with backend.start(Job(folder, limits=SHORT)) as session:
            keep_namespace(session, stack)
            session.score(IMAGES, PAIRS)
            assert session._box.pids()
            assert session.peak_memory_bytes > 1_000_000
        assert session._box.pids() == []
    assert not open_files() - before


@pytest.mark.slow
def test_torch_runs_within_the_default_limits(bubblewrap: Backend, submit: Submit) -> None:

    folder = submit("""
        import torch
        class Scorer:
            def __init__(self, device):
                self.model = torch.nn.Conv2d(3, 32, 3).to(device)
            def score(self, images, prompts):
                return self.model(torch.ones(len(images), 3, 64, 64)).mean((1, 2, 3))
        """)
    with bubblewrap.start(Job(folder)) as session:
        assert np.isfinite(session.score(IMAGES, PAIRS)).all()


def test_a_property_that_raises_is_reported_with_its_line(backend: Backend, submit: Submit) -> None:
    folder = submit("""
        class Scorer:
            @property
            def prepare(self):
                raise RuntimeError("not today")
            def score(self, images, prompts):
                return [1.0] * len(images)
        """)
    with (
        pytest.raises(
            SubmitterError, match=r"raised RuntimeError: not today \(scorer.py:\d\)"
        ) as e,
        backend.start(Job(folder, limits=SHORT)),
    ):
        pass
    assert e.value.code == "init_failed"


@pytest.mark.parametrize("kind", [1, 2], ids=["import", "constructor"])
def test_an_error_of_the_start_is_no_answer_to_a_question(opened: Open, kind: int) -> None:
    """Its words are published, since nothing had been asked when it could be true."""
    session = opened(f"""
        import os, struct, time
        class Scorer:
            def score(self, images, prompts):
                said = prompts[0].encode()
                os.write(201, struct.pack("<4sII", b"ER01", 1, {kind} << 16 | len(said)) + said)
                time.sleep(5)
    """)
    with pytest.raises(SubmitterError) as raised, session:
        session.score([png()], [(0, "the hidden prompt")])
    assert raised.value.code == "protocol"
    assert "the hidden prompt" not in str(raised.value)
