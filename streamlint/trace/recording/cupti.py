"""NVIDIA's profiling library CUPTI, through ctypes: where it is, what is asked of it, what its errors mean.

Sources: cupti_callbacks.h, cupti_activity.h and cupti_result.h of CUPTI 12.9 and 13.5; CUPTI documentation, "CUPTI Activity API" and
"CUPTI Callback API".
"""

from __future__ import annotations

import ctypes
import glob
import os
import re
import sys

from streamlint import TYPE_CHECKING
from streamlint.support.errors import StreamlintError
from streamlint.trace import kinds
from streamlint.trace.recording import layouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

DRIVER_CALLS, RUNTIME_CALLS = 1, 2  # CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API
_SYSTEM_THREADS = 1  # CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM: numbers as of gettid
_LENT_EMPTY = 5  # CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER: buffers of records are all zeros when they are lent
_FORCED = 1  # CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
_LEAVES, _ASKED = 24, "cuDriverGetVersion"  # the version of CUDA 12.6; a call that any process may make
_PER_THREAD = (b"_ptsz", b"_ptds")
_LAST_CALL = 1200  # beyond the numbers of all calls (about 800 driver calls in CUDA 13)
# Calls that only ask or set a word, thousands of times a second: no record is made of them where CUPTI can leave out single calls.
_CHEAP = re.compile(
    r"Get|Peek|Occupancy|IsCapturing|SetDevice|SetCurrent|PushCurrent|PopCurrent|Event(?:Create|Destroy)|CanAccess|ThreadExch"
)
_MEANINGS = {
    8: "out of memory",
    15: "CUPTI could not be initialized",
    27: "this GPU is not supported by CUPTI",
    33: "the GPU is virtualized in a way that CUPTI does not support",
    35: "this user may not profile: see https://developer.nvidia.com/ERR_NVGPUCTRPERM",
    39: "another profiler is subscribed to CUPTI in this process (torch.profiler, Nsight): end it first",
    40: "the virtualized GPU does not let this user profile",
    41: "confidential computing is on",
    43: "CUPTI does not support this MIG device",
}


