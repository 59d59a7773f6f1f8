"""The children's environment, and what is compiled and kept: no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.verify import device, templates
from streamlint.verify.care import Plan
from streamlint.verify.device import Device
from streamlint.verify.lab import MEMORY, pool_bytes

NVCC = """#!/bin/sh
echo compiled >> "$TEST_LOG"
while [ "$1" != "-o" ]; do shift; done
touch "$2"
"""
FAILS = "#!/bin/sh\necho 'one.cu(3): error: no' >&2\nexit 2\n"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder before all others on PATH, and a cache of the test's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("STREAMLINT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TEST_LOG", str(tmp_path / "log"))
    return folder


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def test_what_would_change_the_program_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    monkeypatch.setenv("KEPT", "1")
    environment = Device().environment()
    assert "CUDA_LAUNCH_BLOCKING" not in environment
    assert environment["KEPT"] == "1"
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


@pytest.mark.parametrize(
    ("visible", "number", "beside", "chosen"),
    [(None, 0, (), "0"), (None, 1, (0,), "1,0"), ("3,5", 1, (), "5"), ("GPU-aa,GPU-bb", 0, (1,), "GPU-aa,GPU-bb")],
)
def test_the_device_is_one_of_those_the_user_sees(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, number: int, beside: tuple[int, ...], chosen: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert Device(number).environment(beside=beside)["CUDA_VISIBLE_DEVICES"] == chosen


def test_the_share_of_memory_reaches_the_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = Device(memory=256 << 20).environment()
    monkeypatch.setenv(MEMORY, environment[MEMORY])
    assert pool_bytes() == 128 << 20


def test_past_mps_the_pipe_is_looked_for_where_none_is(tmp_path: Path) -> None:
    with Device() as machine:
        machine.plan = Plan(1 << 30, environment={"CUDA_MPS_PIPE_DIRECTORY": ""})
        environment = machine.environment()
        assert environment["CUDA_MPS_PIPE_DIRECTORY"] == environment["TMPDIR"]
        assert Path(environment["TMPDIR"]).is_dir()
    assert not Path(environment["TMPDIR"]).exists()


def test_templates_are_compiled_once(tools: Path, tmp_path: Path) -> None:
    _program(tools / "nvcc", NVCC)
    cases = [case for case in templates.load()["SL003"].cases if case.api == "cuda"]
    libraries, failures = Device().build(cases)
    assert failures == {}
    assert len(libraries) == 2 * len(cases)
    assert all(Path(library).is_file() for library in libraries.values())
    once = (tmp_path / "log").read_text(encoding="utf-8")
    assert Device().build(cases) == (libraries, failures)
    assert (tmp_path / "log").read_text(encoding="utf-8") == once
    assert sorted(path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()) == [".so"] * len(libraries)


def test_what_does_not_compile_says_why_and_leaves_nothing(tools: Path, tmp_path: Path) -> None:
    _program(tools / "nvcc", FAILS)
    (case,) = [case for case in templates.load()["SL016"].cases if case.api == "cuda"]
    libraries, failures = Device().build([case])
    assert libraries == {}
    assert set(failures.values()) == {"nvcc: one.cu(3): error: no"}
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_what_is_missing(tools: Path) -> None:
    machine = Device()
    case = next(case for case in templates.load()["SL019"].cases)
    assert machine.missing(case) == "nvcc is not on PATH"
    _program(tools / "nvcc", NVCC)
    assert machine.missing(case) is None
    machine.plan.devices = 1
    assert machine.missing(case) == "needs two GPUs"
    machine.plan = Plan(1 << 30, one_process=True)
    forked = next(case for case in templates.load()["SL012"].cases)
    assert "exclusive mode" in (machine.missing(forked) or "")


def test_another_compiler_or_target_is_another_library(tools: Path, tmp_path: Path) -> None:
    _program(tools / "nvcc", NVCC)
    source = tmp_path / "one.cu"
    source.write_text("int main() {}", encoding="utf-8")
    first, command = device.compilation(source, "9.0")
    assert "-arch=sm_90" in command
    assert device.compilation(source, "8.0")[0] != first
    source.write_text("int main() { return 1; }", encoding="utf-8")
    assert device.compilation(source, "9.0")[0] != first
