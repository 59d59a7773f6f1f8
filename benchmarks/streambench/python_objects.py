"""Ways through attributes: where an object keeps what the second part takes, and how that is got out again."""

from __future__ import annotations

from benchmarks.streambench.pieces import Way, linked, plain, renamed
from benchmarks.streambench.python_forms import acting, carry, draw, holder, joined, keeping, klass, packed, texts, unpacked
from benchmarks.streambench.python_ways import Build, define


def _held(build: Build, owner: str, held: str, act: str, given: str | None = None) -> None:
    """An object is made in the entry function, and its method does the second part."""
    build.place([*plain(f"{held} = {owner}({build.takes if given is None else given})"), *build.calls(f"{held}.{act}()")])


def constructed(build: Build) -> None:
    """The constructor keeps the values, a method uses them."""
    act, held = draw(build, "function", "value")
    _held(build, holder(build, acting(build, f"{act}(self)")), held, act)


def base_attribute(build: Build) -> None:
    """A method of the base class keeps the values, a method of the subclass uses them."""
    base, owner, keep, act, held = draw(build, "class", "class", "function", "function", "value")
    build.add(klass(base, keeping(build, keep)))
    build.add(klass(f"{owner}({base})", acting(build, f"{act}(self)")))
    build.place([*plain(f"{held} = {owner}()", f"{held}.{keep}({build.takes})"), *build.calls(f"{held}.{act}()")])


def base_constructor(build: Build) -> None:
    """The subclass hands the values to the constructor of its base class."""
    owner, act, held = draw(build, "class", "function", "value")
    base = holder(build)
    start = define(f"__init__(self, {build.takes})", plain(f"super().__init__({build.takes})", "self.rounds = 0"))
    build.add(klass(f"{owner}({base})", start, acting(build, f"{act}(self)")))
    _held(build, owner, held, act)


def set_up(build: Build) -> None:
    """The constructor calls a method that keeps the values."""
    owner, keep, act, held = draw(build, "class", "function", "function", "value")
    start = define(f"__init__(self, {build.takes})", plain("self.rounds = 0", f"self.{keep}({build.takes})"))
    build.add(klass(owner, start, keeping(build, keep), acting(build, f"{act}(self)")))
    _held(build, owner, held, act)


def inner_attribute(build: Build) -> None:
    """An attribute of an attribute."""
    outer, name, held = draw(build, "class", "function", "value")
    inner = holder(build)
    build.add(klass(outer, define("__init__(self, inner)", plain("self.inner = inner"))))
    build.add(acting(build, f"{name}({held})", f"{held}.inner"))
    build.place([*plain(f"{held} = {outer}({inner}({build.takes}))"), *build.calls(f"{name}({held})")])


def owner_of_owner(build: Build) -> None:
    """A part reaches the values through the object that owns it."""
    outer, part, act, held = draw(build, "class", "class", "function", "value")
    build.add(klass(part, define("__init__(self, owner)", plain("self.owner = owner")), acting(build, f"{act}(self)", "self.owner")))
    build.add(klass(outer, keeping(build, first=[f"self.part = {part}(self)"])))
    build.place([*plain(f"{held} = {outer}({build.takes})"), *build.calls(f"{held}.part.{act}()")])


def class_attribute(build: Build) -> None:
    """Attributes of a class that nobody instantiates."""
    owner = build.names.new("class")
    build.add(klass(owner, plain(*texts(build, "@ = None"))))
    carry(build, texts(build, f"{owner}.@ = @"), "", texts(build, f"@ = {owner}.@"))


def property_(build: Build) -> None:
    """Properties of what the constructor keeps."""
    name, held = draw(build, "function", "value")
    owner = build.names.new("class")
    parts = [[*plain("@property"), *define(f"{taken}(self)", plain(f"return self._{taken}"))] for taken in build.template.takes]
    build.add(klass(owner, keeping(build, form="self._@ = @"), *parts))
    build.add(acting(build, f"{name}({held})", held))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{name}({held})")])


