"""What a stranger's code finds in its box, and what becomes of it when it misbehaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.errors import SubmitterError
from evaluator.isolation.bubblewrap.backend import Bubblewrap
from evaluator.isolation.limits import MIB
from evaluator.isolation.supervising import processes
from evaluator.isolation.supervising.box import NamespaceBox
from evaluator.isolation.supervising.session import ScorerSession
from tests.evaluator.isolation.asking import soon
from tests.evaluator.isolation.boxes import SHORT, Open, Submit, png
from tests.processes import running

pytestmark = pytest.mark.isolation

REPOSITORY = Path(__file__).resolve().parents[3]


def answer(session: ScorerSession) -> float:
    """Enter, and ask for one score."""
    with session:
        return float(session.score([png()], [(0, "a cat")])[0])


def refused(session: ScorerSession) -> SubmitterError:
    with pytest.raises(SubmitterError) as caught:
        answer(session)
    assert_nothing_runs(session)
    return caught.value


def assert_nothing_runs(session: ScorerSession) -> None:
    box = session._box
    assert isinstance(box, NamespaceBox)
    assert processes.pids_in_namespace(box.namespace) == []
    assert box.exit_code(0) is not None


def stopped(session: ScorerSession) -> bool:
    """Whether all processes of the box are, so that nothing is read any more."""
    box = session._box
    assert isinstance(box, NamespaceBox)
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in box.pids()]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


HIDDEN = {
    "the environment outside": "Path('/proc/1/environ').read_bytes()",
    "a variable of the worker": "'ASSAY_SECRET' in os.environ",
    "the project": f"Path({str(REPOSITORY)!r}).exists()",
    "the home folder": f"Path({str(Path.home())!r}).exists()",
    "the rest of the machine": "Path('/var').exists() or Path('/etc/passwd').exists()",
    "other processes": "len([p for p in os.listdir('/proc') if p.isdigit()]) > 4",
    "a network": "len(Path('/proc/net/dev').read_text().splitlines()) != 3",
    "descriptors of the worker": "set(os.listdir('/proc/self/fd')) - {'0', '1', '2', '3', '200', '201'}",
    "other submissions": "os.listdir('/submission') != ['scorer.py']",
}

REFUSED = (
    "socket.create_connection(('127.0.0.1', 9), timeout=1)",
    "socket.create_connection(('192.0.2.1', 80), timeout=1)",
    "socket.getaddrinfo('example.org', 80)",
    "Path('/x').touch()",
    "Path('/usr/x').touch()",
    "Path('/submission/x').touch()",
    "Path('/runner/frames.py').write_text('')",
    "Path('/opt/site-packages/x.py').touch()",
    "Path('/dev/x').touch()",
    "Path('/scratch/x').write_bytes(bytes(300 * 2**20))",
    "os.setuid(0)",
    "os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY))",
    "os.close(os.open('/proc/sysrq-trigger', os.O_WRONLY))",
    "os.close(os.open('/proc/1/mem', os.O_RDWR))",
    "os.close(os.open('/proc/self/oom_score_adj', os.O_WRONLY))",
)


def answers(session: ScorerSession, n: int) -> list[float]:
    with session:
        return [float(score) for score in session.score([png()], [(0, "a cat")] * n)]


def test_a_box_shows_nothing_of_its_worker(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_SECRET", "token")
    source = f"""
import os, socket
from pathlib import Path
class Scorer:
    def score(self, images, prompts):
        return [float(bool(seen)) for seen in ({", ".join(HIDDEN.values())})]
"""
    seen = answers(opened(source), len(HIDDEN))
    assert [what for what, value in zip(HIDDEN, seen, strict=True) if value] == []


def test_a_box_refuses_network_files_and_other_users(opened: Open) -> None:
    source = f"""
import os, socket
from pathlib import Path
def fails(act):
    try:
        act()
    except OSError:
        return 1.0
    return 0.0
class Scorer:
    def score(self, images, prompts):
        return [fails(act) for act in ({", ".join(f"lambda: {act}" for act in REFUSED)})]
