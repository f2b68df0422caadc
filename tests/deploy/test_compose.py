"""The services of compose.yaml, closed as far as each can be, and the workflows, with few rights."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.rig import ROOT


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return found


FILES = ("compose.yaml", "deploy/compose.hub.yaml")
SERVICES = read("compose.yaml")["services"]
HUB = read("deploy/compose.hub.yaml")
EACH = pytest.mark.parametrize("name", SERVICES)


def closed(**properties: object) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def many(of: object) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": of}


ANY, TEXT, TRUTH = {"type": "object"}, {"type": "string"}, {"type": "boolean"}
TEXTS = {"type": "array", "items": TEXT}
DEVICE = closed(driver=TEXT, count={}, capabilities=TEXTS) | {"required": ["capabilities"]}
RESOURCES = closed(
    limits=closed(cpus=TEXT, memory=TEXT, pids={"type": "integer"}),
    reservations=closed(devices={"type": "array", "items": DEVICE}),
)
SERVICE = closed(
    build=closed(context=TEXT, target={"enum": ["app", "worker"]}, args=ANY),
    restart={"enum": ["no", "always", "on-failure", "unless-stopped"]},
    stop_grace_period=TEXT | {"pattern": r"^\d+[smh]$"},
    environment=many(TEXT),
    deploy=closed(resources=RESOURCES),
    logging=ANY,
    **dict.fromkeys(("init", "read_only"), TRUTH),
    **dict.fromkeys(("image", "user", "shm_size"), TEXT),
    **dict.fromkeys(("cap_drop", "tmpfs", "security_opt", "networks", "volumes"), TEXTS),
    **dict.fromkeys(("ports", "profiles", "command", "secrets"), TEXTS),
)
SHAPE = closed(name=TEXT, services=many(SERVICE), networks=ANY, volumes=ANY, secrets=ANY)
"""What of the Compose specification (compose-spec.io) is used here."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_shape_that_compose_reads(name: str) -> None:
    import jsonschema  # which takes a second or two

    jsonschema.validate(read(name), SHAPE | {"patternProperties": {"^x-": {}}})


def test_the_files_and_workflows_are_well_written() -> None:
    tool = Path(sys.executable).with_name("yamllint")
    words = [str(tool), "--strict", ".github", *FILES]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@EACH
def test_a_service_has_no_rights_is_bounded_and_cannot_write_to_its_own_files(name: str) -> None:
    service = SERVICES[name]
    fixed = {
        "user": "1000:1000", "read_only": True, "cap_drop": ["ALL"], "restart": "unless-stopped",
    }  # fmt: skip
    assert service.items() >= fixed.items()
    assert "no-new-privileges:true" in service["security_opt"]
    assert not {"cap_add", "privileged"} & service.keys()
    assert not any("docker.sock" in each for each in service["volumes"])
    assert {"memory", "pids"} <= service["deploy"]["resources"]["limits"].keys()


def test_only_who_needs_it_has_a_wall_opened_a_card_answers_or_a_port() -> None:
    opened = {n for n, of in SERVICES.items() if any("seccomp" in o for o in of["security_opt"])}
    assert opened == {"worker", "worker-cpu", "score"}, "those that run strangers' code"
    asks = {n for n, of in SERVICES.items() if "reservations" in of["deploy"]["resources"]}
    assert asks == {"worker"}, "the graphics card, by its profile alone"
    score, judge = SERVICES["score"], SERVICES["judge"]
    assert not any("/data" in each or "/keys" in each for each in score["volumes"])
    assert score["environment"] == {}
    assert "--role=judge" in judge["command"]
    assert SERVICES["site"]["ports"] == ["${ASSAY_LISTEN:-127.0.0.1}:${PORT:-7860}:7860"]


