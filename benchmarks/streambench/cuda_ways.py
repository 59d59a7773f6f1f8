"""The ways in which the two parts of a template stand in a program in CUDA C++."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.streambench.pieces import Line, Program, Template, indent, lines_of, linked, plain, renamed, split

COMMON = "common.cuh"
_DECLARED = re.compile(r"^(?P<type>.*?[\w>*&\]])\s*\b(?P<name>\w+)$")


class Build(Program):
    """A program in CUDA C++, whose other files are headers."""

    @property
    def takes(self) -> list[tuple[str, str]]:
        """Type and name of each value that the second part is given."""
        return [typed(text) for text in self.template.takes]

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What the first part must hand on: what the second one takes, and what the entry function uses after it."""
        before, after = split(lines_of(self.template.body))
        used = {word for line in after for word in re.findall(r"\w+", line.text)}
        made = [pair for line in before for pair in declared(line.text) if pair[1] in used]
        known = {name for _, name in self.takes}
        return [*self.takes, *(pair for pair in dict.fromkeys(made) if pair[1] not in known)]

    @property
    def parameters(self) -> str:
        """The parameters of a function that does the second part."""
        return ", ".join(self.template.takes)

    @property
    def arguments(self) -> str:
        """The arguments of its call."""
        return ", ".join(name for _, name in self.takes)

    @property
    def result(self) -> str:
        """The type that it returns."""
        return typed(self.template.gives)[0] if self.template.gives else "void"

    @property
    def plain_second(self) -> list[Line]:
        """The second part as it stands in the direct program."""
        return lines_of(self.template.second)

    @property
    def second(self) -> list[Line]:
        """The second part, which hands back what is used after it."""
        return [*self.plain_second, *plain(*([f"return {typed(self.template.gives)[1]};"] if self.template.gives else []))]

    def calls(self, expression: str) -> list[Line]:
        """A statement that keeps what the second part gives."""
        return linked(f"{self.template.gives} = {expression};" if self.template.gives else f"{expression};")

    def add(self, lines: Sequence[Line]) -> None:
        """Code above the entry function."""
        self.above += [*lines, Line("")]

    def function(self, name: str, body: Sequence[Line] | None = None, prefix: str = "static ") -> list[Line]:
        """A function that does the second part, or something else in its place."""
        return block(f"{prefix}{self.result} {name}({self.parameters})", self.second if body is None else body)

    def helper(self) -> str:
        """The second part as a function above the entry function; its name."""
        name = self.names.new("function")
        self.add(self.function(name))
        return name

    def elsewhere(self, lines: Sequence[Line], includes: Sequence[str] = ()) -> str:
        """Put code into a header of its own; how it is included."""
        path = f"{self.names.new('file')}.cuh"
        self.others[path] = ([*self.template.imports, *includes], list(lines))
        return f'#include "{path}"'


def typed(text: str) -> tuple[str, str]:
    """The type and the name of a declaration such as ``const float* rows``."""
    match = _DECLARED.match(text.strip())
    if match is None:
        return text, ""
    return match["type"], match["name"]


_DECLARATION = re.compile(
    r"^(?P<type>(?:const )?[\w:]+(?:<[\w ,:]*>)?)(?P<rest> [*\w].*);$|^(?P<pointer>(?:const )?\w+\*)(?P<more> \w.*);$"
)


def declared(text: str) -> list[tuple[str, str]]:
    """Type and name of each variable that a line declares; none for other statements."""
    match = _DECLARATION.match(text)
    if match is None or text.startswith(("return ", "delete ")):
        return []
    kind, rest = (match["type"], match["rest"]) if match["type"] else (match["pointer"], match["more"])
    names = [part.partition("=")[0].strip() for part in re.split(r",(?![^(]*\))", rest)]
    return [(f"{kind}*" if name.startswith("*") else kind, name.lstrip("*")) for name in names]


