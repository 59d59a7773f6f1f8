"""Ways of CUDA C++ in which the call of the second part goes through a template, a macro, a namespace or another file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.streambench.cuda_parts import fields, given, handles, members, placed, returning, struct
from benchmarks.streambench.cuda_ways import Build, block
from benchmarks.streambench.pieces import Line, linked, plain, renamed


def forwarded(build: Build) -> None:
    """A variadic template that forwards its arguments."""
    build.need("#include <utility>")
    name, act = build.helper(), build.names.new("function")
    body = linked("return work(std::forward<Args>(args)...);")
    build.add([Line("template <typename F, typename... Args>"), *block(f"static auto {act}(F&& work, Args&&... args)", body)])
    placed(build, [], f"{act}({', '.join([name, *(name for _, name in build.takes)])})")


def invoked(build: Build) -> None:
    """`std::invoke`."""
    build.need("#include <functional>")
    placed(build, [], f"std::invoke({', '.join([build.helper(), *(name for _, name in build.takes)])})")


def applied(build: Build) -> None:
    """`std::apply` of a function to a tuple."""
    build.need("#include <tuple>")
    name, held = build.helper(), build.names.new("value")
    placed(build, [f"auto {held} = std::make_tuple({build.arguments});"], f"std::apply({name}, {held})")


def deduced(build: Build) -> None:
    """A function template whose parameters' types are deduced."""
    name = build.names.new("function")
    own = {taken: f"T{number}" for number, (_, taken) in enumerate(build.takes)}
    head = f"template <{', '.join(f'typename {kind}' for kind in own.values())}>"
    build.add(
        [Line(head), *block(f"static {build.result} {name}({', '.join(f'{kind} {taken}' for taken, kind in own.items())})", build.second)]
    )
    placed(build, [], f"{name}({build.arguments})")


def compile_time(build: Build) -> None:
    """A function template with `if constexpr`."""
    name = build.names.new("function")
    body = [*block("if constexpr (Full)", build.second), *plain(*(["return {};"] if build.template.gives else []))]
    build.add([Line("template <bool Full>"), *block(f"static {build.result} {name}({build.parameters})", body)])
    placed(build, [], f"{name}<true>({build.arguments})")


def specialised(build: Build) -> None:
    """A static method of a specialised class template."""
    owner, kind, act = build.names.new("class"), build.names.new("class"), build.names.new("function")
    build.add(plain(f"struct {kind} {{}};", "template <typename T>", f"struct {owner};"))
    build.add(
        [
            Line("template <>"),
            *block(f"struct {owner}<{kind}>", block(f"static {build.result} {act}({build.parameters})", build.second), "};"),
        ]
    )
    placed(build, [], f"{owner}<{kind}>::{act}({build.arguments})")


_CALL = re.compile(r"^(?P<margin>\s*)(?P<call>cu\w+\(.*\));$")


def checked(build: Build) -> None:
    """Each call of the runtime stands in a macro that looks at its result."""
    build.need("#include <cstdio>", "#include <cstdlib>")
    macro = plain(
        "#define CHECK(call)                                   \\", "  do {                                                \\",
        "    cudaError_t status = (call);                      \\", "    if (status != cudaSuccess) {                      \\",
        '      std::fprintf(stderr, "%d\\n", int(status));      \\', "      std::abort();                                   \\",
        "    }                                                 \\", "  } while (0)",
    )  # fmt: skip
    build.add(macro)

    def wrapped(lines: Sequence[Line]) -> list[Line]:
        return [replace(line, text=_CALL.sub(r"\g<margin>CHECK(\g<call>);", line.text)) for line in lines]

    name = build.names.new("function")
    build.add(wrapped(build.function(name)))
    build.place(build.calls(f"{name}({build.arguments})"))
    build.body = wrapped(build.body)


def macro_call(build: Build) -> None:
    """A macro does the call."""
    name, macro = build.helper(), build.names.new("function").upper()
    build.add(plain(f"#define {macro}(...) {name}(__VA_ARGS__)"))
    placed(build, [], f"{macro}({build.arguments})")


