"""The settings of Assay: one pydantic-settings model, a table of its fields, and their sources.

The variable of a field is its name in capitals, after `ASSAY_` where no other program defines it.
What only a higher package can judge (a store's name, an account, an address) is text here. A value
comes from an option, then a variable, then the settings file, then the default. The first process
reads the files once and puts their values into its environment, for options of commands, libraries
and children; a note there says which value came from which file.
"""

from __future__ import annotations

import ast
import errno
import hashlib
import inspect
import os
import re
import stat
import sys
import threading
import tomllib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AliasGenerator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import PydanticBaseSettingsSource as Source

from benchmarks.errors import SubmitterError
from benchmarks.parsing import Key, key_lines, line_of, syntax_fault

SETTINGS_FILE = "ASSAY_SETTINGS"
"""Variable with the path of the settings file."""
FILE_ORIGINS = "ASSAY_SETTINGS_ORIGINS"
"""Variable by which a process tells its children which values came from files."""
TEST_VARIABLES = frozenset({"ASSAY_TEST_ALL", "ASSAY_NIGHTLY", "ASSAY_ENDURANCE", "ASSAY_KILLS"})
"""Variables that only the tests of Assay read."""
DEPLOYMENT_VARIABLES = frozenset({
    "ASSAY_APP_IMAGE", "ASSAY_KEYS", "ASSAY_LISTEN", "ASSAY_QUESTIONS", "ASSAY_SECRETS",
    "ASSAY_WORKER_IMAGE", "ASSAY_WORKER_MEMORY",
})  # fmt: skip
"""Variables of compose.yaml and the files in deploy/."""
_KUBERNETES = re.compile(r"ASSAY(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)")
"""Variables that Kubernetes gives every container beside a service named `assay`."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHARED = ("DOCKER_", "GRADIO_", "HF_", "OAUTH_", "OPENID_", "PORT", "SPACE_", "SYSTEM")
"""Beginnings of variables that other programs define."""


class Reader(StrEnum):
    """A part of Assay that reads settings."""

    APP = "app"
    WORKER = "worker"
    COMMANDS = "commands"
    LAUNCHER = "worker --launcher jobs"


class Origin(StrEnum):
    """Source of a value, in the order of precedence."""

    OPTION = "option"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


_APP = (Reader.APP,)
_WORKER = (Reader.WORKER,)
_LAUNCHER = (Reader.LAUNCHER,)
_COMMANDS = (Reader.COMMANDS,)
_SERVERS = (Reader.APP, Reader.WORKER)
_RUNNERS = (Reader.WORKER, Reader.COMMANDS)


@dataclass(frozen=True)
class Setting:
    """A setting, beside its type and bounds, which are the model's."""

    key: str = ""  # in the settings file, `table.key`; empty for a variable alone
    # the parts that read it
    readers: tuple[Reader, ...] = (Reader.APP, Reader.WORKER, Reader.COMMANDS)
    # never printed; may be given as a file, by `variable` and `_FILE` or `key` and `_file`
    secret: bool = False
    path: bool = False  # a file or folder, so that `~` in the settings file is a home
    # an address that secrets are sent to; only a file that was named may set it
    routes_secrets: bool = False
    at_import: bool = False  # read by a library when it is imported
    name: str = ""  # of the field
    variable: str = ""  # of the environment
    default: Any = None  # without any source

    @property
    def file_variable(self) -> str:
        """The variable with the path of a file that holds the secret; empty without one."""
        return f"{self.variable}_FILE" if self.secret and self.key else ""

    @property
    def file_key(self) -> str:
        """The key with the path of a file that holds the secret; empty without one."""
        return f"{self.key}_file" if self.file_variable else ""

    @property
    def text(self) -> str:
        """The docstring of the field: one sentence or more."""
        return _docstrings()[self.name]

    @property
    def default_text(self) -> str:
        """The default as its variable would have it; empty for none."""
        return "" if self.default is None else variable_text(self.default)


@dataclass(frozen=True)
class Value:
    """Value of a setting for people: of a secret only `set`, of an invalid one its problem."""

    setting: Setting
    text: str
    origin: Origin
    file: str = ""
    problem: str = ""


