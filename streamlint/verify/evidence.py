"""What was verified, where and when: one JSON file a platform, shipped with the package and kept per user.

A platform is a GPU, a driver and a CUDA runtime; its file holds the last verdict on each case there.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform as python_platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA = 1
SHIPPED = Path(__file__).parent / "evidence"
_PACKAGES = ("cupy", "torch", "numba", "numba-cuda", "numpy", "cuda-bindings", "cuda-core")

Entry = dict[str, Any]


def user_folder() -> Path:
    """The platform's folder for a program's data: ``XDG_DATA_HOME``, ``%LOCALAPPDATA%`` or ``~/Library/Application Support``."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "streamlint" / "evidence"


def platform_facts(probed: Mapping[str, Any], number: int = 0) -> dict[str, Any]:
    """The ``platform`` object of verify's JSON, from what the probe child saw and what is installed."""
    return {
        "gpu": probed.get("gpu", "unknown GPU"),
        "driver": _driver(number) or f"CUDA {probed.get('cuda_driver', '?')}",
        "cuda_runtime": probed.get("cuda_runtime", "unknown"),
        "python": python_platform.python_version(),
        "streamlint": _streamlint_version(),
        "packages": _versions(),
    }


def _streamlint_version() -> str:
    from streamlint import __version__

    return str(__version__)


def _versions() -> dict[str, str]:
    names = {name.lower(): name for name in _PACKAGES}
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower()
        if name in names or name.startswith("cupy-cuda"):
            found.setdefault(name, distribution.version)  # the first on the path is the one that is imported
    return dict(sorted(found.items()))


def _driver(number: int) -> str | None:
    """The driver's own version. CuPy knows only which CUDA it supports, so ask nvidia-smi, then the kernel module."""
    nvidia_smi = shutil.which("nvidia-smi")
    if nvidia_smi:
        command = [nvidia_smi, "--query-gpu=driver_version", "--format=csv,noheader", f"--id={number}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            done = None
        if done is not None and done.returncode == 0 and re.fullmatch(r"[\d.]+", done.stdout.strip()):
            return done.stdout.strip()
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return found[1] if found else None


def platform_name(facts: Mapping[str, Any]) -> str:
    """``NVIDIA H200 · driver 580.159 · CUDA 13.0``: what a file of evidence is kept under."""
    driver = ".".join(str(facts["driver"]).split(".")[:2])
    return f"{facts['gpu']} · driver {driver} · CUDA {facts['cuda_runtime']}"


def _file_name(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") + ".json"


def entries(cases: Iterable[Mapping[str, Any]], facts: Mapping[str, Any], date: str | None = None) -> list[Entry]:
    """Evidence from verify's cases. What did not run (UNSUPPORTED) is no evidence."""
    day = date or datetime.date.today().isoformat()
    return [{**case, "platform": platform_name(facts), "date": day} for case in cases if case["verdict"] != "UNSUPPORTED"]


def _key(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """A run with a finding's facts stands beside the rule's own."""
    level = json.dumps(entry.get("facts") or {}, sort_keys=True) if entry.get("level") == "facts" else ""
    return (*(str(entry.get(part, "")) for part in ("platform", "rule", "case", "api")), level)


def merge(old: Iterable[Entry], new: Iterable[Entry]) -> list[Entry]:
    """One entry a platform and case: a decided one replaces any older; INCONCLUSIVE replaces only its like."""
    kept = {_key(entry): entry for entry in old}
    for entry in new:
        before = kept.get(_key(entry))
        if before is None or entry["verdict"] != "INCONCLUSIVE" or before["verdict"] == "INCONCLUSIVE":
            kept[_key(entry)] = entry
    return [kept[key] for key in sorted(kept)]


def read(folder: Path) -> list[Entry]:
    """All entries of a folder. A file that is not ours, or of a newer schema, is passed over."""
    found: list[Entry] = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(content, dict) and content.get("schema") == SCHEMA and isinstance(content.get("entries"), list):
            found += [entry for entry in content["entries"] if isinstance(entry, dict) and "rule" in entry and "verdict" in entry]
    return found


def save(cases: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], folder: Path | None = None, date: str | None = None) -> Path:
    """Merge a run into its platform's file and return the file."""
    folder = folder or user_folder()
    name = platform_name(facts)
    path = folder / _file_name(name)
    folder.mkdir(parents=True, exist_ok=True)
    old = [entry for entry in read(folder) if entry.get("platform") == name]
    content = {"schema": SCHEMA, "platform": dict(facts), "entries": merge(old, entries(cases, facts, date))}
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(scratch, path)
    return path


def load(rule: str, folder: Path | None = None) -> list[Entry]:
    """The evidence on a rule, shipped and the user's own, for its page: verdict, platform, date, summary and figures."""
    found = merge(read(SHIPPED), read(folder or user_folder()))
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
            **{key: entry[key] for key in ("level", "facts", "asked") if key in entry},
        }
        for entry in found
        if entry["rule"] == rule
    ]
