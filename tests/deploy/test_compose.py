"""The services of compose.yaml: closed as far as each can be, and within bounds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.rig import ROOT

FILES = ("compose.yaml", "deploy/compose.hub.yaml")
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
HUB: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.hub.yaml").read_text())
DOCUMENT = (ROOT / "docs/containers.md").read_text("utf-8")
RUNNERS = ("worker", "worker-cpu", "score")
"""Those that run strangers' code."""

TEXTS = {"type": "array", "items": {"type": "string"}}
LIMITS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "cpus": {"type": "string"}, "memory": {"type": "string"}, "pids": {"type": "integer"}
    },
}  # fmt: skip
DEVICE = {
    "type": "object",
    "required": ["capabilities"],
    "additionalProperties": False,
    "properties": {"driver": {"type": "string"}, "count": {}, "capabilities": TEXTS},
}
SERVICE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "build": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "context": {"type": "string"}, "target": {"enum": ["app", "worker"]},
                "args": {"type": "object"},
            },
        },
        "image": {"type": "string"},
        "restart": {"enum": ["no", "always", "on-failure", "unless-stopped"]},
        "init": {"type": "boolean"},
        "user": {"type": "string"},
        "read_only": {"type": "boolean"},
        "cap_drop": TEXTS, "tmpfs": TEXTS, "security_opt": TEXTS, "networks": TEXTS,
        "volumes": TEXTS, "ports": TEXTS, "profiles": TEXTS, "command": TEXTS, "secrets": TEXTS,
        "environment": {"type": "object", "additionalProperties": {"type": "string"}},
        "shm_size": {"type": "string"},
        "stop_grace_period": {"type": "string", "pattern": r"^\d+[smh]$"},
        "logging": {"type": "object"},
        "deploy": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "resources": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "limits": LIMITS,
                        "reservations": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {"devices": {"type": "array", "items": DEVICE}},
                        },
                    },
                }
            },
        },
    },
}  # fmt: skip
SHAPE = {
    "type": "object",
    "additionalProperties": False,
    "patternProperties": {"^x-": {}},
    "properties": {
        "name": {"type": "string"},
        "services": {"type": "object", "additionalProperties": SERVICE},
        "networks": {"type": "object"},
        "volumes": {"type": "object"},
        "secrets": {"type": "object"},
    },
}
"""What of the Compose specification (compose-spec.io) is used here."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_shape_that_compose_reads(name: str) -> None:
    import jsonschema  # which takes a second or two

    jsonschema.validate(yaml.safe_load((ROOT / name).read_text()), SHAPE)


def test_the_files_and_workflows_are_well_written() -> None:
    tool = Path(sys.executable).with_name("yamllint")
    words = [str(tool), "--strict", ".github", *FILES]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_rights_and_cannot_write_to_its_own_files(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] == "1000:1000"
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert not any("docker.sock" in each for each in service["volumes"])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_bounded_and_comes_back(name: str) -> None:
    limits = SERVICES[name]["deploy"]["resources"]["limits"]
    assert {"memory", "pids"} <= limits.keys()
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_only_who_runs_strangers_code_has_a_wall_opened() -> None:
    opened = {n for n, of in SERVICES.items() if any("seccomp" in o for o in of["security_opt"])}
    assert opened == set(RUNNERS)


def test_who_scores_has_no_answers_and_who_judges_runs_no_code() -> None:
    score, judge = SERVICES["score"], SERVICES["judge"]
    assert not any("/data" in each or "/keys" in each for each in score["volumes"])
    assert score["environment"] == {}
    assert "--role=judge" in judge["command"]


def test_the_site_listens_to_this_machine_alone_unless_told_otherwise() -> None:
    assert SERVICES["site"]["ports"] == ["${ASSAY_LISTEN:-127.0.0.1}:${PORT:-7860}:7860"]


def test_a_graphics_card_is_asked_for_by_its_profile_alone() -> None:
    asks = {n for n, of in SERVICES.items() if "reservations" in of["deploy"]["resources"]}
    assert asks == {"worker"}


def test_secrets_come_as_files_and_are_in_no_variable() -> None:
    variables = {name for of in HUB["services"].values() for name in of["environment"]}
    secret = {name for name in variables if re.search("TOKEN|SECRET", name)}
    assert secret == {"HF_TOKEN_FILE", "ASSAY_LIVE_SECRET_FILE"}
    assert set(HUB["services"]) == set(SERVICES)
    named = {path for of in HUB["services"].values() for path in of["environment"].values()}
    assert {"/run/secrets/hf_token", "/run/secrets/assay_live_secret"} <= named


def test_a_secret_that_is_replaced_is_seen_while_all_runs() -> None:
    """One file that is mounted stays what it was when another takes its name; a folder does not."""
    for of in HUB["services"].values():
        (mounted,) = of["volumes"]
        assert re.fullmatch(r"\$\{ASSAY_SECRETS:\?[^}]+\}:/run/secrets:ro", mounted)
    assert "secrets" not in HUB


def test_the_filter_of_the_worker_lets_no_more_through_than_boxes_need() -> None:
    profile = yaml.safe_load((ROOT / "deploy/seccomp-worker.json").read_text())
    let = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {"clone", "unshare", "mount", "umount2", "pivot_root", "sethostname"} <= let
    refused = {
        "bpf", "kexec_load", "init_module", "finit_module", "io_uring_setup", "keyctl", "add_key",
        "perf_event_open", "userfaultfd", "open_by_handle_at", "reboot", "setns", "swapon",
        "settimeofday", "acct", "iopl", "fsopen", "move_mount",
    }  # fmt: skip
    assert not refused & let


COMPOSE = {
    "up": {"--build", "--detach"},
    "down": set(),
    "ps": set(),
    "logs": {"--follow"},
    "build": {"--pull"},
    "run": {"--rm"},
}
"""Commands of Compose and their options, as its reference has them; `--profile` comes before."""


def test_the_commands_that_people_are_told_name_what_there_is() -> None:
    told = re.findall(r"^docker compose (.*?)(?:\s+#.*)?$", DOCUMENT, re.MULTILINE)
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
