"""The repositories that files stand in, as their folders say it: git itself is not asked."""

from __future__ import annotations

import os
from pathlib import Path

from streamlint.support.reading import Unreadable, nearest, read_bytes

_roots: dict[str, str | None] = {}
_MOST_BYTES = 1 << 16  # of a file that names a folder


def repository(folder: Path) -> Path | None:
    """The root of the repository that holds an absolute folder."""
    root = _repository(str(folder))
    return Path(root) if root is not None else None


def _repository(folder: str) -> str | None:
    return nearest(folder, _roots, lambda each: each if os.path.exists(os.path.join(each, ".git")) else None)


def common_folder(git: str) -> str:
    """What a ``.git`` stands for: itself, or, where it is the file of a worktree or a submodule, the folder that its repository shares."""
    try:
        said = read_bytes(git, _MOST_BYTES).removeprefix(b"gitdir:").strip()
        folder = os.path.join(os.path.dirname(git), os.fsdecode(said))
    except Unreadable:
        return git
    try:
        shared = os.fsdecode(read_bytes(os.path.join(folder, "commondir"), _MOST_BYTES).strip())
    except Unreadable:
        return folder
    return os.path.join(folder, shared)


def forget_repositories() -> None:
    """Forget the repositories that were found."""
    _roots.clear()
