"""Programs that never leave the host: they make their own models, and no file of theirs names a device, or what would choose one."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.at_hand import class_at_hand, is_module
from streamlint.interpreter.index import File
from streamlint.interpreter.notes import remembered

# Of these at least one stands wherever a model, a batch or a default is put on a device, or a framework that does so is asked to.
_PUTS = ("cuda", "device", ".to(", "gpu", "GPU", "ccelerat", "ightning", "deepspeed", "fabric", "Parallel", "Trainer", "xpu", "mps")


@remembered(64)
def is_host_only(file: File) -> bool:
    """Whether the program around a file makes modules of its own and has no code for devices: what it trains is on the host."""
    if file.program.saying(file, *_PUTS):
        return False
    return any(_makes_module(other) for other in file.program.saying(file, "torch"))


def _makes_module(file: File) -> bool:
    """Whether code of a file, outside of modules themselves, makes an object of a class of modules that is at hand."""
    for function, owner in p.functions_of(file.module):
        if owner is None or not is_module(owner, file):
            for node in p.walk(function):
                held = class_at_hand(node.function, file) if isinstance(node, p.Call) else None
                if held is not None and is_module(*held):
                    return True
    return False
