"""A fix whose finding rests on a file far away is tried with that file in view."""

from __future__ import annotations

from streamlint.config.options import Options, Source
from streamlint.runner.engine import analyse
from streamlint.runner.parsing import Parser
from streamlint.runner.relint import _MOST_NEAR, Relint

MAKES = "import torch\n\n\ndef make(rows):\n    return torch.zeros(rows, 4096, 16)\n"
SENDS = """import torch
from part_00 import make_00


def send(rows):
    host = make_00(rows)
    return host.to("cuda", non_blocking=True)
"""
MENDED = SENDS.replace("make_00(rows)", "make_00(rows).pin_memory()")


def _program() -> list[Source]:
    """A file that copies what a chain of files hands through, more of them than are near it."""
    length = _MOST_NEAR + 4
    parts = [
        f"from part_{n + 1:02} import make_{n + 1:02}\n\n\ndef make_{n:02}(rows):\n    return make_{n + 1:02}(rows)\n"
        for n in range(length)
    ]
    last = MAKES.replace("def make", f"def make_{length:02}")
    texts = {"send.py": SENDS, **{f"part_{n:02}.py": text for n, text in enumerate([*parts, last])}}
    return [Source(path, text, "python") for path, text in texts.items()]


def test_far_files_are_in_view_for_the_rules_that_need_them() -> None:
    options = Options(codes=frozenset({"SL001"}))
    sources = _program()
    kept: dict[str, Relint] = {}

    def keep(parser: Parser | None, found: object) -> None:
        kept["run"] = Relint(sources, options)
        kept["run"].keep(parser, found)  # type: ignore[arg-type]

    report = analyse(sources, options, keep=keep)
    (told,) = report.findings
    again = kept["run"].findings("send.py", SENDS, options.codes)
    assert again is not None
    assert [one.span for one in again] == [told.span]
    assert kept["run"].findings("send.py", MENDED, options.codes) == []
