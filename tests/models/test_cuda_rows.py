"""The rows of the CUDA files against the contract and against the headers of the toolkit, where there is one."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from streamlint.models import Models, Row, is_covered, load, load_file
from streamlint.models.vocabulary import Selector

FILES = ("cuda_runtime", "cuda_driver", "cuda_libraries", "thrust", "torch_cpp", "torch_stable", "rapids", "host_cpp")
FOLDER = Path(__file__).parents[2] / "streamlint" / "models"

# In the rows but not in the index: HIP functions under the name that is looked up, and what no C header declares.
HIP = {
    *("cudaHostMalloc", "cudaHostFree", "cudaMemcpyWithStream", "cudaLaunchKernelGGL", "cudaModuleLaunchKernel"),
    *("cudaMemcpyHtoD", "cudaMemcpyDtoH", "cudaMemcpyDtoD", "cudaMemcpyHtoDAsync", "cudaMemcpyDtoHAsync", "cudaMemcpyDtoDAsync"),
}
INLINE = {"make_cudaPitchedPtr", "make_cudaExtent", "make_cudaPos", "__cudaPushCallConfiguration", "__cudaPopCallConfiguration"}
# What CUDA 12 removed, and a name that cuda.h gives by a macro.
REMOVED = {"cudaUnbindTexture", "cudaGetTextureReference", "cudaBindSurfaceToArray", "cuGraphInstantiateWithFlags"}

# Rows whose stream parameter is what they are about, not where they work.
ABOUT_STREAMS = {"none", "stream", "destroy", "synchronize", "query", "unknown"}

SPELLING = re.compile(r"_v\d$")
SAID: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[2] / "benchmarks" / "cuda_headers.json").read_text(encoding="utf-8")
)
"""Each function of the headers with its parameters, by the versions of CUDA (``benchmarks/cuda_headers.py``)."""


def toolkit() -> Path | None:
    """The include folder of a CUDA toolkit."""
    places = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    if compiler := shutil.which("nvcc"):
        places.append(str(Path(compiler).resolve().parents[1]))
    folders = [Path(place) for place in places if place] + sorted(Path("/usr/local").glob("cuda-*"), reverse=True)
    return next((folder / "include" for folder in folders if (folder / "include" / "cuda_runtime_api.h").exists()), None)


INCLUDE = toolkit()
needs_headers = pytest.mark.skipif(INCLUDE is None, reason="no cuda_runtime_api.h under CUDA_HOME, /usr/local/cuda* or beside nvcc")


def split_parameters(text: str) -> list[str]:
    """The parameters of a prototype, split at top-level commas."""
    depth, parts, start = 0, [], 0
    for index, letter in enumerate(text):
        depth += (letter in "(<{[") - (letter in ")>}]")
        if letter == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part.strip() for part in parts]


def closing(text: str, start: int) -> int:
    """Where the bracket closes that opened just before ``start``."""
    depth, index = 1, start
    while depth and index < len(text):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        index += 1
    return index - 1


def plain(path: Path) -> str:
    """A header without comments and preprocessor lines."""
    text = path.read_text(errors="replace").replace("\\\n", " ")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"^\s*#.*$", "", re.sub(r"//[^\n]*", "", text), flags=re.MULTILINE)


def forms_of(name: str) -> list[list[str]]:
    """The forms of a function; cuX_v2 stands in cuda.h as cuX, renamed by a macro."""
    return list((SAID.get(name) or SAID.get(SPELLING.sub("", name), {})).values())


def stream_positions(name: str) -> set[int]:
    return {
        index
        for parameters in forms_of(name)
        for index, parameter in enumerate(parameters)
        if re.match(r"(?:cudaStream_t|CUstream) \w", parameter)
    }


@functools.cache
def models() -> Models:
    return load("cuda", ())


def own_rows() -> list[tuple[str, Row]]:
    """(name, row) of the exact names of the runtime and driver files."""
    rows = models().calls.items()
    return [(name, row) for name, row in rows if row.library in ("cuda-runtime", "cuda-driver") and name in row.names]


@pytest.mark.parametrize("name", FILES)
def test_file_loads(name: str) -> None:
    data = load_file(FOLDER / f"{name}.toml")
    assert data.pop("language") == "cuda"
    table = Models()
    table.add(data, name)
    assert table.calls
    assert table.types


def test_triggers() -> None:
    triggers = models().triggers
    assert all(len(trigger) >= 5 or trigger in ("<<<", "<< <", "hipM") for trigger in triggers)
    assert len(triggers) <= 40


def test_no_name_twice() -> None:
    """A second row of a name would win silently."""
    seen: dict[str, str] = {}
    twice = []
    for file in FILES:
        data = load_file(FOLDER / f"{file}.toml")
        for kind in ("call", "attribute", "type", "constant"):
            for table in data.get(kind, ()):
                for name in [table["names"]] if isinstance(table["names"], str) else table["names"]:
                    key = f"{kind} {name}"
                    if key in seen:
                        twice.append((key, seen[key], file))
                    seen[key] = file
    assert not twice


def test_async_says_so() -> None:
    wrong = []
    for name, row in own_rows():
        if row.effect in ("copy", "memset") and row.get("asynchronous") is not bool(re.search(r"Async", name)):
            wrong.append(name)
        if row.effect == "copy" and row.get("asynchronous") is False and name != "cudaMemcpyWithStream" and row.get("stream") != "null":
            wrong.append(name)
    assert not wrong


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("cudaMemcpyAsync", "copy"),
        ("cuMemcpyHtoDAsync_v2", "copy"),
        ("cublasSgemm_v2", "launch"),
        ("cublasSsyrk_v2", "launch"),
        ("cublasSetMathMode", "none"),
        ("cublasSetMatrixAsync", "copy"),
        ("cudnnConvolutionForward", "launch"),
        ("cudnnGetConvolutionForwardAlgorithm_v7", "none"),
        ("cudnnGetConvolutionForwardWorkspaceSize", "none"),
        ("cudnnCreateTensorDescriptor", "none"),
        ("cusparseSpMV", "launch"),
        ("cusparseSpMV_bufferSize", "none"),
        ("cusolverDnSgetrf", "launch"),
        ("cusolverDnSgetrf_bufferSize", "none"),
        ("cufftExecC2C", "launch"),
        ("curandGenerateUniform", "launch"),
        ("ncclAllReduce", "launch"),
        ("thrust::sort_by_key", "launch"),
        ("cub::DeviceReduce::Sum", "launch"),
        ("cub::DeviceSomething::New", "launch"),
        ("cudaGraphAddKernelNode", "none"),
        ("cudaGraphAddHostNode", "callback"),
        ("at::cuda::getCurrentCUDAStream", "stream_of"),
        ("std::move", "move"),
    ],
)
def test_lookup(name: str, effect: str) -> None:
    row = models().call(name)
    assert row is not None
    assert row.effect == effect


def test_methods_follow_bases() -> None:
    row = models().method("torch::Tensor", "copy_", "::")
    assert row is not None
    assert row.effect == "copy"


def test_names_exist() -> None:
    absent = sorted(name for name, _ in own_rows() if not forms_of(name) and name not in HIP and name not in REMOVED and name not in INLINE)
    assert not absent
    assert not [name for name in (*HIP, *REMOVED) if name in SAID]


def test_patterns_match_something() -> None:
    rows = [(name, pattern) for name, pattern, row in models()._patterns if row.library in ("cuda-runtime", "cuda-driver")]
    idle = {name for name, pattern in rows if not any(is_covered(pattern, word) for word in SAID)}
    # Gone with CUDA 12: texture references. In the headers of the graphics APIs: what registers their resources.
    assert idle == {"cudaBindTexture*", "cudaGraphics*Register*", "cuGraphics*Register*"}


def test_each_function_has_a_row() -> None:
    """One with the effect `none` says that the function does nothing that matters here."""
    assert not [name for name in SAID if models().call(name) is None]


def test_stream_positions() -> None:
    wrong = []
    for name, row in own_rows():
        stream = row.get("stream")
        places = stream_positions(name)
        if isinstance(stream, Selector) and stream.kind == "argument" and forms_of(name) and stream.position not in places:
            wrong.append(f"{name}: row {stream.position}, header {sorted(places)}")
        if not isinstance(stream, Selector) and places and row.effect not in ABOUT_STREAMS:
            wrong.append(f"{name}: row none, header {sorted(places)}")
    assert not wrong


def test_defaulted_streams() -> None:
    """A stream that the header gives a default has `=null`, and no other has (but the templates of cudaLaunchKernel)."""
    wrong = []
    for name, row in own_rows():
        stream = row.get("stream")
        if not isinstance(stream, Selector) or stream.kind != "argument" or stream.position is None or not forms_of(name):
            continue
        defaulted = any(
            stream.position < len(form) and re.search(r"__dv\(0\)|=\s*0|=\s*nullptr", form[stream.position]) for form in forms_of(name)
        )
        if defaulted != (stream.default == "null"):
            wrong.append(f"{name}: row {stream.default}, header {defaulted}")
    assert not wrong


def test_direction_positions() -> None:
    wrong = []
    for name, row in own_rows():
        direction = row.get("direction")
        if isinstance(direction, Selector) and forms_of(name):
            type_ = "Parms" if direction.field else "cudaMemcpyKind"
            kinds = {index for form in forms_of(name) for index, parameter in enumerate(form) if type_ in parameter}
            if direction.position not in kinds:
                wrong.append(f"{name}: row {direction.position}, header {sorted(kinds)}")
    assert not wrong


def test_buffer_positions() -> None:
    """What a row calls a destination, source or size is named so in the header."""
    wrong = []
    # (in the runtime headers; devPtr and symbol are the other spellings, dptr and srcHost the driver's)
    spelling = {
        "dst": r"\b(dst\w*|symbol|devPtr|pitchedDevPtr)$",
        "src": r"\b(src\w*|symbol)$",
        "bytes": r"\b(count|size|bytesize|ByteCount|byteCount)$",
        "of": r"\b(symbol|ptr|p|devPtr|dptr|pHost|array|\w*Array|stream|hStream|event|hEvent|graph\w*|hGraph\w*|\w*[pP]ool|ctx|"
        r"hMipmappedArray)$",
    }
    for name, row in own_rows():
        for key, pattern in spelling.items():
            selector = row.get(key)
            if not isinstance(selector, Selector) or selector.position is None or selector.field or not forms_of(name):
                continue
            forms = [form[selector.position].split("=")[0].strip() for form in forms_of(name) if selector.position < len(form)]
            if not any(re.search(pattern, re.sub(r"__dv\(.*\)", "", form).strip()) for form in forms):
                wrong.append(f"{name}: {key} at {selector.position} is {forms}")
    assert not wrong


def cub_forms() -> dict[str, list[list[str]]]:
    """The host functions of cub::Device* with their parameters."""
    assert INCLUDE is not None
    folder = next((path for path in (INCLUDE / "cccl" / "cub" / "device", INCLUDE / "cub" / "device") if path.is_dir()), None)
    if folder is None:
        pytest.skip("no CUB headers in the toolkit")
    found: dict[str, list[list[str]]] = defaultdict(list)
    for path in sorted(folder.glob("*.cuh")):
        text, owner = plain(path), ""
        for match in re.finditer(r"\bstruct\s+(Device\w+)\s*\{|\bcudaError_t\s+(\w+)\s*\(", text):
            if match[1]:
                owner = match[1]
                continue
            parameters = split_parameters(text[match.end() : closing(text, match.end())])
            if any("cudaStream_t" in parameter for parameter in parameters):
                found[f"cub::{owner}::{match[2]}"].append(parameters)
    return found


@needs_headers
def test_cub_positions() -> None:
    forms = cub_forms()
    wrong = []
    for name, row in models().calls.items():
        if not name.startswith("cub::Device") or name.endswith("::*"):
            continue
        if name not in forms:
            wrong.append(f"{name}: not in the headers")
            continue
        stream = row.get("stream")
        places = {next(i for i, parameter in enumerate(form) if "cudaStream_t" in parameter) for form in forms[name]}
        if isinstance(stream, Selector) and stream.kind == "argument" and places != {stream.position}:
            wrong.append(f"{name}: row {stream.position}, header {sorted(places)}")
        for key, pattern in (("reads", r"\bd_|in\b|keys|input|begin|values"), ("writes", r"\bd_|out|count|num_runs|keys|values")):
            selectors = row.get(key, ())
            assert isinstance(selectors, tuple)
            for at in (selector.position for selector in selectors):
                if not any(at < len(form) and re.search(pattern, form[at].split("=")[0]) for form in forms[name]):
                    wrong.append(f"{name}: {key} {at}")
    assert not wrong
