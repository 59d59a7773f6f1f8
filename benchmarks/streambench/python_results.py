"""Ways in which the first part hands on what it made: results, constructors, generators, contexts, globals."""

from __future__ import annotations

from benchmarks.streambench.pieces import Line, Way, indent, lines_of, linked, plain, renamed
from benchmarks.streambench.python_forms import after_first, draw, first_part, klass
from benchmarks.streambench.python_ways import Build, define


def _second_of(build: Build, held: str, form: str = ".") -> str:
    """A function that is given the object which the first part made, and does the second part; its name."""
    name = build.names.new("function")
    reads = {taken: f"{held}.{taken}" if form == "." else f'{held}["{taken}"]' for taken in build.template.takes}
    body = renamed(build.second, reads) if form == "." else [*plain(*(f"{name} = {read}" for name, read in reads.items())), *build.second]
    build.add(define(f"{name}({held})", body))
    return name


def _rest(build: Build, after: list[Line], held: str) -> list[Line]:
    """What the entry function does with the object at the end."""
    return renamed(after, {name: f"{held}.{name}" for name in build.kept if name != build.template.gives})


def _own(build: Build, lines: list[Line]) -> list[Line]:
    return renamed(lines, {name: f"self.{name}" for name in build.kept})


def result_object(build: Build) -> None:
    """A function does the first part, and hands back an object with attributes."""
    owner, make, held = draw(build, "class", "function", "value")
    before, after, _ = first_part(build)
    build.add(klass(owner))
    store = plain(f"{held} = {owner}()", *(f"{held}.{name} = {name}" for name in build.kept), f"return {held}")
    build.add(define(f"{make}()", [*before, *store]))
    act = _second_of(build, held)
    build.body = [*linked(f"{held} = {make}()"), *build.calls(f"{act}({held})"), *_rest(build, after, held)]


def result_data(build: Build) -> None:
    """The same with a data class."""
    build.need("import dataclasses")
    owner, make, held = draw(build, "class", "function", "value")
    before, after, _ = first_part(build)
    build.add([Line("@dataclasses.dataclass"), *klass(owner, plain(*(f"{name}: object" for name in build.kept)))])
    build.add(define(f"{make}()", [*before, *plain(f"return {owner}({', '.join(f'{name}={name}' for name in build.kept)})")]))
    act = _second_of(build, held)
    build.body = [*linked(f"{held} = {make}()"), *build.calls(f"{act}({held})"), *_rest(build, after, held)]


def result_dict(build: Build) -> None:
    """The same with a dict."""
    make, held = draw(build, "function", "value")
    before, after, _ = first_part(build)
    entries = ", ".join(f'"{name}": {name}' for name in build.kept)
    build.add(define(f"{make}()", [*before, *plain(f"return {{{entries}}}")]))
    act = _second_of(build, held, "[]")
    own = plain(*(f'{name} = {held}["{name}"]' for name in build.kept if name != build.template.gives))
    build.body = [*linked(f"{held} = {make}()"), *build.calls(f"{act}({held})"), *own, *after]


def result_indexed(build: Build) -> None:
    """The same with a tuple that is read by index."""
    make, held, act = *draw(build, "function", "value"), build.helper()
    before, after, kept = first_part(build)
    build.add(define(f"{make}()", [*before, *plain(f"return [{kept}]")]))
    order = list(build.kept)
    given = ", ".join(f"{held}[{order.index(name)}]" for name in build.template.takes)
    own = plain(*(f"{name} = {held}[{number}]" for number, name in enumerate(order) if name != build.template.gives))
    build.body = [*linked(f"{held} = {make}()"), *build.calls(f"{act}({given})"), *own, *after]


def result_starred(build: Build) -> None:
    """What the one function hands back is spread into the call of the other."""
    make, held, act = *draw(build, "function", "value"), build.names.new("function")
    before, after, kept = first_part(build)
    build.add(define(f"{make}()", [*before, *plain(f"return {kept}{'' if ',' in kept else ','}")]))
    extra = [name for name in build.kept if name not in build.template.takes]
    build.add(define(f"{act}({', '.join([build.takes, *(f'_{name}' for name in extra)])})", build.second))
    order = list(build.kept)
    own = plain(*(f"{name} = {held}[{number}]" for number, name in enumerate(order) if name != build.template.gives))
    build.body = [*linked(f"{held} = {make}()"), *build.calls(f"{act}(*{held})"), *own, *after]


