"""Values that are on the device for reasons which the rows of calls do not give: losses, inputs of steps, gradients, results of models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.graph.aliases import SELF, path_of
from streamlint.facts.repetition.decoding import feeds_back
from streamlint.facts.repetition.hot import Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.models import StepRow
from streamlint.waits.losses import LossSlice
from streamlint.waits.operands import argument_registers
from streamlint.waits.origins import GRADIENTS, INPUT, OUTPUT, PARAMETERS, TERM, UNSURE, Place
from streamlint.waits.regions import CALLED, DECODE, WaitRegions, trains
from streamlint.waits.schedules import values_passed

ASKED = "a device tensor"
MODEL_INPUT = "the model's input"


def seeds_of(hot: WaitRegions, all_loops: bool) -> dict[Place, str]:
    """The registers that hold such values, each with the reason; all of them in loops that train, on request in other ones too."""
    seeds = LossSlice(hot).run(hot.reaching)
    for function, first in (*hot.gradients.given(hot.regions), *hot.hooks.with_gradients()):
        seeds.update({(function, one[2]): GRADIENTS for one in function.by_opcode[op.PARAM] if one[3] >= first})
        seeds.update({(function, one[2]): TERM for one in function.by_opcode[op.ATTR] if function.text(one[4]) == "saved_tensors"})
    for function, regions in hot.regions.items():
        for one in _inputs(function, regions):
            seeds.setdefault((function, one[2]), f"{UNSURE}{INPUT}")
        for one in function.by_opcode[op.ATTR]:
            if function.text(one[4]) == "grad" and not function.is_parameter(one[3], 0):
                seeds.setdefault((function, one[3]), PARAMETERS)
        if all_loops:
            _seed_rounds(hot, seeds, function, regions)
    return seeds


def _inputs(function: Function, regions: Iterable[Region]) -> Iterator[Instruction]:
    """The parameters of a function that a step or an unknown caller runs with its inputs."""
    if any((isinstance(region.row, StepRow) or region.does == CALLED) and region.caller is None for region in regions):
        has_self = function.owner is not None or function.has_receiver
        yield from (one for one in function.by_opcode[op.PARAM] if one[3] > 0 or not has_self)


def _seed_rounds(hot: WaitRegions, seeds: dict[Place, str], function: Function, regions: Iterable[Region]) -> None:
    """Add what loops that do not train give to models, and what is asked to be on a device."""
    for region in regions:
        if region.loop is not None and region.caller is None and not trains(region):
            seeds.update({(function, register): MODEL_INPUT for register in values_passed(hot, region)})
            for place, reason in _fed(hot, region):
                seeds.setdefault(place, reason)
    for place in _on_asked_device(function):
        seeds.setdefault(place, f"{UNSURE}{ASKED}")


def _fed(hot: WaitRegions, region: Region) -> Iterator[tuple[Place, str]]:
    """What a model gives that goes back into it, and the variables that carry it from round to round."""
    function, body = region.function, hot.body(region.function)
    loop = body.graph.loops.index(region.loop) if region.loop is not None and region.does == DECODE else NOBODY
    for fed in feeds_back(hot.graph, body, hot.serving.leads_to_model) if loop != NOBODY else ():
        if fed.place == loop:
            yield (function, fed.call[2]), f"{UNSURE}{OUTPUT}"
            yield (function, fed.carried), f"{UNSURE}{MODEL_INPUT}"


def _on_asked_device(function: Function) -> Iterator[Place]:
    """Attributes of objects that got a device: ``schedule.prepare(device=device)``, then ``schedule.moments``."""
    placed = {
        path_of(function, one[3])
        for one in function.by_opcode[op.INVOKE]
        for kind, register in argument_registers(function, one)
        if kind == "device" and function.constant(register) != "cpu"
    } - {"", SELF, "torch"}
    for one in function.by_opcode[op.ATTR]:
        if path_of(function, one[3]) in placed:
            yield function, one[2]
