"""What paths of a walk pass by, and what they forget."""

from __future__ import annotations

from facts.programs import facts_of, function

from streamlint.facts.code.functions import Function
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.liveness import Liveness, spread
from streamlint.ordering.paths.quiet import Quiet, heads, touch
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import ANY, Place
from streamlint.ordering.places.weights import WEIGHTS
from streamlint.ordering.races.early_reads import EarlyReads
from streamlint.ordering.races.races import Races
from streamlint.transfer.transfer import Transfer

X, Y = ("parameter", 0), ("parameter", 1)


def walk_of(body: str) -> tuple[EarlyReads, Function]:
    facts = facts_of(a=f"import torch\n\ndef f(x, y, flag):\n{body}")
    return EarlyReads(Transfer(CallGraph(facts))), function(facts, "a", "f")


def tracked(*places: Place) -> frozenset[Tracked]:
    return frozenset(Tracked(BUFFER, place) for place in places)


def test_an_attribute_touches_itself_and_its_holder() -> None:
    touched = touch([Place(X, ("left",))])
    assert heads(tracked(Place(X, ("left", "data")))).are_touched(touched)
    assert heads(tracked(Place(X))).are_touched(touched)
    assert not heads(tracked(Place(X, ("right",)))).are_touched(touched)
    assert not heads(tracked(Place(Y, ("left",)))).are_touched(touched)


def test_an_element_touches_all_of_its_container() -> None:
    assert heads(tracked(Place(X, ("left",)))).are_touched(touch([Place(X, (ANY,))]))


def test_a_branch_that_touches_nothing_is_passed_by() -> None:
    walk, used = walk_of("    if flag:\n        y.first = 1\n    else:\n        y.second = 2\n    return x\n")
    region = Quiet(walk).region(used, 0)
    assert region is not None
    assert region.join == used.control.post_dominators[0]
    assert not heads(tracked(Place(X))).are_touched(region.touch)
    assert heads(tracked(Place(Y))).are_touched(region.touch)


def test_a_branch_with_a_wait_is_not() -> None:
    walk, used = walk_of("    if flag:\n        torch.cuda.synchronize()\n    return x\n")
    assert Quiet(walk).region(used, 0) is None


def test_a_branch_that_says_how_another_goes_is_not() -> None:
    walk, used = walk_of("    if flag:\n        y.first = 1\n    x.sum()\n    if flag:\n        torch.cuda.synchronize()\n    return x\n")
    assert Quiet(walk).region(used, 0) is None


def test_bits_spread_against_the_flow_and_round_loops() -> None:
    _, used = walk_of("    while flag:\n        y = x\n    return y\n")
    own = [1 << block for block in range(len(used.code.blocks))]
    found = spread(used, own)
    for block, mask in enumerate(found):
        for after in used.control.successors[block]:
            assert mask & found[after] == found[after]


def test_memory_is_forgotten_where_no_later_instruction_names_it() -> None:
    walk, used = walk_of("    z = x.cpu()\n    if flag:\n        z.sum()\n    return y\n")
    call = next(one for one in used.by_opcode[op.INVOKE] if used.text(one[4]) == "cpu")
    made, home = call[2], used.homes[call][0]
    held = tracked(Place(("register", made)))
    live = Liveness(walk)
    uses = {block for block, code in enumerate(used.code.blocks) for one in code if made in op.reads(one)} - {home}
    assert uses
    assert all(live.tracked(used, block, held) == held for block in uses)
    end = next(block for block, code in enumerate(used.code.blocks) if code[-1][0] == op.RETURN)
    assert not live.tracked(used, end, held)


def test_memory_in_a_register_is_forgotten_where_a_round_makes_that_anew() -> None:
    walk, used = walk_of("    while flag:\n        z = x.cpu()\n        z.sum()\n    return y\n")
    call = next(one for one in used.by_opcode[op.INVOKE] if used.text(one[4]) == "cpu")
    made, home = call[2], used.homes[call][0]
    live = Liveness(Races(walk.transfer))
    for path in ((), ("part",)):
        assert not live.tracked(used, home, tracked(Place(("register", made), path)))


def test_what_modules_lead_to_is_not_forgotten() -> None:
    walk, used = walk_of("    z = x.cpu()\n    if flag:\n        z.sum()\n    return y\n")
    made = next(one for one in used.by_opcode[op.INVOKE] if used.text(one[4]) == "cpu")[2]
    end = next(block for block, code in enumerate(used.code.blocks) if code[-1][0] == op.RETURN)
    held = tracked(Place(("register", made), (WEIGHTS,)))
    assert Liveness(Races(walk.transfer)).tracked(used, end, held) == held


def test_ways_that_raise_meet_no_others() -> None:
    walk, used = walk_of("    if flag:\n        raise ValueError\n    return x\n")
    region = Quiet(walk).region(used, 0)
    assert region is not None
    assert used.code.blocks[region.join][-1][0] == op.RETURN


def test_a_branch_whose_ways_return_is_passed_by_where_that_is_all_one() -> None:
    walk, used = walk_of("    if flag:\n        return y\n    return x\n")
    assert Quiet(walk).region(used, 0) is None
    races = Races(walk.transfer)
    region = Quiet(races).region(used, 0)
    assert region is not None
    assert used.code.blocks[region.last][-1][0] == op.RETURN
    assert all(heads(tracked(Place(root))).are_touched(region.touch) for root in (X, Y))


def test_work_is_quiet_where_it_touches_nothing_for_races_alone() -> None:
    walk, used = walk_of("    if flag:\n        y = y.exp()\n    return x\n")
    region = Quiet(Races(walk.transfer)).region(used, 0)
    assert region is not None
    assert heads(tracked(Place(Y))).are_touched(region.touch)
    assert not heads(tracked(Place(X))).are_touched(region.touch)
    assert heads(tracked(Place(X, (WEIGHTS,)))).are_touched(region.touch)  # the operand may be one of its parameters


def test_a_call_is_quiet_for_races_unless_its_function_waits() -> None:
    for body, is_quiet in (("    return 1\n", True), ("    torch.cuda.synchronize()\n", False)):
        walk, used = walk_of(f"    if flag:\n        helped(y)\n    return x\n\ndef helped(given):\n{body}")
        region = Quiet(Races(walk.transfer)).region(used, 0)
        assert (region is not None) is is_quiet
        if region is not None:
            assert heads(tracked(Place(Y))).are_touched(region.touch)
            assert not heads(tracked(Place(X))).are_touched(region.touch)
            assert heads(tracked(Place(("global", 0, "kept")))).are_touched(region.touch)