def property_setter(build: Build) -> None:
    """A property with a setter."""
    name, held, owner = draw(build, "function", "value", "class")
    parts = [
        [
            *[*plain("@property"), *define(f"{taken}(self)", plain(f"return self._{taken}"))],
            *[*plain("", f"@{taken}.setter"), *define(f"{taken}(self, value)", plain(f"self._{taken} = value"))],
        ]
        for taken in build.template.takes
    ]
    build.add(klass(owner, define("__init__(self)", plain(*texts(build, "self._@ = None"))), *parts))
    build.add(acting(build, f"{name}({held})", held))
    build.place([*plain(f"{held} = {owner}()", *texts(build, f"{held}.@ = @")), *build.calls(f"{name}({held})")])


def cached_property(build: Build) -> None:
    """Cached properties of what the constructor keeps."""
    build.need("import functools")
    name, held, owner = draw(build, "function", "value", "class")
    parts = [
        [*plain("@functools.cached_property"), *define(f"{taken}(self)", plain(f"return self._{taken}"))] for taken in build.template.takes
    ]
    build.add(klass(owner, keeping(build, form="self._@ = @"), *parts))
    build.add(acting(build, f"{name}({held})", held))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{name}({held})")])


def getters(build: Build) -> None:
    """Methods that set and get."""
    owner, keep, held = draw(build, "class", "function", "value")
    parts = [define(f"get_{taken}(self)", plain(f"return self.{taken}")) for taken in build.template.takes]
    build.add(klass(owner, keeping(build, keep), *parts))
    carry(build, [f"{held} = {owner}()", f"{held}.{keep}({build.takes})"], held, texts(build, f"@ = {held}.get_@()"))


def forwarding(build: Build) -> None:
    """``__getattr__`` hands on to an inner object."""
    outer, held = draw(build, "class", "value")
    inner = holder(build)
    build.add(
        klass(
            outer,
            define("__init__(self, inner)", plain("self._inner = inner")),
            define("__getattr__(self, name)", plain("return getattr(self._inner, name)")),
        )
    )
    carry(build, [f"{held} = {outer}({inner}({build.takes}))"], held, texts(build, f"@ = {held}.@"))


def by_name(build: Build) -> None:
    """``setattr`` and ``getattr`` with constant names."""
    owner, held = draw(build, "class", "value")
    build.add(klass(owner))
    store = [f"{held} = {owner}()", *texts(build, f'setattr({held}, "@", @)')]
    carry(build, store, held, texts(build, f'@ = getattr({held}, "@")'))


def update_attributes(build: Build) -> None:
    """The constructor makes attributes of all keywords that it is given."""
    owner, act, held = draw(build, "class", "function", "value")
    body = plain("for name, value in options.items():", "    setattr(self, name, value)")
    build.add(klass(owner, define("__init__(self, **options)", body), acting(build, f"{act}(self)")))
    _held(build, owner, held, act, joined(build, "@=@"))


def attribute_dict(build: Build) -> None:
    """The constructor puts its keywords into the attributes' dict."""
    owner, act, held = draw(build, "class", "function", "value")
    body = plain("self.__dict__.update(options)")
    build.add(klass(owner, define("__init__(self, **options)", body), acting(build, f"{act}(self)")))
    _held(build, owner, held, act, joined(build, "@=@"))


def slots(build: Build) -> None:
    """A class with slots."""
    owner, act, held = draw(build, "class", "function", "value")
    ends = "," if len(build.template.takes) == 1 else ""
    names = plain(f"__slots__ = ({joined(build, chr(34) + '@' + chr(34))}{ends})")
    build.add(klass(owner, names, keeping(build), acting(build, f"{act}(self)")))
    _held(build, owner, held, act)


def tuple_attribute(build: Build) -> None:
    """One attribute holds all values as a tuple."""
    owner, act, held = draw(build, "class", "function", "value")
    start = define(f"__init__(self, {build.takes})", plain(f"self.parts = {packed(build)}"))
    build.add(klass(owner, start, define(f"{act}(self)", [*plain(f"{unpacked(build)} = self.parts"), *build.second])))
    _held(build, owner, held, act)


