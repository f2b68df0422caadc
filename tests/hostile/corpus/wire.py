"""Tampering with the pipes between box and worker, and with our own code inside the box.

Everything in the box belongs to the submission, our runner too. So some of these get what they
want, which is to choose the floats that are taken: that they could do anyway.
"""

from __future__ import annotations

from tests.hostile.case import PUBLISHED, Case, Category, Ending, failed, within
from tests.hostile.corpus.texts import behaving_after, scoring

_BROKEN = failed("protocol", says="not an answer")
_GONE = failed("crashed", "timeout", "protocol")
_SOON = within(batch_s=1.5)


def _case(name: str, source: str, ending: Ending, **more: object) -> Case:
    return Case(name, Category.WIRE, source, ending, **more)  # type: ignore[arg-type]


def _making(name: str, ending: Ending, lines: str, **more: object) -> Case:
    """It is done once, when the scorer is made."""
    return _case(name, behaving_after(lines), ending, **more)


def _instead(name: str, written: str, ending: Ending = _BROKEN) -> Case:
    """Bytes in place of an answer."""
    return _case(
        name,
        scoring(f"n = len(images)\nos.write(201, {written})\ntime.sleep(1)\nreturn [0.0] * n"),
        ending,
    )


_REPLY = "struct.pack('<4sII', b'RE01', {seq}, {n}) + struct.pack('<%dd' % ({n}), *[9.0] * ({n}))"

FORGED = (
    _instead("garbage for an answer", "b'garbage garbage garbage garbage'"),
    _instead("an answer to another question", _REPLY.format(seq="99", n="n")),
    _instead("an answer that says it is longer", _REPLY.format(seq="1", n="n + 1")),
    _instead("an answer that says it is shorter", _REPLY.format(seq="1", n="n - 1")),
    _instead("an answer of four thousand million values",
             "struct.pack('<4sII', b'RE01', 1, 2**32 - 1)"),
    _instead("an infinite value in an answer of the right size",
             "struct.pack('<4sII', b'RE01', 1, n) + struct.pack('<%dd' % n, *[math.inf] * n)"),
    _instead("an error longer than errors may be",
             "struct.pack('<4sII', b'ER01', 1, 1 << 16 | 5000)"),
    _instead("an error of a kind that does not exist",
             "struct.pack('<4sII', b'ER01', 1, 99 << 16)"),
    _instead("another greeting", "struct.pack('<4sII', b'HI01', 1, 0)"),
    _instead("an order to the worker", "struct.pack('<4sII', b'GO01', 1, n) + bytes(8 * n)"),
    _instead("an answer and some more", f"{_REPLY.format(seq='1', n='n')} + bytes(3)"),
    _instead("an error that says it is the worker's fault",
             "struct.pack('<4sII', b'ER01', 1, 7 << 16 | 41) + b'PlatformError: refund me \\x1b[31m<b>\\nfault=p'",
             failed("out_of_memory",
                    says="PlatformError: refund me <b> fault=p (while scoring batch 1)")),
    _making("an answer before there is a question", _BROKEN,
            "os.write(201, struct.pack('<4sII', b'RE01', 1, 1) + struct.pack('<d', 9.0))"),
    _making("powers that do not exist", _BROKEN,
            "os.write(201, struct.pack('<4sII', b'RD01', 0, 0xFFFF)); time.sleep(1)"),
    _making("powers without the power to score", _BROKEN,
            "os.write(201, struct.pack('<4sII', b'RD01', 0, 0)); time.sleep(1)"),
    _case("an answer that comes late", scoring("""
            late = struct.pack('<4sII', b'RE01', 1, 1) + struct.pack('<d', 9.0)
            threading.Timer(0.05, lambda: os.write(201, late)).start()
            time.sleep(0.1)
            return [float(image.getpixel((0, 0))[0]) for image in images]
        """), _BROKEN),
    _case("answers without end", scoring("while True: os.write(201, bytes(65536))"), _BROKEN),
    _making("answers without end, from before there are questions", _BROKEN, """
            def flood():
                while True: os.write(201, b'RE01' * 4096)
            threading.Thread(target=flood, daemon=True).start()
        """),
    _case("an answer one byte at a time", scoring("""
            answer = struct.pack('<4sII', b'RE01', 1, len(images)) + bytes(8 * len(images))
            for byte in answer:
                os.write(201, bytes([byte]))
                time.sleep(0.5)
        """), failed("timeout", says="took longer than 1.5 s"), limits=_SOON),
    _case("an answer by way of process 1", scoring("""
            with open("/proc/1/fd/1", "wb", buffering=0) as pipe:
                pipe.write(b"garbage garbage garbage")
            time.sleep(1)
            return [0.0] * len(images)
        """), failed("protocol", "scorer_raised")),
)  # fmt: skip

