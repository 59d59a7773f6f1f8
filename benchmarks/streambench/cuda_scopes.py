"""Ways of CUDA C++ in which lifetimes, exits, or threads decide where the second part stands."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.streambench.cuda_parts import given, handles, holder, kinds, later, members, placed, reader, returning, spread, struct
from benchmarks.streambench.cuda_ways import Build, block
from benchmarks.streambench.pieces import Line, indent, linked, plain, renamed

_FAILED = 'std::getenv("SKIP") != nullptr'


def _wrapped(build: Build, access: str, method_text: str) -> None:
    """Each handle in an object of a class template of the program, which a function is given."""
    owner = build.names.new("class")
    body = plain(
        f"explicit {owner}(T value) : value_(value) {{}}", f"{owner}(const {owner}&) = delete;",
        f"{owner}& operator=(const {owner}&) = delete;", method_text, "", "private:", "T value_;",
    )  # fmt: skip
    build.add([Line("template <typename T>"), *block(f"class {owner}", [Line("public:"), *body], "};")])
    held = {name: build.names.new("value") for _, name in handles(build)}
    parameters = ", ".join(f"const {owner}<{kind}>& {name}" if name in held else f"{kind} {name}" for kind, name in build.takes)
    act = reader(build, parameters, {name: access.format(name) for name in held})
    before = [f"{owner}<{kind}> {held[name]}({name});" for kind, name in handles(build)]
    placed(build, before, f"{act}({spread(build, held)})")


def wrapper_get(build: Build) -> None:
    """A wrapper with `get()`."""
    _wrapped(build, "{}.get()", "T get() const { return value_; }")


def wrapper_dereferenced(build: Build) -> None:
    """A wrapper with `operator*`."""
    _wrapped(build, "(*{})", "const T& operator*() const { return value_; }")


def wrapper_converted(build: Build) -> None:
    """A wrapper that converts to what it holds, where a function takes that."""
    owner, name = build.names.new("class"), build.helper()
    body = plain(f"explicit {owner}(T value) : value_(value) {{}}", "operator T() const { return value_; }", "", "private:", "T value_;")
    build.add([Line("template <typename T>"), *block(f"class {owner}", [Line("public:"), *body], "};")])
    held = {taken: build.names.new("value") for _, taken in handles(build)}
    before = [f"{owner}<{kind}> {held[taken]}({taken});" for kind, taken in handles(build)]
    placed(build, before, f"{name}({spread(build, held)})")


def wrapper_arrow(build: Build) -> None:
    """A wrapper of a struct with `operator->`."""
    inner, owner, one, held = holder(build), build.names.new("class"), build.names.new("value"), build.names.new("value")
    body = plain(
        f"explicit {owner}(const {inner}& inside) : inside_(inside) {{}}", f"{inner}* operator->() {{ return &inside_; }}", "", "private:",
        f"{inner} inside_;",
    )  # fmt: skip
    build.add(block(f"class {owner}", [Line("public:"), *body], "};"))
    act = reader(build, f"{owner}& {held}", members(build, f"{held}->"))
    placed(build, [f"{owner} {one}({inner}{{{build.arguments}}});"], f"{act}({one})")


def destructor(build: Build) -> None:
    """The destructor does the second part, at the end of a block."""
    owner, held = build.names.new("class"), build.names.new("value")
    listed = ", ".join(f"{name}_({name})" for _, name in build.takes)
    body = [
        Line(f"{owner}({build.parameters}) : {listed} {{}}"),
        *block(f"~{owner}()", renamed(build.plain_second, members(build, suffix="_"))),
    ]
    own = plain(*(f"{kind} {name}_;" for kind, name in build.takes))
    struct(build, owner, [*body, *own])
    build.place([*plain("{"), *linked(f"  {owner} {held}({build.arguments});", "}")])


def scope_guard(build: Build) -> None:
    """A guard object calls a lambda when its block ends."""
    build.need("#include <utility>")
    owner, held, name = build.names.new("class"), build.names.new("value"), build.helper()
    body = plain("F work;") + block(f"~{owner}()", linked("work();"))
    build.add(
        [
            Line("template <typename F>"),
            *block(f"struct {owner}", body, "};"),
            *plain("template <typename F>", f"{owner}(F) -> {owner}<F>;"),
        ]
    )
    before, call = later(build, f"{name}({build.arguments})")
    build.place([*before, *plain("{"), *linked(f"  {owner} {held}{{[&] {{ {call} }}}};", "}")])


def deleter(build: Build) -> None:
    """The deleter of a `std::unique_ptr` does the second part when its block ends."""
    build.need("#include <memory>")
    inner, owner, held, one = holder(build), build.names.new("class"), build.names.new("value"), build.names.new("value")
    body = block(
        f"void operator()({inner}* {held}) const", [*renamed(build.plain_second, members(build, f"{held}->")), *plain(f"delete {held};")]
    )
    struct(build, owner, body)
    made = f"std::unique_ptr<{inner}, {owner}> {one}(new {inner}{{{build.arguments}}});"
    build.place([*plain("{"), *linked(f"  {made}", "}")])


def reset(build: Build) -> None:
    """`reset()` of a `std::unique_ptr` ends an object whose destructor does the second part."""
    build.need("#include <memory>")
    owner, held = build.names.new("class"), build.names.new("value")
    listed = ", ".join(f"{name}_({name})" for _, name in build.takes)
    body = [
        Line(f"{owner}({build.parameters}) : {listed} {{}}"),
        *block(f"~{owner}()", renamed(build.plain_second, members(build, suffix="_"))),
    ]
    struct(build, owner, [*body, *plain(*(f"{kind} {name}_;" for kind, name in build.takes))])
    build.place([*plain(f"auto {held} = std::make_unique<{owner}>({build.arguments});"), *linked(f"{held}.reset();")])


def _guarded(build: Build, name: str, before: list[Line], after: list[Line]) -> None:
    build.add(block(f"static {build.result} {name}({build.parameters})", [*before, *after]))
    placed(build, [], f"{name}({build.arguments})")


def early_return(build: Build) -> None:
    """Guards that return early stand before the second part."""
    build.need("#include <cstdlib>")
    pointers = [f"{name} == nullptr" for kind, name in build.takes if kind.endswith("*")][:1]
    leave = "return {};" if build.template.gives else "return;"
    tests = [f"if ({test}) {leave}" for test in (*pointers, _FAILED)]
    _guarded(build, build.names.new("function"), plain(*tests), build.second)


def goto_exit(build: Build) -> None:
    """`goto` leaves to the one exit."""
    build.need("#include <cstdlib>")
    out = given(build)
    before = plain(*([f"{build.result} result{{}};"] if out else []), f"if ({_FAILED}) goto done;")
    body = [*build.plain_second, *plain(*([f"result = {out};"] if out else []))]
    end = plain("done:", "return result;" if out else "return;")
    _guarded(build, build.names.new("function"), before, [*plain("{"), *indent(body, "  "), *plain("}"), *end])


def tried(build: Build) -> None:
    """`try` with a handler that reports."""
    build.need("#include <cstdio>", "#include <exception>")
    before, call = later(build, f"{build.helper()}({build.arguments})")
    handler = block("} catch (const std::exception& error)", plain('std::fprintf(stderr, "%s\\n", error.what());', "throw;"))
    build.place([*before, Line("try {"), *indent(linked(call), "  "), *handler])


def switched(build: Build) -> None:
    """A case of a `switch` over an enumeration."""
    owner, name = build.names.new("class"), build.names.new("function")
    build.add(plain(f"enum class {owner} {{ nothing, full }};"))
    leave = "return {};" if build.template.gives else "return;"
    full = [Line(f"case {owner}::full: {{"), *indent(build.second, "  "), *plain(*([] if build.template.gives else ["  break;"]), "}")]
    body = [
        Line("switch (mode) {"),
        *indent([*plain(f"case {owner}::nothing:", f"  {leave}"), *full], "  "),
        *plain("}", *(["return {};"] if build.template.gives else [])),
    ]
    build.add(block(f"static {build.result} {name}({', '.join([f'{owner} mode', *build.template.takes])})", body))
    placed(build, [], f"{name}({', '.join([f'{owner}::full', *(name for _, name in build.takes)])})")


def do_once(build: Build) -> None:
    """`do … while (false)`, which a test leaves by `break`."""
    build.need("#include <cstdlib>")
    out = given(build)
    body = [*plain(f"if ({_FAILED}) break;"), *build.plain_second, *plain(*([f"result = {out};"] if out else []))]
    lines = [
        *plain(*([f"{build.result} result{{}};"] if out else [])),
        *block("do", body, "} while (false);"),
        *plain(*(["return result;"] if out else [])),
    ]
    _guarded(build, build.names.new("function"), [], lines)


def call_once(build: Build) -> None:
    """`std::call_once`."""
    build.need("#include <mutex>")
    flag = build.names.new("value")
    before, call = later(build, f"{build.helper()}({build.arguments})")
    build.place([*before, *linked(f"std::once_flag {flag};", f"std::call_once({flag}, [&] {{ {call} }});")])


def locked(build: Build) -> None:
    """A method that takes a lock first, and reads its members."""
    build.need("#include <mutex>")
    owner, put, act, held = build.names.new("class"), build.names.new("function"), build.names.new("function"), build.names.new("value")
    guard = plain("std::lock_guard<std::mutex> lock(mutex_);")
    second = [*guard, *renamed(build.second, members(build, suffix="_"))]
    body = [
        *block(f"void {put}({build.parameters})", [*guard, *plain(*(f"{name}_ = {name};" for _, name in build.takes))]),
        *block(f"{build.result} {act}()", second),
        *plain("", "private:", "std::mutex mutex_;", *(f"{kind} {name}_{{}};" for kind, name in build.takes)),
    ]
    build.add(block(f"class {owner}", [Line("public:"), *body], "};"))
    placed(build, [f"{owner} {held};", f"{held}.{put}({build.arguments});"], f"{held}.{act}()")


def thread_method(build: Build) -> None:
    """A thread that runs a method, and is joined at once."""
    build.need("#include <thread>")
    owner, act, held, worker = build.names.new("class"), build.names.new("function"), build.names.new("value"), build.names.new("value")
    out = given(build)
    body = block(f"void {act}()", [*renamed(build.plain_second, {}), *plain(*([f"result = {out};"] if out else []))])
    struct(build, owner, [*body, *plain(*(f"{kind} {name};" for kind, name in build.takes), *([f"{build.result} result;"] if out else []))])
    lines = linked(f"{owner} {held}{{{build.arguments}}};", f"std::thread {worker}(&{owner}::{act}, &{held});", f"{worker}.join();")
    build.place([*lines, *plain(*([f"{build.template.gives} = {held}.result;"] if out else []))])


def thread_arguments(build: Build) -> None:
    """A thread that is given a function and its arguments, kept in a list of threads."""
    build.need("#include <thread>", "#include <vector>")
    out, workers, one = given(build), build.names.new("value"), build.names.new("value")
    name = build.names.new("function")
    parameters = ", ".join([*build.template.takes, *([f"{build.result}* result"] if out else [])])
    build.add(block(f"static void {name}({parameters})", [*build.plain_second, *plain(*([f"*result = {out};"] if out else []))]))
    arguments = ", ".join([name, *(taken for _, taken in build.takes), *([f"&{out}"] if out else [])])
    before = plain(*([f"{build.template.gives}{{}};"] if out else []))
    made = linked(f"std::vector<std::thread> {workers};", f"{workers}.emplace_back({arguments});")
    build.place([*before, *made, *block(f"for (auto& {one} : {workers})", linked(f"{one}.join();"))])


def asynchronous(build: Build) -> None:
    """`std::async`, whose future is asked at once."""
    build.need("#include <future>")
    name, held = build.helper(), build.names.new("value")
    made = linked(f"auto {held} = std::async(std::launch::async, {name}, {build.arguments});")
    build.place([*made, *build.calls(f"{held}.get()")])


def packaged(build: Build) -> None:
    """A `std::packaged_task` that a thread runs."""
    build.need("#include <future>", "#include <thread>", "#include <utility>")
    name, task, held, worker = build.helper(), *(build.names.new("value") for _ in range(3))
    lines = linked(
        f"std::packaged_task<{build.result}({kinds(build)})> {task}({name});", f"auto {held} = {task}.get_future();",
        f"std::thread {worker}(std::move({task}), {build.arguments});", f"{worker}.join();",
    )  # fmt: skip
    build.place([*lines, *build.calls(f"{held}.get()")])


def promised(build: Build) -> None:
    """A `std::promise` of a struct, and its future."""
    build.need("#include <future>")
    inner, promise, taken, one = holder(build), *(build.names.new("value") for _ in range(3))
    act = reader(build, f"const {inner}& {taken}", members(build, f"{taken}."))
    lines = [
        f"std::promise<{inner}> {promise};",
        f"{promise}.set_value({inner}{{{build.arguments}}});",
        f"const {inner} {one} = {promise}.get_future().get();",
    ]
    placed(build, lines, f"{act}({one})")


def handed_over(build: Build) -> None:
    """A worker waits on a condition variable for the struct that the entry function puts into a queue."""
    build.need("#include <condition_variable>", "#include <deque>", "#include <mutex>", "#include <thread>")
    inner, owner, held, one, worker = holder(build), build.names.new("class"), *(build.names.new("value") for _ in range(3))
    put = [*plain("std::lock_guard<std::mutex> lock(mutex_);", "items_.push_back(item);", "ready_.notify_one();")]
    pop = plain(
        "std::unique_lock<std::mutex> lock(mutex_);", "ready_.wait(lock, [this] { return !items_.empty(); });",
        f"{inner} item = items_.front();", "items_.pop_front();", "return item;",
    )  # fmt: skip
    own = plain("", "private:", "std::mutex mutex_;", "std::condition_variable ready_;", f"std::deque<{inner}> items_;")
    build.add(
        block(
            f"class {owner}", [Line("public:"), *block(f"void push(const {inner}& item)", put), *block(f"{inner} pop()", pop), *own], "};"
        )
    )
    taken = build.names.new("value")
    act = reader(build, f"const {inner}& {taken}", members(build, f"{taken}."))
    before, call = later(build, f"{act}({one})")
    body = linked(f"std::thread {worker}([&] {{", f"  const {inner} {one} = {held}.pop();", f"  {call}", "});")
    build.place([*before, *plain(f"{owner} {held};"), *body, *linked(f"{held}.push({inner}{{{build.arguments}}});", f"{worker}.join();")])


def passed_around(build: Build) -> None:
    """A method of one class calls a method of another one, which it knows by a reference, with its own members."""
    first, second, act, go, held, one = (build.names.new(kind) for kind in ("class", "class", "function", "function", "value", "value"))
    struct(build, first, block(f"{build.result} {act}({build.parameters})", build.second))
    own = ", ".join(f"{name}_" for _, name in build.takes)
    listed = ", ".join(["next_(next)", *(f"{name}_({name})" for _, name in build.takes)])
    body = [
        *plain(f"{second}({', '.join([f'{first}& next', *build.template.takes])}) : {listed} {{}}"),
        *block(f"{build.result} {go}()", returning(build, f"next_.{act}({own})")),
        *plain(f"{first}& next_;", *(f"{kind} {name}_;" for kind, name in build.takes)),
    ]
    struct(build, second, body)
    arguments = ", ".join([held, *(name for _, name in build.takes)])
    placed(build, [f"{first} {held};", f"{second} {one}({arguments});"], f"{one}.{go}()")


WAYS: dict[str, Callable[[Build], None]] = {
    "wrapper-get": wrapper_get,
    "wrapper-dereferenced": wrapper_dereferenced,
    "wrapper-converted": wrapper_converted,
    "wrapper-arrow": wrapper_arrow,
    "destructor": destructor,
    "scope-guard": scope_guard,
    "deleter": deleter,
    "reset": reset,
    "early-return": early_return,
    "goto": goto_exit,
    "try": tried,
    "switch": switched,
    "do-once": do_once,
    "call-once": call_once,
    "lock": locked,
    "thread-method": thread_method,
    "thread-arguments": thread_arguments,
    "async": asynchronous,
    "packaged-task": packaged,
    "promise": promised,
    "hand-over": handed_over,
    "passed-around": passed_around,
}
