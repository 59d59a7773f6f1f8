"""Python's own functions and containers, as far as they carry values from place to place."""

from __future__ import annotations

from collections.abc import Callable

from streamlint import program as p
from streamlint.interpreter import batches, items, queries
from streamlint.interpreter.addresses import is_address
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.members import parent_view
from streamlint.interpreter.nested import listed
from streamlint.interpreter.run import Run
from streamlint.interpreter.taken_apart import Pairs, Parts
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Event,
    FunctionValue,
    GeneratorCall,
    Handle,
    Instance,
    LibraryName,
    Loader,
    Method,
    Opaque,
    Prepared,
    Series,
    Stream,
    Table,
    Value,
)
from streamlint.record import replace

Builtin = Callable[[Run, Arguments, CallSite], Value | None]


def integer(value: Value | None) -> int | None:
    """The whole number that a value is; ``True`` is none."""
    return value.value if isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool) else None


def _range(run: Run, arguments: Arguments, site: CallSite) -> Value:
    given = arguments.positional
    bounds = [integer(v) for v in given]
    if given and all(b is not None for b in bounds):
        numbers = range(*[b for b in bounds if b is not None])
        if len(numbers) <= 8:
            return Series([Const(n) for n in numbers])
        return Series([Const(n) for n in numbers[: run.rounds]], name="open")
    start: Value = given[0] if len(given) > 1 else Const(0)
    step: Value = given[2] if len(given) > 2 else Const(1)
    return Series([_term_plus(run, start, step, k) for k in range(run.rounds)], name="open")


def _term_plus(run: Run, start: Value, step: Value, count: int) -> Value:
    first, by = integer(start), integer(step)
    if first is not None and by is not None:
        return Const(first + count * by)
    if count == 0:
        return replace(start, plain=True) if isinstance(start, Opaque) else start
    number = run.opaque(f"({start.term} + {count}*{step.term})")
    number.plain = True
    return number


def as_series(run: Run, value: Value) -> Series:
    """An iterable as a series of as many elements as are known, or of a few."""
    modules = listed(value)
    if modules is not value and isinstance(modules, Series) and modules.items is not None:
        return Series(modules.items[: run.rounds], name="open")
    if isinstance(value, Series) and value.items is not None:
        return value
    if isinstance(value, Table) and value.complete:
        return Series([value.keys.get(k) or run.opaque(k) for k in value.items])
    if isinstance(value, Table) and isinstance(value.items, Parts):
        return Series([value.items.name(run, str(number)) for number in range(run.rounds)], name="open")
    made: list[Value] = []
    for number in range(run.rounds):
        made.append(batches.batch(run, value, str(number)) if isinstance(value, Loader) else items.element_of(run, value, str(number)))
    return Series(made, name="open")


