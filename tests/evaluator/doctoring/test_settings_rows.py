"""What `doctor` says of settings, secrets and what a machine keeps."""

from __future__ import annotations

from pathlib import Path

from benchmarks.settings.sources import load
from evaluator.doctoring.kept_rows import kept_rows
from evaluator.doctoring.rows import Row
from evaluator.doctoring.settings_rows import settings_rows

GOOD = "a-secret-of-the-house"


def rows(environment: dict[str, str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in settings_rows(environment, "me"):
        found.setdefault(row.part.strip(), []).append(row)
    return found


def test_without_any_setting_nothing_is_broken() -> None:
    found = rows({})
    assert found["settings"][0].state.startswith("no settings file")
    assert not any(row.broken for each in found.values() for row in each)


def test_it_says_where_settings_and_secrets_are_from(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_of_the_house")
    (tmp_path / "s.toml").write_text(f"data = 'x'\nhub.token_file = '{tmp_path / 'token'}'")
    environment = {"ASSAY_SETTINGS": str(tmp_path / "s.toml"), "ASSAY_USER": "ada"}
    load(environment, tmp_path)
    found = rows(environment)
    assert found["settings"][0].state.startswith(f"2 from {tmp_path / 's.toml'}, 2 from variables")
    assert found["HF_TOKEN"][0].state == f"set, from {tmp_path / 'token'}"


def test_what_is_unknown_weak_bad_or_missing_is_told() -> None:
    found = rows({
        "ASSAY_OPERATOR": "hub:ada", "ASSAY_OPERATORS": "ada", "ASSAY_WEBHOOK_SECRET": "short",
        "ASSAY_LIVE": "https://x.example", "PORT": "http",
    })  # fmt: skip
    assert found["ASSAY_OPERATOR"][0].advice == "Did you mean ASSAY_OPERATORS?"
    assert found["operators"][0].broken
    assert found["ASSAY_WEBHOOK_SECRET"][0].broken
    assert found["PORT"][0].broken
    assert "is missing" in found["ASSAY_LIVE_SECRET"][0].state


def test_a_rotation_that_is_not_ended_is_told() -> None:
    found = rows({"ASSAY_LIVE_SECRET": GOOD, "ASSAY_LIVE_SECRET_OLD": GOOD[::-1]})
    assert "take it away" in found["ASSAY_LIVE_SECRET_OLD"][0].advice
    assert not any(row.broken for each in found.values() for row in each)


def test_sizes_stand_beside_their_limits(tmp_path: Path) -> None:
    for name in ("logs/a.jsonl", "outbox/x/scores", "contents/y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1" * (1 << 20))
    environment = {"ASSAY_LOGS_KEPT": "10", "ASSAY_LOG_DAYS": "2", "ASSAY_HUB_CACHE_GIB": "3"}
    found = {
        row.part.strip(): row for row in kept_rows(tmp_path, tmp_path, environment, on_hub=True)
    }
    assert found["logs"].state == "1.0 MiB; at most 20.0 MiB, of 10 submissions and 2 days"
    assert found["outbox"].state.startswith("1.0 MiB of finished")
    assert found["cache of the Hub"].state.startswith("1.0 MiB; at most 3.0 GiB")
    (wrong,) = kept_rows(tmp_path, tmp_path, {"ASSAY_LOG_DAYS": "x"}, on_hub=False)
    assert wrong.broken
