"""The machine that ``verify`` runs on, and the packages that are installed there."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamlint import __version__

_PACKAGES = ("cupy", "torch", "numba", "numba-cuda", "numpy", "cuda-bindings", "cuda-core")


def platform_facts(probed: Mapping[str, Any], number: int = 0) -> dict[str, Any]:
    """The ``platform`` object of verify's JSON, from what the probe child saw and what is installed."""
    return {
        "gpu": probed.get("gpu", "unknown GPU"),
        "driver": _driver(number) or f"CUDA {probed.get('cuda_driver', '?')}",
        "cuda_runtime": probed.get("cuda_runtime", "unknown"),
        "python": platform.python_version(),
        "streamlint": __version__,
        "packages": _versions(),
    }


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