def _variable(name: str) -> str:
    variable = name.upper()
    return variable if variable.startswith(_SHARED) else f"ASSAY_{variable}"


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""A list, with commas in a variable."""


class Settings(BaseSettings):
    """All settings, of values by variable; `sources` says where these come from."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        case_sensitive=True,
        alias_generator=AliasGenerator(validation_alias=_variable),
    )

    # Data.
    store: Annotated[str, Setting("store")] = ".assay/store"
    """The store: a folder, or hub:OWNER/NAME."""
    data: Annotated[str | None, Setting("data", path=True)] = None
    """Folder of benchmark data files. Without it, what needs none works."""
    benchmarks: Annotated[Names, Setting("benchmarks", path=True)] = ()
    """Cards of benchmarks of your own: folders with a card.toml or with folders that have one, and
    hub:OWNER/NAME@COMMIT. Each is a board; code beside them is never run."""
    models: Annotated[str, Setting("models", _RUNNERS, path=True)] = ".assay/models"
    """Folder of the Hub's models that modules name."""
    endpoints: Annotated[str | None, Setting("endpoints", _RUNNERS, path=True)] = None
    """File of endpoints of models, which judges behind an API and `generate` ask; it holds no keys."""
    locks: Annotated[str | None, Setting("locks", path=True)] = None
    """Folder of the operator's environments, a lock NAME.lock each, which submissions and built-in
    metrics may name."""
    environments: Annotated[str, Setting("environments", _RUNNERS, path=True)] = (
        ".assay/environments"
    )
    """Folder of environments that were built from locks."""
    wheels: Annotated[str | None, Setting("wheels", _RUNNERS, path=True)] = None
    """Folder of wheels that environments are built from."""
    package_index: Annotated[str | None, Setting("package_index", _RUNNERS)] = None
    """Address of the registry that environments are built from, as pip's --index-url; without it
    nothing is downloaded."""
    accepted_advisories: Annotated[Names, Setting("accepted_advisories")] = ()
    """Known defects that an environment may have all the same, as CVE-2025-32434: its code runs in a
    box alone."""
    scratch: Annotated[str | None, Setting("scratch", _WORKER, path=True)] = None
    """Folder for unpacked modules, finished shards, what waits to be published, and logs; by
    default in the store's folder. Workers that share it go on where one of them stopped."""
    settings: Annotated[str | None, Setting(path=True)] = None
    """The settings file; by default .assay/settings.toml where it exists."""

    # Accounts.
    user: Annotated[str | None, Setting("user", (Reader.APP, Reader.COMMANDS))] = None
    """Name of the local account; by default the operating system's user."""
    operators: Annotated[Names, Setting("operators", _APP)] = ()
    """Accounts that may hide, rerun and ban on the site, e.g. hub:ada."""

    # The site.
    host: Annotated[str | None, Setting("site.host", _APP)] = None
    """Address the site listens at: 0.0.0.0 inside a container; by default that of
    GRADIO_SERVER_NAME, or 127.0.0.1."""
    port: Annotated[int, Setting("site.port", _APP)] = Field(7860, ge=1, le=65535)
    """Port the site listens at."""

    # Between the site and its workers.
    live: Annotated[str | None, Setting("live.address", routes_secrets=True)] = None
    """Address of the site, which takes the heartbeats and running logs of workers whose store is on
    the Hub. Set it for workers and commands, never for the site itself."""
    live_secret: Annotated[str | None, Setting("live.secret", secret=True)] = None
    """What the site and its workers share: 16 printable characters or more."""
    live_secret_old: Annotated[str | None, Setting("live.secret_old", _APP, secret=True)] = None
    """The one before it, which the site takes too during a rotation."""
    webhook_secret: Annotated[str | None, Setting("webhook.secret", _SERVERS, secret=True)] = None
    """As given to the Hub, which tells of changes at /webhook."""
    webhook_secret_old: Annotated[
        str | None, Setting("webhook.secret_old", _SERVERS, secret=True)
    ] = None
    """The one before it, which is taken too during a rotation."""
    worker: Annotated[str | None, Setting(readers=_WORKER)] = None
    """Name of the worker, unlike any other ever; set in jobs, made up elsewhere."""

    # The Hub.
    hf_token: Annotated[str | None, Setting("hub.token", secret=True)] = None
    """Token of the Hub. It must read the store's repositories and write where it acts; by default
    that of a login (`hf auth login`)."""
    hf_token_path: Annotated[
        str | None, Setting("hub.token_path", path=True, routes_secrets=True, at_import=True)
    ] = None
    """File of the login's token, which the Hub's client reads at each request where HF_TOKEN is not
    set."""
    hf_endpoint: Annotated[
        str | None, Setting("hub.endpoint", routes_secrets=True, at_import=True)
    ] = None
    """Address of the Hub; by default https://huggingface.co."""
    hf_home: Annotated[str | None, Setting("hub.home", path=True, at_import=True)] = None
    """Folder of the Hub's client: its login, and checkpoints of built-in metrics; by default
    ~/.cache/huggingface."""
    hf_hub_offline: Annotated[bool, Setting("hub.offline", at_import=True)] = False
    """Ask the Hub nothing; only what is on this machine is used."""
    commits_per_hour: Annotated[int, Setting("hub.commits_per_hour"), Field(ge=1, le=100_000)] = 100
    """Commits that the processes of a machine may make within an hour, counted in the folder of the
    store. The Hub takes 128 of an account: give each machine its share."""

    # Jobs of the Hub.
    job_image: Annotated[str | None, Setting("jobs.image", _LAUNCHER, routes_secrets=True)] = None
    """Image with Assay installed, or hf.co/spaces/OWNER/NAME."""
    job_flavor: Annotated[str, Setting("jobs.flavor", _LAUNCHER)] = "t4-small"
    """Machine of each job."""
    job_questions: Annotated[str | None, Setting("jobs.questions", _LAUNCHER)] = None
    """Dataset repository with exported questions, which jobs read; never keys."""
    job_token: Annotated[str | None, Setting("jobs.token", _LAUNCHER, secret=True)] = None
    """Token that jobs get: it may write NAME-requests and NAME-submissions of the store, and
    nothing else."""

    # Limits.
    log_mib: Annotated[float, Setting("limits.log_mib", _WORKER)] = Field(1.0, ge=0.01, le=1024)
    """MiB of one log file of a submission; two are kept."""
    logs_kept: Annotated[int, Setting("limits.logs_kept", _WORKER)] = Field(200, ge=1, le=100_000)
    """Submissions whose logs a worker keeps, the newest."""
    log_days: Annotated[float, Setting("limits.log_days", _WORKER)] = Field(30.0, gt=0, le=36_500)
    """Days after which a submission's log is removed."""
    hub_cache_gib: Annotated[float, Setting("limits.hub_cache_gib"), Field(ge=0.01, le=10_000)] = (
        1.0
    )
    """GiB of what was read of a store on the Hub that this machine keeps."""
    embeddings_gib: Annotated[
        float, Setting("limits.embeddings_gib", _COMMANDS), Field(ge=0.01, le=100_000)
    ] = 20.0
    """GiB of embeddings that a folder of them may hold (`scorers run --cache`)."""

    # Limits of a submitted module in its box.
    scorer_start_s: Annotated[float, Setting("limits.scorer_start_s")] = Field(
        180.0, ge=1, le=86_400
    )
    """Seconds in which a submitted module is imported and its scorer is made."""
    scorer_batch_s: Annotated[float, Setting("limits.scorer_batch_s")] = Field(
        300.0, ge=1, le=86_400
    )
    """Seconds of one batch that a submitted module is asked."""
    scorer_job_s: Annotated[float, Setting("limits.scorer_job_s")] = Field(
        21_600.0, ge=1, le=604_800
    )
    """Seconds of a submitted module in one box, all benchmarks together."""
    scorer_memory_mib: Annotated[int, Setting("limits.scorer_memory_mib")] = Field(
        8192, ge=256, le=16_777_216
    )
    """MiB of memory of all processes of a submitted module together, its files included."""
    scorer_processes: Annotated[int, Setting("limits.scorer_processes")] = Field(
        256, ge=16, le=100_000
    )
    """Processes and threads of a submitted module together."""

    # Limits of the environments of modules.
    environment_build_s: Annotated[float, Setting("limits.environment_build_s")] = Field(
        1800.0, ge=1, le=86_400
    )
    """Seconds in which an environment is fetched and unpacked."""
    environment_gib: Annotated[float, Setting("limits.environment_gib")] = Field(
        16.0, ge=0.01, le=1000
    )
    """GiB of one environment, unpacked."""
    environments_gib: Annotated[float, Setting("limits.environments_gib", _RUNNERS)] = Field(
        100.0, ge=0.01, le=100_000
    )
    """GiB of all environments of a machine; beyond it, those used longest ago are given up."""

    # Human votes.
    votes_per_minute: Annotated[int, Setting("votes.per_minute", _APP)] = Field(30, ge=1, le=10_000)
    """Votes that one account may give in a minute."""
    votes_per_day: Annotated[int, Setting("votes.per_day", _APP)] = Field(500, ge=1, le=100_000)
    """Votes that one account may give in 24 hours."""
    votes_hasty_s: Annotated[float, Setting("votes.hasty_s", _APP)] = Field(1.0, ge=0, le=60)
    """Seconds below which a vote is marked as given in haste; it is kept."""
    votes_commit_s: Annotated[float, Setting("votes.commit_s", _APP)] = Field(
        300.0, ge=1, le=86_400
    )
    """Seconds between two commits of votes to the store. Until then they lie in files of this machine."""

    # The machine.
    docker_host: Annotated[
        str | None, Setting("isolation.docker_host", _RUNNERS, routes_secrets=True)
    ] = None
    """Where the Docker engine listens that isolates code."""
    gradio_server_name: Annotated[str | None, Setting(readers=_APP)] = None
    """Address to listen at, as a Space sets it; ASSAY_HOST comes first."""
    system: Annotated[str | None, Setting(readers=_APP)] = None
    """`spaces` on a Space. Set by a Space of the Hub; not to be set by hand."""
    space_id: Annotated[str | None, Setting(readers=_APP)] = None
    """The Space. Set by a Space of the Hub; not to be set by hand."""
    space_host: Annotated[Names, Setting(readers=_APP)] = ()
    """Names the site is known by. Set by a Space of the Hub; not to be set by hand."""
    oauth_client_id: Annotated[str | None, Setting(readers=_APP)] = None
    """For signing in with the Hub (`hf_oauth: true`). Set by a Space of the Hub; not to be set by
    hand."""
    oauth_client_secret: Annotated[str | None, Setting(readers=_APP, secret=True)] = None
    """Likewise. Set by a Space of the Hub; not to be set by hand."""
    oauth_scopes: Annotated[str | None, Setting(readers=_APP)] = None
    """Likewise: `openid profile`, and no more. Set by a Space of the Hub; not to be set by hand."""
    openid_provider_url: Annotated[str | None, Setting(readers=_APP)] = None
    """Likewise. Set by a Space of the Hub; not to be set by hand."""

    @field_validator("*", mode="before")
    @classmethod
    def _check_input(cls, value: object, info: ValidationInfo) -> object:
        default = cls.model_fields[info.field_name or ""].default
        if isinstance(value, bool) and not isinstance(default, bool):
            raise PydanticCustomError("truth_value", "it can be neither true nor false")
        parts = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(part, str) and _CONTROL.search(part) for part in parts):
            raise PydanticCustomError("control_characters", "it holds control characters")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: Source,
        *_: Source,
        **__: Source,
    ) -> tuple[Source, ...]:
        """The given values alone; nothing is read from `os.environ` unasked."""
        return (init_settings,)


