"""Using up what there is: processes, memory in all its places, files, time, the log.

All of it is bounded, so that it does no harm where a layer is turned off: a few hundred processes,
less than a gigabyte. Where nothing stops one of these, it answers as if nothing were the matter.
"""

from __future__ import annotations

from evaluator.isolation.job import MIB
from tests.hostile.case import PUBLISHED, Case, Category, Ending, failed, within
from tests.hostile.corpus.texts import behaving_after, scoring

_ROOMY = within(memory_bytes=8192 * MIB)
"""Pages that forks share count once for each: this is about processes, not about them."""
_TIGHT = within(memory_bytes=200 * MIB, open_files=1024)
_NO_START = within(start_s=1.0)
_NO_PATIENCE = within(batch_s=1.0)
_NO_PROCESS = failed("too_many_processes", says="the limit")
_NO_MEMORY = failed("out_of_memory")


def _case(name: str, source: str, ending: Ending, **more: object) -> Case:
    return Case(name, Category.EXHAUSTION, source, ending, **more)  # type: ignore[arg-type]


def _making(name: str, ending: Ending, lines: str, **more: object) -> Case:
    """It is done once, when the scorer is made."""
    return _case(name, behaving_after(lines), ending, **more)


PROCESSES = (
    _making("three hundred processes", _NO_PROCESS, """
            for _ in range(300):
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
            time.sleep(1)
        """, limits=_ROOMY),
    _making("processes that double",
            _NO_PROCESS, """
            parent = os.getpid()
            for _ in range(8):
                os.fork()
            time.sleep(1 if os.getpid() == parent else 60)
        """, limits=_ROOMY),
    _making("three hundred threads", _NO_PROCESS, """
            threading.stack_size(65536)
            for _ in range(300):
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            time.sleep(1)
        """, limits=_ROOMY),
)  # fmt: skip

MEMORY = (
    _making("memory of many processes", _NO_MEMORY, """
            for _ in range(4):
                if os.fork() == 0:
                    held = bytearray(150 << 20)
                    time.sleep(60)
            time.sleep(20)
        """),
    _making("memory of one process", failed("out_of_memory", says="MemoryError"),
            "held = bytearray(600 << 20)"),
    _making("memory in files without a name (memfd)", failed("init_failed", "out_of_memory"), """
            self.held = [os.memfd_create("x") for _ in range(12)]
            for number in self.held:
                for _ in range(50):
                    os.write(number, bytes(1 << 20))
            time.sleep(1)
        """),
    _making("memory shared and no longer looked at", _NO_MEMORY, """
            self.held = mmap.mmap(-1, 600 << 20)
            for page in range(0, 600 << 20, 4096):
                self.held[page] = 1
                if page % (32 << 20) == 0:
                    self.held.madvise(mmap.MADV_DONTNEED)
            self.held.madvise(mmap.MADV_DONTNEED)
            time.sleep(1)
        """),
    _making("memory in the buffers of sockets", _NO_MEMORY, """
            def fill():
                held = []
                for _ in range(450):
                    pair = socket.socketpair()
                    for one in pair:
                        one.setblocking(False)
                        try:
                            while True:
                                one.send(bytes(65536))
                        except BlockingIOError:
                            held.append(one)
                return held
            for _ in range(4):
                if os.fork() == 0:
                    held = fill()
                    time.sleep(60)
            time.sleep(4)
        """, limits=_TIGHT),
    _making("memory in the buffers of pipes", failed("init_failed", "out_of_memory"), """
            import fcntl
            self.held = []
            for _ in range(400):
                reading, writing = os.pipe()
                fcntl.fcntl(writing, 1031, 1 << 20)
                os.set_blocking(writing, False)
                os.write(writing, bytes(1 << 20))
                self.held.append(writing)
            time.sleep(1)
        """, limits=_TIGHT),
    _making("memory in /dev/shm", failed("init_failed", says="No space left on device"), """
            for number in range(12):
                with open(f"/dev/shm/{number}", "wb") as file:
                    file.write(bytes(50 << 20))
        """),
    _making("memory in every folder that can be written to", _NO_MEMORY, """
            for folder in ("/tmp", "/scratch", "/dev/shm", "/dev", "/", "/submission", "/var/tmp"):
                try:
                    for number in range(4):
                        with open(f"{folder}/{number}", "wb") as file:
                            for _ in range(60):
                                file.write(bytes(1 << 20))
                except OSError:
                    pass
            time.sleep(1)
        """, limits=_TIGHT),
    _making("memory in names of empty files", failed("init_failed", "out_of_memory"), """
            for number in range(120_000):
                os.close(os.open(f"/scratch/{number}", os.O_CREAT | os.O_WRONLY))
            time.sleep(1)
        """, limits=within(memory_bytes=90 * MIB)),
)  # fmt: skip

