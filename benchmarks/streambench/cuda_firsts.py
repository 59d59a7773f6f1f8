"""Ways of CUDA C++ in which the first part stands in a function, a constructor or a factory of its own."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.streambench.cuda_parts import given, halves, method, struct
from benchmarks.streambench.cuda_ways import Build, block, declared
from benchmarks.streambench.pieces import linked, plain, renamed


def life(build: Build) -> None:
    """The constructor does the first part, the destructor the second."""
    owner, held = build.names.new("class"), build.names.new("value")
    before, after = halves(build)
    own = {name: f"{name}_" for _, name in build.kept}
    body = [
        *block(f"{owner}()", [*before, *plain(*(f"{name}_ = {name};" for name in own))]),
        *block(f"~{owner}()", renamed([*build.plain_second, *after], own)),
        *plain(*(f"{kind} {name}_;" for kind, name in build.kept)),
    ]
    struct(build, owner, body)
    build.body = linked(f"{owner} {held};")


def _made(build: Build, sign: str, address: str, target: str) -> None:
    """The first part as a function that hands out what the second one takes."""
    name, before_after = build.names.new("function"), halves(build)
    kept = build.kept
    parameters = ", ".join(f"{kind}{sign} out_{taken}" for kind, taken in kept)
    body = [*before_after[0], *plain(*(f"{target}out_{taken} = {taken};" for _, taken in kept))]
    build.add(block(f"static void {name}({parameters})", body))
    call = linked(f"{name}({', '.join(f'{address}{taken}' for _, taken in kept)});")
    build.body = [*plain(*(f"{kind} {taken}{{}};" for kind, taken in kept)), *call, *build.plain_second, *before_after[1]]


def out_pointers(build: Build) -> None:
    """The first part hands out by pointers what the second one takes."""
    _made(build, "*", "&", "*")


def out_references(build: Build) -> None:
    """The first part hands out by references what the second one takes."""
    _made(build, "&", "", "")


def filled_struct(build: Build) -> None:
    """The first part fills the struct that it is given a reference to."""
    owner, name, held, taken = build.names.new("class"), build.names.new("function"), build.names.new("value"), build.names.new("value")
    before, after = halves(build)
    struct(build, owner, plain(*(f"{kind} {one}{{}};" for kind, one in build.kept)))
    build.add(
        block(
            f"static bool {name}({owner}& {taken})",
            [*before, *plain(*(f"{taken}.{one} = {one};" for _, one in build.kept), "return true;")],
        )
    )
    out = given(build)
    own = {one: f"{held}.{one}" for _, one in build.kept if one != out}
    build.body = [*linked(f"{owner} {held};", f"if (!{name}({held})) std::abort();"), *renamed([*build.plain_second, *after], own)]
    build.need("#include <cstdlib>")


def made_object(build: Build) -> None:
    """A factory does the first part and returns an object; a method of it does the second."""
    build.need("#include <memory>")
    owner, make, act, held = build.names.new("class"), build.names.new("function"), build.names.new("function"), build.names.new("value")
    before, after = halves(build)
    own = plain(*(f"{kind} {name};" for kind, name in build.kept))
    struct(build, owner, [*method(build, act, {}), *own])
    filled = [f"made->{name} = {name};" for _, name in build.kept]
    build.add(
        block(
            f"static std::unique_ptr<{owner}> {make}()",
            [*before, *plain(f"auto made = std::make_unique<{owner}>();", *filled, "return made;")],
        )
    )
    out = given(build)
    rest = renamed(after, {name: f"{held}->{name}" for _, name in build.kept if name != out})
    build.body = [*linked(f"auto {held} = {make}();"), *build.calls(f"{held}->{act}()"), *rest]


def setup_run(build: Build) -> None:
    """The constructor does the first part, a method the second, and another method what comes after."""
    owner, act, rest, held = build.names.new("class"), build.names.new("function"), build.names.new("function"), build.names.new("value")
    before, after = halves(build)
    own = {name: f"{name}_" for _, name in build.kept}
    local = {name for line in before for _, name in declared(line.text)}
    kept = [f"{name}_ = {name};" for name in own if name in local]
    returns = [line for line in after if line.text.startswith("return ")]
    out = given(build)
    body = [
        *block(f"{owner}()", [*before, *plain(*kept)]),
        *block(f"{build.result} {act}()", renamed(build.second, own)),
        *block(f"void {rest}({build.template.gives})", renamed([line for line in after if line not in returns], own)),
        *plain(*(f"{kind} {name}_{{}};" for kind, name in build.kept)),
    ]
    struct(build, owner, body)
    own_after = renamed(returns, {name: f"{held}.{name}_" for name in own if name != out})
    build.body = [*linked(f"{owner} {held};"), *build.calls(f"{held}.{act}()"), *plain(f"{held}.{rest}({out});"), *own_after]


WAYS: dict[str, Callable[[Build], None]] = {
    "constructor-destructor": life,
    "out-pointers": out_pointers,
    "out-references": out_references,
    "filled-struct": filled_struct,
    "made-object": made_object,
    "setup-run": setup_run,
}
