"""Mappings that make what a key lacks (``defaultdict(Meter)``).

How often it was made, and what was done to it since, nobody knows: it is like an object from out of view, made by this constructor.
"""

from __future__ import annotations

import contextlib

from streamlint.findings import Span
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.run import RaiseSignal, Run
from streamlint.interpreter.values import ClassValue, FunctionValue, Instance, Value


def made_by_factory(run: Run, factory: Value | None, name: str) -> Value | None:
    """The object under a key that was not seen; None where the factory is no class at hand, and no function that makes one."""
    from streamlint.interpreter.calls import invoke
    from streamlint.interpreter.foreign import foreign_object, widen

    if isinstance(factory, ClassValue):
        return foreign_object(run, factory, name, Arguments())
    if not isinstance(factory, FunctionValue):
        return None
    node = factory.function
    site = CallSite(node, Span(factory.file.path, *node.at), node.name)
    made: Value | None = None
    with run.within(setup=True, loops=(), guards=(), callback=None), run.machine.gil.entered(None), contextlib.suppress(RaiseSignal):
        made = invoke(run, factory, Arguments(), site)
    if not isinstance(made, Instance):
        return None
    made.foreign, made.name = True, name
    widen(run, made)
    return made
