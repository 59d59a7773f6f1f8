"""The extension for VS Code, held against what the server reads, and the editors' page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import streamlint
from streamlint.commands import server
from streamlint.config.settings import parse_toml
from streamlint.server import settings
from streamlint.server.app import SPOKEN

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text())
EXTENSION = (FOLDER / "extension.js").read_text()
PAGE = (ROOT / "docs" / "editors.md").read_text()
PROPERTIES = {name.removeprefix("streamlint."): value for name, value in PACKAGE["contributes"]["configuration"]["properties"].items()}


def test_settings_are_those_that_are_read():
    assert set(PROPERTIES) == {*settings.KEYS, "path", "args"}
    assert {"path", "args"} <= set(settings.CLIENT_ONLY)
    given = settings.read({name: value["default"] for name, value in PROPERTIES.items()})
    assert given == settings.EditorSettings()
    assert PROPERTIES["delay"]["maximum"] == settings.LONGEST_DELAY
    assert settings.read({"streamlint": {"delay": "soon"}}).faults == ["setting streamlint.delay: 'soon' is no value for it"]
    assert all(f"streamlint.{name}" in (FOLDER / "README.md").read_text() for name in PROPERTIES)
    assert all(f"`{name}`" in PAGE for name in PROPERTIES)


def test_languages_and_version_agree():
    assert {event.removeprefix("onLanguage:") for event in PACKAGE["activationEvents"]} == set(SPOKEN)
    (listed,) = re.findall(r"LANGUAGES = (\[.*?\])", EXTENSION)
    assert set(json.loads(listed)) == set(SPOKEN)
    assert PACKAGE["version"] == streamlint.__version__
    assert (FOLDER / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_files_are_there():
    assert (FOLDER / PACKAGE["main"]).is_file()
    assert all((FOLDER / name).exists() for name in PACKAGE["files"] if name != "node_modules")
    assert [command["command"] for command in PACKAGE["contributes"]["commands"]] == re.findall(r'registerCommand\("(.*?)"', EXTENSION)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_the_extension_parses():
    subprocess.run(["node", "--check", FOLDER / "extension.js"], check=True, timeout=60)


def test_what_the_page_shows_is_well_formed():
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["console", "console", "json", "lua", "toml"]
    for language, body in blocks:
        if language == "json":
            assert set(json.loads(body)) <= {f"streamlint.{name}" for name in PROPERTIES} | {"[python]"}
        if language == "toml":
            assert parse_toml(body.encode(), "page")["language-server"]["streamlint"]["args"] == ["server"]
    assert all(option in PAGE for option in ("--config", "--isolated", "--no-default-excludes", "--tcp HOST:PORT"))
    assert server.build_parser().read(["--isolated", "--tcp", "[::1]:9"]).tcp == ("::1", 9)
