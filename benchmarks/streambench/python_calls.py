"""Ways in which the function with the second part comes to be called: tables, callbacks, generators, contexts, branches."""

from __future__ import annotations

from benchmarks.streambench.pieces import Line, Way, indent, lines_of, linked, plain
from benchmarks.streambench.python_forms import (
    acting,
    box_first,
    boxed,
    carry,
    draw,
    joined,
    keeping,
    klass,
    listed,
    packed,
    taker,
    unboxed,
    unpacked,
)
from benchmarks.streambench.python_ways import Build, define


def default_argument(build: Build) -> None:
    """A function within the entry function, whose defaults are the values."""
    name = build.names.new("function")
    build.place([*define(f"{name}({joined(build, '@=@')})", build.second), Line(""), *build.calls(f"{name}()")])


def table(build: Build) -> None:
    """A dict of functions by name."""
    name, held, kind = build.helper(), *draw(build, "value", "value")
    build.add(plain(f'{held.upper()} = {{"plain": {name}}}'))
    build.place([*plain(f'{kind} = "plain"'), *build.calls(f"{held.upper()}[{kind}]({build.takes})")])


def table_get(build: Build) -> None:
    """A dict of functions, asked with a default."""
    build.need("import os")
    name, held, act = build.helper(), *draw(build, "value", "value")
    build.add(plain(f'{held.upper()} = {{"plain": {name}}}'))
    build.place([*plain(f'{act} = {held.upper()}.get(os.environ.get("KIND"), {name})'), *build.calls(f"{act}({build.takes})")])


def registered(build: Build) -> None:
    """A decorator puts the function into a table."""
    held, register, name = draw(build, "value", "function", "function")
    inner = define("add(act)", plain(f"{held.upper()}[name] = act", "return act"))
    build.add(plain(f"{held.upper()} = {{}}"))
    build.add(define(f"{register}(name)", [*inner, *plain("", "return add")]))
    build.add([Line(f'@{register}("plain")'), *define(f"{name}({build.takes})", build.second)])
    build.place(build.calls(f'{held.upper()}["plain"]({build.takes})'))


def callbacks(build: Build) -> None:
    """A list of functions, each of which is called."""
    name, held, run, act = build.helper(), *draw(build, "value", "function", "value")
    parameters = listed(held, build.takes)
    loop = [*plain("result = None", f"for {act} in {held}:"), *indent(linked(f"result = {act}({build.takes})")), *plain("return result")]
    build.add(define(f"{run}({parameters})", loop))
    build.place([*plain(f"{held} = []", f"{held}.append({name})"), *build.calls(f"{run}({parameters})")])


def events(build: Build) -> None:
    """An object that calls whoever listens to a named event."""
    owner, held, name = *draw(build, "class", "value"), build.helper()
    run = [
        *plain("result = None", "for act in self.listeners.get(name, ()):"),
        *indent(linked("result = act(*parts, **options)")),
        *plain("return result"),
    ]
    build.add(
        klass(
            owner,
            define("__init__(self)", plain("self.listeners = {}")),
            define("on(self, name, act)", plain("self.listeners.setdefault(name, []).append(act)")),
            define("emit(self, name, *parts, **options)", run),
        )
    )
    call = listed('"step"', build.takes)
    build.place([*plain(f"{held} = {owner}()", f'{held}.on("step", {name})'), *build.calls(f"{held}.emit({call})")])


def stored_function(build: Build) -> None:
    """An attribute holds the function."""
    name, owner, run, held = build.helper(), *draw(build, "class", "function", "value")
    start = define("__init__(self, act)", plain("self.act = act"))
    build.add(klass(owner, start, define(f"{run}({listed('self', build.takes)})", linked(f"return self.act({build.takes})"))))
    build.place([*plain(f"{held} = {owner}({name})"), *build.calls(f"{held}.{run}({build.takes})")])


def stored_method(build: Build) -> None:
    """An attribute holds a method of the object itself."""
    owner, act, held = draw(build, "class", "function", "value")
    start = define("__init__(self)", plain(f"self.run = self.{act}"))
    build.add(klass(owner, start, define(f"{act}({listed('self', build.takes)})", build.second)))
    build.place([*plain(f"{held} = {owner}()"), *build.calls(f"{held}.run({build.takes})")])


def stored_partial(build: Build) -> None:
    """An attribute holds a partial object."""
    build.need("import functools")
    name, owner, run, held = build.helper(), *draw(build, "class", "function", "value")
    start = define(f"__init__(self, {build.takes})", plain(f"self.act = functools.partial({name}, {build.takes})"))
    build.add(klass(owner, start, define(f"{run}(self)", linked("return self.act()"))))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{held}.{run}()")])


