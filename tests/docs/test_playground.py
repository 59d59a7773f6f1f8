"""The playground: its archive lints with nothing else at hand, and its page works in a browser, where there are one and Pyodide.

The browser's test needs ``chromedriver`` with its Chromium, and a folder with npm's package ``pyodide`` in ``STREAMLINT_PYODIDE``.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamlint.checks.rules import all_rules
from streamlint_docs import DOCS, ROOT, playground

WITHOUT = "import sys\nfor name in ('tree_sitter', 'tree_sitter_cuda', 'ahocorasick_rs'): sys.modules[name] = None\n"
READ = """\
import torch

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)


def train(loader):
    total = 0.0
    for batch in loader:
        loss = model(batch.cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


COPY = """\
import torch


def fill(target):
    source = torch.empty(1 << 26)
    for _ in range(9):
        target.cuda().copy_(source, non_blocking=True)
"""
BROKEN = "import torch\n\n\ndef train(:\n    torch.cuda.synchronize()\n"


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("playground") / "streamlint.zip"
    playground.pack(path)
    return path


def linted(archive: Path, text: str, *words: str) -> dict:
    """What the worker's entry says, in a Python that sees the unpacked archive and the standard library."""
    site = archive.parent / "site"
    if not site.exists():
        shutil.unpack_archive(archive, site)
    call = f"import streamlint_playground as entry\nprint(entry.lint({text!r}, words={list(words)!r}))"
    code = f"{WITHOUT}sys.path.insert(0, {str(site)!r})\n{call}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is not in the standard library")
def test_the_archive_lints_with_the_standard_library_alone(archive):
    report = linted(archive, READ)
    assert [(finding["code"], finding["location"]["row"]) for finding in report["findings"]] == [("SL020", 14)]
    assert report["findings"][0]["trail"]
    assert report["said"] == ""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is not in the standard library")
def test_a_program_that_cannot_be_read_is_told(archive):
    report = linted(archive, BROKEN)
    assert [(finding["code"], finding["location"]["row"]) for finding in report["findings"]] == [("SL000", 4)]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is not in the standard library")
def test_options_reach_the_linter(archive):
    assert linted(archive, READ, "--ignore", "SL020")["findings"] == []


def test_the_archive_is_small_and_the_same_each_time(archive, tmp_path):
    playground.pack(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    assert archive.stat().st_size < 3_000_000


def test_each_example_shows_its_rule():
    found = playground.examples()
    assert "SL020 hidden-sync-in-hot-loop" in found
    assert {name.split()[0] for name in found} <= set(all_rules())
    for text in found.values():
        compile(text, "example.py", "exec")


def test_contributors_are_told_of_the_same_pyodide():
    assert f"npm install pyodide@{playground.VERSION}`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


# In a browser -----------------------------------------------------------------------------------------------------------------


def page(folder: Path) -> None:
    """The page's own block and assets, without the site around it."""
    block = re.search(
        r'^<div class="playground".*?^</div>$', (DOCS / "playground.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert block
    shutil.copytree(DOCS / "assets", folder / "assets")
    playground.write(folder / "assets", Path(os.environ["STREAMLINT_PYODIDE"]))
    html = f'<!doctype html><meta charset="utf-8"><body>{block[0]}<script src="assets/playground.js"></script>'
    (folder / "index.html").write_text(html, encoding="utf-8")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Browser:
    """A session of chromedriver, by the WebDriver protocol."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": words}}}}
        self.base += f"/session/{self.ask('POST', '/session', wanted)['sessionId']}"

    def ask(self, method: str, path: str, body: object = None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def run(self, script: str):
        return self.ask("POST", "/execute/sync", {"script": script, "args": []})

    def write(self, text: str) -> None:
        """Text into the program's area, as if typed."""
        self.run(
            f"const area = document.querySelector('textarea'); area.value = {json.dumps(text)}; area.dispatchEvent(new Event('input'))"
        )

    def until(self, script: str, seconds: float = 180):
        """The script's value once it is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, self.run("return document.body.innerText")
            time.sleep(0.2)
        return value


@contextmanager
def browser() -> Iterator[Browser]:
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout
        port = next(int(found[1]) for line in driver.stdout if (found := re.search(r"started successfully on port (\d+)", line)))
        opened = Browser(port)
        try:
            yield opened
        finally:
            opened.ask("DELETE", "")
    finally:
        driver.terminate()
        driver.communicate()


@pytest.mark.skipif(not shutil.which("chromedriver") or "STREAMLINT_PYODIDE" not in os.environ, reason="no browser, or no Pyodide")
def test_a_finding_is_shown_in_a_browser(tmp_path):
    page(tmp_path)
    with served(tmp_path) as address, browser() as opened:
        opened.ask("POST", "/url", {"url": address})
        opened.until("return !document.querySelector('.playground').hidden")
        opened.write(READ)
        opened.run("document.querySelector('.playground button').click()")
        found = opened.until("return [...document.querySelectorAll('.playground-findings > li')].map(item => item.innerText)")
        assert len(found) == 1
        assert "line 14 SL020" in found[0]
        assert "training loop" in found[0]
        opened.run("document.querySelector('.playground-place').click()")
        assert opened.run("const a = document.querySelector('textarea'); return a.value.slice(a.selectionStart, a.selectionEnd)") == "item"
        # A fix is put into the program.
        opened.write(COPY)
        opened.until("return document.querySelector('.playground-fix')")
        opened.run("document.querySelector('.playground-fix').click()")
        assert "pin_memory=True" in opened.run("return document.querySelector('textarea').value")
        # While one types it is linted again.
        opened.run(
            f"const area = document.querySelector('textarea'); area.value = {json.dumps(BROKEN)}; area.dispatchEvent(new Event('input'))"
        )
        assert opened.until(
            "const found = document.querySelector('.playground-findings').innerText; return found.includes('SL000') && found"
        )
