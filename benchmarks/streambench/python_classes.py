"""Ways through kinds of classes: data classes, records, enumerations, abstract bases, wrappers, and classes that are called."""

from __future__ import annotations

from benchmarks.streambench.pieces import Line, Way, indent, linked, plain, renamed
from benchmarks.streambench.python_forms import acting, carry, draw, holder, joined, keeping, klass, listed, texts
from benchmarks.streambench.python_ways import Build, define


def _data(build: Build, words: str = "", form: str = "@: object", *more: list[Line]) -> str:
    """A data class with a field for each value; its name."""
    build.need("import dataclasses")
    owner = build.names.new("class")
    build.add([Line(f"@dataclasses.dataclass{words}"), *klass(owner, plain(*texts(build, form)), *more)])
    return owner


def frozen(build: Build) -> None:
    """A frozen data class, whose method does the second part."""
    act, held = draw(build, "function", "value")
    owner = _data(build, "(frozen=True)", "@: object", acting(build, f"{act}(self)"))
    build.place([*plain(f"{held} = {owner}({joined(build, '@=@')})"), *build.calls(f"{held}.{act}()")])


def replaced(build: Build) -> None:
    """`dataclasses.replace` puts the values into a data class of defaults."""
    held = build.names.new("value")
    owner = _data(build, "(frozen=True)", "@: object = None")
    store = [f"{held} = dataclasses.replace({owner}(), {joined(build, '@=@')})"]
    carry(build, store, held, texts(build, f"@ = {held}.@"))


def default_factory(build: Build) -> None:
    """A data class whose fields are lists, made by a factory."""
    held = build.names.new("value")
    owner = _data(build, "", "@: list = dataclasses.field(default_factory=list)")
    carry(build, [f"{held} = {owner}()", *texts(build, f"{held}.@.append(@)")], held, texts(build, f"@ = {held}.@[-1]"))


def post_init(build: Build) -> None:
    """``__post_init__`` makes attributes of the fields."""
    build.need("import dataclasses")
    owner, act, held = draw(build, "class", "function", "value")
    after = define("__post_init__(self)", plain(*texts(build, "self.@ = self.given_@")))
    body = klass(owner, plain(*texts(build, "given_@: object")), after, acting(build, f"{act}(self)"))
    build.add([Line("@dataclasses.dataclass"), *body])
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{held}.{act}()")])


def named_tuple(build: Build) -> None:
    """A typed named tuple, whose fields are read by name."""
    build.need("import typing")
    owner, held, name = draw(build, "class", "value", "function")
    build.add(klass(f"{owner}(typing.NamedTuple)", plain(*texts(build, "@: object"))))
    build.add(acting(build, f"{name}({held})", held))
    build.place([*plain(f"{held} = {owner}({joined(build, '@=@')})"), *build.calls(f"{name}({held})")])


def named_tuple_call(build: Build) -> None:
    """A class that `collections.namedtuple` makes; it is unpacked."""
    build.need("import collections")
    owner, held = draw(build, "class", "value")
    names = ", ".join(f'"{taken}"' for taken in build.template.takes)
    build.add(plain(f'{owner} = collections.namedtuple("{owner}", [{names}])'))
    unpack = [f"{build.takes} = {held}" if len(build.template.takes) > 1 else f"({build.takes},) = {held}"]
    carry(build, [f"{held} = {owner}({build.takes})"], held, unpack)


def namespace(build: Build) -> None:
    """`types.SimpleNamespace`."""
    build.need("import types")
    held, name = draw(build, "value", "function")
    build.add(acting(build, f"{name}({held})", held))
    build.place([*plain(f"{held} = types.SimpleNamespace({joined(build, '@=@')})"), *build.calls(f"{name}({held})")])


def enum_keys(build: Build) -> None:
    """A dict whose keys are members of an enumeration."""
    build.need("import enum")
    owner, held = draw(build, "class", "value")
    build.add(klass(f"{owner}(enum.Enum)", plain(*(f'{taken.upper()} = "{taken}"' for taken in build.template.takes))))
    entries = ", ".join(f"{owner}.{taken.upper()}: {taken}" for taken in build.template.takes)
    carry(build, [f"{held} = {{{entries}}}"], held, [f"{taken} = {held}[{owner}.{taken.upper()}]" for taken in build.template.takes])


def matched(build: Build) -> None:
    """A `match` statement takes a data class apart."""
    held, name = draw(build, "value", "function")
    owner = _data(build)
    case = [Line(f"case {owner}({joined(build, '@=@')}):"), *indent(build.second)]
    build.add(define(f"{name}({held})", [Line(f"match {held}:"), *indent([*case, *plain("case _:", "    raise TypeError")])]))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{name}({held})")])