"""
    refusals = answers(opened(source), len(REFUSED))
    assert [act for act, value in zip(REFUSED, refusals, strict=True) if not value] == []


def test_scratch_can_be_written_to(opened: Open) -> None:
    session = opened("""
        from pathlib import Path
        class Scorer:
            def score(self, images, prompts):
                return [Path("/scratch/x").write_bytes(b"1")]
        """)
    assert answer(session) == 1.0


def test_what_is_printed_goes_to_the_log_and_not_between_the_frames(opened: Open) -> None:
    session = opened("""
        import os, sys
        print("while importing")
        class Scorer:
            def score(self, images, prompts):
                print("to \\x1b[31mred\\x1b[0m stdout \\u202e")
                os.write(1, b"RE01 straight to the descriptor\\n")
                os.system("echo from a child")
                sys.stderr.write("to stderr\\n")
                return [0.5] * len(images)
        """)
    assert answer(session) == 0.5
    assert session.log.splitlines() == [
        "while importing",
        "to red stdout ",
        "RE01 straight to the descriptor",
        "from a child",
        "to stderr",
    ]


def test_a_huge_log_neither_blocks_nor_fills_memory(opened: Open) -> None:
    session = opened("""
        class Scorer:
            def score(self, images, prompts):
                print("first line")
                for _ in range(200):
                    print("x" * 100_000)
                print("last line")
                return [1.0] * len(images)
        """)
    assert answer(session) == 1.0
    assert len(session.log) < SHORT.log_bytes + 100
    assert session.log.startswith("first line")
    assert session.log.endswith("last line\n")
    assert "bytes left out" in session.log


@pytest.mark.parametrize(
    "forged",
    [
        "b'garbage garbage garbage'",
        "struct.pack('<4sII', b'RE01', 99, 1) + struct.pack('<d', 1.0)",
        "struct.pack('<4sII', b'RE01', 1, 2) + struct.pack('<2d', 1.0, 1.0)",
        "struct.pack('<4sII', b'RE01', 1, 1) + struct.pack('<d', float('inf'))",
        "struct.pack('<4sII', b'ER01', 1, 1 << 16 | 5000)",
        "struct.pack('<4sII', b'HI01', 1, 0)",
    ],
)
def test_a_forged_frame_ends_the_job(opened: Open, forged: str) -> None:
    error = refused(
        opened(f"""
        import os, struct
        class Scorer:
            def score(self, images, prompts):
                os.write(201, {forged})
                return [0.0] * len(images)
        """)
    )
    assert error.code == "protocol"


def test_an_answer_before_its_question_ends_the_job(opened: Open) -> None:
    session = opened("""
        import os, struct
        class Scorer:
            def score(self, images, prompts):
                if len(prompts) == 1:
                    os.write(201, struct.pack('<4sII', b'RE01', 1, 1) + struct.pack('<d', 1.0))
                return [0.0] * len(images)
        """)
    with session, pytest.raises(SubmitterError) as caught:
        # The forged reply is as good as any; the runner's own, behind it, gives it away.
        session.score([png()], [(0, "a cat")])
        time.sleep(0.2)
        session.score([png()], [(0, "a cat"), (0, "a dog")])
    assert caught.value.code == "protocol"
    assert_nothing_runs(session)


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("import sys; sys.exit(3)", "import_failed", "SystemExit: 3"),
        ("import os; os._exit(7)", "crashed", "ended by itself with exit code 7"),
        ("import os; os.kill(os.getpid(), 11)", "crashed", "killed by SIGSEGV"),
        ("import os; os.close(201)\nclass Scorer:\n  score = print", "crashed", ""),
        ("import time; time.sleep(60)", "timeout", "took longer than 1 s"),
        ("while True: pass", "timeout", "took longer than 1 s"),
        ("import os; os.close(200); os.close(201)\nimport time; time.sleep(60)", "timeout", ""),
    ],
)
def test_a_module_that_does_not_come_up_is_refused(
    opened: Open, source: str, code: str, said: str
) -> None:
    # On a busy machine an ordinary start takes seconds itself.
    error = refused(opened(source, replace(SHORT, start_s=1.0) if code == "timeout" else SHORT))
    assert error.code == code
    assert said in error.message
    assert error.hint


def test_an_endless_call_is_cut_off_at_the_limit_of_a_batch(opened: Open) -> None:
    session = opened(
        "class Scorer:\n  def score(self, images, prompts):\n    while True: pass",
        replace(SHORT, batch_s=0.5),
    )
    error = refused(session)
    assert error.code == "timeout"
    assert "Scoring batch 1 took longer than 0.5 s" in error.message


def test_answers_do_not_extend_the_whole_job(opened: Open) -> None:
    session = opened(
        "import time\nclass Scorer:\n  def score(self, images, prompts):\n"
        "    time.sleep(0.3); return [1.0]"
    )
    with session, pytest.raises(SubmitterError, match="whole job took longer than 1 s") as caught:
        # The start counts as well, and may take seconds: the limit is drawn only now.
        session._limits = replace(SHORT, job_s=1.0)
        session._job_ends = time.monotonic() + 1.0
        for _ in range(9):
            session.score([png()], [(0, "a cat")])
    assert caught.value.code == "timeout"


def test_a_box_that_does_not_read_does_not_block_the_supervisor(opened: Open) -> None:
    session = opened(
        "class Scorer:\n  def score(self, images, prompts): return [1.0] * len(images)",
        replace(SHORT, batch_s=1.0),
    )
    with session, pytest.raises(SubmitterError) as caught:
        for pid in session._box.pids():
            os.kill(pid, signal.SIGSTOP)
        assert soon(lambda: stopped(session))
        session.score([bytes(8 * MIB)], [(0, "a cat")])
    assert caught.value.code == "timeout"
    assert_nothing_runs(session)


def test_cpu_seconds_are_limited(opened: Open) -> None:
    error = refused(opened("while True: pass", replace(SHORT, cpu_s=1)))
    assert error.code == "timeout"
    assert "CPU seconds" in error.message


def test_memory_of_one_process_is_limited(opened: Open) -> None:
    error = refused(
        opened(
            "class Scorer:\n  def score(self, images, prompts):\n    bytearray(2**30)",
            replace(SHORT, memory_bytes=300 * MIB),
        )
    )
    assert error.code == "out_of_memory"
    assert "scorer.py:4" in error.message or "scorer.py:3" in error.message


def test_memory_of_all_processes_together_is_limited(opened: Open) -> None:
    session = opened(
        """
        import os, time
        class Scorer:
            def score(self, images, prompts):
                for _ in range(4):
                    if os.fork() == 0:
                        held = bytearray(150 * 2**20)
                        time.sleep(60)
                time.sleep(60)
        """,
        replace(SHORT, memory_bytes=300 * MIB),
    )
    error = refused(session)
    assert error.code == "out_of_memory"
    assert "the limit is 300 MiB" in error.message
    assert session.peak_memory_bytes >= 300 * MIB


def test_memory_hidden_in_files_of_the_scratch_folder_counts(opened: Open) -> None:
    session = opened(
        """
        import time
        class Scorer:
            def score(self, images, prompts):
                for i in range(3):
                    with open(f"/scratch/{i}", "wb") as file:
                        for _ in range(100): file.write(bytes(2**20))
                time.sleep(60)
        """,
        replace(SHORT, memory_bytes=200 * MIB),
    )
    assert refused(session).code == "out_of_memory"


def test_the_number_of_processes_is_limited(opened: Open) -> None:
    session = opened(
        """
        import os, time
        class Scorer:
            def score(self, images, prompts):
                for _ in range(40):
                    if os.fork() == 0:
                        time.sleep(60)
                time.sleep(60)
        """,
        replace(SHORT, processes=20),
    )
    # Root's boxes are stopped from outside, others by the kernel: then the fork raises.
    assert refused(session).code in {"too_many_processes", "scorer_raised"}


def test_no_daemon_survives_the_end_of_its_job(opened: Open) -> None:
    session = opened("""
        import os, signal, time
        class Scorer:
            def score(self, images, prompts):
                if os.fork() == 0:
                    os.setsid()
                    if os.fork() == 0:
                        for number in range(1, 32):
                            if number not in (9, 19):
                                signal.signal(number, signal.SIG_IGN)
                        time.sleep(600)
                    os._exit(0)
                return [1.0] * len(images)
        """)
    assert answer(session) == 1.0
    assert_nothing_runs(session)


def test_a_box_ends_when_its_worker_is_killed(bubblewrap: Bubblewrap, submit: Submit) -> None:
    folder = submit(
        "import time\nclass Scorer:\n  def score(self, images, prompts): time.sleep(600)"
    )
    worker = f"""
