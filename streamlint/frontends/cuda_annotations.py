"""Before the parse: annotations of compilers and libraries, which the grammar stumbles over, are blanked.

The text keeps its length, so offsets stay those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from streamlint.frontends.cuda_preprocess import blank, masked

Edit = tuple[int, int, str]  # begin, end, and the word that is put there in place of the text

_WORDS = re.compile(
    r"\b(?:__restrict__|__restrict|CUDART_CB|CUDA_CB|CUDAAPI|CUDARTAPI|CURANDAPI|__stdcall|__cdecl|__fastcall|__forceinline__|__forceinline|__noinline__|__inline__"
    r"|__grid_constant__|__extension__|__inline|__volatile__|TORCH_API|C10_UNUSED|PYBIND11_NOINLINE)\b"
)
_CALLED = re.compile(
    r"\b(?:__align__|__launch_bounds__|__attribute__|__attribute|__declspec|alignas|__cluster_dims__|__maxnreg__|__block_size__)\s*(?=\()"
)
_CALLED_WORDS = ("__align", "__launch", "__attr", "__decl", "alignas", "__cluster", "__maxnreg", "__block_size")
_ASSEMBLY = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:volatile|goto|__volatile__|\s)*(?=\()")
_BRACKETS = re.compile(r"\[\[[^\[\]]*\]\]")
_IN_LAMBDA = re.compile(r"(?<=[\])])(?:\s*(?:__host__|__device__)\b)+(?=\s*(?:mutable\b|[({]|->))")
_EXPORT = re.compile(
    r"\b(_*[A-Z][A-Z0-9_]+)(?=\s+(?:_*[A-Z][A-Z0-9_]+\s+)*"
    r"(?:(?:void|int|bool|float|double|char|auto|unsigned|size_t|static|inline|constexpr|explicit|virtual|template|class|struct|enum|typename|extern"
    r"|__global__|__device__|__host__)\b|(?!const\b|volatile\b)[A-Za-z_][\w:]*(?:<[^;{}()<>]*>)?[\s*&]+(?!const\b)[A-Za-z_~][\w:]*\s*[;({=\[]"
    r"|const\s+[\w:]+\s*[*&]*\s+[*&]*\w+\s*\())"
)
_BEFORE_EXPORT = re.compile(r"(?:[;{}>:]|\b(?:static|inline|extern|virtual|constexpr|friend|explicit)|\A|extern \"_\")\s*\Z")
_EXPORTED_CLASS = re.compile(r"\b(?:class|struct|namespace)\s+([A-Z][A-Z0-9_]{2,})\s+(?=[A-Za-z_]\w*\s*(?:final\s*)?(?:[:{]|$))", re.M)
_BOUND_CLASS = re.compile(r"\bclass_\s*<")
_MEMBER_POINTER = re.compile(r"(?<=\()\s*\w+(?:\s*<[^<>()]*>)?(?:\s*::\s*\w+(?:\s*<[^<>()]*>)?)*\s*::\s*(?=\*\s*\)\s*\()")
_QUALIFIERS = re.compile(r"\s*(?:const\b\s*)?(?:volatile\b\s*)?(?:&&?\s*)?(?:noexcept\b\s*)?(?=[)>,;])")
_UNSIGNED = re.compile(r"(?<=[=(,+\-*/<>?:&|])\s*\bunsigne(d)\s*(?=\()")


def without_annotations(text: str, mask: str = "", assembly: bool = False) -> tuple[str, list[int]]:
    """``text`` with what the grammar stumbles over blanked, and the offsets of lambdas that are device code. ``assembly`` may stay."""
    mask = mask or masked(text)
    edits = _blanked(_BRACKETS.finditer(mask))
    if "__" in mask or "CUDA" in mask or "API" in mask:
        edits += _blanked(_WORDS.finditer(mask))
    if any(word in mask for word in _CALLED_WORDS):
        edits += _calls(_CALLED, mask)
    if "asm" in mask and not assembly:
        edits += _calls(_ASSEMBLY, mask)
    edits += [(match.start(1), match.end(1), "D") for match in _UNSIGNED.finditer(mask)]
    edits += [(match.start(1), match.end(1), _space(match.group(1))) for match in _EXPORTED_CLASS.finditer(mask)]
    edits += _exports(mask) + _holders(mask) + _member_pointers(mask)
    text, mask = _edited(text, edits), _edited(mask, edits)
    lambdas = [match for match in _IN_LAMBDA.finditer(mask) if "__device__" in match.group() or "__host__" in match.group()]
    device = [match.start() for match in lambdas if "__host__" not in match.group()]
    return _edited(text, _blanked(lambdas)), device


def _blanked(matches: Iterable[re.Match[str]]) -> list[Edit]:
    return [(match.start(), match.end(), "") for match in matches]


def _calls(names: re.Pattern[str], mask: str) -> list[Edit]:
    """The annotations that take arguments in parentheses."""
    return [(match.start(), _after_parenthesis(mask, match.end()), "") for match in names.finditer(mask)]


def _exports(mask: str) -> list[Edit]:
    """Macros in capitals before a declaration, where one begins."""
    found: list[Edit] = []
    for match in _EXPORT.finditer(mask):
        start = match.start(1)
        after_other = bool(found) and not mask[found[-1][1] : start].strip()
        if after_other or _BEFORE_EXPORT.search(mask, max(0, start - 60), start):
            found.append((start, match.end(1), _space(match.group(1))))
    return found


def _member_pointers(mask: str) -> list[Edit]:
    """The class in ``(void (Pool::*)(int) const)``, which leaves a pointer to a function, and qualifiers behind the parameters."""
    found: list[Edit] = []
    for match in _MEMBER_POINTER.finditer(mask) if "::*" in mask else ():
        behind = _after_parenthesis(mask, mask.index("(", match.end()))
        qualifiers = _QUALIFIERS.match(mask, behind)
        found.append((match.start(), match.end(), ""))
        if qualifiers is not None:
            found.append((behind, qualifiers.end(), ""))
    return found


def _holders(mask: str) -> list[Edit]:
    """What stands behind the class in ``py::class_<Rows<T>, std::unique_ptr<Rows<T>>>(m, …)``: the grammar takes it for comparisons."""
    found: list[Edit] = []
    for match in _BOUND_CLASS.finditer(mask) if "class_" in mask else ():
        depth, comma = 1, 0
        for part in re.compile(r"[<>,;{}]").finditer(mask, match.end()):
            depth += {"<": 1, ">": -1}.get(part.group(), 0)
            if not depth or part.group() in ";{}":
                found += [(comma, part.start(), "")] if comma and not depth else []
                break
            if depth == 1 and part.group() == ",":
                comma = comma or part.start()
    return found


def _space(word: str) -> str:
    return "__device__" if "DEVICE" in word and "HOST" not in word else ""


def _edited(text: str, edits: list[Edit]) -> str:
    if not edits:
        return text
    pieces: list[str] = []
    done = 0
    for start, end, word in sorted(edits):
        if start < done:
            continue
        old = text[start:end]
        pieces += [text[done:start], word + blank(old)[len(word) :] if len(word) <= len(old) else blank(old)]
        done = end
    return "".join([*pieces, text[done:]])


def _after_parenthesis(mask: str, start: int) -> int:
    depth = 0
    for match in re.compile(r"[()]").finditer(mask, start):
        depth += 1 if match.group() == "(" else -1
        if not depth:
            return match.end()
    return start