def dispatched(build: Build) -> None:
    """`functools.singledispatch` chooses the function by the class of the holder."""
    build.need("import functools")
    name, held = draw(build, "function", "value")
    owner = holder(build)
    build.add([Line("@functools.singledispatch"), *define(f"{name}({held})", plain(f"raise TypeError(type({held}))"))])
    body = renamed(build.second, {taken: f"{held}.{taken}" for taken in build.template.takes})
    build.add([Line(f"@{name}.register"), *define(f"_({held}: {owner})", body)])
    build.place(build.calls(f"{name}({owner}({build.takes}))"))


def mixin(build: Build) -> None:
    """A mixin's method uses attributes of the class that it is mixed into."""
    extra, owner, act, held = draw(build, "class", "class", "function", "value")
    build.add(klass(extra, acting(build, f"{act}(self)")))
    build.add(klass(f"{owner}({extra})", keeping(build)))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{held}.{act}()")])


def two_mixins(build: Build) -> None:
    """One mixin keeps the values, another one uses them."""
    left, right, owner, keep, act, held = draw(build, "class", "class", "class", "function", "function", "value")
    build.add(klass(left, keeping(build, keep)))
    build.add(klass(right, acting(build, f"{act}(self)")))
    build.add(klass(f"{owner}({left}, {right})"))
    build.place([*plain(f"{held} = {owner}()", f"{held}.{keep}({build.takes})"), *build.calls(f"{held}.{act}()")])


def template_method(build: Build) -> None:
    """A method of an abstract base calls the one that the subclass defines."""
    build.need("import abc")
    base, owner, run, act = draw(build, "class", "class", "function", "function")
    own = listed("self", build.takes)
    outer = define(f"{run}({own})", linked(f"return self.{act}({build.takes})"))
    inner = [Line("@abc.abstractmethod"), *define(f"{act}({own})", plain("..."))]
    build.add(klass(f"{base}(abc.ABC)", outer, inner))
    build.add(klass(f"{owner}({base})", define(f"{act}({own})", build.second)))
    build.place(build.calls(f"{owner}().{run}({build.takes})"))


def factory(build: Build) -> None:
    """A function makes one of two subclasses, by a word of the configuration."""
    build.need("import abc", "import os")
    base, owner, other, make, act, held = draw(build, "class", "class", "class", "function", "function", "value")
    own = listed("self", build.takes)
    build.add(klass(f"{base}(abc.ABC)", [Line("@abc.abstractmethod"), *define(f"{act}({own})", plain("..."))]))
    build.add(klass(f"{owner}({base})", define(f"{act}({own})", build.second)))
    build.add(klass(f"{other}({owner})", define("__init__(self)", plain("self.rounds = 0"))))
    build.add(define(f"{make}(kind)", plain('if kind == "counted":', f"    return {other}()", f"return {owner}()")))
    start = plain(f'{held} = {make}(os.environ.get("KIND", "plain"))')
    build.place([*start, *build.calls(f"{held}.{act}({build.takes})")])


def class_table(build: Build) -> None:
    """A decorator puts a class into a table; it is made by its name there."""
    table, register, owner, act, held = draw(build, "value", "function", "class", "function", "value")
    inner = define("add(kind)", plain(f"{table.upper()}[name] = kind", "return kind"))
    build.add(plain(f"{table.upper()} = {{}}"))
    build.add(define(f"{register}(name)", [*inner, *plain("", "return add")]))
    body = klass(owner, *([keeping(build)] if build.takes else []), acting(build, f"{act}(self)"))
    build.add([Line(f'@{register}("plain")'), *body])
    build.place([*linked(f'{held} = {table.upper()}["plain"]({build.takes})'), *build.calls(f"{held}.{act}()")])


def subclass_table(build: Build) -> None:
    """``__init_subclass__`` puts each subclass into a table of the base."""
    base, owner, act, held = draw(build, "class", "class", "function", "value")
    note = define("__init_subclass__(cls, **options)", plain("super().__init_subclass__(**options)", "cls.kinds[cls.__name__] = cls"))
    build.add(klass(base, plain("kinds = {}"), note))
    build.add(klass(f"{owner}({base})", define(f"{act}({listed('self', build.takes)})", build.second)))
    build.place([*plain(f'{held} = {base}.kinds["{owner}"]()'), *build.calls(f"{held}.{act}({build.takes})")])


def callable_object(build: Build) -> None:
    """An object that is called."""
    held = build.names.new("value")
    owner = holder(build, acting(build, "__call__(self)"))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{held}()")])