@cache
def _docstrings() -> dict[str, str]:
    # Pydantic's `use_attribute_docstrings` does this at each start, and takes a tenth of a second.
    body = ast.parse(inspect.getsource(Settings)).body[0]
    found = {}
    for field, text in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(words))):
                found[name] = " ".join(words.split())
    return found


def _setting(name: str) -> Setting:
    field = Settings.model_fields[name]
    return replace(
        next(one for one in field.metadata if isinstance(one, Setting)),
        name=name,
        variable=str(field.validation_alias),
        default=field.default,
    )


SETTINGS = {one.variable: one for one in map(_setting, Settings.model_fields)}
"""Variable to setting, in the order of the model."""
KEYS = {one.key: one for one in SETTINGS.values() if one.key}
"""Key in the settings file to setting."""
FILE_KEYS = {one.file_key: one for one in SETTINGS.values() if one.file_key}
"""Key with the path of a secret's file to the secret."""
VARIABLES = frozenset({*SETTINGS, *(one.file_variable for one in FILE_KEYS.values())})
"""Every variable that an operator can set."""


def validated(values: Mapping[str, Any]) -> tuple[Settings, dict[str, str]]:
    """The settings without the invalid ones, and by variable why these are invalid."""
    try:
        return Settings(**values), {}
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
    problems = {str(one["loc"][0]): f"{one['msg'][:1].lower()}{one['msg'][1:]}" for one in found}
    return Settings(**{name: values[name] for name in values if name not in problems}), problems


