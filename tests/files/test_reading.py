"""Bytes to text."""

from __future__ import annotations

import os

import pytest

from streamlint.support.lines import split_lines
from streamlint.support.reading import Unreadable, decode, read_bytes


@pytest.mark.parametrize(
    ("data", "language", "text"),
    [
        (b"x = 1\r\ny = 2\n", "python", "x = 1\r\ny = 2\n"),
        (b"\xef\xbb\xbfx = 1\n", "python", "x = 1\n"),
        ("é".encode(), "python", "é"),
        (b"# -*- coding: latin-1 -*-\n# \xe9\n", "python", "# -*- coding: latin-1 -*-\n# é\n"),
        (
            b"#!/usr/bin/python\n# vim: set coding=cp1252 :\n# \x80\n",
            "python",
            "#!/usr/bin/python\n# vim: set coding=cp1252 :\n# €\n",
        ),
        (b"x = 1\n# coding: latin-1\n", "python", "x = 1\n# coding: latin-1\n"),
        (b"", "cuda", ""),
    ],
)
def test_decode(data, language, text):
    assert decode(data, language) == (text, "")


@pytest.mark.parametrize(
    ("data", "language", "reason"),
    [
        (b"# \xff\n", "python", "not UTF-8: invalid start byte at byte 2"),
        (b"# coding: klingon\n", "python", "unknown encoding 'klingon'"),
        (b"x\0y", "python", "holds null bytes"),
        ("int x;".encode("utf-16"), "cuda", "not UTF-8"),
    ],
)
def test_undecodable(data, language, reason):
    with pytest.raises(Unreadable, match=reason):
        decode(data, language)


def test_cpp_falls_back_to_latin_1():
    assert decode(b"// \xe9\n", "cuda") == ("// é\n", "not UTF-8, read as Latin-1")


def test_what_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    os.symlink("nowhere", tmp_path / "link.py")
    with pytest.raises(Unreadable, match="not a regular file"):
        read_bytes(str(tmp_path / "pipe.py"))
    with pytest.raises(Unreadable, match="broken symbolic link"):
        read_bytes(str(tmp_path / "link.py"))


def test_only_line_ends_end_lines():
    assert split_lines("a\fb\r\nc\u2028d\re\n") == ["a\fb", "c\u2028d", "e", ""]
