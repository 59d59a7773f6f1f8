"""Files for HIP. Those that are not built for CUDA are not read, nor are ports beside their CUDA files, of which all is said already."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_HIP = re.compile(rb"hip/hip_\w+\.h|\bhip(?:Stream_t|Malloc|Memcpy|LaunchKernelGGL|Error_t)")
_CUDA = re.compile(rb"\bcuda[A-Z]|\bcu(?:Launch|Mem|Stream|Event|Ctx)[A-Z]")
_TORCH_STREAM = re.compile(rb"CUDAStream")  # of PyTorch's, which is called so in a build for HIP as well
_HIP_CALL = re.compile(rb"\bhip(?:LaunchKernelGGL|Malloc\w*|Memcpy\w*|Memset\w*|Stream[A-Z]\w*)\s*\(")
_BRANCH = re.compile(rb"[ \t]*#[ \t]*(if|endif)")
_FOLDER = re.compile(r"(?:hip|rocm|amd)", re.IGNORECASE)


def is_port(path: str, data: bytes, others: Collection[str]) -> bool:
    """Whether a file works with HIP and ``others`` hold the CUDA file that it was made from, by its name."""
    return speaks_hip(data) and has_original(path, others)


def speaks_hip(data: bytes) -> bool:
    """Whether a file works with HIP."""
    return _HIP.search(data) is not None


def speaks_hip_alone(data: bytes) -> bool:
    """Whether a file works with HIP, and names nothing of CUDA's runtime: it is not built for CUDA.

    PyTorch's streams have the same name in both builds; beside them a call of HIP's counts that no condition leaves out.
    """
    if not speaks_hip(data) or _CUDA.search(data) is not None:
        return False
    return _TORCH_STREAM.search(data) is None or _calls_hip_always(data)


def _calls_hip_always(data: bytes) -> bool:
    """Whether a call of HIP's stands outside of every ``#if``."""
    depth = 0
    for line in data.splitlines():
        branch = _BRANCH.match(line)
        if branch is not None:
            depth += 1 if branch[1] == b"if" else -1
        elif depth == 0 and _HIP_CALL.search(line) is not None and not line.lstrip().startswith((b"//", b"#", b"*")):
            return True
    return False


def has_original(path: str, others: Collection[str]) -> bool:
    """Whether ``others`` hold the CUDA file that one which works with HIP was made from, by its name."""
    return any(twin != path and twin in others for twin in _originals(path))


def _originals(path: str) -> Iterator[str]:
    """Paths that a port at ``path`` may come from: ``hip/scan.hip`` from ``cuda/scan.cu``, ``scan_hip.cuh`` from ``scan.cuh``."""
    folder, _, name = path.replace("\\", "/").rpartition("/")
    names = {name, name.replace("_hip.", "."), name.replace("hip", "cuda").replace("HIP", "CUDA")}
    names |= {re.sub(r"\.hip(?:\.\w+)?$", ".cu", each) for each in names} | {re.sub(r"\.(?:cpp|cc)$", ".cu", each) for each in names}
    parts = folder.split("/") if folder else []
    folders = {folder}
    for index, part in enumerate(parts):
        if _FOLDER.fullmatch(part):
            folders |= {"/".join([*parts[:index], *middle, *parts[index + 1 :]]) for middle in ([], ["cuda"], ["CUDA"], ["nvidia"])}
    yield from (f"{each}/{called}" if each else called for each in sorted(folders) for called in sorted(names))
