"""What build files say: languages, targets and the default stream of a source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamlint.build import language_of_source, per_thread_default_stream, sources_built_with

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
    assert not per_thread_default_stream(str(tmp_path / "plain.cu"))
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
