"""Ways of CUDA C++ in which the call of the second part goes through something callable, a template, a macro or another file."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.streambench.cuda_parts import fields, kinds, later, members, method, placed, returning, struct
from benchmarks.streambench.cuda_ways import Build, block
from benchmarks.streambench.pieces import Line, indent, linked, plain, renamed


def _lambda(build: Build, capture: str, own: dict[str, str] | None = None) -> None:
    act = build.names.new("value")
    body = block(f"auto {act} = [{capture}]", renamed(build.second, own or {}), "};")
    build.place([*body, *build.calls(f"{act}()")])


def capture_value(build: Build) -> None:
    """A lambda that captures by value."""
    _lambda(build, "=")


def capture_reference(build: Build) -> None:
    """A lambda that captures by reference."""
    _lambda(build, "&")


def capture_named(build: Build) -> None:
    """A lambda that captures each value by its name."""
    _lambda(build, build.arguments)


def capture_fresh(build: Build) -> None:
    """A lambda whose captures have names of their own."""
    own = {name: build.names.new("value") for _, name in build.takes}
    _lambda(build, ", ".join(f"{fresh} = {name}" for name, fresh in own.items()), own)


def at_once(build: Build) -> None:
    """A lambda that is called where it stands."""
    head = f"{build.template.gives} = [&] {{" if build.template.gives else "[&] {"
    build.place([Line(head, link=True), *indent(build.second, "  "), Line("}();")])


def generic_lambda(build: Build) -> None:
    """A lambda whose parameters are `auto`."""
    act = build.names.new("value")
    body = block(f"const auto {act} = []({', '.join(f'auto {name}' for _, name in build.takes)})", build.second, "};")
    build.place([*body, *build.calls(f"{act}({build.arguments})")])


def lambda_factory(build: Build) -> None:
    """A function returns a lambda that holds the values."""
    make, act = build.names.new("function"), build.names.new("value")
    inner = block("return [=]", build.second, "};")
    build.add(block(f"static auto {make}({build.parameters})", inner))
    placed(build, [f"auto {act} = {make}({build.arguments});"], f"{act}()")


def lambda_argument(build: Build) -> None:
    """A lambda that a function template calls."""
    act = build.names.new("function")
    build.add([Line("template <typename F>"), *block(f"static void {act}(F&& work)", linked("work();"))])
    before, call = later(build, f"{build.helper()}({build.arguments})")
    build.place([*before, *linked(f"{act}([&] {{ {call} }});")])


def function_argument(build: Build) -> None:
    """A lambda that a function takes as `const std::function<void()>&`."""
    build.need("#include <functional>")
    act = build.names.new("function")
    build.add(block(f"static void {act}(const std::function<void()>& work)", linked("if (work) work();")))
    before, call = later(build, f"{build.helper()}({build.arguments})")
    build.place([*before, *linked(f"{act}([&] {{ {call} }});")])


def function_member(build: Build) -> None:
    """A `std::function` that an object keeps."""
    build.need("#include <functional>", "#include <utility>")
    owner, act, held = build.names.new("class"), build.names.new("function"), build.names.new("value")
    body = [
        *plain(f"explicit {owner}(std::function<void()> work) : work_(std::move(work)) {{}}"),
        *block(f"void {act}()", linked("work_();")),
        *plain("", "private:", "std::function<void()> work_;"),
    ]
    build.add(block(f"class {owner}", [Line("public:"), *body], "};"))
    before, call = later(build, f"{build.helper()}({build.arguments})")
    build.place([*before, *linked(f"{owner} {held}([&] {{ {call} }});", f"{held}.{act}();")])


def function_setter(build: Build) -> None:
    """A `std::function` with parameters, set after the object is made."""
    build.need("#include <functional>")
    owner, act, held, name = build.names.new("class"), build.names.new("function"), build.names.new("value"), build.helper()
    body = [
        *plain(f"std::function<{build.result}({kinds(build)})> on_ready;"),
        *block(f"{build.result} {act}({build.parameters})", returning(build, f"on_ready({build.arguments})")),
    ]
    struct(build, owner, body)
    placed(build, [f"{owner} {held};", f"{held}.on_ready = {name};"], f"{held}.{act}({build.arguments})")


def bound(build: Build) -> None:
    """`std::bind` of a function to its arguments."""
    build.need("#include <functional>")
    act, name = build.names.new("value"), build.helper()
    placed(build, [f"auto {act} = std::bind({name}, {build.arguments});"], f"{act}()")


def bound_method(build: Build) -> None:
    """`std::bind` of a method to its object."""
    build.need("#include <functional>")
    owner, act, held, work = build.names.new("class"), build.names.new("function"), build.names.new("value"), build.names.new("value")
    struct(build, owner, [*method(build, act, {}), *fields(build)])
    before = [f"{owner} {held}{{{build.arguments}}};", f"std::function<{build.result}()> {work} = std::bind(&{owner}::{act}, &{held});"]
    placed(build, before, f"{work}()")


def callbacks(build: Build) -> None:
    """A list of `std::function`, filled and then called one by one."""
    build.need("#include <functional>", "#include <vector>")
    held, one, name = build.names.new("value"), build.names.new("value"), build.helper()
    before, call = later(build, f"{name}({build.arguments})")
    made = linked(f"std::vector<std::function<void()>> {held};", f"{held}.push_back([&] {{ {call} }});")
    build.place([*before, *made, *block(f"for (auto& {one} : {held})", linked(f"{one}();"))])


def observers(build: Build) -> None:
    """An object that keeps callbacks, and a method that calls them."""
    build.need("#include <functional>", "#include <utility>", "#include <vector>")
    owner, add, go, held = build.names.new("class"), build.names.new("function"), build.names.new("function"), build.names.new("value")
    body = [
        *block(f"void {add}(std::function<void()> work)", plain("all_.push_back(std::move(work));")),
        *block(f"void {go}()", block("for (auto& each : all_)", linked("each();"))),
        *plain("std::vector<std::function<void()>> all_;"),
    ]
    struct(build, owner, body)
    before, call = later(build, f"{build.helper()}({build.arguments})")
    build.place([*before, *linked(f"{owner} {held};", f"{held}.{add}([&] {{ {call} }});", f"{held}.{go}();")])


def registry(build: Build) -> None:
    """A `std::map` from names to functions."""
    build.need("#include <functional>", "#include <map>", "#include <string>")
    name, table = build.helper(), build.names.new("value")
    build.add(plain(f'static const std::map<std::string, std::function<{build.result}({kinds(build)})>> {table} = {{{{"main", {name}}}}};'))
    placed(build, [], f'{table}.at("main")({build.arguments})')


def function_table(build: Build) -> None:
    """A static array of pointers to functions."""
    name, kind, table = build.helper(), build.names.new("class"), build.names.new("value")
    build.add(plain(f"using {kind} = {build.result} (*)({kinds(build)});", f"static const {kind} {table}[] = {{nullptr, {name}}};"))
    placed(build, [], f"{table}[1]({build.arguments})")


def operations(build: Build) -> None:
    """A struct of pointers to functions, as interfaces of C have it."""
    name, owner, one, held, drive = build.helper(), *(build.names.new(kind) for kind in ("class", "value", "value", "function"))
    struct(build, owner, plain(f"{build.result} (*act)({kinds(build)});"))
    build.add(plain(f"static const {owner} {one} = {{{name}}};"))
    parameters = ", ".join([f"const {owner}* {held}", *build.template.takes])
    build.add(block(f"static {build.result} {drive}({parameters})", returning(build, f"{held}->act({build.arguments})")))
    placed(build, [], f"{drive}({', '.join([f'&{one}', *(name for _, name in build.takes)])})")


def polymorphic(build: Build) -> None:
    """A list of `std::unique_ptr` to the base class; the loop calls the virtual method."""
    build.need("#include <memory>", "#include <vector>")
    base, owner, act, held, one = (build.names.new(kind) for kind in ("class", "class", "function", "value", "value"))
    struct(build, base, plain(f"virtual ~{base}() = default;", f"virtual {build.result} {act}({build.parameters}) = 0;"))
    struct(build, owner, block(f"{build.result} {act}({build.parameters}) override", build.second), f" : {base}")
    before, call = later(build, f"{one}->{act}({build.arguments})")
    made = plain(f"std::vector<std::unique_ptr<{base}>> {held};", f"{held}.push_back(std::make_unique<{owner}>());")
    build.place([*before, *made, *block(f"for (auto& {one} : {held})", linked(call))])


def chosen_class(build: Build) -> None:
    """A factory makes the derived class that a string names; its members hold the values."""
    build.need("#include <memory>", "#include <string>")
    base, owner, act, make, held = (build.names.new(kind) for kind in ("class", "class", "function", "function", "value"))
    struct(build, base, plain(f"virtual ~{base}() = default;", f"virtual {build.result} {act}() = 0;"))
    listed = ", ".join(f"{name}_({name})" for _, name in build.takes)
    body = [*plain(f"{owner}({build.parameters}) : {listed} {{}}"), *method(build, act, members(build, suffix="_"), tail=" override")]
    struct(build, owner, [*body, *fields(build, "_")], f" : {base}")
    parameters = ", ".join(["const std::string& kind", *build.template.takes])
    lines = plain(f'if (kind == "main") return std::make_unique<{owner}>({build.arguments});', "return nullptr;")
    build.add(block(f"static std::unique_ptr<{base}> {make}({parameters})", lines))
    arguments = ", ".join(['"main"', *(name for _, name in build.takes)])
    placed(build, [f"std::unique_ptr<{base}> {held} = {make}({arguments});"], f"{held}->{act}()")


WAYS: dict[str, Callable[[Build], None]] = {
    "capture-value": capture_value,
    "capture-reference": capture_reference,
    "capture-named": capture_named,
    "capture-fresh": capture_fresh,
    "lambda-at-once": at_once,
    "lambda-generic": generic_lambda,
    "lambda-factory": lambda_factory,
    "lambda-argument": lambda_argument,
    "function-argument": function_argument,
    "function-member": function_member,
    "function-setter": function_setter,
    "bind": bound,
    "bind-method": bound_method,
    "callbacks": callbacks,
    "observers": observers,
    "registry": registry,
    "function-table": function_table,
    "operations": operations,
    "polymorphic": polymorphic,
    "chosen-class": chosen_class,
}