from pathlib import Path
from evaluator.isolation.bubblewrap.backend import Bubblewrap
from evaluator.isolation.job import Job
session = Bubblewrap().start(Job(Path({str(folder)!r})))
with session:
    print(session._box.namespace, session._box.init_pid, flush=True)
    session.score([b""], [(0, "a cat")])
"""
    command = [sys.executable, "-c", worker]
    with running(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        namespace, init_pid = map(int, process.stdout.readline().split())
        with Path(f"/proc/{init_pid}/ns/pid").open():  # So that no other is given its number.
            assert processes.pids_in_namespace(namespace)
            process.kill()
            assert soon(lambda: not processes.pids_in_namespace(namespace))


def test_a_shipped_bytecode_file_does_not_run_in_place_of_its_source(
    opened: Open, tmp_path: Path
) -> None:
    cache = tmp_path / "submission" / "__pycache__"
    cache.mkdir(parents=True)
    other = tmp_path / "other.py"
    other.write_text("VALUE = 666.0")
    import py_compile

    py_compile.compile(
        str(other),
        str(cache / "helper.cpython-311.pyc"),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    (tmp_path / "submission" / "helper.py").write_text("VALUE = 1.0")
    session = opened(
        "from helper import VALUE\n"
        "class Scorer:\n  def score(self, images, prompts): return [VALUE] * len(images)"
    )
    assert answer(session) == 1.0


def test_scores_are_the_only_thing_taken(opened: Open) -> None:
    with opened("class Scorer:\n  def score(self, i, p): return [None, 1, 0.25]") as session:
        scores = session.score([png()], [(0, "a"), (0, "b"), (0, "c")])
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(scores, [np.nan, 1.0, 0.25])