def block(header: str, body: Sequence[Line], end: str = "}") -> list[Line]:
    """A header, braces, and what stands between them."""
    return [Line(f"{header} {{"), *indent(body, "  "), Line(end)]


# The ways ---------------------------------------------------------------------------------------------------------------------


def direct(build: Build) -> None:
    """Both parts in the entry function."""
    build.place(build.plain_second)


def helper(build: Build) -> None:
    """The second part as a function above the entry function; its name."""
    build.place(build.calls(f"{build.helper()}({build.arguments})"))


def _maker(build: Build, prefix: str) -> tuple[list[Line], list[Line], list[Line]]:
    """The first part as a function that returns a struct: the function, its call, and what stands after the second part."""
    owner, name, held = build.names.new("class"), build.names.new("function"), build.names.new("value")
    before, after = split(lines_of(build.template.body))
    kept = build.kept
    fields = block(f"struct {owner}", plain(*(f"{kind} {taken};" for kind, taken in kept)), "};")
    body = [*before, *plain(f"return {{{', '.join(taken for _, taken in kept)}}};")]
    made = [*fields, Line(""), *block(f"{prefix}{owner} {name}()", body)]
    call = linked(f"{owner} {held} = {name}();", *(f"{kind} {taken} = {held}.{taken};" for kind, taken in kept))
    return made, call, after


def returned(build: Build) -> None:
    """The first part is a function that hands back what the second one takes."""
    made, call, after = _maker(build, "static ")
    build.add(made)
    build.body = [*call, *build.plain_second, *after]


def returned_elsewhere(build: Build) -> None:
    """The first part is a function of a header."""
    made, call, after = _maker(build, "inline ")
    build.need(build.elsewhere(made))
    build.body = [*call, *build.plain_second, *after]


def other_file(build: Build) -> None:
    """The second part is a function of a header."""
    name = build.names.new("function")
    build.need(build.elsewhere(build.function(name, prefix="inline ")))
    build.place(build.calls(f"{name}({build.arguments})"))


def method_pair(build: Build) -> None:
    """``start`` does the first part and keeps in members what ``finish`` needs for the second."""
    owner, held = build.names.new("class"), build.names.new("value")
    kept = build.takes if build.template.nested else build.kept
    own = {name: f"{name}_" for _, name in kept}
    fields = plain(*(f"{kind} {name}_;" for kind, name in kept))
    finish = block(f"{build.result} finish()", renamed(build.second, own))
    if build.template.nested:
        start = block(f"void start({build.parameters})", plain(*(f"{name}_ = {name};" for _, name in build.takes)))
        build.place([*plain(f"{owner} {held};", f"{held}.start({build.arguments});"), *build.calls(f"{held}.finish()")])
    else:
        before, after = split(lines_of(build.template.body))
        start = block("void start()", [*before, *plain(*(f"{name}_ = {name};" for _, name in kept))])
        given = typed(build.template.gives)[1] if build.template.gives else ""
        rest = renamed(after, {name: f"{held}.{name}_" for _, name in kept if name != given})
        build.body = [*linked(f"{owner} {held};", f"{held}.start();"), *build.calls(f"{held}.finish()"), *rest]
    build.add(block(f"struct {owner}", [*start, *finish, *fields], "};"))


def loop_carried(build: Build) -> None:
    """Each round does the second part of the round before it."""
    before, after = split(lines_of(build.template.body))
    kept = [(kind, name, f"last_{name}") for kind, name in build.takes]
    second = block("if (round > 0)", renamed(build.plain_second, {name: last for _, name, last in kept}))
    inner = [*second, *before, *plain(*(f"{last} = {name};" for _, name, last in kept))]
    given = typed(build.template.gives)[1] if build.template.gives else ""
    lost = {pair[1] for line in before for pair in declared(line.text)} - {name for _, name, _ in kept} | {given}
    rest = [line for line in after if not lost & set(re.findall(r"\w+", line.text))]
    rest = renamed(rest, {name: last for _, name, last in kept})
    above = plain(*(f"{kind} {last}{{}};" for kind, _, last in kept))
    build.body = [*above, *block("for (int round = 0; round < 8; ++round)", inner), *rest]


