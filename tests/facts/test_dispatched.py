"""Generic functions: a call runs the body that is registered for the nearest class of the first argument, in any file."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.graph.call_graph import CallGraph

CLASSES = """
    class Crop: pass
    class Grain(Crop): pass
    class Rye(Grain): pass
    class Stone: pass
"""
SCALES = """
    import functools
    from crops import *

    @functools.singledispatch
    def weigh(one): return 0

    @weigh.register
    def weigh_crop(one: Crop): return 1

    @weigh.register(Grain)
    def weigh_grain(one): return 2
"""
LATER = """
    from crops import Stone
    from scales import weigh

    @weigh.register
    def weigh_stone(one: Stone): return 3
"""


@pytest.mark.parametrize(
    ("made", "entered"),
    [("Crop()", "weigh_crop"), ("Grain()", "weigh_grain"), ("Rye()", "weigh_grain"), ("Stone()", "weigh_stone"), ("object()", "weigh")],
)
def test_the_nearest_class_chooses(made, entered):
    main = f"from crops import *\nfrom scales import weigh\n\ndef work():\n    return weigh({made})\n"
    facts = facts_of(crops=CLASSES, scales=SCALES, later=LATER, main=main)
    called = {edge.callee.name for edge in CallGraph(facts).all_calls(function(facts, "main", "work")).edges}
    assert entered in called
    assert called <= {entered} | ({"weigh_crop", "weigh_grain", "weigh_stone"} if entered == "weigh" else set())


def test_who_calls_what_is_registered():
    facts = facts_of(
        crops=CLASSES, scales=SCALES, main="from crops import Rye\nfrom scales import weigh\n\ndef work():\n    return weigh(Rye())\n"
    )
    callers = facts.callers(function(facts, "scales", "weigh_grain"))
    assert {arguments.site.function.name for _, arguments in callers} == {"work"}
    assert not facts.callers(function(facts, "scales", "weigh_crop"))


@pytest.mark.parametrize("taken", ["importlib.import_module('crops')", "import_module('crops')", "__import__('crops')"])
def test_callers_by_a_module_that_is_named(taken):
    main = f"import importlib\nfrom importlib import import_module\n\ndef work():\n    taken = {taken}\n    return taken.grow(1)\n"
    facts = facts_of(crops="def grow(one): return one\n", main=main)
    callers = facts.callers(function(facts, "crops", "grow"))
    assert {arguments.site.function.name for _, arguments in callers} == {"work"}