def macro_body(build: Build) -> None:
    """A macro with a parameter makes the function."""
    macro, name = build.names.new("function").upper(), build.helper()
    outer = build.names.new("function")
    head = "return " if build.template.gives else ""
    text = f"static {build.result} run_##suffix({build.parameters}) {{ {head}{name}({build.arguments}); }}"
    build.add(plain(f"#define {macro}(suffix) {text}", f"{macro}({outer})"))
    placed(build, [], f"run_{outer}({build.arguments})")


def c_linkage(build: Build) -> None:
    """A function with the linkage of C, declared in a header and called from it."""
    name, kind = build.names.new("function"), 'extern "C" '
    build.add(plain(f"{kind}{build.result} {name}({build.parameters});"))
    build.template = replace(
        build.template, bottom="\n".join([build.template.bottom, *_text(build.function(name, prefix=kind))]).strip("\n")
    )
    placed(build, [], f"{name}({build.arguments})")


def _text(lines: Sequence[Line]) -> list[str]:
    marks = (("link", "link"), ("mark", "mark"))
    found = []
    for line in lines:
        words = [word for attribute, word in marks if getattr(line, attribute)] + ([line.only] if line.only else [])
        found.append(f"{line.text}  #: {' '.join(words)}" if words else line.text)
    return found


def source_file(build: Build) -> None:
    """A function that a header declares and another source file defines."""
    name, stem = build.names.new("function"), build.names.new("file")
    header = f'#include "{stem}.cuh"'
    build.others[f"{stem}.cuh"] = (list(build.template.imports), plain(f"{build.result} {name}({build.parameters});"))
    build.others[f"{stem}.cu"] = ([*build.template.imports, header], build.function(name, prefix=""))
    build.need(header)
    placed(build, [], f"{name}({build.arguments})")


def class_in_files(build: Build) -> None:
    """A class that a header declares; another source file defines its constructor and its method."""
    owner, act, held, stem = (build.names.new(kind) for kind in ("class", "function", "value", "file"))
    header = f'#include "{stem}.cuh"'
    own = plain(*(f"{kind} {name}_;" for kind, name in build.takes))
    body = [*plain("public:", f"{owner}({build.parameters});", f"{build.result} {act}();", "", "private:"), *own]
    build.others[f"{stem}.cuh"] = (list(build.template.imports), block(f"class {owner}", body, "};"))
    listed = ", ".join(f"{name}_({name})" for _, name in build.takes)
    made = [Line(f"{owner}::{owner}({build.parameters}) : {listed} {{}}"), Line("")]
    lines = [*made, *block(f"{build.result} {owner}::{act}()", renamed(build.second, members(build, suffix="_")))]
    build.others[f"{stem}.cu"] = ([*build.template.imports, header], lines)
    build.need(header)
    placed(build, [f"{owner} {held}({build.arguments});"], f"{held}.{act}()")


def call_operator(build: Build) -> None:
    """An object with `operator()`."""
    owner, held = build.names.new("class"), build.names.new("value")
    struct(build, owner, [*block(f"{build.result} operator()() const", build.second), *fields(build)])
    placed(build, [f"{owner} {held}{{{build.arguments}}};"], f"{held}()")


def befriended(build: Build) -> None:
    """A friend function reads private members."""
    owner, act, held, one = (build.names.new(kind) for kind in ("class", "function", "value", "value"))
    listed = ", ".join(f"{name}_({name})" for _, name in build.takes)
    body = plain(
        "public:", f"{owner}({build.parameters}) : {listed} {{}}", f"friend {build.result} {act}(const {owner}& {held});", "", "private:"
    )
    build.add(block(f"class {owner}", [*body, *fields(build, "_")], "};"))
    build.add(block(f"{build.result} {act}(const {owner}& {held})", renamed(build.second, members(build, f"{held}.", "_"))))
    placed(build, [f"{owner} {one}({build.arguments});"], f"{act}({one})")