def partial_keywords(build: Build) -> None:
    """A partial object that holds keywords."""
    build.need("import functools")
    name, act = build.helper(), build.names.new("value")
    build.place([*plain(f"{act} = functools.partial({name}, {joined(build, '@=@')})"), *build.calls(f"{act}()")])


def bound_method(build: Build) -> None:
    """A bound method is handed to a function that calls it."""
    owner, act, run, held = draw(build, "class", "function", "function", "value")
    build.add(klass(owner, define(f"{act}({listed('self', build.takes)})", build.second)))
    build.add(define(f"{run}(act, *parts)", linked("return act(*parts)")))
    build.place([*plain(f"{held} = {owner}()"), *build.calls(f"{run}({listed(f'{held}.{act}', build.takes)})")])


def method_caller(build: Build) -> None:
    """`getattr` with the name of the method."""
    owner, act, held = draw(build, "class", "function", "value")
    build.add(klass(owner, define(f"{act}({listed('self', build.takes)})", build.second)))
    build.place([*plain(f"{held} = {owner}()"), *build.calls(f'getattr({held}, "{act}")({build.takes})')])


def reduced(build: Build) -> None:
    """`functools.reduce` with a lambda."""
    build.need("import functools")
    name = build.helper()
    build.place(build.calls(f"functools.reduce(lambda _, part: {name}(*part), [{packed(build)}], None)"))


def mapped(build: Build) -> None:
    """`map` with a lambda."""
    name = build.helper()
    build.place(build.calls(f"list(map(lambda part: {name}(*part), [{packed(build)}]))[0]"))


def filtered(build: Build) -> None:
    """`filter` with a lambda lets the values pass."""
    held = build.names.new("value")
    unpack = [f"{unpacked(build)} = next(filter(lambda part: part[0] is not None, {held}))"]
    carry(build, [f"{held} = [{packed(build)}]"], held, unpack)


def nested_closure(build: Build) -> None:
    """A function within a function that the entry function holds; both take what they need from around them."""
    outer, inner, box = draw(build, "function", "function", "value")
    gives = build.template.gives
    if not gives:
        body = [*define(f"{inner}()", build.second), *plain(""), *linked(f"{inner}()")]
        build.place([*define(f"{outer}()", body), Line(""), *linked(f"{outer}()")])
        return
    second = [*plain(f"nonlocal {box}"), *lines_of(build.template.second), *plain(f"{box} = {gives}")]
    body = [*plain(f"{box} = None", ""), *define(f"{inner}()", second), *plain(""), *linked(f"{inner}()"), *plain(f"return {box}")]
    build.place([*define(f"{outer}()", body), Line(""), *linked(f"{gives} = {outer}()")])


def returned_closure(build: Build) -> None:
    """A function makes the function that does the second part with what it was given."""
    make, inner, act = draw(build, "function", "function", "value")
    build.add(define(f"{make}({build.takes})", [*define(f"{inner}()", build.second), *plain("", f"return {inner}")]))
    build.place([*plain(f"{act} = {make}({build.takes})"), *build.calls(f"{act}()")])


def decorated_with_options(build: Build) -> None:
    """A decorator with arguments of its own."""
    build.need("import functools")
    wrap, name = draw(build, "function", "function")
    inner = define("inner(*parts, **options)", [*plain("for _ in range(times - 1):", "    pass"), *linked("return act(*parts, **options)")])
    outer = define("outer(act)", [Line("@functools.wraps(act)"), *inner, *plain("", "return inner")])
    build.add(define(f"{wrap}(times=1)", [*outer, *plain("", "return outer")]))
    build.add([Line(f"@{wrap}(times=1)"), *define(f"{name}({build.takes})", build.second)])
    build.place(build.calls(f"{name}({build.takes})"))


def decorated_method(build: Build) -> None:
    """A method with a decorator that hands on whatever it is given."""
    build.need("import functools")
    wrap, owner, act, held = draw(build, "function", "class", "function", "value")
    inner = define("inner(self, *parts, **options)", [*plain("self.calls += 1"), *linked("return act(self, *parts, **options)")])
    build.add(define(f"{wrap}(act)", [Line("@functools.wraps(act)"), *inner, *plain("", "return inner")]))
    method = [Line(f"@{wrap}"), *define(f"{act}({listed('self', build.takes)})", build.second)]
    build.add(klass(owner, define("__init__(self)", plain("self.calls = 0")), method))
    build.place([*plain(f"{held} = {owner}()"), *build.calls(f"{held}.{act}({build.takes})")])


def generated(build: Build) -> None:
    """A generator yields the values; a loop takes them."""
    make, name = draw(build, "function", "function")
    build.add(define(f"{make}({build.takes})", plain(f"yield {build.takes}")))
    gives = build.template.gives
    first = plain(f"{gives} = None") if gives and gives not in build.template.takes else []
    body = [*first, Line(f"for {build.takes} in {make}({build.takes}):"), *indent(lines_of(build.template.second))]
    build.add(define(f"{name}({build.takes})", [*body, *plain(*([f"return {gives}"] if gives else []))]))
    build.place(build.calls(f"{name}({build.takes})"))


