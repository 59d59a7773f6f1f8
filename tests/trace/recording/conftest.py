"""The recorder's functions are compiled once: each recorder that starts would have the compiler run for a second, on the same text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

# What stands in for the compiler: the library that it made the first time is copied, so that each recorder loads one of its own.
SCRIPT = """#!/bin/sh
set -e
for word; do
  if [ "$before" = -o ]; then made=$word; fi
  before=$word
done
if [ ! -f "{kept}" ]; then
  "{compiler}" "$@"
  cp "$made" "{kept}.part"
  mv "{kept}.part" "{kept}"
fi
cp "{kept}" "$made"
"""


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    compiler = shutil.which("cc")
    with pytest.MonkeyPatch.context() as patch:
        if compiler:
            folder: Path = tmp_path_factory.mktemp("compiler")
            script = folder / "cc"
            script.write_text(SCRIPT.format(compiler=compiler, kept=folder / "taps.so"))
            script.chmod(0o755)
            patch.setenv("CC", str(script))
        yield
