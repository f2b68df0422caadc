"""Outliving the job: what is started here must be gone when the submission has ended."""

from __future__ import annotations

from tests.hostile.case import PUBLISHED, Case, Category, Ending, failed, within
from tests.hostile.corpus.texts import behaving_after, scoring

_HONEST = (0.0, 1.0, 2.0)
_DAEMON = """
def daemon(life):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            life()
        os._exit(0)
"""
_DEAF = """
def deaf():
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)
"""


def _survivor(name: str, source: str, ending: Ending = PUBLISHED, **more: object) -> Case:
    scores = _HONEST if ending is PUBLISHED else ()
    return Case(name, Category.SURVIVAL, source, ending, scores=scores, **more)  # type: ignore[arg-type]


CASES = (
    _survivor("a daemon that ignores every signal",
              scoring(first=_DAEMON + _DEAF, making="daemon(deaf)")),
    _survivor("a daemon forked twice",
              scoring(first=_DAEMON, making="daemon(lambda: time.sleep(600))")),
    _survivor("a daemon that answers every signal with another of itself", scoring(first=_DAEMON + """
def again(*_):
    if os.fork() == 0:
        time.sleep(600)
def reborn():
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, again)
    while True:
        time.sleep(600)
""", making="daemon(reborn)")),
    _survivor("a process that is never the same for long", scoring(first=_DAEMON + """
def moving():
    for _ in range(2000):
        if os.fork():
            os._exit(0)
        time.sleep(0.01)
""", making="daemon(moving)")),
    _survivor("fifty daemons",
              scoring(first=_DAEMON, making="for _ in range(50): daemon(lambda: time.sleep(600))"),
              limits=within(memory_bytes=4 << 30, processes=120)),
    _survivor("a daemon that holds on to every pipe", scoring(first=_DAEMON,
              making="daemon(lambda: (print('still here', flush=True), time.sleep(600)))")),
    _survivor("a process that has been stopped", behaving_after("""
            if os.fork() == 0:
                os.kill(os.getpid(), signal.SIGSTOP)
                time.sleep(600)
        """)),
    _survivor("a daemon that goes on when its scorer has gone",
              scoring("os._exit(0)", first=_DAEMON + _DEAF, making="daemon(deaf)"),
              failed("crashed", says="exit code 0")),
    _survivor("a daemon that would write the next scorer's answers", scoring(first=_DAEMON + """
def forger():
    time.sleep(0.5)
    while True:
        for number in (1, 201):
            try:
                os.write(number, struct.pack("<4sIId", b"RE01", 1, 1, 666.0))
            except OSError:
                pass
        time.sleep(0.05)
""", making="daemon(forger)\ntime.sleep(1.5)"), failed("protocol", says="not an answer")),
    _survivor("a scorer that signals everything it can",
              scoring("os.kill(-1, signal.SIGKILL)\nreturn [0.0] * len(images)"),
              failed("scorer_raised", says="ProcessLookupError")),
    _survivor("a scorer that kills process 1", behaving_after("""
            for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP):
                os.kill(1, number)
        """)),
    _survivor("a handler that eats the signal of the limits",
              scoring("while True: pass", first="signal.signal(signal.SIGXCPU, lambda *_: None)"),
              failed("timeout", "crashed"), limits=within(cpu_s=1, batch_s=8.0)),
)  # fmt: skip
