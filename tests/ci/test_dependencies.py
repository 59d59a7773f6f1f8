"""What the project rests on: bounds, the page about them, licences, and the locked environment agree."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
LOCK = ROOT / "requirements" / "test-lock.txt"
NAME = re.compile(r"[A-Za-z0-9._-]+")
pytestmark = pytest.mark.skipif(not (FOLDER / "dependencies.py").is_file(), reason="benchmarks are not in the source distribution")
packaging = pytest.importorskip("packaging")


@pytest.fixture
def dependencies(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("dependencies")


def project() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {**table["project"], "build-system": table["build-system"]["requires"]}


def asked(*extras: str) -> list[str]:
    """The requirements of the package and of extras, without the references to itself."""
    table = project()
    texts = [*table["dependencies"], *(text for extra in extras for text in table["optional-dependencies"][extra])]
    return [text for text in texts if not text.startswith("streamlint")]


def locked() -> dict[str, list[str]]:
    """The pinned versions by name."""
    pins: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE):
        pins.setdefault(name, []).append(version)
    return pins


# The page -----------------------------------------------------------------------------------------------------------------------


def test_the_page_has_a_row_for_each_with_its_bound() -> None:
    from packaging.requirements import Requirement

    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    users, _, developers = page.partition("## For development")
    for text in asked("server", "dask", "cuda12", "cuda13"):
        bound = text.partition(";")[0].removeprefix(Requirement(text).name)
        assert any(f"`{Requirement(text).name}`" in row and f"| `{bound}` |" in row for row in users.splitlines()), text
    for text in project()["build-system"] + [text for text in asked("test", "docs", "dev") if text not in asked()]:
        assert f"`{Requirement(text).name}`" in developers, text
    named = {name for row in users.splitlines() if row.startswith("| `") for name in re.findall(r"`([a-zA-Z0-9_-]+)` \| `[>=]", row)}
    assert named == {Requirement(text).name for text in asked("server", "dask", "cuda12", "cuda13")}


def test_what_runs_is_bounded_on_both_sides() -> None:
    assert [text for text in asked() if not (">=" in text and "<" in text.partition(";")[0])] == []


# Licences -----------------------------------------------------------------------------------------------------------------------


def test_the_licences_are_compatible(dependencies: Any) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("pygls")
    names = dependencies.closure(dependencies.EXTRAS)
    assert {"tree-sitter", "anyio", "distributed", "tornado", "pygls"} <= set(names)
    assert {name: said for name in names if not dependencies.is_compatible(said := dependencies.licence(name))} == {}


@pytest.mark.parametrize(("head", "expression"), [("  Apache License\n  Version 2.0, January", "Apache-2.0"), ("All rights reserved", "")])
def test_a_licence_that_is_only_a_text(
    dependencies: Any, head: str, expression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "silent-1.dist-info"
    (folder / "licenses").mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.4\nName: silent\nVersion: 1\nLicense-File: LICENSE.txt\n")
    (folder / "licenses" / "LICENSE.txt").write_text(head)
    (folder / "RECORD").write_text("silent-1.dist-info/METADATA,,\nsilent-1.dist-info/licenses/LICENSE.txt,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert dependencies.licence("silent") == expression


@pytest.mark.parametrize(
    ("expression", "fits"),
    [("MIT", True), ("Apache-2.0 OR GPL-3.0-only", True), ("MIT AND GPL-3.0-only", False), ("GPL-3.0-only", False), ("", False)],
)
def test_what_is_compatible(dependencies: Any, expression: str, fits: bool) -> None:
    assert dependencies.is_compatible(expression) is fits


# Wheels -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wheel", "system", "pythons"),
    [
        ("a-1-py3-none-any.whl", "Windows ARM64", "all"),
        ("a-1-cp310-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", "Linux x86-64", "all"),
        ("a-1-cp312-abi3-musllinux_1_2_aarch64.whl", "musl ARM64", "3.12, 3.13, 3.14"),
        ("a-1-cp311-cp311-macosx_10_9_universal2.whl", "macOS ARM64", "3.11"),
        ("a-1-cp313-cp313t-win_amd64.whl", "Windows x64", "none"),
        ("a-1-cp312-cp312-manylinux_2_28_x86_64.whl", "musl x86-64", "none"),
    ],
)
def test_which_pythons_a_wheel_is_for(dependencies: Any, wheel: str, system: str, pythons: str) -> None:
    assert dependencies.shown(dependencies.pythons_with([wheel], system)) == pythons


# The locked environment ---------------------------------------------------------------------------------------------------------


def test_the_lock_has_all_that_is_asked_for_within_its_bounds() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    pins = locked()
    for text in asked("server", "dask", "test", "docs", "dev"):
        need = Requirement(text)
        versions = pins.get(canonicalize_name(need.name), [])
        assert versions, f"{text}: requirements/test-lock.txt has none; CONTRIBUTING.md says how to renew it"
        assert all(version in need.specifier for version in versions), text


def test_the_lock_has_all_that_these_bring(dependencies: Any) -> None:
    assert set(dependencies.closure(("server", "dask"))) <= set(locked())


def test_each_pin_has_hashes_and_no_place() -> None:
    text = LOCK.read_text(encoding="utf-8")
    pins = re.split(r"\n(?=\S)", text.strip())
    assert len(pins) > 50
    assert [pin.splitlines()[0] for pin in pins if "--hash=sha256:" not in pin and not pin.startswith("#")] == []
    assert not re.search(r"https?:|file:|--(?:extra-)?index-url|--find-links", text)