def overloaded(build: Build) -> None:
    """Of two functions of one name, the second calls the first with one more argument."""
    name, owner, held = build.names.new("function"), build.names.new("class"), build.names.new("value")
    struct(build, owner, fields(build))
    build.add(build.function(name))
    build.add(block(f"static {build.result} {name}(const {owner}& {held})", returning(build, f"{name}({spread_of(build, held)})")))
    placed(build, [], f"{name}({owner}{{{build.arguments}}})")


def spread_of(build: Build, held: str) -> str:
    """The arguments of a call, each a member of a struct."""
    return ", ".join(f"{held}.{name}" for _, name in build.takes)


def default_argument(build: Build) -> None:
    """The last parameters have defaults that the call does not need."""
    name = build.names.new("function")
    build.add(block(f"static {build.result} {name}({build.parameters}, int rounds = 1, bool loud = false)", build.second))
    placed(build, [], f"{name}({build.arguments})")


def aliased(build: Build) -> None:
    """`using` gives the types of the parameters other names."""
    own = {kind: build.names.new("class") for kind in dict.fromkeys(kind for kind, _ in handles(build))}
    build.add(plain(*(f"using {alias} = {kind};" for kind, alias in own.items())))
    name = build.names.new("function")
    parameters = ", ".join(f"{own.get(kind, kind)} {taken}" for kind, taken in build.takes)
    build.add(block(f"static {build.result} {name}({parameters})", build.second))
    placed(build, [], f"{name}({build.arguments})")


def namespaced(build: Build) -> None:
    """A function of a nested namespace, which the call names by an alias."""
    outer, inner, alias, name = build.names.new("file"), build.names.new("file"), build.names.new("value"), build.names.new("function")
    build.add(block(f"namespace {outer}::{inner}", build.function(name, prefix="inline ")))
    build.add(plain(f"namespace {alias} = {outer}::{inner};"))
    placed(build, [], f"{alias}::{name}({build.arguments})")


def static_method(build: Build) -> None:
    """A static method of a class."""
    owner, act = build.names.new("class"), build.names.new("function")
    struct(build, owner, block(f"static {build.result} {act}({build.parameters})", build.second))
    placed(build, [], f"{owner}::{act}({build.arguments})")


def recursive(build: Build) -> None:
    """A function that calls itself until a counter is zero."""
    name = build.names.new("function")
    again = ", ".join(["left - 1", *(name for _, name in build.takes)])
    deeper = block("if (left > 0)", linked(f"return {name}({again});"))
    build.add(block(f"static {build.result} {name}({', '.join(['int left', *build.template.takes])})", [*deeper, *build.second]))
    placed(build, [], f"{name}({', '.join(['2', *(name for _, name in build.takes)])})")


def result_argument(build: Build) -> None:
    """The function hands its result out by a reference, and returns a status."""
    name, out = build.names.new("function"), given(build)
    parameters = ", ".join([*build.template.takes, *([f"{build.result}& result"] if out else [])])
    body = [*build.plain_second, *plain(*([f"result = {out};"] if out else []), "return true;")]
    build.add(block(f"static bool {name}({parameters})", body))
    arguments = ", ".join([*(name for _, name in build.takes), *([out] if out else [])])
    build.place([*plain(*([f"{build.template.gives}{{}};"] if out else [])), *block(f"if (!{name}({arguments}))", plain("std::abort();"))])
    build.body = [replace(line, link=line.link or f"!{name}(" in line.text) for line in build.body]
    build.need("#include <cstdlib>")


WAYS: dict[str, Callable[[Build], None]] = {
    "forwarded": forwarded,
    "invoke": invoked,
    "apply": applied,
    "deduced": deduced,
    "if-constexpr": compile_time,
    "specialised": specialised,
    "check-macro": checked,
    "macro-call": macro_call,
    "macro-function": macro_body,
    "extern-c": c_linkage,
    "source-file": source_file,
    "class-in-files": class_in_files,
    "call-operator": call_operator,
    "friend": befriended,
    "overload": overloaded,
    "default-argument": default_argument,
    "aliased-types": aliased,
    "namespaces": namespaced,
    "static-method": static_method,
    "recursive": recursive,
    "result-argument": result_argument,
}