FILES = (
    _making("a file larger than any may be", failed("init_failed", says="File too large"), """
            with open("/scratch/large", "wb") as file:
                for _ in range(100):
                    file.write(bytes(1 << 20))
        """),
    _making("all the disk that there is", failed("init_failed", says="No space left on device"),
            """
            number = 0
            while number < 16:
                with open(f"/scratch/{number}", "wb") as file:
                    file.write(bytes(40 << 20))
                number += 1
        """),
    _making("all the descriptors that there are",
            failed("init_failed", says="Too many open files"),
            "self.held = [os.open('/dev/null', os.O_RDONLY) for _ in range(2000)]"),
)  # fmt: skip

TIME = (
    _case("an endless import", scoring(first="while True: pass"),
          failed("timeout", says="took longer than 1 s"), limits=_NO_START),
    _making("an endless constructor", failed("timeout", says="took longer than 1 s"),
            "while True: pass", limits=_NO_START),
    _case("an endless call that ignores every signal", scoring("""
            for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_IGN)
            while True: pass
        """), failed("timeout", says="took longer than 1 s"), limits=_NO_PATIENCE),
    _case("an endless call", scoring("while True: pass"),
          failed("timeout", says="took longer than 1 s"), limits=_NO_PATIENCE),
    _case("a sleep that takes no computing time", scoring("time.sleep(600)"),
          failed("timeout", says="took longer than 1 s"), limits=_NO_PATIENCE),
    _case("many short calls beyond the time of the job",
          scoring("time.sleep(1.5)\nreturn [0.0] * len(images)"),
          failed("timeout", says="whole job took longer than 3 s"), limits=within(job_s=3.0)),
    _case("more computing time than it has", scoring("while True: pass"),
          failed("timeout", says="CPU seconds"), limits=within(cpu_s=1)),
    _case("a message that is never made", scoring("""
            class Endless(Exception):
                def __str__(self):
                    while True: pass
            raise Endless
        """), failed("timeout", says="took longer than 1 s"), limits=_NO_PATIENCE),
)  # fmt: skip

OUTPUT = (
    _case("a flood of output", scoring("""
            for _ in range(100):
                print("x" * 100_000)
            print("the end of it")
            return [0.0] * len(images)
        """, making="print('the beginning')"), PUBLISHED, scores=(0.0, 0.0, 0.0), prints=("the end of it",)),
    _case("a flood of output without an end of line", scoring("""
            os.write(1, b"y" * (20 << 20))
            return [0.0] * len(images)
        """), PUBLISHED, scores=(0.0, 0.0, 0.0)),
    _case("an error of ten megabytes", scoring("raise ValueError('long ' * (2 << 20))"),
          failed("scorer_raised", says="ValueError: long long"),
          limits=within(memory_bytes=1024 * MIB)),
    _case("an endless list of scores",
          scoring("import itertools; return list(itertools.repeat(0.5))"), failed("out_of_memory")),
)  # fmt: skip

CASES = (*PROCESSES, *MEMORY, *FILES, *TIME, *OUTPUT)
