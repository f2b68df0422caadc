"""Settings from their sources: an option, then a variable, then the settings file, then the default.

The first process reads the files once and puts their values into its environment, for options of
commands, libraries and children; a note there says which value came from which file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource

from benchmarks.errors import SubmitterError
from benchmarks.settings.model import (
    FILE_KEYS,
    FILE_ORIGINS,
    KEYS,
    SETTINGS,
    SETTINGS_FILE,
    VARIABLES,
    Origin,
    Setting,
    Settings,
    Value,
    suggestion,
    unknown_variables,
    validated,
    variable_text,
)  # fmt: skip
from benchmarks.toml_lines import Key, key_lines, line_of, syntax_fault

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
        if isinstance(value, str) and (setting.path or is_home or key in FILE_KEYS):
            try:
                value = str(_expanded(value, f"{self._place(key)}: {key}"))
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
