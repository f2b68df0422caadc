"""Errors that a box reports when they can no longer be true."""

from __future__ import annotations

import pytest

from benchmarks.errors import SubmitterError
from tests.evaluator.isolation.boxes import Open, png


@pytest.mark.isolation
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