def variable_text(value: object) -> str:
    """A valid value as its variable has it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{value:g}" if isinstance(value, float) else str(value)


def unknown_variables(names: Iterable[str]) -> tuple[str, ...]:
    """The names that look like settings of Assay and are none."""
    known = VARIABLES | TEST_VARIABLES | DEPLOYMENT_VARIABLES | {FILE_ORIGINS}
    like = {name for name in names if name.startswith("ASSAY_")}
    return tuple(sorted(name for name in like - known if not _KUBERNETES.fullmatch(name)))


def suggestion(name: str, known: Iterable[str]) -> str:
    """` Did you mean ...?`, where a known name is near; else empty."""
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else ""


DEFAULT_FILE = Path(".assay") / "settings.toml"
MOST_FILE_BYTES = 1 << 20
MOST_SECRET_BYTES = 64 << 10
_EXAMPLE = "See what can be set: python -m evaluator settings --example"
_NOTE = TypeAdapter(dict[str, tuple[str, str]])
"""Variable to the file of its value, and a digest of that value."""
_NOTE_LOCK = threading.Lock()


class SettingsFile(TomlConfigSettingsSource):
    """The settings file as a source; one that was found, and not named, is trusted less."""

    def __init__(self, path: Path, *, named: bool) -> None:
        self._path, self._named = path, named
        self._status: os.stat_result | None = None
        self._lines: Mapping[Key, int] = {}
        self._problems: list[SubmitterError] = []
        self._secret_files: dict[str, str] = {}
        try:
            super().__init__(Settings, path)
            if self._status is None:  # The library passes over what is no regular file.
                raise OSError(errno.ENOENT, "it is missing, or no regular file")
        except OSError as error:
            raise SubmitterError(
                "no_settings",
                f"The settings file {path} cannot be read ({error.strerror}).",
                "Mend its name in ASSAY_SETTINGS, or let this user read it.",
            ) from error

    def texts(self) -> dict[str, str]:
        """The text of each variable that the file gives."""
        given = self()
        settings, invalid = validated(given)
        valid = [SETTINGS[variable] for variable in given if variable not in invalid]
        for variable, why in invalid.items():
            self._refuse(SETTINGS[variable].key, why)
        _raise_all([*self._distrust(valid), *self._problems])
        texts = {one.variable: variable_text(getattr(settings, one.name)) for one in valid}
        return texts | self._secret_files

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        content, self._status = _read_regular(file_path, MOST_FILE_BYTES)
        try:
            text = content.decode("utf-8-sig")
            tables = tomllib.loads(text)
            self._lines = key_lines(text)
            return dict(self._variables(tables))
        except (ValueError, RecursionError) as error:  # Also of a number of thousands of digits.
            raise SubmitterError(
                "bad_settings", f"{self._path} is no TOML: {syntax_fault(error)}.", _EXAMPLE
            ) from None

    def _variables(self, table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
        for name, value in table.items():
            key = f"{above}{name}"
            if isinstance(value, dict):
                yield from self._variables(value, f"{key}.")
            elif key not in KEYS and key not in FILE_KEYS:
                place, near = self._place(key), suggestion(key, {*KEYS, *FILE_KEYS})
                self._problems.append(SubmitterError(
                    "bad_settings", f"{place}: there is no setting {key!r}.{near}", _EXAMPLE
                ))  # fmt: skip
            elif isinstance(value, str) and not value.strip():
                self._refuse(key, "it is empty; leave the line out")
            elif key in FILE_KEYS and not (isinstance(value, str) and value.isprintable()):
                self._refuse(key, "the path of a file is needed")
            else:
                yield from self._variable(key, value)

    def _variable(self, key: str, value: Any) -> Iterator[tuple[str, Any]]:
        setting = KEYS.get(key) or FILE_KEYS[key]
        # A store is a folder or not; ./a:b is one, and must stay as it is written.
        is_home = setting.name == "store" and str(value).startswith("~")
        if setting.path or is_home or key in FILE_KEYS:
            where = f"{self._place(key)}: {key}"
            try:
                if isinstance(value, str):
                    value = str(_expanded(value, where))
                elif isinstance(value, list):
                    value = [str(_expanded(str(part), where)) for part in value]
            except SubmitterError as error:
                self._problems.append(error)
                return
        if key in FILE_KEYS:
            self._secret_files[setting.file_variable] = value
        else:
            yield setting.variable, value

    def _distrust(self, given: Sequence[Setting]) -> Iterator[SubmitterError]:
        status = self._status or self._path.stat()
        secret = next((one.key for one in given if one.secret), "")
        routes = next((one.key for one in given if one.routes_secrets), "")
        if not self._named and status.st_uid not in {0, os.getuid()}:
            yield SubmitterError(
                "settings_open",
                f"{self._path} belongs to somebody else, and nobody named it.",
                "Name it with ASSAY_SETTINGS if it is meant, or work in another folder.",
            )
        if status.st_mode & stat.S_IWOTH or (secret and status.st_mode & 0o077):
            why = f"it holds {secret}, and others can read it" if secret else "everybody can write"
            yield SubmitterError(
                "settings_open",
                f"The settings file {self._path} is not used: {why}.",
                f"chmod 600 {self._path}, or keep secrets in files of their own (hub.token_file "
                "and the like).",
            )
        if routes and not self._named:
            yield SubmitterError(
                "bad_setting",
                f"{self._path} sets {routes}, which says where secrets are sent; a file that "
                "nobody named may not.",
                f"Name the file: ASSAY_SETTINGS={self._path}",
            )

    def _place(self, key: str) -> str:
        return f"{self._path}:{line_of(self._lines, key.split('.')) or 1}"

    def _refuse(self, key: str, why: str) -> None:
        place = self._place(key)
        self._problems.append(SubmitterError("bad_setting", f"{place}: {key}: {why}.", _EXAMPLE))


def load_process() -> tuple[str, ...]:
    """Load the settings of this process, before anything else, and return warnings.

    Where a library has read a variable already that a file now gives, the process starts again.
    """
    before = dict(os.environ)
    warnings = load(os.environ, Path())
    late = (variable for variable, setting in SETTINGS.items() if setting.at_import)
    changed = any(os.environ.get(variable) != before.get(variable) for variable in late)
    if changed and "huggingface_hub" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], dict(os.environ))  # noqa: S606 (itself)
    return warnings


def load(environment: MutableMapping[str, str], folder: Path) -> tuple[str, ...]:
    """Put the values of files into an environment that lacks them, and return warnings."""
    warnings = tuple(
        f"{name} is no setting of Assay and changes nothing.{suggestion(name, VARIABLES)}"
        for name in unknown_variables(environment)
    )
    if file_origins(environment) is None:
        file, named = _find_file(environment, folder)
        if file is not None:
            _load_file(environment, file, named=named)
        _load_secrets(environment)
    return warnings


def settings_file(environment: Mapping[str, str]) -> Path | None:
    """The settings file that was loaded."""
    named = environment.get(SETTINGS_FILE, "").strip()
    return Path(named) if named else None


def file_origins(environment: Mapping[str, str]) -> dict[str, Path] | None:
    """The file of each variable whose value is still the file's; None before files were loaded."""
    try:
        note = _NOTE.validate_json(environment[FILE_ORIGINS])
    except (KeyError, ValidationError):
        return None
    return {
        name: Path(file)
        for name, (file, digest) in note.items()
        if digest == _digest(environment.get(name, ""))
    }


