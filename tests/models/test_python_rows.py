"""The rows of the Python libraries: they load, and where a library is installed its names and parameters are as the rows say."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import streamlint.models
from streamlint.discovery import triggers
from streamlint.models import ModelError, Models, builtin, load_file
from streamlint.models.vocabulary import Selector, parse_selector

FOLDER = Path(streamlint.models.__file__).parent
# All files about Python, but for one whose rows are no calls, and one whose names are streamlint's own.
FILES = tuple(
    path.stem
    for path in sorted(FOLDER.glob("*.toml"))
    if load_file(path).get("language") == "python" and path.stem not in {"training_steps", "rounds", "cffi"}
)

# Those that are written by hand: names and places of others are PyTorch's own, of its newest version.
BY_HAND = tuple(stem for stem in FILES if not load_file(FOLDER / f"{stem}.toml").get("fallback"))

# The module whose presence means that the names below this first part can be checked.
PROBES = {
    "torch": "torch",
    "torchvision": "torchvision",
    "cupy": "cupy",
    "cupyx": "cupy",
    "numba": "numba.cuda",
    "numpy": "numpy",
    "cuda": "cuda.bindings",
    "tqdm": "tqdm",
    "nvidia": "nvidia.dali",
    **{name: name for name in ("accelerate", "lightning", "lightning_fabric", "torchrec", "torch_geometric", "webdataset")},
    **{name: name for name in ("mlflow", "ray", "safetensors", "tensorboardX", "wandb")},
    **{name: name for name in ("cv2", "imageio", "librosa", "lhotse", "matplotlib", "PIL", "scipy", "skimage", "soundfile", "torchaudio")},
    **{name: name for name in ("apex", "colossalai", "deepspeed", "fairscale", "opacus", "peft")},
    "megatron": "megatron.core",
    **{name: name for name in ("causal_conv1d", "diff_gaussian_rasterization", "diff_surfel_rasterization", "einops", "flash_attn")},
    **{name: name for name in ("fused_ssim", "gsplat", "lpips", "mamba_ssm", "nerfacc", "nvdiffrast", "pytorch_msssim", "simple_knn")},
    **{name: name for name in ("torch_cluster", "torch_scatter", "torch_sparse", "torchmetrics", "transformers", "xformers")},
    **{name: name for name in ("codetiming", "fvcore", "ignite", "mmcv", "mmengine", "pytorch_lightning")},
}

# Names that the installed version need not have, with the reason.
ABSENT = (
    (r"threading\.Lock\.acquire", "threading.Lock is a function before Python 3.13"),
    (r"(numpy\.)?pointer($|\.)", "a name of streamlint's own for an address"),
    (r"cuda\.(cudart|cuda)\.", "the names of cuda-python before 12.6"),
    (r"cuda\.core\.experimental\.", "the names of cuda.core before 1.0"),
    (r"cuda\.core\.Buffer\.handle|cuda\.core\.Device\.default_stream", "a property of cython objects"),
    (r"cuda\.bindings\.runtime\.cudaGraphInstantiateWithFlags", "only in CUDA 11 and 12"),
    (r"torch\.cuda\._cudart", "what torch.cuda.cudart() returns, which needs a driver"),
    (r"torch\.accelerator\.(memory\.)?empty_cache", "torch.accelerator.empty_cache came with 2.9"),
    (r"numba\.cuda\.(legacy|per_thread)_default_stream", "of numba-cuda"),
    (r"torch\.cuda\.(External)?Stream\.(cuda_stream|device|device_index|priority)", "set on instances"),
    (r"cupy\.cuda\.(stream\.)?(Stream|ExternalStream|Event|PinnedMemory)\.ptr", "set on instances"),
    (r"numba\.cuda\.cudadrv\.devicearray\.DeviceNDArray\.(shape|dtype|size|ndim|alloc_size|strides|gpu_data)", "set on instances"),
    (r"numba\.cuda\.cudadrv\.driver\.Stream\.handle", "set on instances"),
    (r"torch\.nn\.Module\.(module|_orig_mod)", "set on instances of what is put around a module"),
    (r"torch\.distributed\._composable\.", "left out of newer versions one by one"),
    (r"gsplat\.(rasterize_gaussians|rasterize\.|sh\.|project_gaussians)", "of gsplat before 1.0"),
    (r"peft\.mapping(_func)?\.get_peft_model", "moved between versions"),
    (r"megatron\.core\.pipeline_parallel\.Schedule", "a name of streamlint's own for what get_forward_backward_func gives"),
    (r"tqdm\.rich\.tqdm", "only where rich is installed"),
    (r"multiprocessing\.synchronize\.Lock\.|multiprocessing\.context\.BaseContext\.Process", "set on instances and subclasses"),
    (r"(builtins\.)?str\.format|multiprocessing\.Queue\.", "a method of what a function returns"),
)

# What the documentation of torch's C functions gets wrong or leaves out: tried with torch 2.13.
TOLERATED = {
    "out",  # one row holds functions with and without it
    "pin_memory",  # taken by every factory, documented by few
}
UNDOCUMENTED = {
    ("torch.Tensor.narrow", "dim"),
    ("torch.Tensor.copy_", "other"),
    ("torch.Tensor.type_as", "other"),
    ("torch.Tensor.to", "tensor"),
}


def rows(stem: str) -> list[tuple[str, dict[str, Any]]]:
    """(table, row) of a model file."""
    data = load_file(FOLDER / f"{stem}.toml")
    return [(table, row) for table in ("type", "call", "attribute", "constant") for row in data.get(table, ())]


def names_of(row: dict[str, Any]) -> list[str]:
    names = row["names"]
    return [names] if isinstance(names, str) else list(names)


def is_installed(name: str) -> bool:
    probe = PROBES.get(name.split(".")[0])
    if probe is None:
        return True
    return import_quietly(probe) is not None


@functools.cache
def import_quietly(name: str) -> Any:
    """The module, or None where it cannot be imported (no library, no CUDA)."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


