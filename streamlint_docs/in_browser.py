"""What the playground's worker runs: one program in, its findings out, through the command that users run.

The file travels alone into the browser, as ``streamlint_playground.py`` beside the package; it imports nothing else of the repository.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from streamlint import cli


def lint(text: str, name: str = "example.py", words: Sequence[str] = ()) -> str:
    """JSON: ``findings`` as ``streamlint check --output-format json`` writes them, and ``said``, what it printed beside them.

    ``words`` are further options of ``check``. A run that fails has no findings, and ``said`` holds the reason.
    """
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(said):
        program, written = Path(folder, name), Path(folder, "findings.json")
        program.write_text(text, encoding="utf-8")
        options = ["--isolated", "--no-cache", "--jobs", "1", "--exit-zero", "--quiet", "--output-format", f"json:{written}"]
        cli.main(["check", str(program), *options, *words])
        findings = json.loads(written.read_text(encoding="utf-8")) if written.exists() else []
    return json.dumps({"findings": findings, "said": said.getvalue().replace(f"{folder}/", "")})
