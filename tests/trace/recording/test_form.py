"""The recorder's file: blocks that can be read alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.support.errors import StreamlintError
from streamlint.trace.recording import form


def written(path: Path) -> Path:
    with path.open("wb") as file:
        form.begin(file)
        form.write_rows(file, [["gpu", "H100"], ["note", "a\nb"]])
        form.write(file, form.RECORDS, bytes(1000))
    return path


BLOCKS = [(form.ROWS, b'["gpu","H100"]\n["note","a\\nb"]'), (form.RECORDS, bytes(1000))]


def test_blocks_come_back(tmp_path: Path) -> None:
    blocks = form.Blocks(written(tmp_path / "run.slt"))
    assert list(blocks) == BLOCKS
    assert not blocks.is_cut


@pytest.mark.parametrize("lost", [1, 10])
def test_whole_blocks_come_back_of_a_file_that_breaks_off(tmp_path: Path, lost: int) -> None:
    path = written(tmp_path / "run.slt")
    path.write_bytes(path.read_bytes()[:-lost])
    blocks = form.Blocks(path)
    assert list(blocks) == BLOCKS[:1]
    assert blocks.is_cut


def test_the_head_says_whose_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "run.slt"
    assert form.head(path) == {}
    with path.open("wb") as file:
        form.begin(file)
        assert form.head(path) == {}
        form.write_rows(file, [["run", {"session": "a"}], ["gpu", "H100"]])
        file.flush()
    assert form.head(path) == {"session": "a"}
    assert form.head(written(path)) == {}
    path.write_text("import torch\n")
    assert form.head(path) == {}


@pytest.mark.parametrize(("at", "kept"), [(-3, BLOCKS[:1]), (30, BLOCKS[1:])])
def test_a_damaged_block_is_left_out(tmp_path: Path, at: int, kept: list[tuple[bytes, bytes]]) -> None:
    path = written(tmp_path / "run.slt")
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    blocks = form.Blocks(path)
    assert list(blocks) == kept
    assert (blocks.damaged, blocks.is_cut) == (1, False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a recording of streamlint"),
        (b'{"traceEvents": []}' * 9, "not a recording of streamlint"),
        (form.MAGIC + b"\x09\x00", r"written by a later streamlint \(format 9, this one reads up to 2\)"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "run.slt"
    path.write_bytes(content)
    with pytest.raises(StreamlintError, match=message):
        list(form.Blocks(path))
    with pytest.raises(StreamlintError, match="No such file"):
        list(form.Blocks(tmp_path / "none.slt"))
