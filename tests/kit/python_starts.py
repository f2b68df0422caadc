"""A budget for test cases that start a Python: each costs one to three seconds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BUDGETS = {"quick": 80, "slow": 180}
"""Cases of a tier that may start a Python, all together; run a command in this process instead."""
_STARTS = "starts a Python"


class PythonStarts:
    """Plugin of pytest that counts such cases and fails a run with more than the budget."""

    def __init__(self) -> None:
        self._cases: dict[str, set[str]] = {tier: set() for tier in BUDGETS}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Watch what a case starts; what fixtures start is not the case's."""
        started = False
        begin = subprocess.Popen.__init__

        def watched(process: Any, args: Any, *rest: Any, **options: Any) -> None:
            nonlocal started
            program = args if isinstance(args, str | bytes | Path) else args[0]
            name = program.decode() if isinstance(program, bytes) else str(program)
            started = started or Path(name.split(" ")[0]).name.startswith("python")
            begin(process, args, *rest, **options)

        subprocess.Popen.__init__ = watched  # type: ignore[method-assign, assignment]
        try:
            return (yield)
        finally:
            subprocess.Popen.__init__ = begin  # type: ignore[method-assign]
            if started:
                item.user_properties.append((_STARTS, True))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case; with several workers this is called where they report to."""
        if report.when == "call" and (_STARTS, True) in map(tuple, report.user_properties):
            tier = "slow" if "slow" in report.keywords else "quick"
            self._cases[tier].add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run in which too many cases start a Python, and name them."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        for tier, cases in self._cases.items():
            if reporter is not None and len(cases) > BUDGETS[tier]:
                reporter.write_line(
                    f"{len(cases)} {tier} cases start a Python, more than {BUDGETS[tier]} "
                    "(tests/kit/python_starts.py):\n" + "\n".join(sorted(cases)),
                    red=True,
                )
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