def next_(build: Build) -> None:
    """`next` of a generator."""
    make, held = draw(build, "function", "value")
    build.add(define(f"{make}({build.takes})", plain("while True:", f"    yield {packed(build)}")))
    carry(build, [f"{held} = {make}({build.takes})"], held, [f"{unpacked(build)} = next({held})"])


def yield_from(build: Build) -> None:
    """A generator that hands on what another one yields."""
    inner, outer, held = draw(build, "function", "function", "value")
    build.add(define(f"{inner}({build.takes})", plain(f"yield {packed(build)}")))
    build.add(define(f"{outer}({build.takes})", plain(f"yield from {inner}({build.takes})")))
    carry(build, [f"{held} = {outer}({build.takes})"], held, [f"{unpacked(build)} = next({held})"])


def iterator(build: Build) -> None:
    """An object with ``__next__``."""
    owner, held = draw(build, "class", "value")
    step = define("__next__(self)", plain(f"return {joined(build, 'self.@')}{',' if len(build.template.takes) == 1 else ''}"))
    build.add(klass(owner, keeping(build), define("__iter__(self)", plain("return self")), step))
    carry(build, [f"{held} = {owner}({build.takes})"], held, [f"{unpacked(build)} = next({held})"])


def yielding(build: Build) -> None:
    """A generator does the second part, and yields what it gives."""
    name, gives = build.names.new("function"), build.template.gives
    build.add(define(f"{name}({build.takes})", [*lines_of(build.template.second), *plain(f"yield {gives or 'None'}")]))
    build.place(build.calls(f"next({name}({build.takes}))"))


def context_class(build: Build) -> None:
    """An object whose ``__enter__`` hands back itself, with the values in attributes."""
    owner, held, name = draw(build, "class", "value", "function")
    leave = define("__exit__(self, *error)", plain("return False"))
    build.add(klass(owner, keeping(build), define("__enter__(self)", plain("return self")), leave))
    build.add(acting(build, f"{name}({held})", held))
    build.place([*plain(f"with {owner}({build.takes}) as {held}:"), *indent(build.calls(f"{name}({held})"))])


def context_function(build: Build) -> None:
    """A context manager that is a generator yields the values."""
    build.need("import contextlib")
    make, held, name = *draw(build, "function", "value"), build.helper()
    body = plain("try:", f"    yield {packed(build)}", "finally:", '    print("left")')
    build.add([Line("@contextlib.contextmanager"), *define(f"{make}({build.takes})", body)])
    build.place([*plain(f"with {make}({build.takes}) as {held}:"), *indent(build.calls(f"{name}(*{held})"))])


def exit_stack(build: Build) -> None:
    """A stack of contexts enters the object that holds the values."""
    build.need("import contextlib")
    owner, held, stack, name = draw(build, "class", "value", "value", "function")
    leave = define("__exit__(self, *error)", plain("return False"))
    build.add(klass(owner, keeping(build), define("__enter__(self)", plain("return self")), leave))
    build.add(acting(build, f"{name}({held})", held))
    inner = [*plain(f"{held} = {stack}.enter_context({owner}({build.takes}))"), *build.calls(f"{name}({held})")]
    build.place([*plain(f"with contextlib.ExitStack() as {stack}:"), *indent(inner)])


def exit_callback(build: Build) -> None:
    """A stack of contexts calls the function when it is left."""
    build.need("import contextlib")
    name, stack, box = draw(build, "function", "value", "value")
    takes = listed(build.takes, box if build.template.gives else "")
    build.add(define(f"{name}({takes})", boxed(build, box)))
    inner = linked(f"{stack}.callback({listed(name, takes)})")
    build.place([*box_first(build, box), *linked(f"with contextlib.ExitStack() as {stack}:"), *indent(inner), *unboxed(build, box)])


def on_exit(build: Build) -> None:
    """``__exit__`` does the second part."""
    owner, held = draw(build, "class", "value")
    gives = build.template.gives
    own = {taken: f"self.{taken}" for taken in build.template.takes}
    leave = acting(build, "__exit__(self, *error)")
    if gives:
        leave = [*leave[:-1], *plain(f"    self.result = {own.get(gives, gives)}")]
    build.add(klass(owner, keeping(build), define("__enter__(self)", plain("return self")), leave))
    after = linked(f"{gives} = {held}.result") if gives else []
    build.place([*linked(f"with {owner}({build.takes}) as {held}:"), *plain('    print("within")'), *after])


