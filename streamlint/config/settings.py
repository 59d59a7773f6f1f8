"""Settings: ``[tool.streamlint]`` in ``pyproject.toml``, or ``streamlint.toml``, found for each file as ruff does."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.checks.catalog import UNREADABLE, UNUSED
from streamlint.config.options import Options
from streamlint.config.selection import Selectors, expand, is_widest, selected
from streamlint.findings import LEVELS
from streamlint.support import toml
from streamlint.support.errors import ConfigError, did_you_mean
from streamlint.support.lazy import lazy
from streamlint.support.reading import Unreadable, nearest, read_bytes
from streamlint.support.records import field, record, replace

if TYPE_CHECKING:
    from typing import Any

    UserRows = tuple[tuple[str, Mapping[str, Any]], ...]  # what to name in an error, and the table
    from streamlint.models import user_rows
    from streamlint.support import toml_lines
else:
    (user_rows,) = lazy("streamlint.models", "user_rows")
    (toml_lines,) = lazy("streamlint.support", "toml_lines")

FORMATS = (
    *("full", "concise", "grouped", "json", "json-lines", "sarif"),
    *("github", "gitlab", "junit", "rdjson", "pylint", "azure", "markdown"),
)
WORDS = {
    "default-stream": ("auto", "legacy", "per-thread"),
    "target-device": ("maybe", "cuda"),
    "hidden-sync": ("hot-loops", "all-loops"),
    "evidence": ("shown", "possible"),
    "confidence": LEVELS,
    "output-format": FORMATS,
}
SELECTORS = ("select", "ignore", "extend-select", "extend-ignore")
GLOBS = ("exclude", "extend-exclude", "include")
FLAGS = ("respect-gitignore", "require-reasons", "preview")
PATHS = ("baseline", "cache-dir")
MOST_BYTES = 1 << 22
MOST_EXTENDED = 50  # files, one by the other
CONFIGURATIONS = ("streamlint.toml", ".streamlint.toml", "pyproject.toml")
KEYS = (*SELECTORS, "per-file-ignores", *GLOBS, *FLAGS, *PATHS, *WORDS, "models", "extend")


@record(frozen=True, slots=True)
class Pattern:
    """A path pattern as gitignore reads it, and the folder that it is relative to."""

    root: Path
    glob: str


@record(frozen=True, slots=True)
class Settings:
    """Everything that decides a run for one file. ``Settings.of`` builds one from the keys of the configuration."""

    root: Path = field(default_factory=Path.cwd)
    source: Path | None = None  # the configuration file, if there is one
    selectors: tuple[Selectors, ...] = ()
    per_file_ignores: tuple[tuple[Pattern, tuple[str, ...]], ...] = ()
    exclude: tuple[Pattern, ...] | None = None  # None: the folders that are left out by default
    extend_exclude: tuple[Pattern, ...] = ()
    include: tuple[Pattern, ...] | None = None
    respect_gitignore: bool = True
    default_excludes: bool = True
    force_exclude: bool = False
    baseline: Path | None = None
    cache_dir: Path | None = None
    output_format: str = "full"
    require_reasons: bool = False
    preview: bool = False
    default_stream: str = "auto"
    target_device: str = "maybe"
    hidden_sync: str = "hot-loops"
    evidence: str = "shown"
    confidence: str = "low"
    models: UserRows = field(default=(), hash=False)

    @classmethod
    def of(cls, **keys: Any) -> Settings:
        """Settings from the configuration's keys, hyphens written as underscores; patterns are relative to the current folder.

        Raises ConfigError as a configuration file would.
        """
        table = {key.replace("_", "-"): value for key, value in keys.items()}
        return apply(cls(), table, Path.cwd(), "Settings.of")

    @property
    def codes(self) -> frozenset[str]:
        """The rules that are on, before per-file ignores."""
        return selected(self.selectors, self.preview)

    def options(self, coverage: bool = False) -> Options:
        """What the engine needs to know of the settings."""
        wide = self.preview or is_widest(self.selectors)
        return Options(
            codes=self.codes - {UNREADABLE, UNUSED},
            default_stream=self.default_stream,
            target_device=self.target_device,
            hidden_sync="all-loops" if wide else self.hidden_sync,
            evidence="possible" if wide else self.evidence,
            user_models=self.models,
            coverage=coverage,
        )


def apply(settings: Settings, table: Mapping[str, Any], root: Path, where: str) -> Settings:
    """The settings, changed by a configuration table whose paths are relative to ``root``.

    Raises ConfigError, naming ``where``, for an unknown key or a wrong value.
    """
    changes: dict[str, Any] = {}
    for key, value in table.items():
        try:
            if key not in KEYS:
                raise ConfigError(f"{where}: unknown key '{key}'{did_you_mean(key, KEYS)}")
            if key in SELECTORS:
                _check_selectors(list(_strings(value, f"{where}: {key}")), where)
            elif key == "models":
                changes[key] = _models(value, f"{where}: {key}", settings.models)
            elif key != "extend":
                changes[key.replace("-", "_")] = _value(key, value, root, where)
        except ConfigError as error:
            error.keys = error.keys or (key,)
            raise
    for key in ("extend_exclude", "models"):
        if key in changes:
            changes[key] = getattr(settings, key) + changes[key]
    layer = {key.replace("-", "_"): _strings(table[key], f"{where}: {key}") for key in SELECTORS if key in table}
    if layer:
        changes["selectors"] = (*settings.selectors, Selectors(**layer))
    return replace(settings, **changes)


def _value(key: str, value: Any, root: Path, where: str) -> Any:
    place = f"{where}: {key}"
    if key in GLOBS:
        return tuple(Pattern(root, glob) for glob in _strings(value, place))
    if key in FLAGS:
        if not isinstance(value, bool):
            raise ConfigError(f"{place}: expected true or false, not {value!r}")
        return value
    if key in WORDS:
        if value not in WORDS[key]:
            raise ConfigError(f"{place}: '{value}' is none of {', '.join(WORDS[key])}{did_you_mean(str(value), WORDS[key])}")
        return value
    if key in PATHS:
        if not isinstance(value, str):
            raise ConfigError(f"{place}: expected a path, not {value!r}")
        return root / os.path.expanduser(value)
    return _per_file_ignores(value, root, place)


def _strings(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"{place}: expected a list of strings, not {value!r}")
    return tuple(value)


def _check_selectors(words: list[str], where: str) -> None:
    try:
        expand(words)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _per_file_ignores(value: Any, root: Path, place: str) -> tuple[tuple[Pattern, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place}: expected a table of patterns and lists of rules, not {value!r}")
    rows = tuple((Pattern(root, glob), _strings(words, f"{place}: '{glob}'")) for glob, words in value.items())
    _check_selectors([word for _, words in rows for word in words], place)
    return rows


def _models(value: Any, place: str, others: UserRows) -> UserRows:
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise ConfigError(f"{place}: expected a list of tables, not {value!r}")
    rows = tuple((f"{place}[{number}]", item) for number, item in enumerate(value))
    try:
        user_rows.check(rows, others)
    except user_rows.ModelError as error:
        wrong = ConfigError(str(error))
        wrong.keys = ("models", *error.at)
        raise wrong from None
    return rows


def load(path: Path) -> Settings:
    """The settings of a configuration file and of those that it extends.

    Raises ConfigError if a file is missing, is not TOML, or extends itself.
    """
    return _load(path, ())


def _load(path: Path, above: tuple[Path, ...]) -> Settings:
    if path in above:
        raise ConfigError(f"{path}: extends itself: {' -> '.join(str(item) for item in (*above, path))}")
    if len(above) > MOST_EXTENDED:
        raise ConfigError(f"{path}: more than {MOST_EXTENDED} configurations extend one another")
    try:
        table = _table(path)
    except ConfigError as error:
        raise (ConfigError(f"{error} (extended by {above[-1]})") if above else error) from None
    if table is None:
        raise ConfigError(f"{path}: has no [tool.streamlint] table")
    settings = Settings(root=path.parent)
    if "extend" in table:
        if not isinstance(table["extend"], str):
            raise _with_line(ConfigError(f"{path}: extend: expected a path, not {table['extend']!r}"), path, ("extend",))
        base = Path(os.path.normpath(path.parent / os.path.expanduser(table["extend"])))
        settings = replace(_load(base, (*above, path)), root=path.parent)
    try:
        return replace(apply(settings, table, path.parent, str(path)), source=path)
    except ConfigError as error:
        raise _with_line(error, path, error.keys) from None


def _with_line(error: ConfigError, path: Path, keys: tuple[str | int, ...]) -> ConfigError:
    """The error of a file, with the line on which the key stands behind the file's name."""
    line = line_in(path, keys)
    return ConfigError(f"{path}:{line}{str(error).removeprefix(str(path))}") if line and str(error).startswith(str(path)) else error


