"""Which library handles (cuBLAS, cuFFT …) a file and its neighbours make, and which of them they give a stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.interpreter.guards import lvalue
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.index import File

_LIBRARIES = ("cublas", "cudnn", "cufft", "curand", "cusparse", "cusolver")
_MAKERS = ("Create", "CreateGenerator", "Plan1d", "Plan2d", "Plan3d", "PlanMany")
_BINDERS = ("SetStream", "SetStream_v2", "set_stream")
_ANY = "*"


@record(slots=True)
class Handles:
    """Names of the variables and members that are made, and of those that are bound. ``*`` stands for what has no plain name."""

    made: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    streams: dict[str, set[str]] = field(default_factory=dict)  # by member: the members of the same object that it is bound to; or ""

    def stream_beside(self, handle: p.Expression | None) -> str:
        """The member that holds the stream of a member handle, where each place that binds it takes that one of the same object."""
        names = self.streams.get(_name_of(handle), set())
        return next(iter(names)) if len(names) == 1 and _ANY not in self.bound else ""

    def leaves_unbound(self, handle: p.Expression | None, owner: str = "") -> bool:
        """Whether the handle is made here and bound nowhere: whichever it is, where no handle is bound at all.

        ``owner`` is the class in whose method the handle is named.
        """
        if not self.bound:
            return bool(self.made)
        name = _name_of(handle)
        own = f"{owner}::{name}" if owner and isinstance(handle, p.Name) else ""
        if own and own in self.made:
            return own not in self.bound and name not in self.bound and _ANY not in self.bound
        known = {made.rpartition("::")[2] for made in self.made}
        return name in known and name not in {bound.rpartition("::")[2] for bound in self.bound} and _ANY not in self.bound


def handles_of(files: Iterable[File]) -> Handles:
    """Collect them from some files."""
    found = Handles()
    for file in files:
        for function, _ in p.functions_of(file.module):
            aliases = {param.name for param in function.params}
            aliases |= {node.name for node in p.walk(function) if isinstance(node, p.Declare) and node.value is not None}
            for node in p.walk(function):
                if isinstance(node, p.Call) and isinstance(node.function, p.Name) and node.args:
                    _note(found, node.function.id, node.args[0].value, aliases, function.class_name)
                    if node.function.id.endswith(_BINDERS) and len(node.args) > 1:
                        handle, stream = node.args[0].value, node.args[1].value
                        found.streams.setdefault(_name_of(handle), set()).add(_beside(handle, stream, aliases))
    return found


def _note(found: Handles, called: str, handle: p.Expression, aliases: set[str], owner: str) -> None:
    called = called.rpartition("::")[2]
    if called.endswith(_BINDERS):
        name = _name_of(handle)
        # Through a parameter or an alias any handle may be meant.
        found.bound.add(_ANY if not name or (name in aliases and isinstance(handle, p.Name)) else _owned(handle, name, owner, aliases))
    elif called.startswith(_LIBRARIES) and called.endswith(_MAKERS):
        found.made.add(_owned(handle, _name_of(handle), owner, aliases))


def _beside(handle: p.Expression, stream: p.Expression, aliases: set[str]) -> str:
    """The name of a stream that is a member of the object that the handle is a member of; empty where it is none."""
    if isinstance(handle, p.Attr) and isinstance(stream, p.Attr):
        holder = lvalue(handle.value)
        return stream.name if holder and holder == lvalue(stream.value) else ""
    plain = isinstance(handle, p.Name) and isinstance(stream, p.Name) and handle.id not in aliases and stream.id not in aliases
    return stream.id if plain and isinstance(stream, p.Name) else ""


def _owned(handle: p.Expression, name: str, owner: str, aliases: set[str]) -> str:
    """A member that is named by itself in a method goes by its class as well."""
    plain = handle.value if isinstance(handle, p.AddressOf) else handle
    return f"{owner}::{name}" if owner and isinstance(plain, p.Name) and name not in aliases else name


def _name_of(handle: p.Expression | None) -> str:
    if isinstance(handle, p.AddressOf | p.Deref | p.Cast | p.Index):
        return _name_of(handle.value)
    if isinstance(handle, p.Attr):
        return handle.name
    return handle.id if isinstance(handle, p.Name) else ""
