"""What functions and methods of libraries make of a value that they are given, by their names: words of APIs, none that a user chose."""

from __future__ import annotations

import re

from streamlint.facts.functions import Function
from streamlint.facts.instructions import uncast
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

TEXT = frozenset({"str", "repr", "format", "print"})
ASKS_KIND = frozenset({"len", "isinstance", "issubclass", "type", "hasattr", "callable", "id"})
"""Builtins whose answer does not hang on the number."""
DECIDES = frozenset({"isnan", "isfinite", "isinf", "range", "bool", "any", "all"})
EXTREMES = frozenset({"max", "min"})
SAME = frozenset({"float", "int", "round", "abs"})
COPIES = frozenset({"list", "tuple", "sorted", "reversed", "deque", "set", "frozenset", "iter"})
DICTS = frozenset({"dict", "OrderedDict", "defaultdict"})
KEEPS = frozenset({"append", "add", "appendleft", "insert", "push_back", "emplace_back", "put", "put_nowait"})
EXTENDS = frozenset({"extend", "extendleft", "update"})
TAKES = frozenset({"get", "pop", "setdefault", "popleft", "popitem", "get_nowait"})
SILENT = frozenset({"clear", "sort", "reverse", "remove", "discard", "join", "keys"})
"""Methods of containers whose result has none of their values."""
FACTORIES = frozenset({"full", "tensor", "as_tensor", "new_full", "new_tensor", "full_like"})
OF_GROUPS = frozenset({"lr", "momentum", "weight_decay", "eps", "betas", "initial_lr", "max_lr"})
"""The entries of an optimizer's ``param_groups`` that its step computes with."""
OF_KIND = frozenset("shape dtype device ndim size numel dim is_cuda requires_grad layout itemsize nbytes element_size nelement".split())
"""Members of a tensor or an array that do not hang on its values."""
SHAPES = frozenset("expand view reshape flatten squeeze unsqueeze repeat detach cpu to long int float item clone".split())
"""Methods that change a tensor's shape or place, and compute nothing."""
COMPUTES = frozenset("sum mean max min amax amin any all norm prod argmax argmin count_nonzero std var abs ne eq gt lt ge le bool".split())
"""Methods that make a tensor of a tensor and nothing else: each call gives the same."""
SAYS = frozenset({"print", "warn", "warning", "info", "debug", "error"})
LOGS = frozenset("append extend add appendleft update setdefault print info debug warning warn log add_scalar".split())
"""What keeps or shows a number, where a module's forward may give it."""
ROUNDS_OFF = frozenset({"int", "round", "ceil", "floor"})
_STEERING = frozenset("adapt adjust control schedule stop lr scale temperature threshold priority priorities".split())
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
FRACTIONS = frozenset(
    "float double half bfloat16 mean norm std var sqrt rsqrt exp log log2 log10 softmax log_softmax sigmoid tanh cross_entropy mse_loss "
    "l1_loss nll_loss kl_div smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits cosine_similarity logsumexp div".split()
)
"""Functions and methods that give fractions: no sizes."""
KEEP_KIND = frozenset(
    "sum max min amax amin clamp clamp_ detach abs squeeze unsqueeze view reshape flatten cpu clone item contiguous cumsum new_tensor "
    "new_full mul add sub neg data square pow".split()
)
_FLOATS = frozenset({"float", "float32", "float16", "float64", "half", "double", "bfloat16"})


def called_name(function: Function, one: Instruction) -> str:
    """The last part of the name of what is called."""
    return function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3]).rpartition(".")[2].rpartition("::")[2]


def steers(name: str) -> bool:
    """Whether a method of an object of which nothing is known is named like what goes on by what it is given: ``scheduler.step(loss)``."""
    words = [word.lower() for word in _WORD.findall(name)]
    return words[-1:] == ["step"] or not _STEERING.isdisjoint(words)


def is_float_type(function: Function, register: int) -> bool:
    """``torch.float``."""
    return function.dotted(register).rpartition(".")[2] in _FLOATS


def may_be_absent(function: Function, register: int) -> bool:
    """Whether a register holds what is taken by a key that need not be there: ``batch.pop("name", None)``. A test of it asks for that."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] != op.INVOKE or function.text(one[4]) not in ("get", "pop"):
        return False
    given = one[6:]
    if len(given) == 1:
        return function.text(one[4]) == "get" and isinstance(function.constant(given[0]), str)
    default = function.definitions[given[1]] if len(given) == 2 else None
    return default is not None and default[0] == op.CONST and function.unit.ir.constants[default[3]] is None


def is_text_compared(function: Function, register: int) -> bool:
    """``name != "total"``: what is compared with a text is none of the numbers of a tensor."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.COMPARE and any(isinstance(function.constant(part), str) for part in one[4:6])


def is_group_entry(function: Function, register: int) -> bool:
    """Whether a register holds an option of an optimizer's groups: ``group["lr"]`` in a loop over its ``param_groups``."""
    register = uncast(function, register)
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] not in (op.ITEM, op.INVOKE):
        return False
    key = one[4] if one[0] == op.ITEM else one[6] if len(one) > 6 and function.text(one[4]) == "get" else -1
    return key >= 0 and function.constant(key) in OF_GROUPS and _is_of_groups(function, one[3])


def _is_of_groups(function: Function, register: int) -> bool:
    waiting, seen = [register], set[int]()
    while waiting:
        each = waiting.pop()
        one = function.definitions[each] if each >= 0 and each not in seen else None
        seen.add(each)
        if one is None:
            continue
        if one[0] == op.ATTR and function.text(one[4]) == "param_groups":
            return True
        if one[0] == op.CALL and function.dotted(one[3]) == "getattr" and len(one) > 6 and function.constant(one[6]) == "param_groups":
            return True
        if one[0] in (op.ITEM, op.NEXT, op.ITER, op.UNPACK, op.COPY):
            waiting.append(one[3])
        elif one[0] in (op.PHI, op.CALL):
            waiting += one[3 if one[0] == op.PHI else 5 :]
    return False