@functools.cache
def find(name: str) -> Any:
    """What a dotted name stands for, or None."""
    parts = name.split(".")
    if len(parts) == 1:
        parts = ["builtins", name]
    for length in range(len(parts) - 1, 0, -1):
        value = import_quietly(".".join(parts[:length]))
        if value is None:
            continue
        for part in parts[length:]:
            # The dictionary first: reading a descriptor of a class may run code (cupy's Stream.null does not, torch's Tensor.grad does).
            if inspect.isclass(value):
                known = next((vars(base)[part] for base in value.__mro__ if part in vars(base)), None)
                value = getattr(value, part, known)
            else:
                try:
                    value = getattr(value, part, None)
                except ImportError:
                    return NotImplemented  # a name that is loaded when it is asked for, and lacks what it needs
            if value is None:
                break
        if value is not None:
            return value
    return None


def exempt(name: str) -> bool:
    return any(re.match(pattern, name) for pattern, _ in ABSENT)


def parameters(name: str) -> tuple[list[str], set[str], bool] | None:
    """Positional names, keyword names, and whether there are ``*args`` or ``**kwargs``; None where nobody tells.

    C and Cython functions say it in the first line of their documentation.
    """
    value = find(name)
    if value is NotImplemented:
        return None
    method = name.rpartition(".")[0]
    owner = find(method) if method else None
    skip_self = inspect.isclass(owner) and not isinstance(vars(owner).get(name.rpartition(".")[2]), staticmethod | classmethod)
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return documented(value, name.rpartition(".")[2])
    kinds = inspect.Parameter
    found = list(signature.parameters.values())
    if any(item.kind is kinds.VAR_POSITIONAL for item in found) and any(item.kind is kinds.VAR_KEYWORD for item in found):
        return documented(value, name.rpartition(".")[2])
    positional = [item.name for item in found if item.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    if skip_self and not inspect.isclass(value) and positional[:1] in (["self"], ["cls"]):
        positional = positional[1:]
    keywords = {item.name for item in found if item.kind in (kinds.KEYWORD_ONLY, kinds.POSITIONAL_OR_KEYWORD)}
    return positional, keywords, any(item.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) for item in found)


