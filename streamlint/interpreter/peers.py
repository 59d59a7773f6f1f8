"""What a whole program does not do: let its devices reach each other's memory.

Absence is asked of everything at hand, and only of a program that is whole: its ``main`` is there, and it calls nothing that could
do it out of view.
"""

from __future__ import annotations

import re

from streamlint import program as p
from streamlint.build import build_root, lies_beside
from streamlint.findings import Span
from streamlint.interpreter.index import File, is_declaration, walk_module
from streamlint.interpreter.questions import question

# Whoever names one of these has thought of it; so have PyTorch, CuPy and RMM, and libraries that talk between devices.
_PREPARES = ("EnablePeerAccess", "CanAccessPeer", "MemPoolSetAccess", "MemSetAccess", "P2PAttribute")
_LIBRARIES = ("torch/", "ATen/", "c10/", "rmm/", "cupy/", "nccl", "nvshmem", "ucp/", "ucs/", "cufftXt", "cublasXt", "raft/", "cuda/")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONTEXT = frozenset({"cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4", "cuDevicePrimaryCtxRetain", "cudaInitDevice"})


@question
def program_without_peers(file: File) -> Span | None:
    """Where the program of a file begins, if it is whole and no code in it prepares copies between devices."""
    beginning = _beginning(file)
    if beginning is None:
        return None
    files = _linked(file)
    return beginning if all(_is_closed(f) for f in files if f.is_cuda) and not any(_prepares(f) for f in files) else None


def _linked(file: File) -> list[File]:
    """What may be in one program with a file: what is at hand under its build root, but for other programs if it has a ``main``."""
    near = file.neighbours()
    others = file.program.saying(file, *_PREPARES)  # the rest of Python prepares nothing, and is not asked for more
    files = [f for f in (*file.program.cpp(file), *others) if f in near or _built_together(f, file)]
    if _main(file) is None:
        return files
    return [f for f in files if f is file or _main(f) is None or f in file.neighbours()]


def _built_together(one: File, other: File) -> bool:
    """Whether two files stand under one build root, or one's root is above the other's."""
    roots = sorted((build_root(one.path), build_root(other.path)), key=len)
    return roots[0] == roots[1] or roots[1].startswith(roots[0].rstrip("/") + "/")


def _main(file: File) -> p.Function | None:
    return next((f for f in file.functions.get("main", ()) if not is_declaration(f)), None) if file.is_cuda else None


def _beginning(file: File) -> Span | None:
    """``main``, or the creation of a context, in the file or in one that is built with it."""
    root = build_root(file.path)
    others = [f for f in file.program.cpp(file) if f is not file and build_root(f.path) == root]
    for candidate in (file, *others):
        main = _main(candidate)
        if main is not None:
            return Span(candidate.path, *main.at[:2], main.at[0], main.at[1] + len("main"))
        for node in walk_module(candidate.module):
            if isinstance(node, p.Call) and isinstance(node.function, p.Name) and node.function.id in _CONTEXT:
                return Span(candidate.path, *node.function.at)
    return None


def _prepares(file: File) -> bool:
    text = file.module.text
    if any(word in text for word in _PREPARES):
        text = _COMMENT.sub(" ", text)
    return any(word in text for word in _PREPARES)


def _is_closed(file: File) -> bool:
    """Whether a file calls and includes nothing that could prepare the devices out of view."""
    if any(include.startswith(_LIBRARIES) for include in file.module.includes):
        return False
    if any(_is_own(file, number) and not _is_at_hand(file, include) for number, include in enumerate(file.module.includes)):
        return False
    return not any(
        isinstance(node, p.Call) and isinstance(node.function, p.Name) and _leads_away(file, node.function.id, len(node.args))
        for node in walk_module(file.module)
    )


def _is_own(file: File, number: int) -> bool:
    """Whether an include is written as one of the project's: in quotes."""
    places = file.module.included_at
    return number < len(places) and file.module.text[places[number][0]] == '"'


def _is_at_hand(file: File, include: str) -> bool:
    """Read, or there to be read and without a word of CUDA."""
    return file.program.header(include, file) is not None or lies_beside(file.path, include)


def _leads_away(file: File, name: str, arity: int) -> bool:
    """Whether a function is called that the project declares and does not define."""
    for home in (file, *file.neighbours()):
        found = home.function(name, arity)
        if found is not None:
            return is_declaration(found) and found.space == "host" and file.program.definition(found, home) is None
    return False
