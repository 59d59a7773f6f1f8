"""``torch.autograd.Function`` at hand: ``apply`` runs its ``forward`` in place, and the backward pass runs ``backward`` later."""

from __future__ import annotations

from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.classes import find_method, library_bases
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import ClassValue, FunctionValue, Opaque, Value

CONTEXT = "torch.autograd.function.FunctionCtx"
_BASES = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})


def is_function_of_autograd(run: Run, value: ClassValue) -> bool:
    """Whether a class at hand is one whose ``apply`` PyTorch records."""
    return not value.file.is_cuda and not _BASES.isdisjoint(library_bases(run, value.definition, value.file))


def applied(run: Run, value: ClassValue, arguments: Arguments, site: CallSite) -> Value | None:
    """What ``Function.apply(…)`` gives; None where its ``forward`` is not at hand, or takes its context by another method."""
    from streamlint.interpreter.bodies import call_function

    forward = find_method(run, value.definition, value.file, "forward")
    if forward is None or find_method(run, value.definition, value.file, "setup_context") is not None:
        return None
    function, owner, file = forward
    context = Opaque(f"{value.term}.context{run.visit_key(site.node)}", type=CONTEXT)
    run.rooted.append(context)  # the graph holds it
    given = Arguments([context, *arguments.positional], arguments.keywords, arguments.open)
    result = call_function(run, FunctionValue(function, file, owner=owner), given, site)
    backward = find_method(run, value.definition, value.file, "backward")
    if backward is not None:
        run.handed.append((FunctionValue(backward[0], backward[2], owner=backward[1], bound=(context,)), "backward"))
    return result
