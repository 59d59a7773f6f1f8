"""The functions of the CUDA runtime and driver as their headers declare them, against the rows of ``streamlint/models``.

    python benchmarks/cuda_headers.py index INCLUDE … > benchmarks/cuda_headers.json
    python benchmarks/cuda_headers.py compare

An ``INCLUDE`` is a folder with ``cuda.h`` and ``cuda_runtime_api.h``: of a toolkit, or of an unpacked wheel (``nvidia-cuda-runtime`` for
CUDA 13, ``nvidia-cuda-runtime-cu12``). The index tells, for each function, its parameters and the versions of CUDA that declare it so. The
comparison prints functions without a row, rows without a function, and places of rows that are not in the headers.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

from streamlint.models import Models, Row, is_covered, load
from streamlint.models.vocabulary import Selector

INDEX = Path(__file__).with_suffix(".json")
HEADERS = ("cuda_runtime_api.h", "cuda_runtime.h", "cuda_profiler_api.h", "cuda.h", "cudaProfiler.h")
DECLARED = re.compile(
    r"(?:cudaError_t|CUresult|CUDARTAPI|CUDAAPI|cudaStream_t|char\s*\*|struct\s+\w+)\s+(?:CUDARTAPI\s+|CUDAAPI\s+)?(cu(?:da)?[A-Z]\w+)\s*\("
)
PER_THREAD = re.compile(r"_pt[sd][sz]?$")
FILES = ("cuda-runtime", "cuda-driver")

Forms = dict[str, list[str]]
"""Versions of CUDA, and the parameters that a function has in them: ``type name``, with ``=…`` where one may be left out."""


# --- the headers


def plain(path: Path) -> str:
    """A header without comments and preprocessor lines."""
    text = path.read_text(errors="replace").replace("\\\n", " ")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"^\s*#.*$", "", re.sub(r"//[^\n]*", "", text), flags=re.MULTILINE)


def split_parameters(text: str) -> list[str]:
    """The parameters of a prototype, split at top-level commas."""
    depth, parts, start = 0, [], 0
    for index, letter in enumerate(text):
        depth += (letter in "(<{[") - (letter in ")>}]")
        if letter == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part for part in (tidy(part) for part in parts) if part not in ("", "void")]


def tidy(parameter: str) -> str:
    """A parameter in one form: no tags, no line breaks, its default after ``=``."""
    text = re.sub(r"\b__dv\s*\((.*?)\)$", r"=\1", " ".join(parameter.split()))
    text = re.sub(r"\s*=\s*", "=", re.sub(r"\b(?:struct|enum)\s+", "", text))
    return re.sub(r"\s*([*&]+)\s*", r"\1 ", text).strip()


def closing(text: str, start: int) -> int:
    """Where the bracket closes that opened just before ``start``."""
    depth, index = 1, start
    while depth and index < len(text):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        index += 1
    return index - 1


def declared(folder: Path) -> dict[str, list[list[str]]]:
    """Each function of the headers of a folder with the parameters of all its forms; those for a thread's own stream are the same."""
    found: dict[str, list[list[str]]] = {}
    for header in HEADERS:
        if not (folder / header).exists():
            continue
        text = plain(folder / header)
        for match in DECLARED.finditer(text):
            parameters = split_parameters(text[match.end() : closing(text, match.end())])
            is_call = any(not re.search(r"[\w>*&\]] \*?\w|\.\.\.|\(", parameter) and " " not in parameter for parameter in parameters)
            if not PER_THREAD.search(match[1]) and not is_call:
                forms = found.setdefault(match[1], [])
                if parameters not in forms:
                    forms.append(parameters)
    return found


def version(folder: Path) -> str:
    """Of CUDA, as ``cuda.h`` says it: ``13.0``."""
    number = re.search(r"#define CUDA_VERSION (\d+)", (folder / "cuda.h").read_text(errors="replace"))
    if number is None:
        raise SystemExit(f"{folder}: cuda.h says no version")
    return f"{int(number[1]) // 1000}.{int(number[1]) % 1000 // 10}"