def documented(value: Any, short: str) -> tuple[list[str], set[str], bool] | None:
    first = next((line for line in (getattr(value, "__doc__", None) or "").splitlines() if line.strip()), "")
    found = re.match(rf"\s*(?:[\w.]+\.)?{re.escape(short)}\(([^()]*(?:\([^()]*\)[^()]*)*)\)", first)
    if not found:
        return None
    positional, keywords, variable, only = [], set(), False, False
    for item in found[1].split(","):
        text = item.split("=")[0].split(":")[0].replace("\\", "").strip("[] ")
        if not text or text == "self" or text == "/":
            continue
        if text.startswith("*"):
            only, variable = True, variable or len(text) > 1
            continue
        word = text.split()[-1]
        keywords.add(word)
        if not only:
            positional.append(word)
    return positional, keywords, variable


def selectors(row: dict[str, Any]) -> list[tuple[str, Selector]]:
    found = []
    for key, value in row.items():
        if key in ("names", "effect", "type", "library"):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and re.match(r"!?(\d|:\w)", item):
                place = item.partition("=")[0] if key == "waits_if" else item.lstrip("!")
                found.append((key, parse_selector(place)))
    return found


@pytest.mark.parametrize("stem", FILES)
def test_file_loads_by_itself(stem: str) -> None:
    models = Models()
    data = load_file(FOLDER / f"{stem}.toml")
    assert data.pop("language") == "python"
    models.add(data, stem)
    assert models.calls or models.operators


def test_all_together() -> None:
    models = builtin("python")
    assert {"torch", "cupy", "numba", "cuda_python", "python"} <= models.libraries
    assert all(len(trigger) >= 5 for trigger in models.triggers)
    assert len(triggers.builtin("python")) <= 2.5 * triggers.MOST_WORDS  # two matchers


def test_no_name_stands_twice() -> None:
    seen: dict[tuple[str, str], str] = {}
    for stem in FILES:
        for table, row in rows(stem):
            for name in names_of(row):
                assert (table, name) not in seen, f"{name} in {stem} and {seen[table, name]}"
                seen[table, name] = stem


@pytest.mark.parametrize("stem", FILES)
def test_types_of_results_are_known(stem: str) -> None:
    known = builtin("python").types
    for _, row in rows(stem):
        if "type" in row:
            assert row["type"] in known, row
        if "base" in row:
            assert row["base"] in known, row


@pytest.mark.parametrize("stem", BY_HAND)
def test_names_exist(stem: str) -> None:
    missing, checked = [], 0
    for _, row in rows(stem):
        for name in names_of(row):
            if "*" in name or exempt(name) or not is_installed(name):
                continue
            checked += 1
            if find(name) is None:
                missing.append(name)
    if not checked:
        pytest.skip(f"no library of {stem}.toml can be imported here")
    assert not missing, "no such names; a library that need not be installed has an entry in PROBES"


@pytest.mark.parametrize("stem", BY_HAND)
def test_positions_and_keywords_agree(stem: str) -> None:
    wrong, checked = [], 0
    for table, row in rows(stem):
        if table != "call":
            continue
        for name in names_of(row):
            if "*" in name or exempt(name) or not is_installed(name) or not (known := parameters(name)):
                continue
            positional, keywords, variable = known
            for key, selector in selectors(row):
                if selector.kind != "argument" or selector.keyword is None:
                    continue
                if (name, selector.keyword) in UNDOCUMENTED or selector.keyword in TOLERATED:
                    continue
                checked += 1
                place = selector.position
                in_place = place is not None and place < len(positional) and positional[place] == selector.keyword
                if place is not None and not in_place and not variable:
                    wrong.append(f"{name}: {key} = {place}:{selector.keyword}, but {positional}")
                elif place is None and selector.keyword not in keywords and not variable:
                    wrong.append(f"{name}: {key} = :{selector.keyword}, but {sorted(keywords)}")
    if not checked:
        pytest.skip(f"no signature of {stem}.toml can be read here")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("self", Selector("self")),
        ("2", Selector("argument", 2)),
        ("2:stream", Selector("argument", 2, "stream")),
        (":out", Selector("argument", None, "out")),
        ("1:stream=null", Selector("argument", 1, "stream", "null")),
        ("&0", Selector("pointee", 0)),
        ("*", Selector("all")),
        ("result", Selector("result")),
    ],
)
def test_selectors_parse(text: str, expected: Selector) -> None:
    assert parse_selector(text) == expected


