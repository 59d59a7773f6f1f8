"""What was verified, where and when: one JSON file a platform, shipped with the package and kept per user.

A platform is a GPU, a driver and a CUDA runtime; its file holds the last verdict on each case there.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.support.reading import home_folder
from streamlint.support.writing import only_writer, write_output

if TYPE_CHECKING:
    from typing import Any

    Entry = dict[str, Any]

SCHEMA = 1
_NEEDED = {"rule", "verdict", "platform"}
SHIPPED = Path(__file__).parent / "evidence"


def user_folder() -> Path:
    """The platform's folder for a program's data: ``XDG_DATA_HOME``, ``%LOCALAPPDATA%`` or ``~/Library/Application Support``."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home_folder() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home_folder() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home_folder() / ".local" / "share")
    return base / "streamlint" / "evidence"


def platform_name(facts: Mapping[str, Any]) -> str:
    """``NVIDIA H200 · driver 580.159 · CUDA 13.0``: what a file of evidence is kept under."""
    driver = ".".join(str(facts["driver"]).split(".")[:2])
    return f"{facts['gpu']} · driver {driver} · CUDA {facts['cuda_runtime']}"


def _file_name(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") + ".json"


def entries(cases: Iterable[Mapping[str, Any]], facts: Mapping[str, Any], date: str | None = None) -> list[Entry]:
    """Evidence from verify's cases. What did not run (UNSUPPORTED) is no evidence."""
    day = date or time.strftime("%Y-%m-%d")
    where = {"platform": platform_name(facts), "date": day}
    return [
        {**case, **where, "packages": packages_of(case, facts.get("packages", {}))} for case in cases if case["verdict"] != "UNSUPPORTED"
    ]


def packages_of(case: Mapping[str, Any], installed: Mapping[str, str]) -> dict[str, str]:
    """The versions that a case rests on: those of its API's packages. The lab's own is CuPy, whose version every case may rest on."""
    api = str(case.get("api", ""))
    wanted = {"torch": ("torch",), "numba": ("numba",), "cuda-python": ("cuda-bindings", "cuda-core")}.get(api, ())
    return {name: version for name, version in installed.items() if name.startswith((*wanted, "cupy"))}


def _key(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """A run for a finding stands beside the rule's own."""
    is_own = entry.get("level") in ("facts", "template")
    level = json.dumps(entry.get("facts") or {}, sort_keys=True) if is_own else ""
    return (*(str(entry.get(part, "")) for part in ("platform", "rule", "case", "api")), level)


def merge(old: Iterable[Entry], new: Iterable[Entry]) -> list[Entry]:
    """One entry a platform and case: a decided one replaces any that is not newer; INCONCLUSIVE replaces only its like."""
    kept = {_key(entry): entry for entry in old}
    for entry in new:
        before = kept.get(_key(entry))
        if before is None or (_decides(entry, before) and str(entry.get("date", "")) >= str(before.get("date", ""))):
            kept[_key(entry)] = entry
    return [kept[key] for key in sorted(kept)]


def _decides(entry: Entry, before: Entry) -> bool:
    return bool(entry["verdict"] != "INCONCLUSIVE" or before["verdict"] == "INCONCLUSIVE")


class UnreadableError(Exception):
    """A file that should hold evidence does not; the text says why."""


def parse(text: str) -> list[Entry]:
    """The entries of a file, or of what :func:`export` wrote; :class:`UnreadableError` if it holds none."""
    try:
        content = json.loads(text)
    except ValueError as problem:
        raise UnreadableError(f"no JSON: {problem}") from None
    if not isinstance(content, dict) or "schema" not in content:
        raise UnreadableError("no evidence of streamlint")
    if content["schema"] != SCHEMA:
        raise UnreadableError(f"written by another streamlint, as version {content['schema']}; this one reads version {SCHEMA}")
    found = content.get("entries")
    if not isinstance(found, list) or not all(isinstance(entry, dict) and set(entry) >= _NEEDED for entry in found):
        raise UnreadableError("its entries are not evidence")
    return found


def read(folder: Path) -> list[Entry]:
    """All entries of a folder. What cannot be read is left out, with one warning."""
    found: list[Entry] = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            found += parse(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, UnreadableError) as problem:
            _complain(path, str(problem))
    return found


@functools.cache
def _complain(path: Path, why: str) -> None:
    print(f"streamlint: the evidence in {path} cannot be read and is left out ({why})", file=sys.stderr)


def save(cases: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], folder: Path | None = None, date: str | None = None) -> Path:
    """Merge a run into its platform's file and return the file."""
    return _merge_into(folder or user_folder(), platform_name(facts), entries(cases, facts, date), facts)


def _merge_into(folder: Path, name: str, new: Sequence[Entry], facts: Mapping[str, Any] | None) -> Path:
    """Merge entries of one platform into its file. A file that cannot be read is kept beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder):
        return _merge_locked(folder / _file_name(name), new, facts)


def _merge_locked(path: Path, new: Sequence[Entry], facts: Mapping[str, Any] | None) -> Path:
    old: list[Entry] = []
    known: Mapping[str, Any] = {}
    if path.exists():
        try:
            text = path.read_text(encoding="utf-8")
            old, known = parse(text), json.loads(text).get("platform", {})
        except (UnicodeDecodeError, UnreadableError) as problem:
            os.replace(path, path.with_suffix(".json.bad"))
            _complain(path.with_suffix(".json.bad"), str(problem))
    content = {"schema": SCHEMA, "platform": dict(known if facts is None else facts), "entries": merge(old, new)}
    write_output(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return path


def export(found: Sequence[Entry]) -> str:
    """Entries of any platforms as one file, to be imported elsewhere."""
    return json.dumps({"schema": SCHEMA, "entries": list(found)}, indent=1, ensure_ascii=False) + "\n"


def take_in(found: Sequence[Entry], folder: Path | None = None) -> dict[str, int]:
    """Merge imported entries into the user's own; how many there were of each platform."""
    by_platform: dict[str, list[Entry]] = {}
    for entry in found:
        by_platform.setdefault(str(entry["platform"]), []).append(entry)
    for name, own in by_platform.items():
        _merge_into(folder or user_folder(), name, own, None)
    return {name: len(own) for name, own in sorted(by_platform.items())}


def everything(folder: Path | None = None) -> list[Entry]:
    """What was shipped and the user's own, merged."""
    return merge(_read_once(SHIPPED, _state(SHIPPED)), _read_once(folder or user_folder(), _state(folder or user_folder())))


def _state(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes when a file of the folder does."""
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    return tuple((path.name, (stat := path.stat()).st_mtime_ns, stat.st_size) for path in files)


@functools.lru_cache(maxsize=4)
def _read_once(folder: Path, _now: tuple[tuple[str, int, int], ...]) -> tuple[Entry, ...]:
    return tuple(read(folder))


def load(rule: str, folder: Path | None = None) -> list[Entry]:
    """The evidence on a rule, shipped and the user's own, for its page: verdict, platform, date, summary and figures."""
    return [
        {
            "case": entry.get("case", ""),
            "api": entry.get("api", ""),
            "prediction": entry.get("prediction", ""),
            "verdict": entry["verdict"],
            "platform": entry.get("platform", ""),
            "date": entry.get("date", ""),
            "summary": entry.get("reason", ""),
            "figures": {"misuse": entry.get("misuse", {}), "remedy": entry.get("remedy", {})},
            **{key: entry[key] for key in ("level", "facts", "asked", "packages") if entry.get(key)},
        }
        for entry in everything(folder)
        if entry["rule"] == rule
    ]
