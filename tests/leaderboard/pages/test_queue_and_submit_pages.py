"""The queue and the two ways in, as they answer people."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.desk import Gate
from leaderboard.pages.answers import gate_notice, refused, worker_banner
from leaderboard.pages.glossary import about
from leaderboard.pages.page import Context, all_pages
from leaderboard.pages.queue_page import one_submission, queue
from leaderboard.pages.queue_table import legend, queue_table, workers_line
from leaderboard.pages.reading import Reader
from leaderboard.pages.submit_page import ScoresForm, send_metric, send_scores
from leaderboard.states import LEGEND, State
from leaderboard.store.live import Pulse
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import NASTY, NOW, StubDesk, cards, fill

REPOSITORY = Path(__file__).resolve().parents[3]


def context(desk: StubDesk | None = None) -> Context:
    store = fill(memory_store())
    return Context(Reader(store, cards()), store.live, desk or StubDesk(), cards(), lambda: NOW)


def pulse(seconds_ago: float, **more: object) -> Pulse:
    return Pulse.model_validate(
        {"worker": "w", "at": NOW - timedelta(seconds=seconds_ago), "isolation_ok": True,
         "isolation": "namespaces", **more}
    )  # fmt: skip


# The queue.


def test_the_queue_shows_every_submission_newest_first_with_reason_and_fault() -> None:
    html = queue(context(), "")
    names = [html.index(name) for name in ("CLIPScore", "BLIP2-ITM", "VQAScore", "HPSv2")]
    assert names == sorted(names)
    assert "The scorer stopped on pair 12" in html
    assert "Catch the error in `score`" in html
    assert "to be mended by the submitter" in html
    assert "<img" not in html


def test_a_submission_in_work_shows_progress_rate_and_what_remains() -> None:
    html = queue(context(), "")
    assert '<progress value="310" max="960"' in html
    assert "310 of 960 · 38.4/s · about 17 s left" in html


def test_a_submission_whose_worker_is_silent_says_so() -> None:
    statuses = context().reader.statuses()
    html = queue_table(statuses, [pulse(40, submission_id="made-up-0001")], {}, NOW)
    assert "No sign of its worker" in html
    assert "<progress" not in html


def test_the_history_of_a_chosen_submission_holds_its_log_as_text() -> None:
    html = one_submission(context(), "made-up-0003")
    assert html.count("<li>") == 4
    assert "Traceback (most recent call last):\n" in html
    assert "<img" not in html


def test_an_unknown_submission_in_a_link_is_said_and_harmless() -> None:
    html = one_submission(context(), NASTY)
    assert "There is no submission" in html
    assert "<img" not in html


def test_a_long_queue_is_cut_and_says_so() -> None:
    html = queue_table(context().reader.statuses(), [], {}, NOW, most=2)
    assert html.count("as-q-name") == 2
    assert "3 older submissions not shown" in html


def test_workers_are_alive_for_thirty_seconds_after_a_beat() -> None:
    assert "No worker is running" in workers_line([pulse(31)], NOW)
    assert "No worker is running" in workers_line([], NOW)
    assert "namespaces" in workers_line([pulse(29)], NOW)
    assert "takes no code" in workers_line([pulse(1, isolation_ok=False)], NOW)


def test_the_legend_explains_every_state() -> None:
    html = legend()
    for state in State:
        assert f">{state.value}</span>" in html
        assert LEGEND[state].split("'")[0] in html


# Submitting.


def test_a_taken_module_answers_with_its_id_and_the_way_to_the_queue() -> None:
    desk = StubDesk()
    html = send_metric(context(desk), "/tmp/mine.zip", "Me")
    assert desk.taken == ["mine.zip"]
    assert "made-up-0000" in html
    assert "./queue?submission=made-up-0000" in html


def test_code_is_refused_with_reason_and_remedy_where_it_cannot_be_isolated() -> None:
    desk = StubDesk(Gate(ok=False, reason="No namespaces here.", remedy="Install bubblewrap."))
    html = send_metric(context(desk), "/tmp/mine.zip", "Me")
    assert desk.taken == []
    assert "No namespaces here." in html
    assert "Install bubblewrap." in html
    scores = send_scores(context(desk), ScoresForm("/tmp/mine.csv", "ratings", "Me"))
    assert "is in." in scores
    assert "takes no code" in gate_notice(desk.gate())
    assert gate_notice(Gate(ok=True)) == ""


@pytest.mark.parametrize(
    ("form", "code"),
    [
        (ScoresForm(None, "ratings", "Me"), "no_file"),
        (ScoresForm("/tmp/a.csv", None, "Me"), "no_benchmark"),
        (ScoresForm("/tmp/a.csv", "ratings", "  "), "no_submitter"),
        (ScoresForm(f"/tmp/{NASTY}", "ratings", "Me"), "bad_file"),
    ],
)
def test_an_incomplete_or_wrong_form_is_answered_with_what_to_do(
    form: ScoresForm, code: str
) -> None:
    html = send_scores(context(), form)
    assert f"<code>{code}</code>" in html
    assert 'role="alert"' in html
    assert "<img" not in html


def test_the_answer_says_whose_fault_an_error_is() -> None:
    assert "Not accepted yet" in refused(SubmitterError("a", "b", "c"))
    assert "try again" in refused(TransientError("a", "b"))
    assert "our fault" in refused(PlatformError("a", "b"))


def test_a_banner_warns_while_no_worker_is_running() -> None:
    assert worker_banner([pulse(5)], NOW) == ""
    assert "No worker is running" in worker_banner([pulse(90)], NOW)


# The site.


def test_every_measure_of_every_benchmark_is_explained() -> None:
    html = "".join(about(cards().values()))
    for card in cards().values():
        assert f'id="{card.name}"' in html
        for measure in card.measures.values():
            assert measure.title in html
            assert measure.meaning.replace("'", "&#x27;") in html


def test_pages_are_found_by_their_file_names_in_the_order_of_the_navigation() -> None:
    titles = [page.title for page in all_pages()]
    assert titles == ["Overview", "Boards", "Submit", "Queue", "About"]


def test_building_the_site_does_not_import_torch() -> None:
    code = (
        "import sys; sys.path.insert(0, '.');"
        "from tests.leaderboard.pages.synthetic import *; from leaderboard.pages.site import create_app, launch_options;"
        "create_app(fill(memory_store()), StubDesk(), cards(), clock=lambda: NOW);"
        "launch_options(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY, timeout=120)


def test_importing_the_app_does_not_import_torch_or_make_a_store(tmp_path: Path) -> None:
    code = "import sys, app; assert 'torch' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY), "HOME": str(tmp_path), "PATH": ""},
        timeout=120,
    )
    assert not (tmp_path / ".assay").exists()