def result_chosen(build: Build) -> None:
    """A conditional expression chooses one of two functions that make it."""
    build.need("import sys")
    make, other = draw(build, "function", "function")
    before, after, kept = first_part(build)
    build.add(define(f"{make}()", [*before, *plain(f"return {kept}")]))
    build.add(define(f"{other}()", [*plain('print("other")'), *linked(f"return {make}()")]))
    after_first(build, [f"{kept} = {make}() if len(sys.argv) > 1 else {other}()"], after)


def result_cached(build: Build) -> None:
    """A function with a cache does the first part."""
    build.need("import functools")
    make = build.names.new("function")
    before, after, kept = first_part(build)
    build.add([Line("@functools.lru_cache(maxsize=None)"), *define(f"{make}()", [*before, *plain(f"return {kept}")])])
    after_first(build, [f"{kept} = {make}()"], after)


def constructor(build: Build) -> None:
    """The constructor does the first part, a method the second."""
    owner, act, held = draw(build, "class", "function", "value")
    before, after, _ = first_part(build)
    build.add(klass(owner, define("__init__(self)", _own(build, before)), define(f"{act}(self)", _own(build, build.second))))
    build.body = [*linked(f"{held} = {owner}()"), *build.calls(f"{held}.{act}()"), *_rest(build, after, held)]


def base_constructor(build: Build) -> None:
    """The constructor of a base class does the first part, a method of the subclass the second."""
    base, owner, act, held = draw(build, "class", "class", "function", "value")
    before, after, _ = first_part(build)
    build.add(klass(base, define("__init__(self)", _own(build, before))))
    start = define("__init__(self)", [*linked("super().__init__()"), *plain("self.rounds = 0")])
    build.add(klass(f"{owner}({base})", start, define(f"{act}(self)", _own(build, build.second))))
    build.body = [*linked(f"{held} = {owner}()"), *build.calls(f"{held}.{act}()"), *_rest(build, after, held)]


def enter_exit(build: Build) -> None:
    """``__enter__`` does the first part, ``__exit__`` the second."""
    owner, held = draw(build, "class", "value")
    before, after, _ = first_part(build)
    gives = build.template.gives
    leave = _own(build, lines_of(build.template.second))
    if gives and gives not in build.kept:
        leave += plain(f"self.{gives} = {gives}")
    enter = define("__enter__(self)", [*_own(build, before), *plain("return self")])
    build.add(klass(owner, enter, define("__exit__(self, *error)", leave)))
    rest = renamed(after, {name: f"{held}.{name}" for name in [*build.kept, *([gives] if gives else [])]})
    build.body = [*linked(f"with {owner}() as {held}:"), *plain(f"    print(type({held}))"), *rest]


def entered(build: Build) -> None:
    """A context manager that is a generator does the first part, and yields what it made."""
    build.need("import contextlib")
    make = build.names.new("function")
    before, after, kept = first_part(build)
    tail = plain(f"yield {kept}", 'print("left")')
    build.add([Line("@contextlib.contextmanager"), *define(f"{make}()", [*before, *tail])])
    target = f"({kept})" if "," in kept else kept
    build.body = [*linked(f"with {make}() as {target}:"), *indent(lines_of(build.template.second)), *after]


def generator_loop(build: Build) -> None:
    """A generator does the first part, and yields what it made; a loop takes it."""
    make = build.names.new("function")
    before, after, kept = first_part(build)
    build.add(define(f"{make}()", [*before, *plain(f"yield {kept}")]))
    build.body = [*linked(f"for {kept} in {make}():"), *indent(lines_of(build.template.second)), *after]


def generator_steps(build: Build) -> None:
    """A generator does the first part in its first step, and the second one in its second."""
    make, steps = draw(build, "function", "value")
    before, after, kept = first_part(build)
    gives = build.template.gives
    build.add(define(f"{make}()", [*before, *plain(f"yield {kept}"), *lines_of(build.template.second), *plain(f"yield {gives or 'None'}")]))
    second = linked(f"{gives} = next({steps})" if gives else f"next({steps})")
    build.body = [*plain(f"{steps} = {make}()"), *linked(f"{kept} = next({steps})"), *second, *after]


