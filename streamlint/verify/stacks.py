"""Where the threads of a child stand: what ``faulthandler`` wrote of their stacks, beside what the child last said of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

_HEAD = re.compile(r"(?:Current thread|Thread) (0x[0-9a-f]+)(?: \[[^\]]*\])? \(most recent call first\):")
_FRAME = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')
_FATAL = re.compile(r"Fatal Python error: .*")
# Lines of a dump that are neither head nor frame.
_REST = re.compile(r"  (?:<no Python frame>|<tstate is freed>|\.\.\.|<freed interpreter>)|Extension modules: .*")


@dataclass(frozen=True, slots=True)
class Stack:
    """A thread's frames, the innermost first: file, line, function."""

    thread: str
    frames: tuple[tuple[str, str, str], ...]

    def place(self) -> str:
        """Where it stands, for a reader who knows the snippets: the innermost frame of one, else the innermost of all."""
        if not self.frames:
            return ""
        inner = self.frames[0]
        own = next((frame for frame in self.frames if PurePath(frame[0]).parent.name == "snippets"), None)
        file, line, function = own or inner
        if own is None and PurePath(file).parent.name == "templates":  # Python's last word before it calls what nvcc made
            return "inside of the compiled program"
        at = f"at {PurePath(file).name}:{line} in {function}"
        return at if own is None or own is inner else f"{at} (in {inner[2]} of {PurePath(inner[0]).name})"


def parse(text: str) -> tuple[list[Stack], list[str]]:
    """The stacks of the last dump in what a child wrote on standard error, and the lines that are no part of any."""
    stacks: list[tuple[str, list[tuple[str, str, str]]]] = []
    seen: set[str] = set()
    others: list[str] = []
    for line in text.splitlines():
        if head := _HEAD.fullmatch(line.strip()):
            if head[1] in seen:  # a second dump
                stacks, seen = [], set()
            seen.add(head[1])
            stacks.append((head[1], []))
        elif stacks and (frame := _FRAME.fullmatch(line)):
            stacks[-1][1].append((frame[1], frame[2], frame[3]))
        elif line.strip() and not _FATAL.fullmatch(line) and not _REST.fullmatch(line):
            others.append(line.strip())
    return [Stack(thread, tuple(frames)) for thread, frames in stacks], others


def where(stacks: Iterable[Stack], phases: Mapping[str, tuple[str, str]]) -> list[str]:
    """A sentence for each thread that said something of itself. ``phases``: by thread number, its name and what it was about to do.

    Threads that said nothing are libraries' own; the main thread is listed although it said nothing.
    """
    places = {_number(stack.thread): stack.place() for stack in stacks}
    lines = sorted(f"{name}: {doing}" + _at(places.get(_number(thread), "")) for thread, (name, doing) in phases.items())
    if not lines and places:
        last = list(places.values())[-1]  # faulthandler writes the main thread last
        lines = [f"host thread{_at(last)}"] if last else []
    return lines


def _number(thread: str) -> int:
    return int(thread, 16)


def _at(place: str) -> str:
    return f", {place}" if place else ""
