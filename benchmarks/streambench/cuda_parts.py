"""What the further ways of CUDA C++ are put together from: structs, classes and values that carry what the second part takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.streambench.cuda_ways import Build, block, typed
from benchmarks.streambench.pieces import Line, lines_of, linked, plain, renamed, split

_NUMBERS = frozenset({"int", "size_t", "int64_t", "uint64_t", "unsigned", "bool"})


def given(build: Build) -> str:
    """The name of what is used after the second part; empty without."""
    return typed(build.template.gives)[1] if build.template.gives else ""


def fields(build: Build, end: str = "") -> list[Line]:
    """Members for what the second part takes."""
    return plain(*(f"{kind} {name}{end};" for kind, name in build.takes))


def struct(build: Build, name: str, body: Sequence[Line], head: str = "") -> None:
    """A struct above the entry function."""
    build.add(block(f"struct {name}{head}", body, "};"))


def holder(build: Build) -> str:
    """A plain struct of what the second part takes, above the entry function; its name."""
    name = build.names.new("class")
    struct(build, name, fields(build))
    return name


def members(build: Build, prefix: str = "", suffix: str = "") -> dict[str, str]:
    """What each name is called where it is a member."""
    return {name: f"{prefix}{name}{suffix}" for _, name in build.takes}


def handles(build: Build) -> list[tuple[str, str]]:
    """What is worth a container of its own: pointers, streams and events; numbers only where there is nothing else."""
    return [pair for pair in build.takes if pair[0] not in _NUMBERS] or build.takes


def method(build: Build, name: str, own: Mapping[str, str], head: str = "", tail: str = "") -> list[Line]:
    """A method that does the second part with members, or with whatever the names stand for."""
    return block(f"{head}{build.result} {name}(){tail}", renamed(build.second, own))


def reader(build: Build, parameter: str, own: Mapping[str, str], template: str = "") -> str:
    """A function above the entry function that takes one carrier and does the second part with what it holds; its name."""
    name = build.names.new("function")
    lines = block(f"static {build.result} {name}({parameter})", renamed(build.second, own))
    build.add([*plain(*([template] if template else [])), *lines])
    return name


def spread(build: Build, carriers: Mapping[str, str]) -> str:
    """The arguments of a call of a helper, with what stands for some of them."""
    return ", ".join(carriers.get(name, name) for _, name in build.takes)


def placed(build: Build, before: Sequence[str], expression: str) -> None:
    """Let the entry function prepare something, through which the values go, and then call what does the second part."""
    build.place([*linked(*before), *build.calls(expression)])


def inline(build: Build, before: Sequence[str], own: Mapping[str, str]) -> None:
    """Let the entry function prepare carriers, and then do the second part itself with what they hold."""
    build.place([*linked(*before), *renamed(build.plain_second, own)])


def later(build: Build, expression: str) -> tuple[list[Line], str]:
    """A call that stands within something else: the variable for what it gives, declared before, and the statement."""
    before = plain(*([f"{build.template.gives}{{}};"] if build.template.gives else []))
    return before, f"{given(build)} = {expression};" if build.template.gives else f"{expression};"


def halves(build: Build) -> tuple[list[Line], list[Line]]:
    """What stands before the second part, and after it."""
    return split(lines_of(build.template.body))


def returning(build: Build, expression: str) -> list[Line]:
    """The body of a function that passes on to another one."""
    return linked(f"{'return ' if build.template.gives else ''}{expression};")


def kinds(build: Build) -> str:
    """The types of what the second part takes."""
    return ", ".join(kind for kind, _ in build.takes)
