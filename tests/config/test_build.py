"""What build files say: languages, targets and the default stream of a source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamlint.build_files import language_of_source, per_thread_default_stream, sources_built_with

FLAG = "--default-stream=per-thread"


@pytest.mark.parametrize("place", ["", "build"])
@pytest.mark.parametrize(
    "command",
    [{"command": f"nvcc {FLAG} -c scan.cu"}, {"arguments": ["nvcc", "--default-stream", "per-thread", "-c", "scan.cu"]}],
)
def test_the_command_of_a_source_decides(tmp_path: Path, place: str, command: dict[str, Any]) -> None:
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / "CMakeLists.txt").write_text(f"target_compile_options(scan PRIVATE {FLAG})\n", encoding="utf-8")
    entries = [
        {"directory": str(tmp_path), "file": "scan.cu", **command},
        {"directory": str(tmp_path), "file": "plain.cu", "command": "nvcc -c plain.cu"},
    ]
    (tmp_path / place / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
    assert per_thread_default_stream(str(tmp_path / "scan.cu"))
    assert per_thread_default_stream(str(tmp_path / "plain.cu")) is False
    assert per_thread_default_stream(str(tmp_path / "unlisted.cu"))


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", '[{"command": "nvcc"}]'])
def test_commands_that_cannot_be_read_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "compile_commands.json").write_text(text, encoding="utf-8")
    assert not per_thread_default_stream(str(tmp_path / "scan.cu"))


def test_languages_that_cmake_is_told(tmp_path: Path) -> None:
    said_so = 'set_source_files_properties(src/a.cpp "b.cpp" PROPERTIES LANGUAGE CUDA)'
    text = f"{said_so}\n# set_source_files_properties(c.cpp PROPERTIES LANGUAGE CUDA)\n"
    (tmp_path / "CMakeLists.txt").write_text(text, encoding="utf-8")
    said = {name: language_of_source(str(tmp_path / name)) for name in ("src/a.cpp", "b.cpp", "c.cpp", "d.cpp")}
    assert said == {"src/a.cpp": "CUDA", "b.cpp": "CUDA", "c.cpp": "", "d.cpp": ""}


def test_sources_of_a_target(tmp_path: Path) -> None:
    text = "set(MORE c.cu)\nadd_library(one a.cpp ${MORE})\ntarget_sources(one PRIVATE d.cpp)\nadd_executable(two main.cpp)\n"
    (tmp_path / "CMakeLists.txt").write_text(text, encoding="utf-8")
    together = sources_built_with(str(tmp_path / "a.cpp"))
    assert {Path(path).name for path in together if Path(path).suffix} == {"c.cu", "d.cpp"}
    assert {Path(path).name for path in sources_built_with(str(tmp_path / "main.cpp"))} == set()


def said(folder: Path, files: dict[str, str], source: str = "src/scan.cu") -> bool | None:
    """What the build files of a project say of a source."""
    (folder / ".git").mkdir()
    for name, text in {source: "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return per_thread_default_stream(str(folder / source))


BOTH = "add_library(scan src/scan.cu)\nadd_library(sort src/sort.cu)\n"
GUARDED = "$<$<COMPILE_LANGUAGE:CUDA>:--default-stream=per-thread>"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("project(p LANGUAGES CUDA)\nadd_library(scan src/scan.cu)\n", False),
        ("project(p LANGUAGES C)\n", None),  # nothing here compiles CUDA
        (f"add_compile_options({FLAG}) # CUDA", True),
        ('set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} --default-stream per-thread")', True),
        ("list(APPEND CUDA_NVCC_FLAGS --default-stream per-thread)", True),
        ("add_compile_definitions(CUDA_API_PER_THREAD_DEFAULT_STREAM)", True),
        ("add_definitions(-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1)", True),
        ("add_definitions(-DCUDA_API_PER_THREAD_DEFAULT_STREAM=0) # CUDA", False),
        # Of a target: its sources alone, where they are written out.
        (f"{BOTH}target_compile_options(scan PRIVATE {GUARDED}) # CUDA", True),
        (f"{BOTH}target_compile_options(sort PRIVATE {GUARDED}) # CUDA", False),
        (f"{BOTH}target_compile_definitions(sort PUBLIC CUDA_API_PER_THREAD_DEFAULT_STREAM)", False),
        ("set(S src/scan.cu)\nadd_library(scan ${S})\ntarget_compile_options(scan PRIVATE --default-stream=per-thread)", True),
        (f"file(GLOB S src/*.cu)\nadd_library(scan ${{S}})\ntarget_compile_options(scan PRIVATE {FLAG})", True),
        (f"{BOTH}set_source_files_properties(src/sort.cu PROPERTIES COMPILE_OPTIONS {FLAG}) # CUDA", False),
        (f'{BOTH}set_source_files_properties(src/scan.cu PROPERTIES COMPILE_OPTIONS "{FLAG}")', True),
        (f"{BOTH}set_target_properties(sort PROPERTIES COMPILE_FLAGS {FLAG}) # CUDA", False),
        # Comments and messages ask for nothing.
        (f"project(p LANGUAGES CUDA) # add_compile_options({FLAG})", False),
        (f"project(p LANGUAGES CUDA)\n#[[\nadd_compile_options({FLAG})\n]]", False),
        (f'project(p LANGUAGES CUDA)\nmessage(STATUS "use {FLAG}")', False),
        # Behind an option: its default decides where it is ON, else nobody knows.
        (f'option(PTDS "per-thread" ON)\nif(PTDS)\nadd_compile_options({FLAG})\nendif()', True),
        (f'option(PTDS "per-thread" OFF)\nif(PTDS)\nadd_compile_options({FLAG})\nendif()', None),
        (f"if(SOMETHING)\nadd_compile_options({FLAG})\nendif()", None),
        (f"if(CUDA_FOUND)\nadd_compile_options({FLAG})\nendif()", True),
        (f'if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA")\nadd_compile_options({FLAG})\nendif()', True),
        (f'if(CMAKE_CUDA_COMPILER_ID STREQUAL "Clang")\nadd_compile_options({FLAG})\nendif()', None),
        (f"if(NOT MSVC)\nadd_compile_options(-O3)\nendif()\nadd_compile_options({FLAG})", True),
    ],
)
def test_cmake(tmp_path: Path, text: str, answer: bool | None) -> None:
    assert said(tmp_path, {"CMakeLists.txt": text}) is answer


def test_options_for_cuda_are_none_of_a_host_source(tmp_path: Path) -> None:
    text = f"add_library(scan src/scan.cpp)\ntarget_compile_options(scan PRIVATE {GUARDED}) # CUDA"
    assert said(tmp_path, {"CMakeLists.txt": text}, "src/scan.cpp") is False


def test_files_that_cmake_includes(tmp_path: Path) -> None:
    files = {"CMakeLists.txt": "project(p LANGUAGES CUDA)\ninclude(cmake/flags.cmake)", "cmake/flags.cmake": f"add_compile_options({FLAG})"}
    assert said(tmp_path, files) is True


SETUP = "from setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n"
ONE = "setup(ext_modules=[CUDAExtension('scan', ['src/scan.cu'], extra_compile_args={{'nvcc': {flags}}})])\n"
TWO = """
setup(ext_modules=[
    CUDAExtension('scan', ['src/scan.cu'], extra_compile_args={{'nvcc': {scan}}}),
    CUDAExtension(name='sort', sources=['src/sort.cu'], extra_compile_args={{'nvcc': {sort}}}),
])
"""
PTDS = "['-O3', '--default-stream', 'per-thread']"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (ONE.format(flags="['-O3']"), False),
        (ONE.format(flags="['-O3', '--default-stream=per-thread']"), True),
        (ONE.format(flags=PTDS), True),
        (ONE.format(flags="'-O3 --default-stream per-thread'.split()"), True),
        (ONE.format(flags="['-DCUDA_API_PER_THREAD_DEFAULT_STREAM']"), True),
        (ONE.format(flags="['-DCUDA_API_PER_THREAD_DEFAULT_STREAM=0']"), False),
        (ONE.format(flags="['--default-stream', 'legacy']"), False),
        (f"FLAGS = {PTDS}\n{ONE.format(flags='FLAGS')}", True),
        (f"FLAGS = ['-O3']\nFLAGS += ['--default-stream=per-thread']\n{ONE.format(flags='FLAGS')}", True),
        (
            "args = {'nvcc': []}\nargs['nvcc'].append('--default-stream=per-thread')\n"
            "CUDAExtension('scan', ['src/scan.cu'], extra_compile_args=args)",
            True,
        ),
        ("CUDAExtension('scan', ['src/scan.cu'], define_macros=[('CUDA_API_PER_THREAD_DEFAULT_STREAM', '1')])", True),
        # Each extension has its own flags.
        (TWO.format(scan=PTDS, sort="[]"), True),
        (TWO.format(scan="[]", sort=PTDS), False),
        ("import glob\nCUDAExtension('scan', glob.glob('src/*.cu'), extra_compile_args={'nvcc': ['--default-stream=per-thread']})", True),
        (
            "from os.path import join\nCUDAExtension('scan', [join(here, 'scan.cu')], extra_compile_args=['--default-stream=per-thread'])",
            True,
        ),
        # Conditions that a build of CUDA fulfils, and others.
        (f"FLAGS = []\nif CUDA_HOME is not None:\n    FLAGS += {PTDS}\n{ONE.format(flags='FLAGS')}", True),
        (f"FLAGS = []\nif os.environ.get('PTDS'):\n    FLAGS += {PTDS}\n{ONE.format(flags='FLAGS')}", None),
        # What is no flag.
        (f'"""Pass --default-stream=per-thread for more streams. CUDAExtension."""\n{ONE.format(flags="[]")}', False),
        (f"parser.add_argument('--ptds', help='--default-stream=per-thread')\n{ONE.format(flags='[]')}", False),
        (f"{ONE.format(flags='[]')}  # --default-stream=per-thread", False),
    ],
)
def test_setup(tmp_path: Path, text: str, answer: bool | None) -> None:
    assert said(tmp_path, {"setup.py": SETUP + text}) is answer


def test_setup_is_never_run(tmp_path: Path) -> None:
    assert said(tmp_path, {"setup.py": f"raise SystemExit\nopen('ran', 'w')\n{SETUP}{ONE.format(flags=PTDS)}"}) is True
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("pyproject.toml", '[tool.scikit-build.cmake.define]\nCMAKE_CUDA_FLAGS = "--default-stream=per-thread"\n', True),
        ("pyproject.toml", '[project]\nname = "p"\n', None),
        ("Makefile", "NVCCFLAGS += --default-stream per-thread\nscan.o: scan.cu\n\tnvcc $(NVCCFLAGS) -c scan.cu\n", True),
        ("Makefile", "scan.o: scan.cu\n\tnvcc -c scan.cu # no --default-stream per-thread\n", False),
        ("Makefile", "ifdef PTDS\nNVCCFLAGS += --default-stream per-thread\nendif\n", None),
        ("meson.build", "executable('scan', 'scan.cu', cuda_args: ['--default-stream=per-thread'])\n", True),
        ("setup.py", "this is no Python: --default-stream=per-thread\n", True),
    ],
)
def test_other_build_files(tmp_path: Path, name: str, text: str, answer: bool | None) -> None:
    assert said(tmp_path, {name: text}) is answer


def test_nothing_compiles_it(tmp_path: Path) -> None:
    assert said(tmp_path, {}) is None


def test_build_files_above_the_repository_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(f"add_compile_options({FLAG})", encoding="utf-8")
    (tmp_path / "inner").mkdir()
    assert said(tmp_path / "inner", {"setup.py": SETUP + ONE.format(flags="[]")}) is False
