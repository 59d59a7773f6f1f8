"""Which lines of the user's code led to a call: Python frames outside of installed packages and the standard library."""

from __future__ import annotations

import gc
import os
import sys
import sysconfig
import threading
from types import CodeType, FunctionType

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


class Stacks:
    """Numbers of stacks. A stack is asked for thousands of times and seldom new, so what is known of code objects and stacks is kept."""

    def __init__(self, root: str = "") -> None:
        self.root = os.path.join(os.path.abspath(root), "") if root else ""
        paths = sysconfig.get_paths()
        self.library = tuple({os.path.join(os.path.realpath(paths[name]), "") for name in ("stdlib", "platstdlib")})
        self.rows: list[list[object]] = []  # of new frames and stacks, for the file
        self._files: dict[int, str] = {}  # by the address of a code object: its file, empty where it is not the user's
        self._codes: dict[int, CodeType] = {}  # so that no address is reused
        self.generation = 0  # grows with each code object that is kept by :meth:`keep`
        self.keeps = False
        self._users: dict[str, bool] = {}  # by file name, as code objects spell it
        self._stacks: dict[tuple[int, ...], int] = {(): 0}
        self._frames: dict[tuple[int, int], int] = {}

    def of(self, frame: FrameType | None) -> int:
        """The number of the stack that ends in a frame: 0 where none of its frames is the user's."""
        files, key = self._files, []
        while frame is not None:
            code = frame.f_code
            address = id(code)
            file = files.get(address)
            if file is None:
                file = self._file_of(code)
            if file:
                key.append(address)
                key.append(frame.f_lasti)
            frame = frame.f_back
        return self.number(tuple(key))

    def number(self, key: tuple[int, ...]) -> int:
        """The number of a stack that is given as the addresses of its code objects, each followed by the offset of the instruction."""
        number = self._stacks.get(key)
        if number is None:
            frames = [self._frame(address, offset) for address, offset in zip(key[::2], key[1::2], strict=True)]
            number = self._stacks[key] = len(self._stacks)
            self.rows.append(["stack", number, frames])
        return number

    def keep_all(self) -> None:
        """Keep the code objects of the user's functions that exist, and of those that run, for :meth:`is_kept`; and those to come."""
        for one in gc.get_objects():
            if type(one) is FunctionType:  # isinstance would ask lazy modules and proxies for their class
                self.keep(one.__code__)
        for frame in sys._current_frames().values():
            here: FrameType | None = frame
            while here is not None:
                self.keep(here.f_code)
                here = here.f_back
        self.keeps = True
        sys.addaudithook(self._executed)

    def _executed(self, event: str, arguments: tuple[object, ...]) -> None:
        """A module begins to run, or text that is given to `exec`: an audit hook, which stays until the process ends."""
        if event == "exec" and self.keeps and isinstance(arguments[0], CodeType):
            self.keep(arguments[0])

    def keep(self, code: CodeType) -> None:
        """Keep a code object and those within, if they are the user's."""
        if id(code) not in self._files and self.is_users(code.co_filename):
            self.generation += 1
            self._file_of(code)
            for one in code.co_consts:
                if isinstance(one, CodeType):
                    self.keep(one)

    def is_kept(self, address: int) -> bool:
        """Whether an address is that of a code object of the user's."""
        return bool(self._files.get(address))

    def main(self) -> int:
        """The stack of the main thread, for one without frames of the user's code."""
        return self.of(sys._current_frames().get(threading.main_thread().ident or 0))

    def is_users(self, file: str) -> bool:
        """Whether a file is the user's code."""
        answer = self._users.get(file)
        if answer is None:
            answer = self._users[file] = self._is_users(file if file.startswith("<") else os.path.abspath(file))
        return answer

    def _is_users(self, file: str) -> bool:
        if file.startswith(("<", _OURS)) or any(part in file for part in _INSTALLED):
            return False
        if self.root:
            return file.startswith(self.root)
        return not os.path.realpath(file).startswith(self.library)

    def _file_of(self, code: CodeType) -> str:
        """Note a code object."""
        name = code.co_filename
        file = name if name.startswith("<") else os.path.abspath(name)
        self._codes[id(code)] = code
        self._files[id(code)] = file = file if self.is_users(file) else ""
        return file

    def _frame(self, address: int, offset: int) -> int:
        number = self._frames.get((address, offset))
        if number is None:
            code = self._codes[address]
            number = self._frames[address, offset] = len(self._frames)
            name = getattr(code, "co_qualname", code.co_name)  # since Python 3.11
            self.rows.append(["frame", number, self._files[address], line_of(code, offset), name, code.co_firstlineno])
        return number


def line_of(code: CodeType, offset: int) -> int:
    """The line in progress at the offset of an instruction, in bytes; the first line where the code says none."""
    return next((line for start, end, line in code.co_lines() if start <= offset < end and line is not None), code.co_firstlineno)