def in_finally(build: Build) -> None:
    """The second part stands in a ``finally``."""
    build.need("import sys")
    name = build.names.new("function")
    tried = [*plain("try:", '    print("running", len(sys.argv))', "finally:"), *indent(lines_of(build.template.second))]
    build.add(define(f"{name}({build.takes})", [*tried, *build.second[len(lines_of(build.template.second)) :]]))
    build.place(build.calls(f"{name}({build.takes})"))


def in_else(build: Build) -> None:
    """The second part stands in the ``else`` of a ``try``."""
    build.need("import sys")
    name, limit = draw(build, "function", "value")
    tried = plain(
        "try:",
        f"    {limit} = int(sys.argv[1])",
        "except (IndexError, ValueError):",
        '    raise SystemExit("a number is missing")',
        "else:",
    )
    build.add(define(f"{name}({build.takes})", [*tried, *plain(f"    print({limit})"), *indent(build.second)]))
    build.place(build.calls(f"{name}({build.takes})"))


def guarded(build: Build) -> None:
    """Early returns stand before the second part."""
    build.need("import sys")
    first = build.template.takes[0] if build.template.takes else ""
    guards = [
        *([f"if {first} is None:", "    return None"] if first else []),
        "if len(sys.argv) > 9:",
        '    raise ValueError("too many words")',
    ]
    name = taker(build, build.takes, guards)
    build.place(build.calls(f"{name}({build.takes})"))


def locked(build: Build) -> None:
    """A lock is held during the second part."""
    build.need("import threading")
    name, lock = draw(build, "function", "value")
    build.add(plain(f"{lock.upper()} = threading.Lock()"))
    build.add(define(f"{name}({build.takes})", [Line(f"with {lock.upper()}:"), *indent(build.second)]))
    build.place(build.calls(f"{name}({build.takes})"))


def walrus(build: Build) -> None:
    """An assignment within a condition."""
    held, part, name = draw(build, "value", "value", "function")
    body = [Line(f'if ({part} := {held}.get("first")) is None:'), *plain("    return None", f"{unpacked(build)} = {part}"), *build.second]
    build.add(define(f"{name}({held})", body))
    build.place([*plain(f'{held} = {{"first": {packed(build)}}}'), *build.calls(f"{name}({held})")])


def chosen(build: Build) -> None:
    """A conditional expression chooses one of two functions, both of which do it."""
    build.need("import sys")
    name, other, act = build.helper(), *draw(build, "function", "value")
    build.add(define(f"{other}({build.takes})", [*plain('print("other")'), *linked(f"return {name}({build.takes})")]))
    build.place([*plain(f"{act} = {name} if len(sys.argv) > 1 else {other}"), *build.calls(f"{act}({build.takes})")])


def recursive(build: Build) -> None:
    """A function that calls itself until it is deep enough."""
    name = build.names.new("function")
    inner = linked(f"return {name}({listed('level - 1', build.takes)})")
    build.add(define(f"{name}({listed('level', build.takes)})", [Line("if level > 0:"), *indent(inner), *build.second]))
    build.place(build.calls(f"{name}({listed('2', build.takes)})"))


def alias(build: Build) -> None:
    """Other names for the function, one of the file and one of the entry function."""
    name, one, other = build.helper(), *draw(build, "function", "value")
    build.add(plain(f"{one} = {name}"))
    build.place([*plain(f"{other} = {one}"), *build.calls(f"{other}({build.takes})")])


_KEEPING = {
    "default-argument": default_argument,
    "stored-partial": stored_partial,
    "partial-keywords": partial_keywords,
    "filter": filtered,
    "next": next_,
    "yield-from": yield_from,
    "iterator": iterator,
    "context-class": context_class,
    "context-function": context_function,
    "exit-stack": exit_stack,
    "exit-callback": exit_callback,
    "exit": on_exit,
    "walrus": walrus,
}
_PLAIN = {
    "table": table,
    "table-get": table_get,
    "registered": registered,
    "callbacks": callbacks,
    "events": events,
    "stored-function": stored_function,
    "stored-method": stored_method,
    "bound-method": bound_method,
    "getattr-call": method_caller,
    "decorator-options": decorated_with_options,
    "decorated-method": decorated_method,
    "yielding": yielding,
    "finally": in_finally,
    "else": in_else,
    "guards": guarded,
    "lock": locked,
    "chosen": chosen,
    "recursive": recursive,
    "alias": alias,
}
WAYS: dict[str, Way] = {
    **{name: Way(act, carries=True, keeps=True) for name, act in _KEEPING.items()},
    **{name: Way(act) for name, act in _PLAIN.items()},
    "returned-closure": Way(returned_closure, carries=True, keeps=True, fixed=True),
    "reduce": Way(reduced, carries=True),
    "map": Way(mapped, carries=True),
    "generator": Way(generated, carries=True),
    "nested-closure": Way(nested_closure, fixed=True),
}
