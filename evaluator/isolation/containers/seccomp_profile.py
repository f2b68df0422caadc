"""The system-call filter of a box, as Docker and Podman read it.

A profile is one list of rules over a default, and the library below it drops a rule with a
condition where another has none. So each call that is refused only sometimes gets rules that
exclude each other: those that refuse, and those that let through everything else.
"""

from __future__ import annotations

import errno
import platform
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from benchmarks.errors import PlatformError
from evaluator.isolation.syscalls import ALLOWED, Condition, Rule, Test, denied

_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
_LOW_BITS = 32
_LOW_MASK = (1 << _LOW_BITS) - 1

_Argument = dict[str, Any]


def oci_profile(*, gpu: bool = False, machine: str | None = None) -> dict[str, Any]:
    """The filter as a profile for `--security-opt seccomp=FILE`.

    Args:
        gpu: whether the box is given a graphics card.
        machine: its architecture, as `platform.machine` says it; None for this machine's.

    Raises:
        PlatformError: `no_system_call_filter`, the architecture has no table here.
    """
    here = machine or platform.machine()
    if here not in _ARCHITECTURES:
        raise PlatformError(
            "no_system_call_filter",
            f"There is no system-call filter for the architecture {here!r}.",
            f"Run the worker on one of {', '.join(sorted(_ARCHITECTURES))}.",
        )
    rules = list(denied(gpu=gpu))
    sometimes = _sometimes(rules)
    return {
        # A call that is in neither table does not exist inside.
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.ENOSYS,
        "architectures": [_ARCHITECTURES[here]],  # calls of any other end the process
        "syscalls": [
            _allow(sorted(ALLOWED | _left_out(gpu=gpu))),
            *(_refuse(rule, []) for rule in rules if rule.when is None),
            *(part for name, found in sometimes.items() for part in _conditional(name, found)),
        ],
    }


def _left_out(*, gpu: bool) -> frozenset[str]:
    """Calls that are refused elsewhere but not in this box."""
    every = {name for rule in denied(gpu=False) for name in rule.names}
    return frozenset(every - {name for rule in denied(gpu=gpu) for name in rule.names})


def _sometimes(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        if rule.when is not None:
            for name in rule.names:
                found.setdefault(name, []).append(rule)
    return found


def _conditional(name: str, rules: Sequence[Rule]) -> Iterator[dict[str, Any]]:
    """Rules for one call that is refused sometimes; each condition is about the same argument."""
    conditions = [rule.when for rule in rules if rule.when is not None]
    for rule, condition in zip(rules, conditions, strict=True):
        for argument in refusals(condition):
            yield _refuse(rule, [argument], name)
    for argument in permissions(conditions):
        yield _allow([name], [argument])


def refusals(condition: Condition) -> Iterator[_Argument]:
    """Tests that together hold exactly where a condition refuses."""
    if condition.test is Test.OTHER_THAN:
        yield _argument(condition, "SCMP_CMP_NE", condition.value)
    elif condition.test is Test.BITS:
        for bit in _bits(condition.value):
            yield _argument(condition, "SCMP_CMP_MASKED_EQ", bit, bit)
    else:
        yield _argument(condition, "SCMP_CMP_MASKED_EQ", _LOW_MASK, condition.value)


def permissions(conditions: Sequence[Condition]) -> Iterator[_Argument]:
    """Tests of which at least one holds exactly where none of the conditions refuses.

    Raises:
        ValueError: conditions that cannot be told together.
    """
    first, tests = conditions[0], {condition.test for condition in conditions}
    if tests == {Test.EQUAL_LOW} and len({condition.argument for condition in conditions}) == 1:
        for mask, value in others({condition.value for condition in conditions}):
            yield _argument(first, "SCMP_CMP_MASKED_EQ", mask, value)
    elif len(conditions) > 1:
        raise ValueError("several conditions on one call must be values of one argument")
    elif first.test is Test.OTHER_THAN:
        yield _argument(first, "SCMP_CMP_EQ", first.value)
    else:
        yield _argument(first, "SCMP_CMP_MASKED_EQ", first.value, 0)


def others(values: set[int]) -> Iterator[tuple[int, int]]:
    """(mask, value) pairs: a number of 32 bits matches one exactly where it is none of the values.

    It differs from all of them in a bit that they share, or in what they have in the other bits.
    """
    one = min(values)
    apart = 0
    for value in values:
        apart |= one ^ value
    for bit in _bits(_LOW_MASK & ~apart):
        yield bit, ~one & bit
    taken = {value & apart for value in values}
    for chosen in product(*((0, bit) for bit in _bits(apart))):
        if apart and sum(chosen) not in taken:
            yield apart, sum(chosen)


def _bits(mask: int) -> list[int]:
    return [1 << place for place in range(64) if mask >> place & 1]


def _argument(condition: Condition, test: str, value: int, second: int = 0) -> _Argument:
    return {"index": condition.argument, "op": test, "value": value, "valueTwo": second}


def _allow(names: Sequence[str], arguments: Sequence[_Argument] = ()) -> dict[str, Any]:
    return {"names": list(names), "action": "SCMP_ACT_ALLOW", "args": list(arguments)}


def _refuse(rule: Rule, arguments: Sequence[_Argument], name: str | None = None) -> dict[str, Any]:
    return {
        "names": [name] if name else list(rule.names),
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": rule.code,
        "args": list(arguments),
    }