def static_method(build: Build) -> None:
    """A static method."""
    owner, act = draw(build, "class", "function")
    build.add(klass(owner, [Line("@staticmethod"), *define(f"{act}({build.takes})", build.second)]))
    build.place(build.calls(f"{owner}.{act}({build.takes})"))


def class_method(build: Build) -> None:
    """A class method makes the object."""
    act, held, make = draw(build, "function", "value", "function")
    maker = [Line("@classmethod"), *define(f"{make}(cls, {build.takes})", plain(f"return cls({build.takes})"))]
    owner = holder(build, maker, acting(build, f"{act}(self)"))
    build.place([*plain(f"{held} = {owner}.{make}({build.takes})"), *build.calls(f"{held}.{act}()")])


def delegating(build: Build) -> None:
    """A wrapper whose methods call those of an inner object."""
    inner, outer, act, held = draw(build, "class", "class", "function", "value")
    own = listed("self", build.takes)
    build.add(klass(inner, define(f"{act}({own})", build.second)))
    start = define("__init__(self, inner)", plain("self._inner = inner"))
    build.add(klass(outer, start, define(f"{act}({own})", linked(f"return self._inner.{act}({build.takes})"))))
    build.place([*plain(f"{held} = {outer}({inner}())"), *build.calls(f"{held}.{act}({build.takes})")])


def parts_in_order(build: Build) -> None:
    """An object calls each of its parts, of which there is one."""
    part, outer, act, run, held = draw(build, "class", "class", "function", "function", "value")
    own = listed("self", build.takes)
    build.add(klass(part, define(f"{act}({own})", build.second)))
    loop = [
        *plain("result = None", "for part in self.parts:"),
        *indent(linked(f"result = part.{act}({build.takes})")),
        *plain("return result"),
    ]
    build.add(klass(outer, define("__init__(self, *parts)", plain("self.parts = list(parts)")), define(f"{run}({own})", loop)))
    build.place([*plain(f"{held} = {outer}({part}())"), *build.calls(f"{held}.{run}({build.takes})")])


def module_list(build: Build) -> None:
    """Modules of PyTorch in a list, each of which is called."""
    layer, outer, held = draw(build, "class", "class", "value")
    own = listed("self", build.takes)
    build.add(klass(f"{layer}(torch.nn.Module)", define(f"forward({own})", build.second)))
    start = define("__init__(self)", plain("super().__init__()", f"self.layers = torch.nn.ModuleList([{layer}()])"))
    loop = [
        *plain("result = None", "for layer in self.layers:"),
        *indent(linked(f"result = layer({build.takes})")),
        *plain("return result"),
    ]
    build.add(klass(f"{outer}(torch.nn.Module)", start, define(f"forward({own})", loop)))
    build.place([*plain(f"{held} = {outer}()"), *build.calls(f"{held}({build.takes})")])


def module_hook(build: Build) -> None:
    """A hook of a module of PyTorch does the second part."""
    layer, act, hook = draw(build, "value", "function", "value")
    start = plain(f"{layer} = torch.nn.Identity()", f"{hook} = {layer}.register_forward_hook({act})")
    inner = [*define(f"{act}(module, inputs, output)", build.second), Line(""), *start]
    build.place([*inner, *build.calls(f"{layer}(None)"), *plain(f"{hook}.remove()")])


def _carrying(act: object) -> Way:
    return Way(act, carries=True, keeps=True)  # type: ignore[arg-type]


_TORCH = frozenset({"torch"})
WAYS: dict[str, Way] = {
    "frozen": Way(frozen, carries=True, keeps=True, fixed=True),
    "replaced": _carrying(replaced),
    "default-factory": _carrying(default_factory),
    "post-init": _carrying(post_init),
    "named-tuple": Way(named_tuple, carries=True, keeps=True, fixed=True),
    "named-tuple-call": _carrying(named_tuple_call),
    "namespace": _carrying(namespace),
    "enum-keys": _carrying(enum_keys),
    "match": _carrying(matched),
    "singledispatch": Way(dispatched, carries=True),
    "mixin": _carrying(mixin),
    "two-mixins": _carrying(two_mixins),
    "template-method": Way(template_method),
    "factory": Way(factory),
    "class-table": Way(class_table, keeps=True),
    "subclass-table": Way(subclass_table),
    "callable-object": _carrying(callable_object),
    "static-method": Way(static_method),
    "class-method": _carrying(class_method),
    "delegating": Way(delegating),
    "parts-in-order": Way(parts_in_order),
    "module-list": Way(module_list, apis=_TORCH),
    "module-hook": Way(module_hook, fixed=True, apis=_TORCH),
}