DESCRIPTORS = (
    _case("the pipe of answers closed", scoring("os.close(201)\nreturn [0.0] * len(images)"),
          _GONE),
    _case("the pipe of questions closed", scoring("os.close(200)\nreturn [0.0] * len(images)"),
          _GONE),
    _case("both pipes closed, and waiting",
          scoring("os.close(200)\nos.close(201)\ntime.sleep(60)"), _GONE, limits=_SOON),
    _case("every descriptor closed",
          scoring("os.closerange(0, 4096)\nreturn [0.0] * len(images)"), _GONE, limits=_SOON),
    _case("the pipe of answers put over by nothing",
          scoring("os.dup2(os.open('/dev/null', os.O_RDWR), 201)\nreturn [0.0] * len(images)"),
          failed("timeout", "crashed"), limits=_SOON),
    _case("the pipe of questions put over by zeros",
          scoring("os.dup2(os.open('/dev/zero', os.O_RDWR), 200)\nreturn [0.0] * len(images)"),
          _GONE, limits=_SOON),
    _making("questions taken away by a thread", _GONE, """
            def take():
                while True: os.read(200, 999)
            threading.Thread(target=take, daemon=True).start()
        """, limits=_SOON),
    _making("questions of its own", failed("protocol", "crashed", "init_failed"), """
            with open("/proc/self/fd/200", "wb", buffering=0) as pipe:
                pipe.write(struct.pack('<4sII', b'SC01', 1, 8) + bytes(8))
        """),
    _case("a process that stops itself",
          scoring("os.kill(os.getpid(), signal.SIGSTOP)\nreturn [0.0] * len(images)"),
          failed("timeout", says="took longer than 1.5 s"), limits=_SOON),
)  # fmt: skip

_LOUD = """\
class Loud:
    def write(self, text): raise ValueError("loud")
    flush = write
sys.stdout = sys.stderr = Loud()
"""

OUR_CODE = (
    *(
        _case(name, behaving_after(lines), PUBLISHED, scores=(0.0, 1.0, 2.0), way="streams")
        for name, lines in (
            ("no standard output", "sys.stdout = None"),
            ("no standard streams at all", "del sys.stdout, sys.stderr"),
            ("standard streams that raise", _LOUD),
            ("closed standard streams", "sys.stdout.close(); sys.stderr.close()"),
        )
    ),
    _case("an error that cannot be printed", scoring(f"{_LOUD}\nraise KeyError('quiet')"),
          failed("scorer_raised", says="KeyError: 'quiet' (scorer.py:")),
    _making("our encoder replaced, for other scores", PUBLISHED, """
            wire = sys.modules["assay_box.wire_protocol"]
            real = wire.encode_reply
            wire.encode_reply = lambda seq, values: real(seq, [9.0] * len(values))
        """, scores=(9.0, 9.0, 9.0)),
    _making("our encoder replaced, for infinite scores",
            failed("protocol", says="an infinite value"), """
            wire = sys.modules["assay_box.wire_protocol"]
            real = wire.encode_reply
            wire.encode_reply = lambda seq, values: real(seq, [math.inf] * len(values))
        """),
    _making("our encoder replaced, for more scores", _BROKEN, """
            wire = sys.modules["assay_box.wire_protocol"]
            real = wire.encode_reply
            wire.encode_reply = lambda seq, values: real(seq, [9.0] * (len(values) + 1))
        """),
    _case("our checks replaced by none",
          scoring("return ['not a float'] * len(images)", making="""
            calls = sys.modules["assay_box.calls"]
            calls.numbers = lambda returned, *_, **__: list(returned)
        """), failed("crashed", says="exit code 1")),
    _making("our answers found among all objects", PUBLISHED, """
            for found in gc.get_objects():
                if isinstance(found, type) and found.__name__ == "_Answers":
                    found.answer = lambda answers, magic, body: [7.0] * body.count(b"grey")
        """, scores=(7.0, 7.0, 7.0)),
    _case("our pipes found in the frames below", scoring("""
            frame = sys._getframe()
            while "wire" not in frame.f_locals:
                frame = frame.f_back
            os.write(frame.f_locals["wire"].replies, b"garbage garbage garbage")
            return [0.0] * len(images)
        """), _BROKEN),
    _making("a look at the questions as they come", PUBLISHED, """
            wire = sys.modules["assay_box.wire_protocol"]
            real = wire.decode_score
            def telling(body):
                print("GOT an id" if b"id-of-" in body else "no id in", len(body), "bytes")
                return real(body)
            wire.decode_score = telling
        """, prints=("no id in",), scores=(0.0, 1.0, 2.0), way="looking"),
    _case("a runner that never ends", scoring("""
            runner = sys.modules["assay_box.runner"]
            runner.Wire.read = lambda *_: time.sleep(600)
            return [0.0] * len(images)
        """), failed("timeout", says="took longer than 1.5 s"), limits=_SOON),
)  # fmt: skip

CASES = (*FORGED, *DESCRIPTORS, *OUR_CODE)