def thread(build: Build) -> None:
    """The second part runs in a thread that is joined at once."""
    build.need("#include <thread>")
    worker, name = build.names.new("value"), build.helper()
    given = typed(build.template.gives)[1] if build.template.gives else ""
    call = f"{given} = {name}({build.arguments});" if given else f"{name}({build.arguments});"
    build.place(
        linked(*([f"{build.template.gives}{{}};"] if given else []), f"std::thread {worker}([&] {{ {call} }});", f"{worker}.join();")
    )


def overriding(build: Build) -> None:
    """A virtual method that a derived class overrides, called through a reference to the base."""
    base, owner, act, drive, held = (build.names.new(kind) for kind in ("class", "class", "function", "function", "value"))
    abstract = plain(f"virtual ~{base}() = default;", f"virtual {build.result} {act}({build.parameters}) = 0;")
    build.add(block(f"struct {base}", abstract, "};"))
    build.add(block(f"struct {owner} : {base}", block(f"{build.result} {act}({build.parameters}) override", build.second), "};"))
    head = "return " if build.template.gives else ""
    parameters = ", ".join([f"{base}& {held}", *build.template.takes])
    build.add(block(f"static {build.result} {drive}({parameters})", linked(f"{head}{held}.{act}({build.arguments});")))
    one = build.names.new("value")
    build.place([*plain(f"{owner} {one};"), *build.calls(f"{drive}({', '.join([one, *(name for _, name in build.takes)])})")])


def lambda_(build: Build) -> None:
    """The second part is a lambda in a variable."""
    act = build.names.new("value")
    body = block(f"auto {act} = [&]({build.parameters})", build.second, "};")
    build.place([*body, *build.calls(f"{act}({build.arguments})")])


def std_function(build: Build) -> None:
    """The call goes through a `std::function`."""
    build.need("#include <functional>")
    name, act = build.helper(), build.names.new("value")
    kinds = ", ".join(kind for kind, _ in build.takes)
    build.place([*plain(f"std::function<{build.result}({kinds})> {act} = {name};"), *build.calls(f"{act}({build.arguments})")])


def function_pointer(build: Build) -> None:
    """The call goes through a pointer to a function."""
    name, act = build.helper(), build.names.new("value")
    kinds = ", ".join(kind for kind, _ in build.takes)
    build.place([*plain(f"{build.result} (*{act})({kinds}) = {name};"), *build.calls(f"{act}({build.arguments})")])


def function_template(build: Build) -> None:
    """A function template whose parameter is what to do."""
    name, kind, outer, act = build.helper(), build.names.new("class"), build.names.new("function"), build.names.new("value")
    head = "return " if build.template.gives else ""
    parameters = ", ".join([f"{kind} {act}", *build.template.takes])
    body = linked(f"{head}{act}({build.arguments});")
    build.add([Line(f"template <typename {kind}>"), *block(f"static {build.result} {outer}({parameters})", body)])
    build.place(build.calls(f"{outer}({', '.join([name, *(name for _, name in build.takes)])})"))


def in_struct(build: Build) -> None:
    """What the second part needs goes through a struct."""
    owner, held, name = build.names.new("class"), build.names.new("value"), build.names.new("function")
    build.add(block(f"struct {owner}", plain(*(f"{text};" for text in build.template.takes)), "};"))
    own = {taken: f"{held}.{taken}" for _, taken in build.takes}
    build.add(block(f"static {build.result} {name}(const {owner}& {held})", renamed(build.second, own)))
    one = build.names.new("value")
    build.place([*plain(f"{owner} {one}{{{build.arguments}}};"), *build.calls(f"{name}({one})")])


