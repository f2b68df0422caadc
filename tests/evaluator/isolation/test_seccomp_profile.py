"""The filter for containers refuses exactly what the table of system calls says."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import PlatformError
from evaluator.isolation.syscalls import (
    ALLOWED,
    DENIED,
    Condition,
    Test,
    known,
    oci_profile,
    others,
    permissions,
    refusals,
)

ARGUMENT = st.integers(0, 2**64 - 1)
CONDITIONS = [rule.when for rule in DENIED if rule.when is not None]


def holds(test: dict[str, object], argument: int) -> bool:
    """Whether a comparison of the profile holds, as libseccomp defines it."""
    value, second = test["value"], test["valueTwo"]
    assert isinstance(value, int)
    if test["op"] == "SCMP_CMP_EQ":
        return argument == value
    if test["op"] == "SCMP_CMP_NE":
        return argument != value
    assert test["op"] == "SCMP_CMP_MASKED_EQ"
    return argument & value == second


@pytest.mark.parametrize("condition", CONDITIONS)
@given(argument=ARGUMENT)
def test_a_condition_is_refused_exactly_where_the_table_says(
    condition: Condition, argument: int
) -> None:
    for tried in (argument, condition.value, condition.value | argument, argument & 0xFFFF):
        found = any(holds(test, tried) for test in refusals(condition))
        assert found is condition.refuses(tried)


@given(argument=ARGUMENT)
def test_what_several_conditions_leave_is_let_through_and_nothing_else(argument: int) -> None:
    values = [c for c in CONDITIONS if c.test is Test.EQUAL_LOW]
    assert len(values) == 2
    for tried in (argument, values[0].value, values[1].value | (7 << 32), argument & 0xFFFF):
        let_through = any(holds(test, tried) for test in permissions(values))
        assert let_through is not any(value.refuses(tried) for value in values)


@given(st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_a_number_matches_unless_it_is_one_of_the_values(values: set[int], number: int) -> None:
    # Far apart, three values leave too many combinations to be told one by one.
    near = {min(values) ^ (value & 0xFF) for value in values}
    for tried in {number, *near, min(near) ^ 1}:
        assert any(tried & mask == value for mask, value in others(near)) is (tried not in near)


def test_every_call_of_the_table_is_named_and_no_other() -> None:
    profile = oci_profile(machine="x86_64")
    named = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert named == known()
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert profile["defaultErrnoRet"] == errno.ENOSYS


def test_a_call_that_is_refused_sometimes_is_never_let_through_without_a_condition() -> None:
    sometimes = {name for rule in DENIED if rule.when for name in rule.names}
    rules = oci_profile(machine="x86_64")["syscalls"]
    bare = {
        n for r in rules if r["action"] == "SCMP_ACT_ALLOW" and not r["args"] for n in r["names"]
    }
    assert bare == ALLOWED - sometimes
    assert sometimes == {n for r in rules if r["args"] for n in r["names"]}


def test_a_graphics_card_gets_the_calls_that_its_libraries_need() -> None:
    def let_through(gpu: bool) -> set[str]:
        return set(oci_profile(gpu=gpu, machine="aarch64")["syscalls"][0]["names"])

    assert let_through(gpu=True) - let_through(gpu=False) == {"memfd_create"}


def test_a_machine_without_a_table_is_refused() -> None:
    with pytest.raises(PlatformError, match="riscv64") as caught:
        oci_profile(machine="riscv64")
    assert caught.value.code == "no_system_call_filter"
