"""Library handles (cuBLAS, cuFFT …): the stream that a call works on where it takes it from its handle."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.effects import Call
from streamlint.interpreter.guards import lvalue
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Handle, Opaque, Reference, Stream
from streamlint.models.vocabulary import Selector

BOUND = "(stream)"
"""The attribute of an unknown handle that holds the stream which it was given."""


def handle_stream(call: Call) -> Stream | None:
    """The stream that the handle of a call is bound to; null if none is given to it anywhere, None where that cannot be known."""
    value = call.value("handle")
    if isinstance(value, Reference):
        value = call.run.at(value)
    if isinstance(value, Stream):
        return value
    if isinstance(value, Handle):
        if value.stream is not None:
            return value.stream
        if not value.unknown and _bound_nowhere(call):
            return Stream("null", "null", None, call.library, chosen=call.span, how="handle", trail=value.trail)
    if isinstance(value, Opaque) and isinstance(bound := value.attrs.get(BOUND), Stream):
        return bound
    if isinstance(value, Opaque | Handle) and (beside := _stream_beside(call)) is not None:
        return beside
    if isinstance(value, Opaque) and _is_member(call, value) and call.run.file.leaves_unbound(_handle_node(call), _owner(call.run)):
        # A member that some other function fills: whichever does, none gives it a stream.
        return Stream("null", "null", None, call.library, chosen=call.span, how="handle")
    return None


def _stream_beside(call: Call) -> Stream | None:
    """The stream in the member of the same object that all code at hand binds the handle to."""
    from streamlint.interpreter.effects.streams import as_stream

    run, node = call.run, _handle_node(call)
    if not run.file.is_cuda or lvalue(node) is None or (isinstance(node, p.Name) and run.frame.environment.find(node.id) is not None):
        return None
    name = run.file.handles.stream_beside(node)
    if not name:
        return None
    return as_stream(call, run.evaluate(p.Attr(node.value, name, node.arrow) if isinstance(node, p.Attr) else p.Name(name)))


def _bound_nowhere(call: Call) -> bool:
    """A handle of this path has no stream; a member may get one from some other function."""
    run, node = call.run, _handle_node(call)
    if not run.file.is_cuda or _is_own_variable(run, node):
        return True
    if isinstance(node, p.Name) and run.frame.environment.find(node.id) is not None:
        # A parameter or an alias: some other handle, that whoever made it may bind.
        return not any(frame.file.binds_handles for frame in run.frames)
    return run.file.leaves_unbound(node, _owner(run))


def _owner(run: Run) -> str:
    """The class whose method names the handle."""
    return run.frame.function.class_name if run.frame.function is not None else ""


def _is_own_variable(run: Run, node: p.Expression | None) -> bool:
    """Whether the handle is a variable of the function itself, declared empty."""
    function = run.frame.function
    if not isinstance(node, p.Name) or function is None:
        return False
    return any(isinstance(n, p.Declare) and n.name == node.id and n.value is None for n in p.walk(function))


def _is_member(call: Call, value: Opaque) -> bool:
    return value.name.startswith(("uninitialised:", "self.")) or isinstance(_handle_node(call), p.Attr)


def _handle_node(call: Call) -> p.Expression | None:
    """The expression that names the handle in the source."""
    selector, node = call.row.get("handle"), call.site.node
    if not isinstance(selector, Selector) or not isinstance(node, p.Call) or selector.position is None:
        return None
    return node.args[selector.position].value if selector.position < len(node.args) else None