def dict_attribute(build: Build) -> None:
    """One attribute holds all values as a dict."""
    owner, keep, act, held = draw(build, "class", "function", "function", "value")
    store = define(f"{keep}(self, {build.takes})", plain(*texts(build, 'self.parts["@"] = @')))
    use = define(f"{act}(self)", [*plain(*texts(build, '@ = self.parts["@"]')), *build.second])
    build.add(klass(owner, define("__init__(self)", plain("self.parts = {}")), store, use))
    build.place([*plain(f"{held} = {owner}()", f"{held}.{keep}({build.takes})"), *build.calls(f"{held}.{act}()")])


def list_attribute(build: Build) -> None:
    """One method appends to a list of the object, another takes from it."""
    owner, keep, act, held = draw(build, "class", "function", "function", "value")
    store = define(f"{keep}(self, {build.takes})", plain(f"self.pending.append({packed(build)})"))
    use = define(f"{act}(self)", [*plain(f"{unpacked(build)} = self.pending.pop()"), *build.second])
    build.add(klass(owner, define("__init__(self)", plain("self.pending = []")), store, use))
    build.place([*plain(f"{held} = {owner}()", f"{held}.{keep}({build.takes})"), *build.calls(f"{held}.{act}()")])


def optional_attribute(build: Build) -> None:
    """Attributes that are None at first, and are asked for that."""
    owner, keep, act, held = draw(build, "class", "function", "function", "value")
    first = build.template.takes[0]
    guard = plain(f"if self.{first} is None:", '    raise RuntimeError("nothing was begun")')
    use = define(f"{act}(self)", [*guard, *renamed(build.second, {taken: f"self.{taken}" for taken in build.template.takes})])
    build.add(klass(owner, define("__init__(self)", plain(*texts(build, "self.@ = None"))), keeping(build, keep), use))
    build.place([*plain(f"{held} = {owner}()", f"{held}.{keep}({build.takes})"), *build.calls(f"{held}.{act}()")])


def fluent(build: Build) -> None:
    """Methods that keep a value and hand back the object, one behind the other."""
    owner, act, held = draw(build, "class", "function", "value")
    parts = [define(f"with_{taken}(self, {taken})", plain(f"self.{taken} = {taken}", "return self")) for taken in build.template.takes]
    build.add(klass(owner, *parts, acting(build, f"{act}(self)")))
    build.place([*plain(f"{held} = {owner}(){joined(build, '.with_@(@)', '')}"), *build.calls(f"{held}.{act}()")])


def copied(build: Build) -> None:
    """A copy of the object."""
    build.need("import copy")
    act, held, other = draw(build, "function", "value", "value")
    owner = holder(build, acting(build, f"{act}(self)"))
    build.place([*plain(f"{held} = {owner}({build.takes})", f"{other} = copy.copy({held})"), *build.calls(f"{other}.{act}()")])


def weak(build: Build) -> None:
    """A weak reference to the object."""
    build.need("import weakref")
    held, link = draw(build, "value", "value")
    owner = holder(build)
    unpack = [f"{held} = {link}()", *texts(build, f"@ = {held}.@")]
    carry(build, [f"{held} = {owner}({build.takes})", f"{link} = weakref.ref({held})"], link, unpack)


def singleton(build: Build) -> None:
    """The only object of a class, which a class method hands out."""
    owner = build.names.new("class")
    only = [
        *plain("@classmethod"),
        *define("instance(cls)", plain("if cls._only is None:", "    cls._only = cls()", "return cls._only")),
    ]
    build.add(klass(owner, plain("_only = None"), define("__init__(self)", plain(*texts(build, "self.@ = None"))), only))
    carry(build, texts(build, f"{owner}.instance().@ = @"), "", texts(build, f"@ = {owner}.instance().@"))


def cached_getter(build: Build) -> None:
    """The only object of a class, which a function with a cache hands out."""
    build.need("import functools")
    owner, name = draw(build, "class", "function")
    build.add(klass(owner, define("__init__(self)", plain(*texts(build, "self.@ = None")))))
    build.add([*plain("@functools.lru_cache(maxsize=None)"), *define(f"{name}()", plain(f"return {owner}()"))])
    carry(build, texts(build, f"{name}().@ = @"), "", texts(build, f"@ = {name}().@"))


