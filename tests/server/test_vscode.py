"""The extension for VS Code as users install it: packed, unpacked, and run by node in a stand-in for VS Code, with the real server.

What npm installs must be there (`npm --prefix editors/vscode ci`): nothing here asks a network.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from lsp_editor import COMMAND

import streamlint

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
INSTALLED = FOLDER / "node_modules"
pytestmark = pytest.mark.skipif(
    shutil.which("npm") is None or not INSTALLED.is_dir(), reason="needs node, and `npm --prefix editors/vscode ci`"
)


def npm(folder: Path, *words: str, **settings: str) -> str:
    done = subprocess.run(
        ["npm", *words], cwd=folder, env=os.environ | settings, capture_output=True, text=True, timeout=400, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension's folder as a clone has it, and what npm installed."""
    folder = tmp_path_factory.mktemp("clone") / "vscode"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    (folder / "node_modules").symlink_to(INSTALLED)
    return folder


@pytest.fixture(scope="module")
def vsix(copy: Path) -> Path:
    npm(copy, "run", "package")
    (made,) = copy.glob("*.vsix")
    return made


def test_the_package_holds_what_is_needed_alone(vsix: Path):
    assert vsix.name == f"streamlint-{streamlint.__version__}.vsix"
    with zipfile.ZipFile(vsix) as archive:
        assert archive.testzip() is None
        extension = {"package.json", "readme.md", "LICENSE.txt", "dist/extension.js", "dist/NOTICES.txt"}
        assert set(archive.namelist()) == {"extension.vsixmanifest", "[Content_Types].xml", *(f"extension/{name}" for name in extension)}
        manifest = ElementTree.fromstring(archive.read("extension.vsixmanifest"))
        kinds = {each.get("Extension") for each in ElementTree.fromstring(archive.read("[Content_Types].xml"))}
        package = json.loads(archive.read("extension/package.json"))
        notices = archive.read("extension/dist/NOTICES.txt").decode()
    (identity,) = manifest.iter("{http://schemas.microsoft.com/developer/vsx-schema/2011}Identity")
    assert (identity.get("Id"), identity.get("Publisher")) == ("streamlint", "streamlint")
    assert identity.get("Version") == package["version"] == streamlint.__version__
    assert kinds >= {".json", ".js", ".txt", ".md", ".vsixmanifest"}
    assert f"vscode-languageclient {package['dependencies']['vscode-languageclient']} (MIT)" in notices
    assert "Microsoft Corporation" in notices


def test_the_api_is_used_as_it_is_declared(copy: Path):
    """By the declarations of the oldest VS Code that the extension takes."""
    npm(copy, "run", "types")


def test_it_works_with_the_server(vsix: Path, copy: Path, tmp_path: Path):
    with zipfile.ZipFile(vsix) as archive:
        archive.extractall(tmp_path)
    places = {"STREAMLINT_EXTENSION": str(tmp_path / "extension"), "STREAMLINT_COMMAND": str(COMMAND)}
    npm(copy, "run", "scenarios", **places)
