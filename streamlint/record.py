"""Dataclasses for what every run imports: the module of that name, with what it imports and compiles, would be a fifth of a short run.

Type checkers see dataclasses, and so do callers: `dataclasses.replace`, `fields` and `asdict` work on a record.
"""

from __future__ import annotations

import operator

from streamlint import TYPE_CHECKING

__all__ = ["field", "record", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import field, replace
else:
    _NOTHING = object()

    class _Field:
        def __init__(self, default=_NOTHING, default_factory=_NOTHING, hash=True):
            self.default, self.factory, self.hash = default, default_factory, hash

    field = _Field

    def record(**options):
        """The class with slots, ``__init__``, ``__eq__``, ``__repr__``, and ``__hash__`` where it is frozen."""
        return lambda cls: _made(cls, **options)

    def replace(one, **changes):
        """A record with other values in some of its fields."""
        return type(one)(**{**{name: getattr(one, name) for name in one.__match_args__}, **changes})

    def _made(cls, *, frozen=False, order=False, slots=True):
        fields = {name: _field(cls.__dict__.get(name, _NOTHING)) for name in cls.__annotations__}
        names = tuple(fields)
        values = _values(names)
        left = (*names, "__dict__", "__weakref__")
        body = {name: value for name, value in cls.__dict__.items() if name not in left and not name.startswith("__annot")}
        made = {
            "__slots__": names,
            "__match_args__": names,
            "__init__": _init(cls, fields, frozen),
            "__eq__": lambda self, other: values(self) == values(other) if type(other) is type(self) else NotImplemented,
            "__hash__": None,
            "__repr__": lambda self: f"{cls.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})",
            "__replace__": replace,
            "__annotations__": dict(cls.__annotations__),
            "__dataclass_fields__": _Fields(fields),
        }
        if frozen:
            hashed = _values(tuple(name for name, one in fields.items() if one.hash))
            made |= {"__hash__": lambda self: hash(hashed(self)), "__setattr__": _refuse, "__delattr__": _refuse}
            made |= {"__getstate__": lambda self: list(values(self)), "__setstate__": _set_state}
        if order:
            made |= {f"__{name}__": _compared(values, getattr(operator, name)) for name in ("lt", "le", "gt", "ge")}
        return type(cls)(cls.__name__, cls.__bases__, {**made, **body})  # what the class says itself comes first

    def _field(said):
        return said if isinstance(said, _Field) else _Field(said)

    def _values(names):
        """All values of a record as a tuple."""
        return operator.attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, name) for name in names)

    def _init(cls, fields, frozen):
        given, lines, around = [], [], {"_set": object.__setattr__, "_nothing": _NOTHING}
        for name, one in fields.items():
            value = name
            if one.factory is not _NOTHING:
                around[f"_made_{name}"] = one.factory
                value = f"_made_{name}() if {name} is _nothing else {name}"
            around[f"_of_{name}"] = one.default
            has_default = one.default is not _NOTHING or one.factory is not _NOTHING
            given.append(f"{name}=_of_{name}" if has_default else name)
            lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
        exec(f"def __init__(self, {', '.join(given)}):\n " + "\n ".join(lines), around)
        made = around["__init__"]
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        made.__annotations__ = {**cls.__annotations__, "return": "None"}
        return made

    def _refuse(self, name, value=None):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot change field {name!r}")

    def _set_state(self, state):
        for name, value in zip(self.__match_args__, state, strict=True):
            object.__setattr__(self, name, value)

    def _compared(values, compare):
        return lambda self, other: compare(values(self), values(other)) if type(other) is type(self) else NotImplemented

    class _Fields:
        """What module `dataclasses` keeps of a class; made when somebody asks."""

        def __init__(self, fields):
            self._fields = fields

        def __get__(self, one, cls):
            import dataclasses

            told = {_NOTHING: dataclasses.MISSING}
            rows = [
                (name, cls.__annotations__[name], dataclasses.field(default=one.default, hash=one.hash))
                if one.factory is _NOTHING and one.default is not _NOTHING
                else (name, cls.__annotations__[name], dataclasses.field(default_factory=told.get(one.factory, one.factory), hash=one.hash))
                for name, one in self._fields.items()
            ]
            cls.__dataclass_fields__ = found = dataclasses.make_dataclass(cls.__name__, rows).__dataclass_fields__
            return found