def depth(build: Build) -> None:
    """A chain of functions in one file, each of which calls the next."""
    names = [build.names.new("function") for _ in range(build.depth)]
    head = "return " if build.template.gives else ""
    build.add(build.function(names[-1]))
    for outer, inner in reversed(list(itertools.pairwise(names))):
        build.add(build.function(outer, linked(f"{head}{inner}({build.arguments});")))
    build.place(build.calls(f"{names[0]}({build.arguments})"))


def files(build: Build) -> None:
    """The same chain, each function in a header of its own."""
    names = [build.names.new("function") for _ in range(build.depth)]
    head = "return " if build.template.gives else ""
    needed, within = "", build.second
    for name in reversed(names):
        needed = build.elsewhere(build.function(name, within, "inline "), [needed] if needed else [])
        within = linked(f"{head}{name}({build.arguments});")
    build.need(needed)
    build.place(build.calls(f"{names[0]}({build.arguments})"))


def branches(build: Build) -> None:
    """Branches that have nothing to do with the hazard stand before the call of the second part, and in it."""
    name, level = build.names.new("function"), build.names.new("value")

    def padding(number: int) -> list[Line]:
        return plain(f'if (std::getenv("LEVEL_{number}")) {{', f"  {level} += {number + 1};", "} else {", f"  {level} -= 1;", "}")

    build.need("#include <cstdlib>")
    halves = [range(0, build.branches, 2), range(1, build.branches, 2)]
    inside = [*plain(f"int {level} = 0;"), *(line for number in halves[1] for line in padding(number))]
    build.add(build.function(name, [*inside, *build.second]))
    outside = [*plain(f"int {level} = 0;"), *(line for number in halves[0] for line in padding(number))]
    build.place([*outside, *build.calls(f"{name}({build.arguments})")])


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
    "lambda": lambda_,
    "std-function": std_function,
    "function-pointer": function_pointer,
    "function-template": function_template,
    "struct": in_struct,
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
    shared = bool(module) and bool(build.others)
    common = [f'#include "{COMMON}"'] if shared else []
    above = [] if shared or not module else [*module, Line("")]
    entry = block(template.entry or "int main()", [*build.body, *plain(*([] if template.entry else ["return 0;"]))])
    bottom = [Line(""), *lines_of(template.bottom)] if template.bottom else []
    main = f"program{template.suffix or '.cu'}"
    found = {main: _headed([*template.imports, *common, *build.imports], [*above, *build.above, *entry, *bottom])}
    for path, (includes, lines) in build.others.items():
        once = [] if path.endswith(".cu") else [Line("#pragma once")]
        found[path] = [*once, *_headed([*includes, *common], lines)]
    if shared:
        found[COMMON] = [Line("#pragma once"), *_headed(template.imports, module)]
    return found


def _headed(includes: Sequence[str], lines: Sequence[Line]) -> list[Line]:
    ordered = sorted(dict.fromkeys(includes), key=lambda text: '"' in text)
    return [*plain(*ordered), *(plain("") if ordered else []), *lines]


def apply(way: str, build: Build) -> dict[str, list[Line]]:
    """The files of a template in a way; under misleading names where that is the way."""
    if way == "misleading":
        known = [name for _, name in build.takes] + ([typed(build.template.gives)[1]] if build.template.gives else [])
        build.template = _with_names(build.template, {name: build.names.new("value") for name in known})
    WAYS[way](build)
    return files_of(build)


def _with_names(template: Template, fresh: dict[str, str]) -> Template:
    def told(text: str) -> str:
        return "\n".join(line.text for line in renamed(plain(*text.split("\n")), fresh))

    return replace(
        template,
        body=told(template.body),
        second=told(template.second),
        entry=told(template.entry),
        takes=tuple(told(text) for text in template.takes),
        gives=told(template.gives),
    )
