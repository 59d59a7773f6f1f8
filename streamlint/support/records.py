"""Dataclasses for what every run imports: the module of that name, with what it imports and compiles, would be a fifth of a short run.

Type checkers see dataclasses, and so do callers: `dataclasses.replace`, `fields` and `asdict` work on a record.

``__packed__`` in a class names fields that are held otherwise than they are given and read: ``((name, (pack, unpack)),)``.
A frozen record packs none.
"""

from __future__ import annotations

import operator

from streamlint import TYPE_CHECKING

__all__ = ["field", "is_record", "names_of", "record", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import field, fields, replace
    from dataclasses import is_dataclass as is_record

    def names_of(kind: type) -> tuple[str, ...]:
        """The fields of a record, in order."""
        return tuple(item.name for item in fields(kind))
else:
    _NOTHING = object()

    class _Field:
        def __init__(self, default=_NOTHING, default_factory=_NOTHING, init=True, hash=True, kw_only=False):
            self.default, self.factory, self.init, self.hash, self.kw_only = default, default_factory, init, hash, kw_only

    field = _Field

    def record(**options):
        """The class with ``__init__``, ``__repr__``, slots and ``__eq__`` unless not wanted, and ``__hash__`` where it is frozen."""
        return lambda cls: _made(cls, **options)

    def replace(one, **changes):
        """A record with other values in some of its fields."""
        return type(one)(**{**{name: getattr(one, name) for name, field in one.__record_fields__.items() if field.init}, **changes})

    def names_of(kind):
        """The fields of a record, in order."""
        return tuple(kind.__record_fields__)

    def is_record(one):
        """Whether something is a record."""
        return hasattr(type(one), "__record_fields__")

    def _made(cls, *, frozen=False, order=False, slots=True, eq=True, unsafe_hash=False):
        inherited, packed = _inherited(cls), _packed(cls)
        fields = inherited | {name: _field(cls.__dict__.get(name, _NOTHING)) for name in cls.__annotations__}
        names = tuple(fields)
        own = [name for name in names if name not in inherited]
        values = _values(names)
        made = {
            "__match_args__": tuple(name for name, one in fields.items() if one.init and not one.kw_only),
            "__init__": _init(cls, fields, frozen, packed),
            "__repr__": lambda self: f"{cls.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})",
            "__replace__": replace,
            "__annotations__": dict(cls.__annotations__),
            "__record_fields__": fields,
            "__dataclass_fields__": _Fields(),
        }
        if slots:
            made["__slots__"] = tuple(f"_{name}" if name in packed else name for name in own)
        made |= {name: _unpacking(f"_{name}", *packed[name]) for name in own if name in packed}
        made |= _comparisons(values, eq, order)
        if unsafe_hash or (frozen and eq):
            made["__hash__"] = _hashing(fields)
        if frozen:
            made |= {"__setattr__": _refuse, "__delattr__": _refuse}
            made |= {"__getstate__": lambda self: list(values(self)), "__setstate__": _set_state}
        return type(cls)(cls.__name__, cls.__bases__, {**made, **_body(cls, names)})  # what the class says itself comes first

    def _inherited(cls):
        """The fields that a class has of its bases."""
        return {name: one for base in reversed(cls.__mro__[1:]) for name, one in getattr(base, "__record_fields__", {}).items()}

    def _packed(cls):
        return dict(item for base in reversed(cls.__mro__) for item in base.__dict__.get("__packed__", ()))

    def _body(cls, names):
        """What stands in a class, without its fields."""
        left = (*names, "__dict__", "__weakref__")
        return {name: value for name, value in cls.__dict__.items() if name not in left and not name.startswith("__annot")}

    def _comparisons(values, eq, order):
        """The methods that compare records."""
        made = {f"__{name}__": _compared(values, getattr(operator, name)) for name in ("lt", "le", "gt", "ge")} if order else {}
        if eq:
            made["__eq__"] = lambda self, other: values(self) == values(other) if type(other) is type(self) else NotImplemented
            made["__hash__"] = None
        return made

    def _hashing(fields):
        hashed = _values(tuple(name for name, one in fields.items() if one.hash))
        return lambda self: hash(hashed(self))

    def _field(said):
        return said if isinstance(said, _Field) else _Field(said)

    def _values(names):
        """All values of a record as a tuple."""
        return operator.attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, name) for name in names)

    def _unpacking(slot, pack, unpack):
        """A field that is held in a slot of another name."""
        around = {"unpack": unpack, "pack": pack}
        exec(f"def get(self): return unpack(self.{slot})\ndef set(self, value): self.{slot} = pack(value)", around)
        return property(around["get"], around["set"])

    def _init(cls, fields, frozen, packed):
        given, named, lines, around = [], [], [], {"_set": object.__setattr__, "_nothing": _NOTHING}
        for name, one in fields.items():
            if not one.init and one.factory is _NOTHING:
                continue  # `__post_init__` gives it a value
            value = name
            if one.factory is not _NOTHING:
                around[f"_made_{name}"] = one.factory
                value = f"_made_{name}() if {name} is _nothing else {name}" if one.init else f"_made_{name}()"
            around[f"_of_{name}"] = one.default
            has_default = one.default is not _NOTHING or one.factory is not _NOTHING
            if one.init:
                (named if one.kw_only else given).append(f"{name}=_of_{name}" if has_default else name)
            if name in packed:
                around[f"_pack_{name}"] = packed[name][0]
                lines.append(f"self._{name} = _pack_{name}({value})")
                continue
            lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
        given += ["*", *named] if named else []
        exec(f"def __init__({', '.join(['self', *given])}):\n " + "\n ".join(lines or ["pass"]), around)
        made = around["__init__"]
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        made.__annotations__ = {**cls.__annotations__, "return": "None"}
        return made

    def _refuse(self, name, value=None):
        from dataclasses import FrozenInstanceError  # start-up: for mistakes alone

        raise FrozenInstanceError(f"cannot change field {name!r}")

    def _set_state(self, state):
        for name, value in zip(self.__record_fields__, state, strict=True):
            object.__setattr__(self, name, value)

    def _compared(values, compare):
        return lambda self, other: compare(values(self), values(other)) if type(other) is type(self) else NotImplemented

    class _Fields:
        """What module `dataclasses` keeps of a class; made when somebody asks, and the class stays as it is."""

        def __init__(self):
            self._of = {}

        def __get__(self, one, cls):
            if cls not in self._of:
                self._of[cls] = _dataclass_fields(cls)
            return self._of[cls]

    def _dataclass_fields(cls):
        import dataclasses  # start-up: for other programs

        known = {_NOTHING: dataclasses.MISSING}
        said = {name: text for base in reversed(cls.__mro__) for name, text in getattr(base, "__annotations__", {}).items()}
        rows = []
        for name, one in cls.__record_fields__.items():
            plain = one.factory is _NOTHING and one.default is not _NOTHING
            value = {"default": one.default} if plain else {"default_factory": known.get(one.factory, one.factory)}
            rows.append((name, said[name], dataclasses.field(**value, init=one.init, hash=one.hash, kw_only=one.kw_only)))
        return dataclasses.make_dataclass(cls.__name__, rows).__dataclass_fields__
