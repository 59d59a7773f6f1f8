"""What the further ways of Python programs are built of: classes, holders, functions that take a carrier apart."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.streambench.pieces import Line, indent, lines_of, linked, plain, renamed, split
from benchmarks.streambench.python_ways import Build, define


def draw(build: Build, *kinds: str) -> list[str]:
    """A fresh name of each kind."""
    return [build.names.new(kind) for kind in kinds]


def listed(*parts: str) -> str:
    """Parameters or arguments, without those that are empty."""
    return ", ".join(filter(None, parts))


def texts(build: Build, form: str) -> list[str]:
    """A text for each value that the second part takes; ``@`` stands for its name."""
    return [form.replace("@", taken) for taken in build.template.takes]


def joined(build: Build, form: str, by: str = ", ") -> str:
    """The same texts in one."""
    return by.join(texts(build, form))


def packed(build: Build) -> str:
    """A tuple of what the second part takes."""
    return f"({build.takes},)" if len(build.template.takes) == 1 else f"({build.takes})"


def unpacked(build: Build) -> str:
    """What a tuple is assigned to, for the same."""
    return f"{build.takes}," if len(build.template.takes) == 1 else build.takes


def klass(head: str, *methods: Sequence[Line]) -> list[Line]:
    """A class, its methods apart from each other."""
    body: list[Line] = []
    for method in methods:
        body += [*(plain("") if body else []), *method]
    return [Line(f"class {head}:"), *indent(body or plain("pass"))]


def keeping(build: Build, header: str = "__init__", first: Sequence[str] = (), form: str = "self.@ = @") -> list[Line]:
    """A method that keeps what the second part takes in attributes."""
    return define(f"{header}({listed('self', build.takes)})", plain(*first, *texts(build, form)))


def acting(build: Build, header: str, owner: str = "self") -> list[Line]:
    """A method or function that does the second part with the attributes of ``owner``."""
    return define(header, renamed(build.second, {taken: f"{owner}.{taken}" for taken in build.template.takes}))


def holder(build: Build, *more: Sequence[Line], base: str = "") -> str:
    """A class whose constructor keeps what the second part takes; its name."""
    owner = build.names.new("class")
    build.add(klass(f"{owner}({base})" if base else owner, keeping(build), *more))
    return owner


def taker(build: Build, parameters: str, unpack: Sequence[str]) -> str:
    """A function that gets out of a carrier what the second part takes, and does that; its name."""
    name = build.names.new("function")
    build.add(define(f"{name}({parameters})", [*plain(*unpack), *build.second]))
    return name


def carry(build: Build, store: Sequence[str], parameter: str, unpack: Sequence[str], argument: str = "") -> None:
    """The entry function stores what the second part takes, and a function that is given the carrier does that part."""
    name = taker(build, parameter, unpack)
    build.place([*plain(*store), *build.calls(f"{name}({argument or parameter})")])


def first_part(build: Build) -> tuple[list[Line], list[Line], str]:
    """What stands before the second part, what after it, and the names that the first part hands on."""
    before, after = split(lines_of(build.template.body))
    return before, after, listed(*build.kept)


def after_first(build: Build, start: Sequence[str], after: Sequence[Line]) -> None:
    """The entry function gets what the first part gave, and does the second."""
    build.body = [*linked(*start), *lines_of(build.template.second), *after]


def boxed(build: Build, box: str) -> list[Line]:
    """The second part where nothing can be handed back: what it gives goes into a list."""
    return [*lines_of(build.template.second), *plain(*([f"{box}.append({build.template.gives})"] if build.template.gives else []))]


def unboxed(build: Build, box: str) -> list[Line]:
    """What was put into the list."""
    return linked(f"{build.template.gives} = {box}[0]") if build.template.gives else []


def box_first(build: Build, box: str) -> list[Line]:
    """The empty list."""
    return plain(f"{box} = []") if build.template.gives else []