@pytest.mark.parametrize("text", ["", "stream", "-1", "=null", "2;stream"])
def test_no_selector(text: str) -> None:
    with pytest.raises(ModelError, match="is no selector"):
        parse_selector(text)


def one_call(**row: object) -> dict[str, Any]:
    return {"version": 1, "library": "mine", "call": [{"names": "mine.call", **row}]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (one_call(effect="synchronise"), "did you mean 'synchronize'"),
        (one_call(effect="copy", destination="0"), "has no 'destination'"),
        (one_call(effect="copy", asynchron="0"), "did you mean 'asynchronous'"),
        (one_call(effect="copy", direction="h2h2"), "did you mean 'h2h'"),
        (one_call(effect="copy", dst="first"), "'first' is no selector"),
        (one_call(effect="compute", waits="yes"), "must be true or false"),
        ({"version": 2}, "version 2 is not known"),
        ({"calls": []}, "did you mean 'call'"),
        ({"call": [{"effect": "none"}]}, "a row without 'names'"),
        ({"type": [{"names": "mine.Stream", "kind": "streams"}]}, "did you mean 'stream'"),
        ({"type": [{"names": "mine.Stream"}]}, "a type row needs 'kind'"),
        ({"constant": [{"names": "mine.H2D", "value": "h2dd"}]}, "did you mean 'h2d'"),
    ],
)
def test_errors_name_the_nearest_word(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        Models().add(data, "mine.toml")


def test_negated_flags() -> None:
    row = builtin("python").call("cupy.cuda.Stream")
    assert row is not None
    blocking = row.get("blocking")
    assert isinstance(blocking, Selector)
    assert blocking.negated
    assert blocking.keyword == "non_blocking"


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("torch.Tensor.item", "read"),
        ("torch.Tensor.add_", "compute"),
        ("torch.Tensor.matmul", "compute"),
        ("torch.Tensor.__add__", "compute"),
        ("torch.nn.Linear", "object"),
        ("torch.nn.functional.relu", "compute"),
        ("torch.nn.Module.cuda", "module_to"),
        ("torch.cuda.memory_allocated", "none"),
        ("torch.cuda.utilization", "none"),
        ("torch.optim.AdamW", "object"),
        ("torch.distributed.all_gather", "collective"),
        ("torch.logsumexp", "compute"),
        ("cupy.sum", "compute"),
        ("cupy.cuda.runtime.getDevice", "none"),
        ("cupy.random.poisson", "factory"),
        ("numpy.sum", "compute"),
        ("cuda.bindings.runtime.cudaMemcpyAsync", "copy"),
        ("cuda.bindings.driver.cuDeviceGet", "none"),
        ("time.perf_counter", "clock"),
        ("time.sleep", "none"),
        ("print", "read"),
    ],
)
def test_what_a_name_means(name: str, effect: str) -> None:
    row = builtin("python").call(name)
    assert row is not None
    assert row.effect == effect


def test_in_place_methods_write_their_receiver() -> None:
    models = builtin("python")
    for name in ("add_", "zero_", "index_copy_", "__iadd__"):
        row = models.method("torch.Tensor", name)
        assert row is not None
        assert row.get("writes") == (Selector("self"),)
    add = models.method("torch.Tensor", "__add__")
    assert add is not None
    assert add.get("writes") is None


def test_a_circle_of_bases_ends() -> None:
    own = Models()
    own.add({"library": "torch", "type": [{"names": "own.*", "kind": "object", "base": "own.Thing"}]}, "mine.toml")
    assert own.type_named("own.Other") is not None
    assert own.type_named("own.Thing") is not None
    assert own.member("own.Other", "size") is None
    assert own.method("own.Other", "run") is None


@pytest.mark.parametrize(
    ("type_name", "method", "effect"),
    [
        ("torch.nn.Parameter", "item", "read"),
        ("torch.cuda.LongTensor", "cpu", "transfer"),
        ("torch.cuda.streams.ExternalStream", "wait_stream", "wait"),
    ],
)
def test_derived_types_have_the_methods_of_their_base(type_name: str, method: str, effect: str) -> None:
    row = builtin("python").method(type_name, method)
    assert row is not None
    assert row.effect == effect
