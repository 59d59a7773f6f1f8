"""Ways of CUDA C++ in which containers, tuples and copies of the values carry what the second part takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.streambench.cuda_parts import given, handles, holder, inline, kinds, later, members, placed, reader, spread, struct
from benchmarks.streambench.cuda_ways import Build, block
from benchmarks.streambench.pieces import Line, linked, plain, renamed


def _each(build: Build, container: str, fill: Sequence[str], read: str, include: str) -> None:
    """A container for each handle, filled and read in the entry function; ``{c}`` is the container, ``{v}`` the value."""
    build.need(*([f"#include <{include}>"] if include else []))
    before, own = [], {}
    for kind, name in handles(build):
        held = build.names.new("value")
        before += [text.format(k=kind, c=held, v=name) for text in (container, *fill)]
        own[name] = read.format(c=held)
    inline(build, before, own)


def _one(build: Build, container: str, fill: Sequence[str], read: str, include: str) -> None:
    """One container of structs, read in the entry function and passed to a function."""
    build.need(*([f"#include <{include}>"] if include else []))
    inner, held, taken = holder(build), build.names.new("value"), build.names.new("value")
    act = reader(build, f"const {inner}& {taken}", members(build, f"{taken}."))
    before = [text.format(k=inner, c=held, v=f"{inner}{{{build.arguments}}}") for text in (container, *fill)]
    placed(build, before, f"{act}({read.format(c=held)})")


def _parameter(build: Build, container: str, fill: Sequence[str], read: str, include: str) -> None:
    """A container for each handle, which a function is given and reads."""
    build.need(f"#include <{include}>")
    own, held, parameters = {}, {}, []
    before = []
    for kind, name in build.takes:
        if (kind, name) not in handles(build):
            parameters.append(f"{kind} {name}")
            continue
        held[name] = build.names.new("value")
        before += [f"{text} ".format(k=kind, c=held[name], v=name).strip() for text in (f"{container} {{c}};", *fill)]
        parameters.append(f"{container.format(k=kind)}& {name}")
        own[name] = read.format(c=name)
    act = reader(build, ", ".join(parameters), own)
    placed(build, before, f"{act}({spread(build, held)})")


def pushed(build: Build) -> None:
    """`std::vector`: `push_back`, then an index."""
    _each(build, "std::vector<{k}> {c};", ["{c}.push_back({v});"], "{c}[0]", "vector")


def emplaced(build: Build) -> None:
    """`std::vector`: `emplace_back`, then `back()` in a function."""
    _parameter(build, "std::vector<{k}>", ["{c}.reserve(4);", "{c}.emplace_back({v});"], "{c}.back()", "vector")


def resized(build: Build) -> None:
    """`std::vector` of a size, whose elements a counted loop fills."""
    fill = ["for (int i = 0; i < 2; ++i) {{", "  {c}[i] = {v};", "}}"]
    _each(build, "std::vector<{k}> {c}(2);", fill, "{c}[1]", "vector")


def fixed_array(build: Build) -> None:
    """`std::array` of two, with a constant index."""
    _each(build, "std::array<{k}, 2> {c}{{}};", ["{c}[1] = {v};"], "{c}[1]", "array")


def c_array(build: Build) -> None:
    """An array of C with a braced list."""
    _each(build, "{k} {c}[2] = {{{v}, {v}}};", [], "{c}[1]", "")


def array_parameter(build: Build) -> None:
    """An array of C that decays to the pointer parameter of a function."""
    own, held, before, parameters = {}, {}, [], []
    for kind, name in build.takes:
        if (kind, name) in handles(build):
            held[name] = build.names.new("value")
            before.append(f"{kind} {held[name]}[1] = {{{name}}};")
            own[name] = f"{name}[0]"
        parameters.append(f"{kind}* {name}" if name in own else f"{kind} {name}")
    placed(build, before, f"{reader(build, ', '.join(parameters), own)}({spread(build, held)})")


def constant_index(build: Build) -> None:
    """An array whose index is a `constexpr`."""
    index = build.names.new("value")
    build.add(plain(f"constexpr int k_{index} = 1;"))
    _each(build, "{k} {c}[2] = {{}};", [f"{{c}}[k_{index}] = {{v}};"], f"{{c}}[k_{index}]", "")


def by_enum(build: Build) -> None:
    """An array whose index is an enumerator."""
    owner = build.names.new("class")
    build.add(plain(f"enum class {owner} {{ first, last, count }};"))
    index = f"static_cast<int>({owner}::{{}})"
    last, count = index.format("last"), index.format("count")
    _each(build, f"{{k}} {{c}}[{count}] = {{{{}}}};", [f"{{c}}[{last}] = {{v}};"], f"{{c}}[{last}]", "")


def _looped(build: Build, container: str, fill: Sequence[str], loop: str, each: str, include: str) -> None:
    build.need(f"#include <{include}>")
    inner, held, one, taken = holder(build), *(build.names.new("value") for _ in range(3))
    act = reader(build, f"const {inner}& {taken}", members(build, f"{taken}."))
    before, call = later(build, f"{act}({each.format(c=held, e=one)})")
    made = [text.format(k=inner, c=held, v=f"{inner}{{{build.arguments}}}") for text in (container, *fill)]
    build.place([*plain(*made), *before, *block(loop.format(k=inner, c=held, e=one), linked(call))])


def range_for(build: Build) -> None:
    """A range-based loop over a `std::vector` of one struct."""
    _looped(build, "std::vector<{k}> {c};", ["{c}.push_back({v});"], "for (const {k}& {e} : {c})", "{e}", "vector")


def iterated(build: Build) -> None:
    """A loop with iterators."""
    _looped(build, "std::vector<{k}> {c}{{{v}}};", [], "for (auto {e} = {c}.begin(); {e} != {c}.end(); ++{e})", "*{e}", "vector")


def counted(build: Build) -> None:
    """A loop with a counter up to `size()`."""
    _looped(build, "std::vector<{k}> {c};", ["{c}.push_back({v});"], "for (size_t {e} = 0; {e} < {c}.size(); ++{e})", "{c}[{e}]", "vector")


def listed(build: Build) -> None:
    """A loop over the pairs of a `std::map`, taken apart by structured bindings."""
    loop = "for (const auto& [number, {e}] : {c})"
    _looped(build, "std::map<int, {k}> {c};", ["{c}.emplace(7, {v});"], loop, "{e}", "map")


def for_each(build: Build) -> None:
    """`std::for_each` with a lambda."""
    build.need("#include <algorithm>", "#include <vector>")
    inner, held, one, taken = holder(build), *(build.names.new("value") for _ in range(3))
    act = reader(build, f"const {inner}& {taken}", members(build, f"{taken}."))
    before, call = later(build, f"{act}({one})")
    made = plain(f"std::vector<{inner}> {held}{{{inner}{{{build.arguments}}}}};")
    loop = f"std::for_each({held}.begin(), {held}.end(), [&](const {inner}& {one}) {{ {call} }});"
    build.place([*made, *before, *linked(loop)])


def mapped(build: Build) -> None:
    """`std::map` by a string: `[]`, then `at`."""
    _each(build, "std::map<std::string, {k}> {c};", ['{c}["main"] = {v};'], '{c}.at("main")', "map")
    build.need("#include <string>")


def found(build: Build) -> None:
    """`std::unordered_map`: `emplace`, then `find`."""
    _one(build, "std::unordered_map<int, {k}> {c};", ["{c}.emplace(0, {v});"], "{c}.find(0)->second", "unordered_map")


def map_parameter(build: Build) -> None:
    """`std::unordered_map` that a function is given, and reads by a constant key."""
    _parameter(build, "std::unordered_map<int, {k}>", ["{c}[3] = {v};"], "{c}[3]", "unordered_map")


def deque(build: Build) -> None:
    """`std::deque`: `push_back`, then `front`."""
    _each(build, "std::deque<{k}> {c};", ["{c}.push_back({v});"], "{c}.front()", "deque")


def _popped(build: Build, container: str, put: str, read: str, take: str, include: str) -> None:
    build.need(f"#include <{include}>")
    inner, held, one, taken = holder(build), *(build.names.new("value") for _ in range(3))
    act = reader(build, f"const {inner}& {taken}", members(build, f"{taken}."))
    lines = [f"{container}<{inner}> {held};", f"{held}.{put}({inner}{{{build.arguments}}});", f"{inner} {one} = {held}.{read}();"]
    placed(build, [*lines, f"{held}.{take}();"], f"{act}({one})")


def queue(build: Build) -> None:
    """`std::queue`: `push`, `front` and `pop`."""
    _popped(build, "std::queue", "push", "front", "pop", "queue")


def stack(build: Build) -> None:
    """A `std::vector` as a stack: `push_back`, `back` and `pop_back`."""
    _popped(build, "std::vector", "push_back", "back", "pop_back", "vector")


def own_queue(build: Build) -> None:
    """A queue class of the program: a `std::deque` behind `push` and `pop`."""
    build.need("#include <deque>", "#include <utility>")
    owner, inner = build.names.new("class"), holder(build)
    body = [
        *plain("public:", "void push(T item) { items_.push_back(std::move(item)); }"),
        *block("T pop()", plain("T item = std::move(items_.front());", "items_.pop_front();", "return item;")),
        *plain("", "private:", "std::deque<T> items_;"),
    ]
    build.add([Line("template <typename T>"), *block(f"class {owner}", body, "};")])
    held, taken, act = build.names.new("value"), build.names.new("value"), build.names.new("function")
    lines = [*plain(f"{inner} {taken} = {held}.pop();"), *renamed(build.second, members(build, f"{taken}."))]
    build.add(block(f"static {build.result} {act}({owner}<{inner}>& {held})", lines))
    one = build.names.new("value")
    placed(build, [f"{owner}<{inner}> {one};", f"{one}.push({inner}{{{build.arguments}}});"], f"{act}({one})")


def own_range(build: Build) -> None:
    """A container of the program with `begin` and `end`."""
    build.need("#include <vector>")
    inner, owner = holder(build), build.names.new("class")
    body = plain(
        f"void add({inner} one) {{ all_.push_back(one); }}", f"{inner}* begin() {{ return all_.data(); }}",
        f"{inner}* end() {{ return all_.data() + all_.size(); }}", f"std::vector<{inner}> all_;",
    )  # fmt: skip
    struct(build, owner, body)
    held, one, taken = (build.names.new("value") for _ in range(3))
    act = reader(build, f"{inner}& {taken}", members(build, f"{taken}."))
    before, call = later(build, f"{act}({one})")
    made = plain(f"{owner} {held};", f"{held}.add({inner}{{{build.arguments}}});")
    build.place([*made, *before, *block(f"for ({inner}& {one} : {held})", linked(call))])


def pointers(build: Build) -> None:
    """A `std::vector` of `std::unique_ptr`."""
    build.need("#include <memory>", "#include <vector>")
    inner, held, taken = holder(build), build.names.new("value"), build.names.new("value")
    act = reader(build, f"const std::vector<std::unique_ptr<{inner}>>& {taken}", members(build, f"{taken}[0]->"))
    made = f"{held}.push_back(std::make_unique<{inner}>({inner}{{{build.arguments}}}));"
    placed(build, [f"std::vector<std::unique_ptr<{inner}>> {held};", made], f"{act}({held})")


def vector_member(build: Build) -> None:
    """A class that collects structs, and does the second part for each of them."""
    build.need("#include <vector>")
    inner, owner, one, held = holder(build), build.names.new("class"), build.names.new("value"), build.names.new("value")
    add, act = build.names.new("function"), build.names.new("function")
    second = renamed(build.plain_second, members(build, f"{held}."))
    kept = plain(f"last_ = {given(build)};") if build.template.gives else []
    tail = plain(*(["return last_;"] if build.template.gives else []))
    body = [
        *block(f"void {add}({build.parameters})", plain(f"all_.push_back({{{build.arguments}}});")),
        *block(f"{build.result} {act}()", [*block(f"for (auto& {held} : all_)", [*second, *kept]), *tail]),
        *plain(f"std::vector<{inner}> all_;", *([f"{build.result} last_{{}};"] if build.template.gives else [])),
    ]
    struct(build, owner, body)
    placed(build, [f"{owner} {one};", f"{one}.{add}({build.arguments});"], f"{one}.{act}()")


def ring(build: Build) -> None:
    """A ring of two slots, whose number counts on."""
    inner, held, number, taken = holder(build), *(build.names.new("value") for _ in range(3))
    act = reader(build, f"const {inner}& {taken}", members(build, f"{taken}."))
    made = f"{inner}{{{build.arguments}}}"
    before = [f"{inner} {held}[2] = {{{made}, {made}}};", f"int {number} = 0;"]
    placed(build, [*before, f"{number} = ({number} + 1) % 2;"], f"{act}({held}[{number}])")


def data_pointer(build: Build) -> None:
    """A pointer to the elements of a `std::vector`, and a count."""
    build.need("#include <vector>")
    inner, held, taken, act = holder(build), build.names.new("value"), build.names.new("value"), build.names.new("function")
    tail = plain("return {};") if build.template.gives else []
    loop = block("for (int i = 0; i < count; ++i)", renamed(build.second, members(build, f"{taken}[i].")))
    build.add(block(f"static {build.result} {act}(const {inner}* {taken}, int count)", [*loop, *tail]))
    placed(build, [f"std::vector<{inner}> {held}{{{{{build.arguments}}}}};"], f"{act}({held}.data(), 1)")


def optional(build: Build) -> None:
    """A `std::optional` of each handle, which a function looks into."""
    _parameter(build, "std::optional<{k}>", ["{c} = {v};"], "(*{c})", "optional")


def optional_value(build: Build) -> None:
    """A `std::optional` of a struct: asked first, then `value()`."""
    build.need("#include <optional>")
    inner, held, taken = holder(build), build.names.new("value"), build.names.new("value")
    act = reader(build, f"const {inner}& {taken}", members(build, f"{taken}."))
    before, call = later(build, f"{act}({held}.value())")
    made = plain(f"std::optional<{inner}> {held} = {inner}{{{build.arguments}}};")
    build.place([*made, *before, *block(f"if ({held}.has_value())", linked(call))])


def tuple_bound(build: Build) -> None:
    """A `std::tuple` that a function returns, taken apart by structured bindings."""
    build.need("#include <tuple>")
    make = build.names.new("function")
    build.add(block(f"static std::tuple<{kinds(build)}> {make}({build.parameters})", plain(f"return {{{build.arguments}}};")))
    own = {name: build.names.new("value") for _, name in build.takes}
    inline(build, [f"auto [{', '.join(own.values())}] = {make}({build.arguments});"], own)


def tied(build: Build) -> None:
    """`std::tie` takes a tuple apart into variables."""
    build.need("#include <tuple>")
    held, own = build.names.new("value"), {name: build.names.new("value") for _, name in build.takes}
    before = [f"const auto {held} = std::make_tuple({build.arguments});", *(f"{kind} {own[name]}{{}};" for kind, name in build.takes)]
    inline(build, [*before, f"std::tie({', '.join(own.values())}) = {held};"], own)


def tuple_parameter(build: Build) -> None:
    """A `std::tuple` that a function is given, and `std::get`."""
    build.need("#include <tuple>")
    held, taken = build.names.new("value"), build.names.new("value")
    own = {name: f"std::get<{number}>({taken})" for number, (_, name) in enumerate(build.takes)}
    act = reader(build, f"const std::tuple<{kinds(build)}>& {taken}", own)
    placed(build, [f"std::tuple<{kinds(build)}> {held}{{{build.arguments}}};"], f"{act}({held})")


def paired(build: Build) -> None:
    """A `std::pair` of a number and a struct."""
    build.need("#include <utility>")
    inner, held, taken = holder(build), build.names.new("value"), build.names.new("value")
    act = reader(build, f"const std::pair<int, {inner}>& {taken}", members(build, f"{taken}.second."))
    placed(build, [f"auto {held} = std::make_pair(1, {inner}{{{build.arguments}}});"], f"{act}({held})")


def reference_local(build: Build) -> None:
    """References in the entry function, and copies of them."""
    own = {name: build.names.new("value") for _, name in handles(build)}
    more = {name: build.names.new("value") for name in own}
    inline(build, [*(f"auto& {own[name]} = {name};" for name in own), *(f"auto {more[name]} = {own[name]};" for name in own)], more)


def pointer_local(build: Build) -> None:
    """A function is given the addresses of the handles."""
    named = [name for _, name in handles(build)]
    parameters = ", ".join(f"{kind}* {name}" if name in named else f"{kind} {name}" for kind, name in build.takes)
    act = reader(build, parameters, {name: f"(*{name})" for name in named})
    placed(build, [], f"{act}({spread(build, {name: f'&{name}' for name in named})})")


def chosen(build: Build) -> None:
    """A condition chooses between two structs that hold the same."""
    build.need("#include <cstdlib>")
    inner, one, other, held, taken = holder(build), *(build.names.new("value") for _ in range(4))
    act = reader(build, f"const {inner}& {taken}", members(build, f"{taken}."))
    made = [f"{inner} {name}{{{build.arguments}}};" for name in (one, other)]
    placed(build, [*made, f'const {inner}& {held} = std::getenv("OTHER") ? {other} : {one};'], f"{act}({held})")


WAYS: dict[str, Callable[[Build], None]] = {
    "vector": pushed,
    "vector-back": emplaced,
    "vector-filled": resized,
    "std-array": fixed_array,
    "c-array": c_array,
    "array-parameter": array_parameter,
    "constant-index": constant_index,
    "enum-index": by_enum,
    "range-for": range_for,
    "iterator": iterated,
    "counted-loop": counted,
    "map-loop": listed,
    "for-each": for_each,
    "map": mapped,
    "map-find": found,
    "map-parameter": map_parameter,
    "deque": deque,
    "queue": queue,
    "stack": stack,
    "own-queue": own_queue,
    "own-range": own_range,
    "vector-of-pointers": pointers,
    "vector-member": vector_member,
    "ring": ring,
    "data-pointer": data_pointer,
    "optional": optional,
    "optional-value": optional_value,
    "tuple-bound": tuple_bound,
    "tie": tied,
    "tuple-get": tuple_parameter,
    "pair": paired,
    "reference-local": reference_local,
    "pointer-parameter": pointer_local,
    "chosen": chosen,
}