def library_paths() -> Iterator[str]:
    """Where CUPTI may be, best first: what is loaded, wheels beside PyTorch, the toolkit, the linker's own paths."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            yield from dict.fromkeys(row.split(None, 5)[5].strip() for row in maps if "libcupti.so" in row)
    except OSError:
        pass  # no Linux
    major = _major_of_torch()
    for folder in sys.path:
        found = glob.glob(os.path.join(folder, "nvidia", "cu*", "lib", "libcupti.so.*"))
        yield from sorted(found, key=lambda path: (f"so.{major}" in path, path), reverse=True)
    for toolkit in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        for part in ("extras/CUPTI/lib64", "lib64"):
            yield from sorted(glob.glob(os.path.join(toolkit, part, "libcupti.so*"))) if toolkit else ()
    yield from ("libcupti.so.13", "libcupti.so.12", "libcupti.so")


def _major_of_torch() -> str:
    """The major version of CUDA that PyTorch was built with, without importing it: a process must not use two versions of CUPTI."""
    for folder in sys.path:
        try:
            with open(os.path.join(folder, "torch", "version.py"), encoding="utf-8") as file:
                found = re.search(r"^cuda\b.*= '(\d+)", file.read(), re.MULTILINE)
        except OSError:
            continue
        return found[1] if found else ""
    return ""


def load(name: str) -> Any:
    """A library, or None where it cannot be loaded."""
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


class Cupti:
    """The library, with errors as StreamlintError."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.subscriber = ctypes.c_void_p()
        self.per_thread: set[tuple[int, int]] = set()  # calls, by domain and number, for which no stream is that of their thread
        version = ctypes.c_uint32()
        library.cuptiGetVersion(ctypes.byref(version))
        self.version = version.value
        library.cuptiActivityGetNextRecord.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Raises StreamlintError where it returns an error."""
        status = getattr(self.library, name)(*arguments)
        if status:
            raise StreamlintError(f"CUPTI cannot record: {_MEANINGS.get(status) or f'{name} returned {status}'}")

    def has(self, name: str) -> bool:
        return hasattr(self.library, name)

    def now(self) -> int:
        """The clock of all records, in nanoseconds."""
        time = ctypes.c_uint64()
        self.library.cuptiGetTimestamp(ctypes.byref(time))
        return time.value

    def names(self, domain: int) -> dict[int, str]:
        """The calls of a domain, by number, without versions."""
        found, name = {}, ctypes.c_char_p()
        for number in range(1, _LAST_CALL):
            if not self.library.cuptiGetCallbackName(domain, number, ctypes.byref(name)) and name.value:
                found[number] = kinds.plain(name.value.decode())
                if name.value.endswith(_PER_THREAD):
                    self.per_thread.add((domain, number))
        return {number: name for number, name in found.items() if name.startswith("cu")}

    def subscribe(self, called: object) -> None:
        """Have a C function called at the calls that :meth:`tell` names."""
        self.call("cuptiSubscribe", ctypes.byref(self.subscriber), called, None)

    def tell(self, domain: int, number: int) -> None:
        """Have the subscribed function called at the beginning and the end of a call."""
        self.library.cuptiEnableCallback(1, self.subscriber, domain, number)

    def record(self, names: dict[int, dict[int, str]], *, calls: bool) -> None:
        """Have records made of work on the device, and of all calls that take time if nobody else makes them."""
        self.library.cuptiSetThreadIdType(_SYSTEM_THREADS)
        size, empty = ctypes.c_size_t(1), ctypes.c_uint8(1)
        self.library.cuptiActivitySetAttribute(_LENT_EMPTY, ctypes.byref(size), ctypes.byref(empty))  # older ones do not know it
        for kind in (*layouts.KINDS, *([layouts.SYNCHRONIZATION] if calls else [])):
            self.call("cuptiActivityEnable", kind)
        with_existing = self.has("cuptiActivityEnableAndDump")
        getattr(self.library, "cuptiActivityEnableAndDump" if with_existing else "cuptiActivityEnable")(layouts.STREAM)
        if not calls:
            return
        without = {layouts.DRIVER: "cuptiActivityEnableDriverApi", layouts.RUNTIME: "cuptiActivityEnableRuntimeApi"}
        for kind, domain in ((layouts.DRIVER, DRIVER_CALLS), (layouts.RUNTIME, RUNTIME_CALLS)):
            self.call("cuptiActivityEnable", kind)  # single calls that are enabled instead give no records once CUDA is in use
            if self.has(without[kind]):
                for number, name in names[domain].items():
                    if not takes_time(name):
                        getattr(self.library, without[kind])(number, 0)

    def flush(self, *, forced: bool = False) -> None:
        """Have the finished records delivered; forced: all."""
        self.library.cuptiActivityFlushAll(_FORCED if forced else 0)

    def size_of(self, address: int, offset: int, length: int) -> int:
        """The length of the record at an offset of a buffer, by where CUPTI finds the next one: what is left, if there is none."""
        following = ctypes.c_void_p(address + offset)
        status = self.library.cuptiActivityGetNextRecord(address, length, ctypes.byref(following))
        size = 0 if status else (following.value or 0) - address - offset
        return size if size > 0 else length - offset

    def close(self, leaves: Callable[[Any, Callable[[], object]], bool] | None = None) -> bool:
        """Record no more. Returns whether CUPTI left the process, as it can if ``leaves`` calls a function at the end of a call: else
        launches stay slow.

        NVIDIA's reference recommends that place, and versions before CUDA 12.6 crash behind it in programs with CUDA graphs.
        """
        for kind in (*layouts.KINDS, layouts.STREAM, layouts.SYNCHRONIZATION, layouts.DRIVER, layouts.RUNTIME):
            self.library.cuptiActivityDisable(kind)
        driver = load("libcuda.so.1") if leaves is not None and self.version >= _LEAVES and self.has("cuptiFinalize") else None
        if driver is not None and leaves is not None:
            self.tell(DRIVER_CALLS, next((number for number, name in self.names(DRIVER_CALLS).items() if name == _ASKED), 0))
            if leaves(self.library.cuptiFinalize, lambda: driver.cuDriverGetVersion(ctypes.byref(ctypes.c_int()))):
                return True
        self.library.cuptiUnsubscribe(self.subscriber)
        return False


def open_cupti() -> Cupti:
    """The library. Raises StreamlintError where there is none, or no driver."""
    if load("libcuda.so.1") is None:
        raise StreamlintError("there is no CUDA driver on this machine (libcuda.so.1): a run is recorded where it has a GPU")
    for path in library_paths():
        library = load(path)
        if library is not None and hasattr(library, "cuptiSubscribe"):
            return Cupti(library)
    raise StreamlintError("CUPTI is not installed: `pip install nvidia-cuda-cupti` (CUDA 12: nvidia-cuda-cupti-cu12), or set CUDA_HOME")


def takes_time(name: str) -> bool:
    """Whether a call (by its plain name) does more than ask or set a word."""
    return not _CHEAP.search(name)


def gpu_name() -> str:
    """The name of the first GPU, empty while this process has not used one."""
    driver, device, name = load("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(256)
    if driver is None or driver.cuDeviceGet(ctypes.byref(device), 0) or driver.cuDeviceGetName(name, len(name), device):
        return ""
    return name.value.decode(errors="replace")


def require_gpu() -> None:
    """Raise StreamlintError where no GPU can be used. The driver is asked in a forked child: one that has used CUDA cannot be forked."""
    driver = load("libcuda.so.1")
    if driver is None:
        open_cupti()
    child = os.fork()
    if not child:
        os._exit(min(driver.cuInit(0), 255))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise StreamlintError(f"no GPU can be used on this machine (cuInit returned {status}): a run is recorded where it has a GPU")