def store_texts(
    environment: MutableMapping[str, str], texts: Mapping[str, str], file: Path
) -> None:
    """Put texts of a file into an environment, and note their origin."""
    with _NOTE_LOCK:  # Threads of a server refresh different secrets at the same time.
        origins = (file_origins(environment) or {}) | dict.fromkeys(texts, file)
        environment.update(texts)
        note = {name: (str(path), _digest(environment[name])) for name, path in origins.items()}
        environment[FILE_ORIGINS] = _NOTE.dump_json(note).decode()


def read(environment: Mapping[str, str]) -> Settings:
    """All settings of an environment with files loaded."""
    settings, problems = _read(environment)
    _raise_all([SubmitterError("bad_setting", why, _EXAMPLE) for why in problems.values()])
    return settings


def value_of(name: str, environment: Mapping[str, str]) -> Any:
    """The value of one setting by its field's name, whatever the others are."""
    variable = next(one.variable for one in SETTINGS.values() if one.name == name)
    return getattr(read({variable: environment.get(variable, "")}), name)


def values(environment: Mapping[str, str], options: Mapping[str, str]) -> tuple[Value, ...]:
    """Every setting with its origin; options by the names of fields."""
    settings, problems = _read(environment)
    files = file_origins(environment) or {}

    def value(setting: Setting) -> Value:
        variable = setting.variable
        text = environment.get(variable, "").strip()
        if setting.name in options:
            return Value(setting, options[setting.name], Origin.OPTION)
        if not text:
            return Value(setting, setting.default_text, Origin.DEFAULT)
        if variable not in problems:
            text = variable_text(getattr(settings, setting.name))
        text = "set" if setting.secret else text
        file, problem = str(files.get(variable, "")), problems.get(variable, "")
        return Value(setting, text, Origin.FILE if file else Origin.ENVIRONMENT, file, problem)

    return tuple(map(value, SETTINGS.values()))