def attrgetter(build: Build) -> None:
    """`operator.attrgetter`."""
    build.need("import operator")
    held = build.names.new("value")
    owner = holder(build)
    carry(build, [f"{held} = {owner}({build.takes})"], held, texts(build, f'@ = operator.attrgetter("@")({held})'))


def descriptor(build: Build) -> None:
    """A descriptor that keeps each value under a private name."""
    kind, owner, act, held = draw(build, "class", "class", "function", "value")
    build.add(
        klass(
            kind,
            define("__set_name__(self, owner, name)", plain('self.name = f"_{name}"')),
            define("__get__(self, held, owner=None)", plain("return getattr(held, self.name)")),
            define("__set__(self, held, value)", plain("setattr(held, self.name, value)")),
        )
    )
    build.add(klass(owner, plain(*texts(build, f"@ = {kind}()")), keeping(build), acting(build, f"{act}(self)")))
    _held(build, owner, held, act)


def config(build: Build) -> None:
    """A configuration that a constructor is given."""
    owner, act, options = draw(build, "class", "function", "value")
    settings = holder(build)
    use = acting(build, f"{act}(self)", "self.config")
    build.add(klass(owner, define("__init__(self, config)", plain("self.config = config", "self.rounds = 0")), use))
    build.place([*plain(f"{options} = {settings}({build.takes})"), *build.calls(f"{owner}({options}).{act}()")])


def module(build: Build) -> None:
    """A module of PyTorch that holds the values."""
    owner, held = draw(build, "class", "value")
    start = keeping(build, first=["super().__init__()"])
    build.add(klass(f"{owner}(torch.nn.Module)", start, acting(build, "forward(self)")))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{held}()")])


def submodule(build: Build) -> None:
    """A module within a module of PyTorch holds the values."""
    inner, outer, held = draw(build, "class", "class", "value")
    build.add(klass(f"{inner}(torch.nn.Module)", keeping(build, first=["super().__init__()"]), acting(build, "forward(self)")))
    start = define(f"__init__(self, {build.takes})", plain("super().__init__()", f"self.inner = {inner}({build.takes})"))
    build.add(klass(f"{outer}(torch.nn.Module)", start, define("forward(self)", linked("return self.inner()"))))
    build.place([*plain(f"{held} = {outer}({build.takes})"), *build.calls(f"{held}()")])


def _carrying(act: object, apis: frozenset[str] = frozenset()) -> Way:
    return Way(act, carries=True, keeps=True, apis=apis)  # type: ignore[arg-type]


_TORCH = frozenset({"torch"})
WAYS: dict[str, Way] = {
    "constructed": _carrying(constructed),
    "base-attribute": _carrying(base_attribute),
    "base-constructor": _carrying(base_constructor),
    "set-up": _carrying(set_up),
    "inner-attribute": _carrying(inner_attribute),
    "owner-of-owner": _carrying(owner_of_owner),
    "class-attribute": _carrying(class_attribute),
    "property": Way(property_, carries=True, keeps=True, fixed=True),
    "property-setter": _carrying(property_setter),
    "cached-property": _carrying(cached_property),
    "getters": _carrying(getters),
    "forwarding": _carrying(forwarding),
    "by-name": _carrying(by_name),
    "update-attributes": _carrying(update_attributes),
    "attribute-dict": _carrying(attribute_dict),
    "slots": _carrying(slots),
    "tuple-attribute": _carrying(tuple_attribute),
    "dict-attribute": _carrying(dict_attribute),
    "list-attribute": _carrying(list_attribute),
    "optional-attribute": _carrying(optional_attribute),
    "fluent": _carrying(fluent),
    "copied": _carrying(copied),
    "weak": _carrying(weak),
    "singleton": _carrying(singleton),
    "cached-getter": _carrying(cached_getter),
    "attrgetter": _carrying(attrgetter),
    "descriptor": _carrying(descriptor),
    "config": _carrying(config),
    "module": _carrying(module, _TORCH),
    "submodule": _carrying(submodule, _TORCH),
}