def line_in(path: Path, keys: tuple[str | int, ...]) -> int | None:
    """The line of a configuration file on which a key stands; None where it cannot be found."""
    text = read_bytes(path, MOST_BYTES).decode("utf-8-sig", "replace")
    return toml_lines.line_of(text, keys if path.name != "pyproject.toml" else ("tool", "streamlint", *keys))


def _table(path: Path) -> Mapping[str, Any] | None:
    """Our table of a configuration file; None if a ``pyproject.toml`` has none."""
    try:
        data = read_bytes(path, MOST_BYTES)
    except Unreadable as error:
        raise ConfigError(f"{path}: {error}") from None
    named = path.name == "pyproject.toml"
    if named and b"streamlint" not in data:  # spares the TOML parser, which is slow to import
        return None
    table: Any = parse_toml(data, str(path))
    if not named:
        return dict(table)
    tools = table.get("tool")
    table = tools.get("streamlint") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.streamlint] is not a table")
    return table


def has_table(path: Path) -> bool:
    """Whether a configuration file is there, and a ``pyproject.toml`` has our table.

    Raises ConfigError where such a table cannot be read.
    """
    return path.is_file() and (path.name != "pyproject.toml" or _table(path) is not None)


def parse_toml(data: bytes, where: str) -> dict[str, Any]:
    """TOML from bytes.

    Raises ConfigError, naming ``where``.
    """
    try:
        return toml.parse(data.decode("utf-8-sig"))
    except (toml.TomlError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: {error}") from None


class Resolver:
    """Finds the settings of each file: the nearest configuration up from it, or one for all, changed by the command line."""

    def __init__(self, fixed: Settings | None = None, overrides: Iterable[tuple[str, Mapping[str, Any]]] = (), **attributes: Any) -> None:
        self._fixed = fixed
        self._overrides = tuple(overrides)  # (what to name in an error, keys and values)
        self._attributes = attributes
        self._used: set[Path] = set()
        self._final = functools.lru_cache(maxsize=None)(self._finish)
        self._near: dict[str, str | None] = {}

    def of_folder(self, folder: str | Path) -> Settings:
        """The settings for files of an absolute folder."""
        return self._final(None if self._fixed else nearest(os.fspath(folder), self._near, self._own))

    def of_file(self, path: Path) -> Settings:
        """The settings for an absolute file."""
        return self.of_folder(path.parent)

    def sources(self) -> list[Path]:
        """The configuration files that were used so far."""
        return sorted(self._used)

    def _own(self, folder: str) -> str | None:
        """The configuration file that stands in a folder itself."""
        paths = (os.path.join(folder, name) for name in CONFIGURATIONS)
        return next((path for path in paths if os.path.isfile(path) and _table(Path(path)) is not None), None)

    def _finish(self, path: str | None) -> Settings:
        settings = self._fixed or (load(Path(path)) if path else Settings())
        self._used |= {settings.source} if settings.source else set()
        for where, table in self._overrides:
            settings = apply(settings, table, Path.cwd(), where)
        return replace(settings, **self._attributes)