def read_secret(path: Path, setting: Setting) -> str:
    """The secret in a file, without the white space around it; empty only for a previous one."""
    why = secret = ""
    try:
        secret = _read_regular(path, MOST_SECRET_BYTES)[0].decode("utf-8-sig").strip()
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    except UnicodeDecodeError:
        why = "is no text"
    if not why and not secret and not setting.variable.endswith("_OLD"):
        why = "is empty"
    if why or not secret.isprintable():
        raise SubmitterError(
            "bad_secret_file",
            f"{setting.file_variable} names {path}, which {why or 'holds more than one line'}.",
            "Write the secret into that file, alone on one line, where this user can read it.",
        )
    return secret


def _find_file(environment: Mapping[str, str], folder: Path) -> tuple[Path | None, bool]:
    named = settings_file(environment)
    if named is not None:
        return (folder / _expanded(str(named), SETTINGS_FILE)).absolute(), True
    usual = (folder / DEFAULT_FILE).absolute()
    try:
        usual.lstat()  # Also a link that leads nowhere: whoever made it meant a file.
    except (FileNotFoundError, NotADirectoryError):
        return None, False
    except OSError:
        pass  # Its reader says why.
    return usual, False


def _load_file(environment: MutableMapping[str, str], file: Path, *, named: bool) -> None:
    texts = SettingsFile(file, named=named).texts()
    for setting in SETTINGS.values():
        names = (setting.variable, setting.file_variable)
        if any(environment.get(name, "").strip() for name in names):
            for name in names:
                texts.pop(name, None)
    if not named:
        texts[SETTINGS_FILE] = str(file)
    environment[SETTINGS_FILE] = str(file)  # Children may run in another folder.
    store_texts(environment, texts, file)


