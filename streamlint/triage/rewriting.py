"""Sources that change: what was read of them is replaced by what a fix or a comment made of it, or they stay as they are."""

from __future__ import annotations

import os
from pathlib import Path

from streamlint.support.errors import ConfigError
from streamlint.support.reading import Unreadable, decode, encode, language_of, read_source
from streamlint.support.repositories import repository
from streamlint.support.writing import refuse_read_only, scratch_beside, sync_folder


def rewrite(file: str, before: str, after: str) -> None:
    """Give a source that was read as ``before`` the text ``after``, in its own encoding and with its mode, or leave it alone.

    A symbolic link is written through where its target lies in the same repository, or below the current folder. Raises ConfigError.
    """
    language = language_of(file) or "python"
    target = Path(os.path.realpath(file))
    try:
        data = read_source(file)
        if decode(data, language, file)[0] != before:
            raise ConfigError(f"{file}: changed while it was linted; nothing was written to it")
        if os.path.islink(file) and not _is_at_home(file, target):
            raise ConfigError(f"{file}: a link to {target}, out of the tree that is linted; nothing was written to it")
        new = encode(after, data, language, file)
        if encode(before, data, language, file) != data:
            raise UnicodeError
        _replace(target, new, data)
    except UnicodeError:
        raise ConfigError(f"{file}: the text cannot be written in the encoding of the file; nothing was written to it") from None
    except Unreadable as error:
        raise ConfigError(f"cannot write {file}: {error}") from None
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror or error}") from None


def _is_at_home(link: str, target: Path) -> bool:
    """Whether a link's target lies where the link does: who lints a foreign tree does not offer the rest of the disk."""
    folder = Path(os.path.realpath(os.path.dirname(os.path.abspath(link))))
    return target.is_relative_to(repository(folder) or os.path.realpath(os.getcwd()))


def _replace(target: Path, data: bytes, read: bytes) -> None:
    refuse_read_only(target)
    with scratch_beside(target, data) as scratch:
        if read_source(str(target)) != read:
            raise ConfigError(f"{target}: changed while it was linted; nothing was written to it")
        os.replace(scratch, target)
    sync_folder(target.parent)