def test_secrets_come_as_files_of_a_folder_and_are_in_no_variable() -> None:
    """One file that is mounted stays what it was when another takes its name; a folder does not."""
    services = HUB["services"]
    assert set(services) == set(SERVICES)
    variables = {name: path for of in services.values() for name, path in of["environment"].items()}
    assert {name: path for name, path in variables.items() if re.search("TOKEN|SECRET", name)} == {
        "HF_TOKEN_FILE": "/run/secrets/hf_token",
        "ASSAY_LIVE_SECRET_FILE": "/run/secrets/assay_live_secret",
    }
    for of in services.values():
        (mounted,) = of["volumes"]
        assert re.fullmatch(r"\$\{ASSAY_SECRETS:\?[^}]+\}:/run/secrets:ro", mounted)
    assert "secrets" not in HUB


def test_the_filter_of_the_worker_lets_no_more_through_than_boxes_need() -> None:
    profile = read("deploy/seccomp-worker.json")
    let = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {"clone", "unshare", "mount", "umount2", "pivot_root", "sethostname"} <= let
    refused = {
        "bpf", "kexec_load", "init_module", "finit_module", "io_uring_setup", "keyctl", "add_key",
        "perf_event_open", "userfaultfd", "open_by_handle_at", "reboot", "setns", "swapon",
        "settimeofday", "acct", "iopl", "fsopen", "move_mount",
    }  # fmt: skip
    assert not refused & let


COMPOSE: dict[str, set[str]] = {
    "up": {"--build", "--detach"}, "down": set(), "ps": set(), "logs": {"--follow"},
    "build": {"--pull"}, "run": {"--rm"},
}  # fmt: skip
"""Commands of Compose and their options, as its reference has them; `--profile` comes before."""


def test_the_commands_that_people_are_told_name_what_there_is() -> None:
    text = (ROOT / "docs/containers.md").read_text("utf-8")
    told = re.findall(r"^docker compose (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    profiles = {name for service in SERVICES.values() for name in service.get("profiles", ())}
    assert len(told) > 6
    for command in told:
        words = command.split()
        while words[0] in {"--profile", "-f"}:
            option, value, *words = words
            known = profiles if option == "--profile" else FILES
            assert value in known, command
        name, *rest = words
        options = {word for word in rest if word.startswith("-") and word != "-m"}
        assert options <= COMPOSE[name], command
        if name in {"logs", "run"}:
            assert next(w for w in rest if not w.startswith("-")) in SERVICES, command


# Workflows.

WORKFLOWS = {
    path.stem: read(f".github/workflows/{path.name}")
    for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
}


def runs(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_only_and_runs_nothing_that_others_write(name: str) -> None:
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    for job in WORKFLOWS[name]["jobs"].values():
        assert job["timeout-minutes"] <= 120
        assert "${{" not in runs(job)
        for used in (step["uses"] for step in job["steps"] if "uses" in step):
            assert re.fullmatch(r"actions/[\w-]+@(v\d+|[0-9a-f]{40})", used)


def test_every_push_and_every_tag_is_checked_before_anything_is_built() -> None:
    assert "bash .ci/run" in runs(WORKFLOWS["ci"]["jobs"]["test"])
    jobs = WORKFLOWS["release"]["jobs"]
    checks = runs(jobs["check"])
    for needed in ("make release TAG=", "supply.audit --complete", "bash .ci/run", "sha256sum"):
        assert needed in checks
    assert jobs["images"]["needs"] == "check"
    assert "permissions" not in jobs["check"]
    # A candidate is not released as the latest.
    assert "*rc*) set -- --prerelease" in runs(jobs["images"])


def test_the_name_of_a_tag_is_no_part_of_a_script() -> None:
    """Whoever may push a tag names it, and names may hold `;` and `|`."""
    command = ["make", "--dry-run", "--always-make", "release", "TAG=v1;id"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "supply.release_check" in said
    assert "v1;id" not in said


def test_boxes_are_asked_for_by_what_fails_without_them() -> None:
    # `doctor` exits with 0 where there are none: a site needs none.
    (step,) = (
        step["run"]
        for step in WORKFLOWS["ci"]["jobs"]["images"]["steps"]
        if "seccomp-worker.json" in step.get("run", "")
    )
    assert "doctor" not in step
    assert "machine_isolation as m; print(m().require().name)" in step
