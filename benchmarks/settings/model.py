"""Every setting of Assay: the one list of them.

What only a part above this package can judge (the name of a store, an account, an address) is text
here, and judged there when it is used.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from benchmarks.settings.about import About, Who

_EVERYBODY = (Who.APP, Who.WORKER, Who.COMMANDS)
_SERVERS = (Who.APP, Who.WORKER)
_OF_A_SPACE = "Set by a Space of the Hub; not to be set by hand."


def _parted(given: object) -> object:
    """A list as variables have it: with commas."""
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    return given


Names = Annotated[tuple[str, ...], BeforeValidator(_parted)]


class Settings(BaseModel):
    """All settings, each with its default."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    # What is kept, and where.
    store: Annotated[str, About("ASSAY_STORE", "store", _EVERYBODY)] = Field(
        ".assay/store", description="The store: a folder, or hub:OWNER/NAME."
    )
    data: Annotated[str | None, About("ASSAY_DATA", "data", _EVERYBODY, path=True)] = Field(
        None, description="Folder of benchmark data files. Without it, what needs none works."
    )
    models: Annotated[
        str, About("ASSAY_MODELS", "models", (Who.WORKER, Who.COMMANDS), path=True)
    ] = Field(".assay/models", description="Folder of the Hub's models that modules name.")
    scratch: Annotated[str | None, About("ASSAY_SCRATCH", "scratch", (Who.WORKER,), path=True)] = (
        Field(
            None,
            description="Folder for unpacked modules, finished shards, what waits to be published, "
            "and logs; by default in the store's folder. Workers that share it go on where one "
            "of them stopped.",
        )
    )
    settings: Annotated[str | None, About("ASSAY_SETTINGS", "", _EVERYBODY, path=True)] = Field(
        None, description="The settings file; by default .assay/settings.toml where it exists."
    )

    # Who may do what.
    user: Annotated[str | None, About("ASSAY_USER", "user", (Who.APP, Who.COMMANDS))] = Field(
        None, description="Name of the local account; by default the operating system's user."
    )
    operators: Annotated[Names, About("ASSAY_OPERATORS", "operators", (Who.APP,))] = Field(
        (), description="Accounts that may hide, rerun and ban on the site, e.g. hub:ada."
    )

    # The site.
    host: Annotated[str | None, About("ASSAY_HOST", "site.host", (Who.APP,))] = Field(
        None,
        description="Address the site listens at: 0.0.0.0 inside a container; by default that of "
        "GRADIO_SERVER_NAME, or 127.0.0.1.",
    )
    port: Annotated[int, About("PORT", "site.port", (Who.APP,))] = Field(
        7860, ge=1, le=65535, description="Port the site listens at."
    )

    # Between the site and its workers.
    live: Annotated[str | None, About("ASSAY_LIVE", "live.address", _EVERYBODY, leads=True)] = (
        Field(
            None,
            description="Address of the site, which takes the heartbeats and running logs of "
            "workers whose store is on the Hub. Set it for workers and commands, never for the "
            "site itself.",
        )
    )
    live_secret: Annotated[
        str | None, About("ASSAY_LIVE_SECRET", "live.secret", _EVERYBODY, secret=True)
    ] = Field(
        None, description="What the site and its workers share: 16 printable characters or more."
    )
    live_secret_old: Annotated[
        str | None, About("ASSAY_LIVE_SECRET_OLD", "live.secret_old", (Who.APP,), secret=True)
    ] = Field(None, description="The one before it, which the site takes too during a rotation.")
    webhook_secret: Annotated[
        str | None, About("ASSAY_WEBHOOK_SECRET", "webhook.secret", _SERVERS, secret=True)
    ] = Field(None, description="As given to the Hub, which tells of changes at /webhook.")
    webhook_secret_old: Annotated[
        str | None, About("ASSAY_WEBHOOK_SECRET_OLD", "webhook.secret_old", _SERVERS, secret=True)
    ] = Field(None, description="The one before it, which is taken too during a rotation.")
    worker: Annotated[str | None, About("ASSAY_WORKER", "", (Who.WORKER,))] = Field(
        None,
        description="Name of the worker, unlike any other ever; set in jobs, made up elsewhere.",
    )

    # The Hub.
    token: Annotated[str | None, About("HF_TOKEN", "hub.token", _EVERYBODY, secret=True)] = Field(
        None,
        description="Token of the Hub. It must read the store's repositories and write where it "
        "acts; by default that of a login (`hf auth login`).",
    )
    token_path: Annotated[
        str | None,
        About("HF_TOKEN_PATH", "hub.token_path", _EVERYBODY, path=True, leads=True, at_import=True),
    ] = Field(
        None,
        description="File of the login's token, which the Hub's client reads at each request "
        "where HF_TOKEN is not set.",
    )
    endpoint: Annotated[
        str | None,
        About("HF_ENDPOINT", "hub.endpoint", _EVERYBODY, leads=True, at_import=True),
    ] = Field(None, description="Address of the Hub; by default https://huggingface.co.")
    home: Annotated[
        str | None, About("HF_HOME", "hub.home", _EVERYBODY, path=True, at_import=True)
    ] = Field(
        None,
        description="Folder of the Hub's client: its login, and checkpoints of built-in metrics; "
        "by default ~/.cache/huggingface.",
    )
    offline: Annotated[bool, About("HF_HUB_OFFLINE", "hub.offline", _EVERYBODY, at_import=True)] = (
        Field(False, description="Ask the Hub nothing; only what is on this machine is used.")
    )
    commits_per_hour: Annotated[
        int, About("ASSAY_COMMITS_PER_HOUR", "hub.commits_per_hour", _EVERYBODY)
    ] = Field(
        100,
        ge=1,
        le=100_000,
        description="Commits this process may make within an hour. The Hub takes 128 of an "
        "account: give each process its share.",
    )

    # Jobs of the Hub.
    job_image: Annotated[
        str | None, About("ASSAY_JOB_IMAGE", "jobs.image", (Who.LAUNCHER,), leads=True)
    ] = Field(None, description="Image with Assay installed, or hf.co/spaces/OWNER/NAME.")
    job_flavor: Annotated[str, About("ASSAY_JOB_FLAVOR", "jobs.flavor", (Who.LAUNCHER,))] = Field(
        "t4-small", description="Machine of each job."
    )
    job_questions: Annotated[
        str | None, About("ASSAY_JOB_QUESTIONS", "jobs.questions", (Who.LAUNCHER,))
    ] = Field(
        None, description="Dataset repository with exported questions, which jobs read; never keys."
    )
    job_token: Annotated[
        str | None, About("ASSAY_JOB_TOKEN", "jobs.token", (Who.LAUNCHER,), secret=True)
    ] = Field(
        None,
        description="Token that jobs get: it may write NAME-requests and NAME-submissions of the "
        "store, and nothing else.",
    )

    # How much is kept.
    log_mib: Annotated[float, About("ASSAY_LOG_MIB", "limits.log_mib", (Who.WORKER,))] = Field(
        1.0, ge=0.01, le=1024, description="MiB of one log file of a submission; two are kept."
    )
    logs_kept: Annotated[int, About("ASSAY_LOGS_KEPT", "limits.logs_kept", (Who.WORKER,))] = Field(
        200, ge=1, le=100_000, description="Submissions whose logs a worker keeps, the newest."
    )
    log_days: Annotated[float, About("ASSAY_LOG_DAYS", "limits.log_days", (Who.WORKER,))] = Field(
        30.0, gt=0, le=36_500, description="Days after which a submission's log is removed."
    )
    hub_cache_gib: Annotated[
        float, About("ASSAY_HUB_CACHE_GIB", "limits.hub_cache_gib", _EVERYBODY)
    ] = Field(
        1.0,
        ge=0.01,
        le=10_000,
        description="GiB of what was read of a store on the Hub that this machine keeps.",
    )
    embeddings_gib: Annotated[
        float, About("ASSAY_EMBEDDINGS_GIB", "limits.embeddings_gib", (Who.COMMANDS,))
    ] = Field(
        20.0,
        ge=0.01,
        le=100_000,
        description="GiB of embeddings that a folder of them may hold (`scorers run --cache`).",
    )

    # The machine.
    docker_host: Annotated[
        str | None,
        About("DOCKER_HOST", "isolation.docker_host", (Who.WORKER, Who.COMMANDS), leads=True),
    ] = Field(None, description="Where the Docker engine listens that isolates code.")
    server_name: Annotated[str | None, About("GRADIO_SERVER_NAME", "", (Who.APP,))] = Field(
        None, description="Address to listen at, as a Space sets it; ASSAY_HOST comes first."
    )
    system: Annotated[str | None, About("SYSTEM", "", (Who.APP,))] = Field(
        None, description=f"`spaces` on a Space. {_OF_A_SPACE}"
    )
    space_id: Annotated[str | None, About("SPACE_ID", "", (Who.APP,))] = Field(
        None, description=f"The Space. {_OF_A_SPACE}"
    )
    space_host: Annotated[Names, About("SPACE_HOST", "", (Who.APP,))] = Field(
        (), description=f"Names the site is known by. {_OF_A_SPACE}"
    )
    oauth_client_id: Annotated[str | None, About("OAUTH_CLIENT_ID", "", (Who.APP,))] = Field(
        None, description=f"For signing in with the Hub (`hf_oauth: true`). {_OF_A_SPACE}"
    )
    oauth_client_secret: Annotated[
        str | None, About("OAUTH_CLIENT_SECRET", "", (Who.APP,), secret=True)
    ] = Field(None, description=f"Likewise. {_OF_A_SPACE}")
    oauth_scopes: Annotated[str | None, About("OAUTH_SCOPES", "", (Who.APP,))] = Field(
        None, description=f"Likewise: `openid profile`, and no more. {_OF_A_SPACE}"
    )
    openid_provider_url: Annotated[str | None, About("OPENID_PROVIDER_URL", "", (Who.APP,))] = (
        Field(None, description=f"Likewise. {_OF_A_SPACE}")
    )
