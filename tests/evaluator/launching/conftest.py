"""The box for strangers' code, where this machine has one."""

from __future__ import annotations

import pytest

from evaluator.isolation.bubblewrap.backend import Bubblewrap


@pytest.fixture(scope="session")
def bubblewrap() -> Bubblewrap:
    backend = Bubblewrap()
    probe = backend.probe()
    if not probe.ok:
        pytest.skip(f"no isolation here: {probe.reason} {probe.remedy}")
    return backend
