"""The ways in which the two parts of a template stand in a Python program."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.streambench.pieces import Line, Program, Template, indent, lines_of, linked, plain, renamed, split

_DEFINED = re.compile(r"^(?:def|class)\s+(?P<name>\w+)|^(?P<variable>\w+)\s*=", re.MULTILINE)
MAIN, COMMON = "program.py", "common.py"


class Build(Program):
    """A Python program, whose entry function is ``main``."""

    @property
    def takes(self) -> str:
        """What the second part is given, as parameters or arguments."""
        return ", ".join(self.template.takes)

    @property
    def second(self) -> list[Line]:
        """The second part, which hands back what is used after it."""
        return [*self._second, *plain(*([f"return {self.template.gives}"] if self.template.gives else []))]

    @property
    def _second(self) -> list[Line]:
        return lines_of(self.template.second)

    def calls(self, expression: str) -> list[Line]:
        """A statement that keeps what the second part gives."""
        return linked(f"{self.template.gives} = {expression}" if self.template.gives else expression)

    def add(self, lines: Sequence[Line]) -> None:
        """Code above `main`."""
        self.above += [*lines, *plain("", "")]

    def helper(self) -> str:
        """The second part as a function, which stands above ``main``; its name."""
        name = self.names.new("function")
        self.add(define(f"{name}({self.takes})", self.second))
        return name

    def elsewhere(self, lines: Sequence[Line], imports: Sequence[str] = ()) -> str:
        """Put code into a file of its own; the name of its module."""
        module = self.names.new("file")
        self.others[f"{module}.py"] = ([*self.template.imports, *imports], list(lines))
        return module

    @property
    def kept(self) -> list[str]:
        """What the first part must hand on: what the second one takes, and what ``main`` uses after it."""
        before, after = split(lines_of(self.template.body))
        made = {name for line in before for match in _ASSIGNED.finditer(line.text) for name in re.findall(r"\w+", match[0])}
        used = {word for line in after for word in re.findall(r"\w+", line.text)}
        return [*self.template.takes, *sorted((made & used) - {*self.template.takes, self.template.gives})]


_ASSIGNED = re.compile(r"^\s*\w+(?:, \w+)*(?= = )|(?<= as )\w+(?=:)")


def define(header: str, body: Sequence[Line]) -> list[Line]:
    """A function."""
    return [Line(f"def {header}:"), *indent(body or plain("pass"))]


# The ways ---------------------------------------------------------------------------------------------------------------------


def direct(build: Build) -> None:
    """Both parts in `main`."""
    build.place(build._second)


def helper(build: Build) -> None:
    """The second part is a function."""
    build.place(build.calls(f"{build.helper()}({build.takes})"))


def returned(build: Build) -> None:
    """The first part is a function, which hands back what the second one takes."""
    name = build.names.new("function")
    before, after = split(lines_of(build.template.body))
    kept = ", ".join(build.kept)
    build.add(define(f"{name}()", [*before, *plain(f"return {kept}")]))
    build.body = [*linked(f"{kept} = {name}()"), *build._second, *after]


def other_file(build: Build) -> None:
    """The second part is a function of another file."""
    name = build.names.new("function")
    module = build.elsewhere(define(f"{name}({build.takes})", build.second))
    build.need(f"from {module} import {name}")
    build.place(build.calls(f"{name}({build.takes})"))


def returned_elsewhere(build: Build) -> None:
    """The first part is a function of another file."""
    name = build.names.new("function")
    before, after = split(lines_of(build.template.body))
    kept = ", ".join(build.kept)
    module = build.elsewhere(define(f"{name}()", [*before, *plain(f"return {kept}")]))
    build.need(f"import {module}")
    build.body = [*linked(f"{kept} = {module}.{name}()"), *build._second, *after]


def method_pair(build: Build) -> None:
    """``start`` does the first part and keeps in attributes what ``finish`` needs for the second."""
    owner, held = build.names.new("class"), build.names.new("value")
    own = {name: f"self.{name}" for name in build.template.takes}
    finish = define("finish(self)", renamed(build.second, own))
    if build.template.nested:
        start = define(f"start(self, {build.takes})", plain(*(f"self.{name} = {name}" for name in build.template.takes)))
        build.place([*plain(f"{held} = {owner}()", f"{held}.start({build.takes})"), *build.calls(f"{held}.finish()")])
    else:
        before, after = split(lines_of(build.template.body))
        start = define("start(self)", renamed(before, {name: f"self.{name}" for name in build.kept}))
        rest = renamed(after, {name: f"{held}.{name}" for name in build.kept if name != build.template.gives})
        build.body = [*linked(f"{held} = {owner}()", f"{held}.start()"), *build.calls(f"{held}.finish()"), *rest]
    build.add([Line(f"class {owner}:"), *indent([*start, Line(""), *finish])])


def loop_carried(build: Build) -> None:
    """Each round does the second part of the round before it."""
    kept = build.names.new("value")
    before, after = split(lines_of(build.template.body))
    unpack = plain(f"{build.takes} = {kept}")
    inner = [Line(f"if {kept} is not None:"), *indent([*unpack, *build._second]), *before, *plain(f"{kept} = {build.takes}")]
    rest = [line for line in after if build.template.gives not in re.findall(r"\w+", line.text)] if build.template.gives else after
    build.body = [*plain(f"{kept} = None"), Line("for _ in range(8):"), *indent(inner), *rest]


def thread(build: Build) -> None:
    """The second part runs in a thread that is joined at once."""
    build.need("import threading")
    worker, name = build.names.new("value"), build.names.new("function")
    gives = build.template.gives
    results = build.names.new("value")
    body = [*build._second, *plain(*([f"{results}.append({gives})"] if gives else []))]
    takes = [*build.template.takes, *([results] if gives else [])]
    build.add(define(f"{name}({', '.join(takes)})", body))
    ends = "," if len(takes) == 1 else ""
    build.place(
        linked(
            *([f"{results} = []"] if gives else []),
            f"{worker} = threading.Thread(target={name}, args=({', '.join(takes)}{ends}))",
            f"{worker}.start()",
            f"{worker}.join()",
            *([f"{gives} = {results}[0]"] if gives else []),
        )
    )


def overriding(build: Build) -> None:
    """A method of a base class that a subclass overrides, called through a function that knows the base only."""
    base, owner, act, drive, held = (build.names.new(kind) for kind in ("class", "class", "function", "function", "value"))
    own = ", ".join(["self", *build.template.takes])
    build.add([Line(f"class {base}:"), *indent(define(f"{act}({own})", plain("raise NotImplementedError")))])
    build.add([Line(f"class {owner}({base}):"), *indent(define(f"{act}({own})", build.second))])
    build.add(define(f"{drive}({', '.join([f'{held}: {base}', *build.template.takes])})", linked(f"return {held}.{act}({build.takes})")))
    build.place(build.calls(f"{drive}({', '.join([f'{owner}()', *build.template.takes])})"))


def base_method(build: Build) -> None:
    """A method that a subclass inherits and calls through ``super()``."""
    base, owner, act, held = (build.names.new(kind) for kind in ("class", "class", "function", "value"))
    own = ", ".join(["self", *build.template.takes])
    build.add([Line(f"class {base}:"), *indent(define(f"{act}({own})", build.second))])
    build.add([Line(f"class {owner}({base}):"), *indent(define(f"{act}({own})", linked(f"return super().{act}({build.takes})")))])
    build.place([*plain(f"{held} = {owner}()"), *build.calls(f"{held}.{act}({build.takes})")])


def lambda_(build: Build) -> None:
    """The function is called through a lambda."""
    name, act = build.helper(), build.names.new("value")
    build.place(
        [
            *linked(f"{act} = lambda {build.takes}: {name}({build.takes})".replace("lambda :", "lambda:")),
            *build.calls(f"{act}({build.takes})"),
        ]
    )


def partial(build: Build) -> None:
    """The function is called through `functools.partial`, which holds its first argument."""
    build.need("import functools")
    name, act = build.helper(), build.names.new("value")
    first, *rest = build.template.takes or ("",)
    bound = f"functools.partial({', '.join(filter(None, [name, first]))})"
    build.place([*linked(f"{act} = {bound}"), *build.calls(f"{act}({', '.join(rest)})")])


def keyword(build: Build) -> None:
    """The function takes keywords alone."""
    name = build.names.new("function")
    star = "*, " if build.takes else ""
    build.add(define(f"{name}({star}{build.takes})", build.second))
    build.place(build.calls(f"{name}({', '.join(f'{taken}={taken}' for taken in build.template.takes)})"))


def kwargs(build: Build) -> None:
    """A function that hands on whatever keywords it is given."""
    name, outer, options = build.names.new("function"), build.names.new("function"), build.names.new("value")
    build.add(define(f"{name}({build.takes})", build.second))
    build.add(define(f"{outer}(**{options})", linked(f"return {name}(**{options})")))
    build.place(build.calls(f"{outer}({', '.join(f'{taken}={taken}' for taken in build.template.takes)})"))


def decorated(build: Build) -> None:
    """The function has a decorator that hands on whatever it is given."""
    build.need("import functools")
    wrap, inner, name = build.names.new("function"), build.names.new("function"), build.names.new("function")
    passing = define(f"{inner}(*args, **options)", linked("return act(*args, **options)"))
    build.add(define(f"{wrap}(act)", [Line("@functools.wraps(act)"), *passing, *plain("", f"return {inner}")]))
    build.add([Line(f"@{wrap}"), *define(f"{name}({build.takes})", build.second)])
    build.place(build.calls(f"{name}({build.takes})"))


def closure(build: Build) -> None:
    """A function within ``main`` that takes what it needs from around it."""
    name = build.names.new("function")
    build.place([*define(f"{name}()", build.second), Line(""), *build.calls(f"{name}()")])


def in_dataclass(build: Build) -> None:
    """What the second part needs goes through a dataclass."""
    build.need("from dataclasses import dataclass")
    owner, held, name = build.names.new("class"), build.names.new("value"), build.names.new("function")
    fields = plain(*(f"{taken}: object" for taken in build.template.takes)) or plain("pass")
    build.add([Line("@dataclass"), Line(f"class {owner}:"), *indent(fields)])
    own = {taken: f"{held}.{taken}" for taken in build.template.takes}
    build.add(define(f"{name}({held})", renamed(build.second, own)))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{name}({held})")])


def in_container(build: Build) -> None:
    """What the second part needs goes through a dict within a list."""
    held, name, one = build.names.new("value"), build.names.new("function"), build.names.new("value")
    unpack = plain(f"{one} = {held}[-1]", *(f'{taken} = {one}["{taken}"]' for taken in build.template.takes))
    build.add(define(f"{name}({held})", [*unpack, *build.second]))
    entries = ", ".join(f'"{taken}": {taken}' for taken in build.template.takes)
    build.place([*plain(f"{held} = []", f"{held}.append({{{entries}}})"), *build.calls(f"{name}({held})")])


def depth(build: Build) -> None:
    """A chain of functions in one file, each of which calls the next."""
    names = [build.names.new("function") for _ in range(build.depth)]
    build.add(define(f"{names[-1]}({build.takes})", build.second))
    for outer, inner in reversed(list(itertools.pairwise(names))):
        build.add(define(f"{outer}({build.takes})", linked(f"return {inner}({build.takes})")))
    build.place(build.calls(f"{names[0]}({build.takes})"))


def files(build: Build) -> None:
    """The same chain, each function in a file of its own."""
    names = [build.names.new("function") for _ in range(build.depth)]
    needed, within = "", build.second
    for name in reversed(names):
        module = build.elsewhere(define(f"{name}({build.takes})", within), [needed] if needed else [])
        needed, within = f"from {module} import {name}", linked(f"return {name}({build.takes})")
    build.need(needed)
    build.place(build.calls(f"{names[0]}({build.takes})"))


def branches(build: Build) -> None:
    """Branches that have nothing to do with the hazard stand before the call of the second part, and in it."""
    build.need("import sys")
    name, level = build.names.new("function"), build.names.new("value")

    def padding(number: int) -> list[Line]:
        return plain(f"if len(sys.argv) > {number + 2}:", f"    {level} += {number + 1}", "else:", f"    {level} -= 1")

    halves = [range(0, build.branches, 2), range(1, build.branches, 2)]
    inside = [*plain(f"{level} = 0"), *(line for number in halves[1] for line in padding(number))]
    build.add(define(f"{name}({build.takes})", [*inside, *build.second]))
    outside = [*plain(f"{level} = 0"), *(line for number in halves[0] for line in padding(number))]
    build.place([*outside, *build.calls(f"{name}({build.takes})")])


WAYS: dict[str, Callable[[Build], None]] = {
    "direct": direct,
    "helper": helper,
    "returned": returned,
    "other-file": other_file,
    "returned-elsewhere": returned_elsewhere,
    "method-pair": method_pair,
    "loop-carried": loop_carried,
    "thread": thread,
    "overriding": overriding,
    "super": base_method,
    "lambda": lambda_,
    "partial": partial,
    "keyword": keyword,
    "kwargs": kwargs,
    "decorator": decorated,
    "closure": closure,
    "dataclass": in_dataclass,
    "container": in_container,
    "misleading": helper,
    "depth": depth,
    "files": files,
    "branches": branches,
}


# Files ------------------------------------------------------------------------------------------------------------------------


def files_of(build: Build) -> dict[str, list[Line]]:
    """The files of a finished program."""
    template = build.template
    module = lines_of(template.module)
    exported = [match["name"] or match["variable"] for match in _DEFINED.finditer(template.module)]
    shared = bool(module) and bool(build.others)
    entry = define(template.entry or "main()", build.body)
    call = re.sub(r"(\w+)\s*\(.*", r"\1()", (template.entry or "main()"))
    tail = plain("", "", 'if __name__ == "__main__":', f"    {call}")
    main = [*build.above, *entry, *lines_of(template.bottom), *tail]
    above = [] if shared else [*module, *plain("", "")] if module else []
    found = {MAIN: _headed([*template.imports, *build.imports, *_common(shared, exported, main)], [*above, *main])}
    for path, (imports, lines) in build.others.items():
        found[path] = _headed([*imports, *_common(shared, exported, lines)], lines)
    if shared:
        found[COMMON] = _headed(template.imports, module)
    return found


def _common(shared: bool, exported: Sequence[str], lines: Sequence[Line]) -> list[str]:
    used = {word for line in lines for word in re.findall(r"\w+", line.text)}
    names = sorted(name for name in exported if name in used)
    return [f"from common import {', '.join(names)}"] if shared and names else []


def _headed(imports: Sequence[str], lines: Sequence[Line]) -> list[Line]:
    """Imports that the lines use, then the lines."""
    used = {word for line in lines for word in re.findall(r"\w+", line.text)}
    needed = [text for text in dict.fromkeys(imports) if _names(text) & {*used, "*"} or text.startswith("from __future__")]
    ordered = sorted(needed, key=lambda text: (text.startswith("from"), text))
    stripped = list(lines)
    while stripped and not stripped[-1].text:
        stripped.pop()
    return [*plain(*ordered), *(plain("", "") if ordered else []), *stripped]


def _names(text: str) -> set[str]:
    """The names that an import makes known."""
    listed = text.partition(" import ")[2] or text.removeprefix("import ")
    return {part.strip().split(" as ")[-1].split(".")[0] for part in listed.split(",")}


def apply(way: str, build: Build) -> dict[str, list[Line]]:
    """The files of a template in a way; under misleading names where that is the way."""
    if way == "misleading":
        fresh = {name: build.names.new("value") for name in (*build.template.takes, build.template.gives) if name}
        build.template = _with_names(build.template, fresh)
    WAYS[way](build)
    return files_of(build)


def _with_names(template: Template, fresh: dict[str, str]) -> Template:
    def told(text: str) -> str:
        return "\n".join(line.text for line in renamed(plain(*text.split("\n")), fresh))

    takes = tuple(fresh.get(name, name) for name in template.takes)
    return replace(template, body=told(template.body), second=told(template.second), takes=takes, gives=fresh.get(template.gives, ""))