def awaited(build: Build) -> None:
    """A coroutine does the first part; another one awaits it, and does the second."""
    build.need("import asyncio")
    make, run = draw(build, "function", "function")
    before, after, kept = first_part(build)
    gives = build.template.gives
    build.add([Line(f"async def {make}():"), *indent([*before, *plain(f"return {kept}")])])
    names = ", ".join(dict.fromkeys([*build.kept, *([gives] if gives else [])]))
    within = [*linked(f"{kept} = await {make}()"), *lines_of(build.template.second), *plain(f"return {names}")]
    build.add([Line(f"async def {run}():"), *indent(within)])
    build.body = [*linked(f"{names} = asyncio.run({run}())"), *after]


def module_global(build: Build) -> None:
    """A function sets globals of the file, another one reads them."""
    start, act = draw(build, "function", "function")
    before, after, _ = first_part(build)
    own = {name: f"the_{name}" for name in build.kept}
    names = ", ".join(own.values())
    build.add(plain(*(f"{name} = None" for name in own.values())))
    build.add(define(f"{start}()", [*plain(f"global {names}"), *renamed(before, own)]))
    gives = build.template.gives
    changed = plain(f"global {own[gives]}") if gives in own else []
    build.add(define(f"{act}()", [*changed, *renamed(build.second, own)]))
    rest = renamed(after, {name: new for name, new in own.items() if name != gives})
    build.body = [*linked(f"{start}()"), *build.calls(f"{act}()"), *rest]


def pending(build: Build) -> None:
    """A method appends what it made to a list of the object; another one takes it from there."""
    owner, start, act, held = draw(build, "class", "function", "function", "value")
    before, after, kept = first_part(build)
    part = f"({kept})" if "," in kept else f"({kept},)"
    names = kept if "," in kept else f"{kept},"
    store = define(f"{start}(self)", [*before, *plain(f"self.pending.append({part})")])
    gives = build.template.gives
    back = ", ".join(dict.fromkeys([*build.kept, *([gives] if gives else [])]))
    use = [*plain(f"{names} = self.pending.pop(0)"), *lines_of(build.template.second), *plain(f"return {back}")]
    build.add(klass(owner, define("__init__(self)", plain("self.pending = []")), store, define(f"{act}(self)", use)))
    build.body = [*plain(f"{held} = {owner}()"), *linked(f"{held}.{start}()", f"{back} = {held}.{act}()"), *after]


def lazy(build: Build) -> None:
    """A property makes what is not there yet."""
    owner, act, held = draw(build, "class", "function", "value")
    before, after, _ = first_part(build)
    names = [f"self._{name}" for name in build.kept]
    make = [
        *plain("if self._is_made:", "    return self"),
        *renamed(before, dict(zip(build.kept, names, strict=True))),
        *plain("self._is_made = True", "return self"),
    ]
    parts = [[Line("@property"), *define("ready(self)", make)]]
    start = define("__init__(self)", plain("self._is_made = False", *(f"{name} = None" for name in names)))
    second = renamed(build.second, {name: f"{held}._{name}" for name in build.template.takes})
    build.add(klass(owner, start, *parts))
    build.add(define(f"{act}({held})", second))
    rest = renamed(after, {name: f"{held}._{name}" for name in build.kept if name != build.template.gives})
    build.body = [*plain(f"{held} = {owner}()"), *build.calls(f"{act}({held}.ready)"), *rest]


def first_thread(build: Build) -> None:
    """A pool of threads does the first part; the entry function takes its result."""
    build.need("from concurrent.futures import ThreadPoolExecutor")
    make, pool, act = *draw(build, "function", "value"), build.helper()
    before, after, kept = first_part(build)
    build.add(define(f"{make}()", [*before, *plain(f"return {kept}")]))
    start = linked(f"with ThreadPoolExecutor(max_workers=1) as {pool}:", f"    {kept} = {pool}.submit({make}).result()")
    build.body = [*start, *build.calls(f"{act}({build.takes})"), *after]


_ACTS = {
    "result-object": result_object,
    "result-data": result_data,
    "result-dict": result_dict,
    "result-indexed": result_indexed,
    "result-starred": result_starred,
    "result-chosen": result_chosen,
    "result-cached": result_cached,
    "first-constructor": constructor,
    "first-base": base_constructor,
    "enter-exit": enter_exit,
    "entered": entered,
    "generator-loop": generator_loop,
    "generator-steps": generator_steps,
    "async-first": awaited,
    "module-global": module_global,
    "pending": pending,
    "lazy": lazy,
}
WAYS: dict[str, Way] = {
    **{name: Way(act, flat=True, keeps=True) for name, act in _ACTS.items()},
    "first-thread": Way(first_thread, flat=True, keeps=True, threads=True),
}
