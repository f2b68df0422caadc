"""The system-call filter of a box, compiled for bubblewrap."""

from __future__ import annotations

import errno
import functools
import importlib
import os
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.errors import PlatformError
from evaluator.isolation.syscalls import Rule, Test, denied, known

_LOW_32 = 0xFFFFFFFF
_BINARY_TREE = 2


@functools.cache
def programs(*, gpu: bool = False) -> tuple[bytes, ...]:
    """The filter, as programs that are all asked; the strictest answer counts.

    Two, because one cannot both know every call and refuse two values of one argument: the first
    answers calls that are in no table, the second those that are refused.

    Args:
        gpu: whether the box is given a graphics card.

    Raises:
        PlatformError: `no_system_call_filter`, the library that compiles it is not there.
    """
    seccomp = _library()
    return (_of_known(seccomp), _of_denied(seccomp, gpu=gpu))


def _library() -> ModuleType:
    try:
        # Looks for a shared library when it is imported, which takes a while.
        return importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError) as error:
        raise PlatformError(
            "no_system_call_filter",
            f"The system-call filter of a box cannot be made ({error}).",
            "Install libseccomp (apt install libseccomp2) and pyseccomp (pip install pyseccomp).",
        ) from error


def _of_known(seccomp: ModuleType) -> bytes:
    made = _filter(seccomp, seccomp.ERRNO(errno.ENOSYS))
    for number in _numbers(seccomp, known()):
        made.add_rule(seccomp.ALLOW, number)
    return _exported(made)


def _of_denied(seccomp: ModuleType, *, gpu: bool) -> bytes:
    made = _filter(seccomp, seccomp.ALLOW)
    for rule in denied(gpu=gpu):
        for number in _numbers(seccomp, rule.names):
            for arguments in _alternatives(seccomp, rule):
                made.add_rule(seccomp.ERRNO(rule.code), number, *arguments)
    return _exported(made)


def _filter(seccomp: ModuleType, otherwise: int) -> Any:
    made = seccomp.SyscallFilter(otherwise)
    made.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    made.set_attr(seccomp.Attr.CTL_OPTIMIZE, _BINARY_TREE)
    return made


def _numbers(seccomp: ModuleType, names: Iterable[str]) -> Iterator[int]:
    """Of the calls that this architecture has."""
    resolved = (seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) for name in sorted(names))
    return (number for number in resolved if number >= 0)


def _alternatives(seccomp: ModuleType, rule: Rule) -> Iterator[tuple[Any, ...]]:
    """Comparisons, any of which refuses the call."""
    when = rule.when
    if when is None:
        yield ()
    elif when.test is Test.OTHER_THAN:
        yield (seccomp.Arg(when.argument, seccomp.NE, when.value),)
    elif when.test is Test.EQUAL_LOW:
        yield (seccomp.Arg(when.argument, seccomp.MASKED_EQ, _LOW_32, when.value),)
    else:
        for bit in (1 << n for n in range(when.value.bit_length()) if when.value >> n & 1):
            yield (seccomp.Arg(when.argument, seccomp.MASKED_EQ, bit, bit),)


def _exported(made: Any) -> bytes:
    descriptor = os.memfd_create("filter")
    with os.fdopen(descriptor, "w+b") as file:
        made.export_bpf(file)
        file.seek(0)
        return file.read()