def index(folders: list[Path]) -> dict[str, Forms]:
    """The functions of all versions by name."""
    found: dict[str, dict[str, list[str]]] = {}
    for folder in folders:
        for name, forms in declared(folder).items():
            for form in forms:
                found.setdefault(name, {}).setdefault(json.dumps(form), []).append(version(folder))
    return {name: _by_versions({form: " ".join(versions) for form, versions in forms.items()}) for name, forms in sorted(found.items())}


def _by_versions(forms: dict[str, str]) -> Forms:
    """The second form of the same versions gets a mark: an overload of C++."""
    seen: Counter[str] = Counter()
    found: Forms = {}
    for form, versions in forms.items():
        found[versions + " +" * seen[versions]] = json.loads(form)
        seen[versions] += 1
    return found


def written(functions: dict[str, Forms]) -> str:
    """A line for each function."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(forms)}" for name, forms in functions.items()) + "\n}"


# --- the rows


def known() -> dict[str, Forms]:
    """The committed index."""
    found: dict[str, Forms] = json.loads(INDEX.read_text(encoding="utf-8"))
    return found


def forms_of(functions: dict[str, Forms], name: str) -> list[list[str]]:
    """The forms of a function; cuX_v2 stands in cuda.h as cuX, renamed by a macro."""
    forms = functions.get(name) or functions.get(re.sub(r"_v\d$", "", name), {})
    return list(forms.values())


def rows(models: Models) -> list[tuple[str, Row]]:
    """Name and row of the exact names of the runtime and the driver."""
    return [(name, row) for name, row in models.calls.items() if row.library in FILES and name in row.names]


def without_row(functions: dict[str, Forms], models: Models) -> list[str]:
    """Functions of the headers that no row is about."""
    return [name for name in functions if models.call(name) is None]


def without_function(functions: dict[str, Forms], models: Models) -> list[str]:
    """Names and patterns of rows that no header declares."""
    names = [name for name, _ in rows(models) if not forms_of(functions, name)]
    patterns = [(text, pattern) for text, pattern, row in models._patterns if row.library in FILES]
    return names + [text for text, pieces in patterns if not any(is_covered(pieces, name) for name in functions)]


def misplaced(functions: dict[str, Forms], models: Models) -> list[str]:
    """Places of rows that a function has in no version, and streams where no version has one."""
    wrong = []
    for name, row in rows(models):
        forms = forms_of(functions, name)
        for key, value in row.values.items() if forms else ():
            for one in value if isinstance(value, tuple) else (value,):
                if not isinstance(one, Selector) or one.position is None:
                    continue
                held = [form[one.position] for form in forms if one.position < len(form)]
                is_stream = key != "stream" or one.kind != "argument" or any(re.match(r"(cudaStream_t|CUstream) \w", text) for text in held)
                if not held or not is_stream:
                    wrong.append(f"{name}: {key} = {one.position}, but {forms}")
    return wrong


def changed(functions: dict[str, Forms]) -> list[str]:
    """Functions whose parameters are not the same in all versions."""
    return [name for name, forms in functions.items() if len({key for key in forms if "+" not in key}) > 1]


if __name__ == "__main__":
    if sys.argv[1:2] == ["index"]:
        print(written(index([Path(one) for one in sys.argv[2:]])))
    else:
        said, shipped = known(), load("cuda", ())
        missing = without_row(said, shipped)
        print(len(said), "functions,", len(said) - len(missing), "with a row")
        for title, lines in (
            ("without a row", missing), ("rows without a function", without_function(said, shipped)),
            ("places that no version has", misplaced(said, shipped)), ("parameters that changed", changed(said)),
        ):  # fmt: skip
            print(f"{title}: {len(lines)}", *lines, sep="\n  ")