def _enumerate(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    if not arguments.positional:
        return None
    from streamlint.interpreter.bodies import generator_of

    start = integer(arguments.positional[1] if len(arguments.positional) > 1 else arguments.keywords.get("start")) or 0
    generator = generator_of(run, arguments.positional[0], site.span)
    if generator is not None:
        return replace(generator, counted=start)
    series = as_series(run, arguments.positional[0])
    return Series([Series([Const(start + n), v], kind="tuple") for n, v in enumerate(series.items or [])], name=series.name)


def _zip(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    from streamlint.interpreter.effects.host import host_iteration

    for value in arguments.positional:
        if isinstance(value, Buffer) and value.storage.on_host:
            host_iteration(run, value, site.span, "iteration")
    if arguments.open:
        return Series(None, name=f"zip{run.visit_key(site.node)}")
    series = [as_series(run, v) for v in arguments.positional]
    if not series:
        return Series([])
    name = "open" if all(s.name == "open" for s in series) else ""
    length = min(len(s.items or []) for s in series)
    return Series([Series([(s.items or [])[n] for s in series], kind="tuple") for n in range(length)], name=name)


def _list(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    if not arguments.positional:
        return Series([])
    value = listed(arguments.positional[0])
    if isinstance(value, Series):
        made = dict(value.made) if type(value.made) is dict else value.made
        return Series(list(value.items) if value.items is not None else None, made, value.element, value.name)
    if isinstance(value, Buffer) and value.leaves is None:
        from streamlint.interpreter.effects.host import host_iteration

        host_iteration(run, value, site.span, "list")
        return as_series(run, value) if value.type.startswith("torch.") else Series(None, name=f"list({value.term})")
    if isinstance(value, GeneratorCall):
        return None
    return Series(None, name=f"list({value.term})", element=None) if isinstance(value, Opaque) else as_series(run, value)


def _sorted(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    """Of a dictionary and its items the keys; anything else is for the row, which looks at the values."""
    value = arguments.positional[0] if arguments.positional else None
    if isinstance(value, Series) and not arguments.keywords and _are_items(site):
        return value
    return as_series(run, value) if isinstance(value, Table) else None


def _are_items(site: CallSite) -> bool:
    """``sorted(held.items())``: they are ordered by what stands first."""
    asked = site.node.args[0].value if isinstance(site.node, p.Call) and site.node.args else None
    return isinstance(asked, p.Call) and isinstance(asked.function, p.Attr) and asked.function.name == "items"


def _same_series(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    return arguments.positional[0] if arguments.positional else None


def _reversed(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    value = listed(arguments.positional[0]) if arguments.positional else None
    if isinstance(value, Series) and value.items is not None:
        return Series(list(reversed(value.items)), name=value.name)
    return value


def _dict(run: Run, arguments: Arguments, site: CallSite) -> Value:
    table = Table({repr(k): v for k, v in arguments.keywords.items()}, {repr(k): Const(k) for k in arguments.keywords}, not arguments.open)
    if arguments.positional:
        first = arguments.positional[0]
        if isinstance(first, Table):
            table.items = {**first.items, **table.items}
            table.keys = {**first.keys, **table.keys}
            table.complete = table.complete and first.complete
        elif isinstance(first, Series) and isinstance(first.made, Pairs):
            return Table(first.made.parts, complete=False)
        elif isinstance(first, Series) and first.items is not None and all(map(_is_pair, first.items)):
            _fill(table, first.items)
            table.complete = table.complete and first.name != "open" and all(isinstance(key, Const) for key in table.keys.values())
        else:
            table.complete = False
    return table


def _is_pair(value: Value) -> bool:
    return isinstance(value, Series) and value.items is not None and len(value.items) == 2


def _fill(table: Table, pairs: list[Value]) -> None:
    """``dict(zip(names, tensors))``: what is looked up by a name that was not seen is like the first."""
    for pair in pairs:
        if isinstance(pair, Series) and pair.items is not None:
            key, value = pair.items
            table.items[key.term], table.keys[key.term] = value, key
            table.element = table.element or value


def _len(run: Run, arguments: Arguments, site: CallSite) -> Value:
    value = listed(arguments.positional[0]) if arguments.positional else Const(None)
    if isinstance(value, Series) and value.items is not None and value.name != "open":
        return Const(len(value.items))
    if isinstance(value, Table) and value.complete:
        return Const(len(value.items))
    if isinstance(value, Const) and isinstance(value.value, str):
        return Const(len(value.value))
    length = run.opaque(f"len({value.term})")
    length.plain = True
    return length


def _next(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    value = arguments.positional[0] if arguments.positional else None
    if isinstance(value, Loader):
        return batches.batch(run, value, f"next{run.visit_key(site.node)}")
    if isinstance(value, Series) and value.items:
        return value.items[0]
    if isinstance(value, GeneratorCall):
        from streamlint.interpreter.bodies import first_of

        return first_of(run, value)
    if isinstance(value, Opaque) and value.reach and isinstance(value.reach[0], Loader):
        return batches.batch(run, value.reach[0], f"next{run.visit_key(site.node)}")
    return None


def _super(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    return parent_view(run)


def _isinstance(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    if len(arguments.positional) < 2:
        return None
    value, kinds = arguments.positional[:2]
    wanted = kinds.items or [] if isinstance(kinds, Series) else [kinds]
    answers = [_is_a(value, kind) for kind in wanted]
    if any(answer is True for answer in answers):
        return Const(True)
    if answers and all(answer is False for answer in answers):
        return Const(False)
    return run.opaque(f"isinstance({value.term}, {', '.join(k.term for k in wanted)})")


def _is_a(value: Value, kind: Value) -> bool | None:
    name = kind.name.rpartition(".")[2] if isinstance(kind, LibraryName) else ""
    if isinstance(value, Buffer) and value.leaves is None:
        return _same_type(value.type, kind) if isinstance(kind, LibraryName) else False
    if isinstance(value, Table):
        return name in ("dict", "Mapping", "OrderedDict", "MutableMapping")
    if isinstance(value, Series):
        return name in (value.kind, "Sequence", "Iterable")
    if isinstance(value, Const):
        return name == type(value.value).__name__ if name in ("int", "float", "str", "bool", "bytes", "list", "dict", "tuple") else None
    if isinstance(value, Instance) and isinstance(kind, ClassValue):
        return True if value.definition is kind.definition else None
    return None


def _same_type(type: str, kind: LibraryName) -> bool:
    """Whether two dotted names mean one type; an array of NumPy is none of CuPy, though both are called ``ndarray``."""
    library, name = type.partition(".")[0], kind.name.rpartition(".")[2]
    other = kind.name.partition(".")[0]
    return type.rpartition(".")[2] == name and not (name == "ndarray" and library != other and {library, other} <= {"numpy", "cupy"})


def _getattr(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    from streamlint import program as p
    from streamlint.interpreter.attributes import get_attribute, settle_method

    if len(arguments.positional) < 2 or not isinstance(arguments.positional[1], Const):
        return None
    name = str(arguments.positional[1].value)
    return settle_method(run, get_attribute(run, arguments.positional[0], name, p.Attr(p.Unknown(), name)))


def _int(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    """``int(address)`` is the address, and ``int(stream)`` the handle of a stream (cuda-python)."""
    value = arguments.positional[0] if arguments.positional else None
    return value if value is not None and (is_address(value) or isinstance(value, Stream | Event)) else None


def _all(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    return _of_several(run, "all", arguments, site)


def _any(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    return _of_several(run, "any", arguments, site)


def _of_several(run: Run, kind: str, arguments: Arguments, site: CallSite) -> Value | None:
    values = arguments.positional[0] if arguments.positional else None
    if not isinstance(values, Series) or values.items is None:
        return None
    return queries.of_several(run, kind, values.items, run.visit_key(site.node))


def _partial(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    if not arguments.positional:
        return None
    function, *bound = arguments.positional
    if isinstance(function, FunctionValue):
        return FunctionValue(
            function.function,
            function.file,
            function.closure,
            function.receiver,
            (*function.bound, *bound),
            {**function.keywords, **arguments.keywords},
            function.owner,
        )
    if isinstance(function, ClassValue | LibraryName | Method | Instance | Prepared) and not arguments.open:
        return Prepared(function, tuple(bound), dict(arguments.keywords))
    return run.opaque(f"partial{run.visit_key(site.node)}", *arguments.positional, *arguments.keywords.values())


def _fields(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    """``dataclasses.fields(x)``: the fields, each with its name."""
    holder = arguments.positional[0] if arguments.positional else None
    if not isinstance(holder, Instance | ClassValue):
        return None
    names = [f.name for f in holder.definition.fields if f.annotation is not None]
    return Series([Handle("dataclasses.Field", f"field:{name}", attrs={"name": Const(name)}) for name in names])


def _replace(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    """``dataclasses.replace(x, **changes)``: a new object that shares the rest."""
    holder = arguments.positional[0] if arguments.positional else None
    if not isinstance(holder, Instance):
        return None
    return Instance(holder.definition, holder.file, {**holder.attrs, **arguments.keywords})


def _true(run: Run, arguments: Arguments, site: CallSite) -> Value:
    return Const(True)


def _default_table(run: Run, arguments: Arguments, site: CallSite) -> Value:
    return Table(complete=False, factory=arguments.positional[0]) if arguments.positional else Table()


def _deque(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    return Series([]) if not arguments.positional else _list(run, arguments, site)


def _map(run: Run, arguments: Arguments, site: CallSite) -> Value | None:
    from streamlint.interpreter.calls import invoke

    if len(arguments.positional) != 2 or not isinstance(arguments.positional[0], FunctionValue | Method | LibraryName):
        return None
    function, source = arguments.positional
    series = as_series(run, source)
    return Series([invoke(run, function, Arguments([v]), site) for v in series.items or []], name=series.name)


BUILTINS: dict[str, Builtin] = {
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "list": _list,
    "tuple": _list,
    "iter": _same_series,
    "reversed": _reversed,
    "sorted": _sorted,
    "dict": _dict,
    "collections.OrderedDict": _dict,
    "collections.defaultdict": _default_table,
    "collections.deque": _deque,
    "len": _len,
    "next": _next,
    "super": _super,
    "isinstance": _isinstance,
    "getattr": _getattr,
    "int": _int,
    "all": _all,
    "any": _any,
    "functools.partial": _partial,
    "dataclasses.fields": _fields,
    "dataclasses.replace": _replace,
    "map": _map,
    "torch.cuda.is_available": _true,
    "torch.cuda.is_initialized": _true,
    "cupy.cuda.is_available": _true,
    "cupy.is_available": _true,
    "numba.cuda.is_available": _true,
    "tqdm.tqdm": _same_series,
    "tqdm.auto.tqdm": _same_series,
    "tqdm.trange": _range,
    "itertools.cycle": _same_series,
    "itertools.islice": _same_series,
    "typing.cast": lambda run, arguments, site: arguments.positional[1] if len(arguments.positional) > 1 else None,
}
