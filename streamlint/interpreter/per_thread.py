"""``CUDA_API_PER_THREAD_DEFAULT_STREAM`` in the text: which files it is defined in, and whether it does anything there.

The macro is read once, by ``cuda_runtime_api.h`` (``cuda.h`` for the driver API). nvcc reads that header before the first line of a CUDA
source, so the macro does nothing there; in a C++ source it works if it is defined above the first header that brings the runtime's.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import program as p
from streamlint.build import default_stream_of_python, language_of_source, per_thread_default_stream, per_thread_place, place_in_text
from streamlint.files import shown
from streamlint.findings import Span, Step
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.questions import question

MACRO = "CUDA_API_PER_THREAD_DEFAULT_STREAM"
# Headers that read the runtime's header, whoever includes them, by the beginning of their names.
_RUNTIME = (
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "cudnn.h",
    "nccl.h",
    "cuda_gl_interop.h",
    "thrust/",
    "cub/",
    "c10/cuda/CUDA",
    "ATen/cuda/CUDA",
)
_DRIVER = "cuda.h"
_CUDA_SOURCES = (".cu",)
_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++")


@remembered(256)
def has_per_thread_streams(file: File, default_stream: str) -> bool:
    """Whether the default stream of a C++ file is its thread's own: by its build, or by the macro in its text."""
    if not file.is_cuda or default_stream == "legacy":
        return False
    built = default_stream == "per-thread" or built_per_thread(file) is True
    return built or (MACRO in file.module.text and working_macro(file) is not None)


@remembered(256)
def per_thread_because(file: File, default_stream: str) -> tuple[Step, ...]:
    """What makes the default stream of such a file its thread's own, with the place: the macro in its text, or a build file."""
    if default_stream == "per-thread":
        return ()  # the configuration says so of all files
    if built_per_thread(file) is True:
        place = _place_of(per_thread_place(file.path)) or _place_in_python(file)
    else:
        place = working_macro(file) if MACRO in file.module.text else None
    return () if place is None else (Step("built with per-thread default streams here", place),)


def _place_of(told: str) -> Span | None:
    """A place as ``per_thread_place`` tells it."""
    path, *numbers = told.rsplit(":", 3)
    if len(numbers) != 3:
        return None
    row, start, end = map(int, numbers)
    return Span(shown(path), row, start, row, end)


def _place_in_python(file: File) -> Span | None:
    """Where Python at hand that compiles a file asks for it."""
    name = file.path.rpartition("/")[2]
    for other in file.program.saying(file, "per-thread", "PER_THREAD"):
        text = other.module.text
        if (name in text or other.path == file.path) and default_stream_of_python(_code(other), file.path):
            row, start, end = place_in_text(text)
            return Span(other.path, row, start, row, end)
    return None


def built_per_thread(file: File) -> bool | None:
    """Whether the build gives a file per-thread default streams: build files beside it, and Python at hand that names it (or holds it)."""
    said = per_thread_default_stream(file.path)
    if said or not file.is_cuda:
        return said
    name = file.path.rpartition("/")[2]
    for other in file.program.saying(file, "per-thread", "PER_THREAD"):
        if "tream" in other.module.text and (name in other.module.text or other.path == file.path):
            code = _code(other)
            if "per-thread" in code or "PER_THREAD" in code:
                asked = default_stream_of_python(code, file.path)
                if asked:
                    return True
                said = None if asked is None else said
    return said


def _code(file: File) -> str:
    """A Python file without the C++ that its strings hold."""
    text = file.module.text
    for inner in file.module.inline:
        text = text.replace(inner.text.strip(), "")
    return text


def working_macro(file: File) -> Span | None:
    """The definition of the macro that gives a C++ source per-thread default streams."""
    if compiled_as_cuda(file) is not False:
        return None
    for defined in _definitions(file):
        if _read_above(file, defined.includes_above) is None:
            return Span(file.path, *file.module.position(defined.offset, defined.offset + len(MACRO)))
    return None


@question
def compiled_as_cuda(file: File) -> bool | None:
    """Whether nvcc compiles a file as CUDA; None for a header that both compilers may read, or neither at hand."""
    sources = [file] if file.path.endswith((*_CUDA_SOURCES, *_SOURCES)) else []
    sources += [f for f in file.program.cpp(file) if f is not file and f.path.endswith(_SOURCES + _CUDA_SOURCES) and file in f.neighbours()]
    answers = {_is_cuda_source(source) for source in sources}
    if not sources and file.path.endswith(".py"):
        return True if _launches(file) else None  # C++ in a string: only nvcc takes a launch
    if not sources and file.path.endswith(".cuh"):
        return True if any(function.space != "host" for function, _ in p.functions_of(file.module)) else None
    return answers.pop() if len(answers) == 1 else None


def _is_cuda_source(file: File) -> bool:
    said = language_of_source(file.path)
    return said == "CUDA" if said else file.path.endswith(_CUDA_SOURCES) or _launches(file) is not None


def _launches(file: File) -> Span | None:
    for node in walk_module(file.module):
        if isinstance(node, p.Launch):
            return Span(file.path, *node.at)
    return None


def _definitions(file: File) -> Iterator[p.Defined]:
    for defined in file.module.defined:
        if defined.name == MACRO and file.module.macros.get(MACRO, "") not in ("0", "false"):
            yield defined


def _read_above(file: File, count: int) -> int | None:
    """Which of the first includes has brought the header that reads the macro."""
    includes = file.module.includes
    for number, include in enumerate(includes[:count]):
        if include.startswith(_RUNTIME) or _brings_runtime(file, include):
            return number
    if _DRIVER in includes[:count] and not any(i.startswith(_RUNTIME) or _brings_runtime(file, i) for i in includes[count:]):
        return includes.index(_DRIVER)
    return None


def _brings_runtime(file: File, include: str) -> bool:
    """Whether a header at hand includes the runtime's, and does not define the macro itself."""
    target = file.program.header(include, file)
    if target is None:
        return False
    headers = [target, *target.neighbours()]
    if any(MACRO in other.module.text for other in headers):
        return False
    return any(i.startswith(_RUNTIME) for other in headers for i in other.module.includes)
