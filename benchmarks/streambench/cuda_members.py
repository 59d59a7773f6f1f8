"""Ways of CUDA C++ in which members of objects carry what the second part takes."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.streambench.cuda_parts import fields, holder, inline, kinds, members, method, placed, reader, returning, struct
from benchmarks.streambench.cuda_ways import Build, block
from benchmarks.streambench.pieces import Line, linked, plain, renamed


def _constructor(build: Build, owner: str) -> Line:
    listed = ", ".join(f"{name}_({name})" for _, name in build.takes)
    return Line(f"{'explicit ' if len(build.takes) == 1 else ''}{owner}({build.parameters}) : {listed} {{}}")


def _private(build: Build) -> list[Line]:
    return plain("", "private:", *(f"{kind} {name}_;" for kind, name in build.takes))


def _names(build: Build) -> tuple[str, str, str]:
    return build.names.new("class"), build.names.new("function"), build.names.new("value")


def initialised(build: Build) -> None:
    """A constructor keeps the values by its list of initialisers; a method does the second part."""
    owner, act, held = _names(build)
    body = [Line("public:"), _constructor(build, owner), *method(build, act, members(build, suffix="_")), *_private(build)]
    build.add(block(f"class {owner}", body, "};"))
    placed(build, [f"{owner} {held}({build.arguments});"], f"{held}.{act}()")


def setters(build: Build) -> None:
    """A setter for each value."""
    owner, act, held = _names(build)
    body = plain("public:", *(f"void set_{name}({kind} {name}) {{ {name}_ = {name}; }}" for kind, name in build.takes))
    own = plain("", "private:", *(f"{kind} {name}_{{}};" for kind, name in build.takes))
    build.add(block(f"class {owner}", [*body, *method(build, act, members(build, suffix="_")), *own], "};"))
    placed(build, [f"{owner} {held};", *(f"{held}.set_{name}({name});" for _, name in build.takes)], f"{held}.{act}()")


def getters(build: Build) -> None:
    """Methods of a class hand out what its members hold; a function asks them."""
    owner, _, held = _names(build)
    asked = [f"{kind} get_{name}() const {{ return {name}_; }}" for kind, name in build.takes]
    build.add(block(f"class {owner}", [Line("public:"), _constructor(build, owner), *plain(*asked), *_private(build)], "};"))
    act = reader(build, f"const {owner}& {held}", members(build, f"{held}.get_", "()"))
    one = build.names.new("value")
    placed(build, [f"const {owner} {one}({build.arguments});"], f"{act}({one})")


def nested_struct(build: Build) -> None:
    """A struct within a struct."""
    inner, outer, one, held = holder(build), build.names.new("class"), build.names.new("value"), build.names.new("value")
    struct(build, outer, plain("int rounds = 1;", f"{inner} inside;"))
    act = reader(build, f"const {outer}& {held}", members(build, f"{held}.inside."))
    placed(build, [f"{outer} {one};", *(f"{one}.inside.{name} = {name};" for _, name in build.takes)], f"{act}({one})")


def base_members(build: Build) -> None:
    """Protected members of a base class, which a method of a derived class uses."""
    base, (owner, act, held) = build.names.new("class"), _names(build)
    own = plain("protected:", *(f"{kind} {name}_;" for kind, name in build.takes))
    build.add(block(f"class {base}", [Line("public:"), _constructor(build, base), Line(""), *own], "};"))
    body = [*plain("public:", f"using {base}::{base};"), *method(build, act, members(build, suffix="_"))]
    build.add(block(f"class {owner} : public {base}", body, "};"))
    placed(build, [f"{owner} {held}({build.arguments});"], f"{held}.{act}()")


def _referring(build: Build, sign: str, way: str) -> None:
    inner, (owner, act, held) = holder(build), _names(build)
    one, taken = build.names.new("value"), build.names.new("value")
    body = [
        *plain("public:", f"explicit {owner}({inner}{sign} {taken}) : {taken}_({taken}) {{}}"),
        *method(build, act, members(build, f"{taken}_{way}")),
        *plain("", "private:", f"{inner}{sign} {taken}_;"),
    ]
    build.add(block(f"class {owner}", body, "};"))
    address = "&" if sign == "*" else ""
    placed(build, [f"{inner} {one}{{{build.arguments}}};", f"{owner} {held}({address}{one});"], f"{held}.{act}()")


def pointer_member(build: Build) -> None:
    """An object keeps a pointer to the struct that holds the values."""
    _referring(build, "*", "->")


def reference_member(build: Build) -> None:
    """An object keeps a reference to the struct that holds the values."""
    _referring(build, "&", ".")


def static_members(build: Build) -> None:
    """Static members of a class, which a static method uses."""
    owner, act, _ = _names(build)
    own = plain(*(f"inline static {kind} shared_{name}{{}};" for kind, name in build.takes))
    struct(build, owner, [*own, *method(build, act, members(build, "shared_"), "static ")])
    placed(build, [f"{owner}::shared_{name} = {name};" for _, name in build.takes], f"{owner}::{act}()")


def global_variables(build: Build) -> None:
    """Variables of an unnamed namespace."""
    build.add(block("namespace", plain(*(f"{kind} g_{name}{{}};" for kind, name in build.takes))))
    act = reader(build, "", members(build, "g_"))
    placed(build, [f"g_{name} = {name};" for _, name in build.takes], f"{act}()")


def namespace_variables(build: Build) -> None:
    """Variables of a namespace in a header, which a function of another header uses."""
    space, act = build.names.new("file"), build.names.new("function")
    kept = build.elsewhere(block(f"namespace {space}", plain(*(f"inline {kind} {name}{{}};" for kind, name in build.takes))))
    build.need(kept, build.elsewhere(method(build, act, members(build, f"{space}::"), "inline "), [kept]))
    placed(build, [f"{space}::{name} = {name};" for _, name in build.takes], f"{act}()")


def singleton(build: Build) -> None:
    """The static local of a function is the one object of its class."""
    owner, act, _ = _names(build)
    one = block(f"static {owner}& instance()", plain(f"static {owner} only;", "return only;"))
    struct(build, owner, [*one, *method(build, act, {}), *fields(build, "{}")])
    placed(build, [f"{owner}::instance().{name} = {name};" for _, name in build.takes], f"{owner}::instance().{act}()")


def unique_holder(build: Build) -> None:
    """A `std::unique_ptr` to the struct that holds the values."""
    build.need("#include <memory>")
    inner, one, held = holder(build), build.names.new("value"), build.names.new("value")
    act = reader(build, f"const std::unique_ptr<{inner}>& {held}", members(build, f"{held}->"))
    placed(build, [f"auto {one} = std::make_unique<{inner}>({inner}{{{build.arguments}}});"], f"{act}({one})")


def shared_holder(build: Build) -> None:
    """A `std::shared_ptr` that an object keeps."""
    build.need("#include <memory>", "#include <utility>")
    inner, (owner, act, held), one, taken = holder(build), _names(build), build.names.new("value"), build.names.new("value")
    body = [
        *plain(f"explicit {owner}(std::shared_ptr<{inner}> {taken}) : {taken}_(std::move({taken})) {{}}"),
        *method(build, act, members(build, f"{taken}_->")),
        *plain(f"std::shared_ptr<{inner}> {taken}_;"),
    ]
    struct(build, owner, body)
    filled = [f"{one}->{name} = {name};" for _, name in build.takes]
    placed(build, [f"auto {one} = std::make_shared<{inner}>();", *filled, f"{owner} {held}({one});"], f"{held}.{act}()")


def factory(build: Build) -> None:
    """A function makes the object, and hands it back by `std::unique_ptr`."""
    build.need("#include <memory>")
    owner, act, held = _names(build)
    make = build.names.new("function")
    struct(build, owner, [_constructor(build, owner), *method(build, act, members(build, suffix="_")), *_private(build)[2:]])
    build.add(block(f"static std::unique_ptr<{owner}> {make}({build.parameters})",
                    plain(f"return std::make_unique<{owner}>({build.arguments});")))  # fmt: skip
    placed(build, [f"auto {held} = {make}({build.arguments});"], f"{held}->{act}()")


def designated(build: Build) -> None:
    """A struct whose fields are named where it is made."""
    inner, one, held = holder(build), build.names.new("value"), build.names.new("value")
    act = reader(build, f"{inner} {held}", members(build, f"{held}."))
    placed(build, [f"{inner} {one}{{{', '.join(f'.{name} = {name}' for _, name in build.takes)}}};"], f"{act}({one})")


def packed(build: Build) -> None:
    """A function returns the struct that holds the values; structured bindings take it apart in another."""
    inner, make = holder(build), build.names.new("function")
    one, held = build.names.new("value"), build.names.new("value")
    build.add(block(f"static {inner} {make}({build.parameters})", plain(f"return {{{build.arguments}}};")))
    act = build.names.new("function")
    body = [*plain(f"const auto& [{build.arguments}] = {held};"), *build.second]
    build.add(block(f"static {build.result} {act}(const {inner}& {held})", body))
    placed(build, [f"auto {one} = {make}({build.arguments});"], f"{act}({one})")


def hidden_implementation(build: Build) -> None:
    """A class that hides its members behind a pointer to a struct that is defined later."""
    build.need("#include <memory>")
    owner, act, held = _names(build)
    head = plain(
        "public:", f"{owner}({build.parameters});", f"~{owner}();", f"{build.result} {act}();", "", "private:", "struct Impl;",
        "std::unique_ptr<Impl> impl_;",
    )  # fmt: skip
    build.add(block(f"class {owner}", head, "};"))
    build.add(block(f"struct {owner}::Impl", fields(build), "};"))
    made = f"impl_(std::make_unique<Impl>(Impl{{{build.arguments}}}))"
    build.add(plain(f"{owner}::{owner}({build.parameters}) : {made} {{}}", f"{owner}::~{owner}() = default;"))
    build.add(block(f"{build.result} {owner}::{act}()", renamed(build.second, members(build, "impl_->"))))
    placed(build, [f"{owner} {held}({build.arguments});"], f"{held}.{act}()")


def moved(build: Build) -> None:
    """The struct is moved into the object that uses it."""
    build.need("#include <utility>")
    inner, (owner, act, held), one, taken = holder(build), _names(build), build.names.new("value"), build.names.new("value")
    body = plain(f"explicit {owner}({inner}&& {taken}) : {taken}_(std::move({taken})) {{}}")
    struct(build, owner, [*body, *method(build, act, members(build, f"{taken}_.")), *plain(f"{inner} {taken}_;")])
    placed(build, [f"{inner} {one}{{{build.arguments}}};", f"{owner} {held}(std::move({one}));"], f"{held}.{act}()")


def swapped(build: Build) -> None:
    """Two structs change places."""
    build.need("#include <utility>")
    inner, one, other = holder(build), build.names.new("value"), build.names.new("value")
    inline(
        build, [f"{inner} {one}{{{build.arguments}}};", f"{inner} {other}{{}};", f"std::swap({one}, {other});"], members(build, f"{other}.")
    )


def assigned(build: Build) -> None:
    """A struct is filled field by field, and copied by assignment."""
    inner, one, other, held = holder(build), *(build.names.new("value") for _ in range(3))
    act = reader(build, f"{inner} {held}", members(build, f"{held}."))
    filled = [f"{one}.{name} = {name};" for _, name in build.takes]
    placed(build, [f"{inner} {one};", *filled, f"{inner} {other};", f"{other} = {one};"], f"{act}({other})")


def heap_holder(build: Build) -> None:
    """A struct made by `new`, used through a raw pointer, and deleted."""
    inner, one, held = holder(build), build.names.new("value"), build.names.new("value")
    act = reader(build, f"{inner}* {held}", members(build, f"{held}->"))
    call = build.calls(f"{act}({one})")
    build.place([*plain(f"auto* {one} = new {inner}{{{build.arguments}}};"), *call, *plain(f"delete {one};")])


def void_pointer(build: Build) -> None:
    """The struct goes through a `void*`, as in interfaces of C."""
    inner, one, data, held = holder(build), *(build.names.new("value") for _ in range(3))
    act = build.names.new("function")
    body = [*plain(f"auto* {held} = static_cast<{inner}*>({data});"), *renamed(build.second, members(build, f"{held}->"))]
    build.add(block(f"static {build.result} {act}(void* {data})", body))
    placed(build, [f"{inner} {one}{{{build.arguments}}};"], f"{act}(&{one})")


def static_base(build: Build) -> None:
    """The base class calls the method of the class that it is given as a parameter (CRTP)."""
    base, (owner, act, held), go = build.names.new("class"), _names(build), build.names.new("function")
    body = block(f"{build.result} {go}()", returning(build, f"static_cast<Derived*>(this)->{act}()"))
    build.add([Line("template <typename Derived>"), *block(f"struct {base}", body, "};")])
    own = plain(*(f"{kind} {name}_;" for kind, name in build.takes))
    struct(build, owner, [_constructor(build, owner), *method(build, act, members(build, suffix="_")), *own], f" : {base}<{owner}>")
    placed(build, [f"{owner} {held}({build.arguments});"], f"{held}.{go}()")


def class_template(build: Build) -> None:
    """A class template holds a value of any type."""
    owner = build.names.new("class")
    body = plain(f"explicit {owner}(T value) : value_(value) {{}}", "T value() const { return value_; }", "", "private:", "T value_;")
    build.add([Line("template <typename T>"), *block(f"class {owner}", [Line("public:"), *body], "};")])
    held = {name: build.names.new("value") for _, name in build.takes}
    act = build.names.new("function")
    parameters = ", ".join(f"const {owner}<{kind}>& {name}" for kind, name in build.takes)
    lines = renamed(build.second, {name: f"{name}.value()" for name in held})
    build.add(block(f"static {build.result} {act}({parameters})", lines))
    placed(build, [f"{owner}<{kind}> {held[name]}({name});" for kind, name in build.takes], f"{act}({', '.join(held.values())})")


def builder(build: Build) -> None:
    """Methods that return the object, called in one chain."""
    owner, act, _ = _names(build)
    body = plain(
        *(f"{owner}& with_{name}({kind} {name}) {{ {name}_ = {name}; return *this; }}" for kind, name in build.takes),
        *(f"{kind} {name}_{{}};" for kind, name in build.takes),
    )
    struct(build, owner, [*body, *method(build, act, members(build, suffix="_"))])
    placed(build, [], f"{owner}(){''.join(f'.with_{name}({name})' for _, name in build.takes)}.{act}()")


def member_object(build: Build) -> None:
    """An object that is a member of another one, whose method passes the call on."""
    (owner, act, held), outer, go, one = _names(build), *(build.names.new(kind) for kind in ("class", "function", "value"))
    body = [_constructor(build, owner), *method(build, act, members(build, suffix="_")), *_private(build)[2:]]
    struct(build, owner, body)
    passed = f"{outer}({build.parameters}) : {held}_({build.arguments}) {{}}"
    struct(
        build, outer, [*plain(passed), *block(f"{build.result} {go}()", returning(build, f"{held}_.{act}()")), *plain(f"{owner} {held}_;")]
    )
    placed(build, [f"{outer} {one}({build.arguments});"], f"{one}.{go}()")


def visited(build: Build) -> None:
    """A `std::variant` of two structs, and a visitor that knows both."""
    build.need("#include <variant>")
    inner, other, one, visitor = holder(build), build.names.new("class"), build.names.new("value"), build.names.new("class")
    struct(build, other, plain("int nothing = 0;"))
    held = build.names.new("value")
    given = f"{build.result} operator()(const {inner}& {held}) const"
    rest = f"{build.result} operator()(const {other}&) const {{{' return {}; ' if build.template.gives else ''}}}"
    struct(build, visitor, [*block(given, renamed(build.second, members(build, f"{held}."))), Line(rest)])
    placed(build, [f"std::variant<{inner}, {other}> {one} = {inner}{{{build.arguments}}};"], f"std::visit({visitor}{{}}, {one})")


def member_function(build: Build) -> None:
    """A pointer to a method, and the object that it is called on."""
    owner, act, held = _names(build)
    pointer = build.names.new("value")
    struct(build, owner, [*method(build, act, {}), *fields(build)])
    before = [f"{owner} {held}{{{build.arguments}}};", f"{build.result} ({owner}::*{pointer})() = &{owner}::{act};"]
    placed(build, before, f"({held}.*{pointer})()")


def in_place(build: Build) -> None:
    """The method of a base class calls the virtual method that the class itself overrides (template method)."""
    base, (owner, act, held), go = build.names.new("class"), _names(build), build.names.new("function")
    abstract = [
        *plain(f"virtual ~{base}() = default;"),
        *block(f"{build.result} {go}({build.parameters})", returning(build, f"{act}({build.arguments})")),
        *plain("", "protected:", f"virtual {build.result} {act}({kinds(build)}) = 0;"),
    ]
    struct(build, base, abstract)
    body = block(f"{build.result} {act}({build.parameters}) override", build.second)
    struct(build, owner, [Line("protected:"), *body], f" : {base}")
    build.place([*plain(f"{owner} {held};"), *build.calls(f"{held}.{go}({build.arguments})")])


def constructing(build: Build) -> None:
    """The constructor does the second part."""
    owner, held = build.names.new("class"), build.names.new("value")
    end = f"{build.template.gives.rpartition(' ')[2]}_ = {build.template.gives.rpartition(' ')[2]};" if build.template.gives else ""
    body = block(
        f"{'explicit ' if len(build.takes) == 1 else ''}{owner}({build.parameters})", [*build.plain_second, *plain(*([end] if end else []))]
    )
    own = plain(*([f"{build.template.gives}_;"] if build.template.gives else []))
    struct(build, owner, [*body, *own])
    rest = plain(f"{build.template.gives} = {held}.{build.template.gives.rpartition(' ')[2]}_;") if build.template.gives else []
    build.place([*linked(f"{owner} {held}({build.arguments});"), *rest])


WAYS: dict[str, Callable[[Build], None]] = {
    "initialised": initialised,
    "setters": setters,
    "getters": getters,
    "nested-struct": nested_struct,
    "base-members": base_members,
    "pointer-member": pointer_member,
    "reference-member": reference_member,
    "static-members": static_members,
    "globals": global_variables,
    "namespace-variables": namespace_variables,
    "singleton": singleton,
    "unique-ptr": unique_holder,
    "shared-ptr": shared_holder,
    "factory": factory,
    "designated": designated,
    "packed": packed,
    "pimpl": hidden_implementation,
    "moved": moved,
    "swapped": swapped,
    "assigned": assigned,
    "heap-holder": heap_holder,
    "void-pointer": void_pointer,
    "crtp": static_base,
    "class-template": class_template,
    "builder": builder,
    "member-object": member_object,
    "variant": visited,
    "member-function": member_function,
    "template-method": in_place,
    "constructing": constructing,
}
