"""Messages for an operator where a container does not start."""

from __future__ import annotations

from evaluator.isolation.containers.engine import EngineKind

_RUNTIME = (
    'Install runsc, name it in /etc/docker/daemon.json ({"runtimes": {"runsc": '
    '{"path": "/usr/bin/runsc"}}}) and restart Docker.'
)
_CGROUPS = (
    'Start the machine with cgroups of version 2, or set `runtime = "runc"` under [engine] in '
    "/etc/containers/containers.conf."
)
_TOOLKIT = "Install the NVIDIA container toolkit and its CDI files, or score on the CPU."
_PULL = "Pull the image on this machine; boxes never do."

_REMEDIES: tuple[tuple[str, str, str], ...] = (
    ("permission denied while trying to connect",
     "the worker's user may not speak to Docker",
     "Add it to the group docker, which makes it as good as root here, or use rootless Podman."),
    ("unknown runtime", "Docker knows no runtime of that name", _RUNTIME),
    ("unknown or invalid runtime", "Docker knows no runtime of that name", _RUNTIME),
    ("runtime not found", "Docker knows no runtime of that name", _RUNTIME),
    ("default oci runtime", "Podman does not find its runtime",
     "Install it (apt install runc), or name another in /etc/containers/containers.conf."),
    ("could not select device driver", "the engine cannot pass a graphics card on", _TOOLKIT),
    ("unresolvable cdi devices", "the engine cannot pass a graphics card on", _TOOLKIT),
    ("no such image", "the image is not on this machine", _PULL),
    ("unable to find image", "the image is not on this machine", _PULL),
    ("image not known", "the image is not on this machine", _PULL),
    ("hybrid mode", "Podman's runtime does not know this machine's cgroups", _CGROUPS),
    ("cgroup", "the engine cannot bound what a container takes", _CGROUPS),
    ("rlimit", "the engine may not set the limits of a process",
     "Raise the limits of the user that the engine runs as."),
    ("seccomp", "the engine does not take the system-call filter",
     "Install an engine and a runtime that are built with seccomp."),
    ("permission denied", "the engine cannot read what a box must hold",
     "Let every user read the Python installation, and look at the logs of SELinux or AppArmor."),
)  # fmt: skip
_NOT_RUNNING = ("cannot connect to the docker daemon", "connection refused", "is the docker daemon")


def diagnose(kind: EngineKind, said: str) -> tuple[str, str]:
    """Reason and remedy for what an engine's client said.

    Args:
        kind: of engine.
        said: on one line.
    """
    lower = said.lower()
    if any(sign in lower for sign in _NOT_RUNNING):
        return (
            f"Docker does not run, or not where it is looked for ({said}).",
            "Start it (systemctl start docker), or set DOCKER_HOST to its socket.",
        )
    for sign, reason, remedy in _REMEDIES:
        if sign in lower:
            return f"{reason[0].upper()}{reason[1:]} ({said}).", remedy
    told = said or "it printed nothing"
    return (
        f"{kind.capitalize()} could not start a box ({told}).",
        f"Try `{kind} run --rm --network none` by hand to see why.",
    )