def _load_secrets(environment: MutableMapping[str, str]) -> None:
    problems = []
    for setting in FILE_KEYS.values():
        variable, file_variable = setting.variable, setting.file_variable
        path = environment.get(file_variable, "").strip()
        if not path:
            continue
        try:
            if environment.get(variable, "").strip():
                raise SubmitterError(
                    "two_secrets",
                    f"{variable} and {file_variable} are both given.",
                    f"Leave one of them out; {file_variable} can be changed without a restart.",
                )
            file = _expanded(path, file_variable).absolute()
            environment[file_variable] = str(file)  # Children may run in another folder.
            store_texts(environment, {variable: read_secret(file, setting)}, file)
        except SubmitterError as error:
            problems.append(error)
    _raise_all(problems)


def _read(environment: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
    source = EnvSettingsSource(Settings)
    source.env_vars = {name: text.strip() for name, text in environment.items() if text.strip()}
    given = source()
    settings, invalid = validated(given)
    problems = {}
    for variable, why in invalid.items():
        text = "" if SETTINGS[variable].secret else f" {str(given[variable])[:80]!r}"
        problems[variable] = f"{variable}{text}: {why}."
    return settings, problems


def _read_regular(path: Path, most: int) -> tuple[bytes, os.stat_result]:
    # Not to wait for ever where the name is that of a pipe.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes")
    return content, status


def _expanded(path: str, where: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        home = path.partition("/")[0][:80]
        raise SubmitterError(
            "bad_setting", f"{where}: there is no home {home!r} here.", "Write the whole path."
        ) from None


def _digest(text: str) -> str:
    return hashlib.sha256(f"assay:{text}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _raise_all(problems: Sequence[SubmitterError]) -> None:
    if problems:
        error, hints = problems[0], dict.fromkeys(one.hint for one in problems)
        message = " ".join(one.message for one in problems)
        raise SubmitterError(error.code, message, " ".join(hints))
