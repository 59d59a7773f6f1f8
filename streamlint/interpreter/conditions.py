"""Conditions: what is known is computed, what is not is an atom that gets one answer a path, and refines the values it speaks of."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter import narrowing
from streamlint.interpreter.addresses import is_address
from streamlint.interpreter.queries import asked, told, told_by, told_equal
from streamlint.interpreter.run import Run
from streamlint.interpreter.unknowns import truth
from streamlint.interpreter.values import Buffer, Const, Device, LibraryName, Opaque, Value
from streamlint.operations import Evidence, Memory
from streamlint.record import field, record, replace

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NEGATED = {"!=": "==", ">=": "<", ">": "<=", "is not": "is", "not in": "in"}


@record(slots=True)
class Atom:
    """A condition that is not known. ``learn`` are told how it came out; ``parts`` are those of a conjunction or a disjunction."""

    key: str
    negated: bool
    default: bool
    span: Span
    learn: list[Callable[[bool], None]] = field(default_factory=list)
    parts: tuple[Atom, ...] = ()
    joined: str = ""  # "and", "or"
    orders: bool = False  # the answer says whether the device is done


def holds(run: Run, node: p.Expression, default: bool = True, firm: bool = False) -> bool:
    """Whether a condition holds on this path. ``firm``: the default wins over what is likely (a path that raises shows nothing)."""
    found = probe(run, node, default, firm)
    return found if isinstance(found, bool) else _settle(run, found)


def suppose(run: Run, node: p.Expression) -> None:
    """An assertion is taken to hold, and teaches what a condition does that came out so. Evaluating it may wait and read."""
    found = probe(run, node, firm=True)
    if isinstance(found, Atom) and run.atoms.setdefault(found.key, not found.negated) != found.negated:
        _tell(run, found, True)


def _settle(run: Run, atom: Atom) -> bool:
    """Decide an atom and let all who depend on it know."""
    key = f"not {atom.key}" if atom.negated else atom.key
    answer = run.decide(key, atom.default, atom.span)
    if atom.orders and atom.key in run.decisions:
        run.decisions[atom.key] = replace(run.decisions[atom.key], orders=True)
    _tell(run, atom, answer)
    return answer


def _tell(run: Run, atom: Atom, answer: bool) -> None:
    for listener in atom.learn:
        listener(answer)
    # All parts of a conjunction that holds hold; of a disjunction that does not, none does.
    if atom.parts and answer == ((atom.joined == "and") != atom.negated):
        for part in atom.parts:
            inner = answer != atom.negated
            run.atoms.setdefault(part.key, inner != part.negated)
            _tell(run, part, inner)


def probe(run: Run, node: p.Expression, default: bool = True, firm: bool = False) -> bool | Atom:
    """A condition's truth where it is known, else the atom that it stands for. Evaluates it once."""
    run.step()
    if isinstance(node, p.Bool):
        return _probe_joined(run, node, default, firm)
    if isinstance(node, p.Unary) and node.op == "not":
        found = probe(run, node.operand, not default, firm)
        if isinstance(found, bool):
            return not found
        return _opposite(found)
    if isinstance(node, p.Compare):
        return _probe_comparison(run, node, default, firm)
    if isinstance(node, p.Attr):
        return _probe_attribute(run, node, default)
    return _probe_value(run, node, run.evaluate(node), default)


def _opposite(atom: Atom) -> Atom:
    def turned(listener: Callable[[bool], None]) -> Callable[[bool], None]:
        return lambda answer: listener(not answer)

    listeners = [turned(listener) for listener in atom.learn]
    return Atom(atom.key, not atom.negated, not atom.default, atom.span, listeners, atom.parts, atom.joined, atom.orders)


def _probe_joined(run: Run, node: p.Bool, default: bool, firm: bool) -> bool | Atom:
    """One decision for the whole of `a and b`, as far as its parts are not known."""
    wanted = node.op == "and"
    parts: list[Atom] = []
    for part in node.values:
        found = probe(run, part, default, firm)
        if isinstance(found, Atom):
            run.questions.add(found.key)
        if isinstance(found, Atom) and found.key in run.atoms:
            found = _settle(run, found)
        if isinstance(found, bool):
            if found != wanted:
                return found
        else:
            parts.append(found)
    if not parts:
        return wanted
    if len(parts) == 1:
        return parts[0]
    key = f" {node.op} ".join(f"not {a.key}" if a.negated else a.key for a in parts)
    return Atom(f"({key})", False, default, run.node_span(node), parts=tuple(parts), joined=node.op)


def _probe_value(run: Run, node: p.Expression, value: Value, default: bool) -> bool | Atom:
    known = truth(value)
    if known is not None and not (run.file.is_cuda and isinstance(value, LibraryName)):
        return known  # (a C++ name of which nothing is known: a template's parameter, a macro, a constant of a library)
    if isinstance(value, Buffer):
        if run.file.is_cuda:
            return True  # a pointer that was allocated
        from streamlint.interpreter.effects.host import read_values

        uploaded = value.storage.on_device and value.storage.uploaded
        batch = value.leaves is not None or uploaded  # of a batch it is asked whether there is one
        if not batch and not is_address(value) and not _is_declared_plain(run, node):
            read_values(run, (value,), run.node_span(node), "bool()")
    key = _canonical(value.term)
    negated = key.startswith("not ")
    learn: list[Callable[[bool], None]] = []
    if any(told_by(value)):
        learn.append(lambda answer: told(run, value, answer))
    orders = bool(learn)
    if isinstance(value, Opaque) and value.reach and value.name.startswith("placed:"):
        learn.append(lambda answer: _on_device(run, value.reach[0], answer))
    return Atom(key[4:] if negated else key, negated, default, run.node_span(node), learn, orders=orders)


def _is_declared_plain(run: Run, node: p.Expression) -> bool:
    """Whether a name is a parameter whose declared type is a container or a number: its truth is no element's."""
    function = run.frames[-1].function
    if not isinstance(node, p.Name) or function is None:
        return False
    declared = next((param.annotation for param in function.params if param.name == node.id), None)
    return declared is not None and _is_plain(declared)


def _is_plain(declared: p.Expression) -> bool:
    if isinstance(declared, p.Binary):
        return declared.op == "|" and _is_plain(declared.left) and _is_plain(declared.right)
    if isinstance(declared, p.Const):
        return declared.value is None
    held = declared.value if isinstance(declared, p.Index) else declared
    name = held.name if isinstance(held, p.Attr) else held.id if isinstance(held, p.Name) else ""
    if name in ("Optional", "Union") and isinstance(declared, p.Index):
        return all(_is_plain(part) for index in declared.indices for part in _parts(index))
    return name in _PLAIN


def _parts(index: p.Expression) -> tuple[p.Expression, ...]:
    return tuple(index.items) if isinstance(index, p.Collection) else (index,)


_PLAIN = frozenset(
    "dict Dict list List tuple Tuple set frozenset Mapping MutableMapping Sequence Iterable str bytes int float bool".split()
)


def _canonical(term: str) -> str:
    while term.startswith("not not "):
        term = term[8:]
    return term


def _probe_attribute(run: Run, node: p.Attr, default: bool) -> bool | Atom:
    from streamlint.interpreter.attributes import PLACES, get_attribute, settle_method

    holder = run.evaluate(node.value)
    value = settle_method(run, get_attribute(run, holder, node.name, node))
    found = _probe_value(run, node, value, default)
    if isinstance(found, Atom) and node.name in PLACES:
        found.learn.append(lambda answer: _placed(run, holder, node.name, answer))
    return found


def _placed(run: Run, holder: Value, name: str, answer: bool) -> None:
    """What is not on the CPU need not be on a CUDA device."""
    if answer or name == "is_cuda":
        _on_device(run, holder, answer == (name == "is_cuda"))


def _on_device(run: Run, value: Value, answer: bool) -> None:
    from streamlint.interpreter.effects import buffer_of

    buffer = buffer_of(run, value)
    if buffer is None or buffer.storage.on_device:
        return
    if answer:
        buffer.storage.memory, buffer.storage.evidence = Memory.DEVICE, Evidence.LITERAL
    else:
        buffer.storage.host = buffer.storage.by_choice = True


def _probe_comparison(run: Run, node: p.Compare, default: bool, firm: bool) -> bool | Atom:
    left, right = run.evaluate(node.left), run.evaluate(node.right)
    known = compare(node.op, left, right)
    op, negated = (_NEGATED[node.op], True) if node.op in _NEGATED else (node.op, False)
    key = f"{left.term} {op} {right.term}"
    if known is None and key not in run.atoms:
        known = narrowing.known(run, node.op, left, right)
    if known is not None:
        return known
    tensors = [v for v in (left, right) if isinstance(v, Buffer) and not any(map(is_address, (left, right)))]
    if tensors and node.op not in ("is", "is not") and not run.file.is_cuda:
        from streamlint.interpreter.effects.host import read_values

        read_values(run, tensors, run.node_span(node), "comparison")
    if isinstance(right, Const) and right.value is None and not firm:
        default = negated  # an unknown is not None unless shown

    def learned(answer: bool) -> None:
        narrowing.learn(run, node.op, left, right, answer)
        _refine(run, node, left, right, answer, key)

    orders = asked(left) is not None or asked(right) is not None
    return Atom(key, negated, default, run.node_span(node), [learned], orders=orders)


def _refine(run: Run, node: p.Compare, left: Value, right: Value, holds: bool, atom: str) -> None:
    """What a comparison that came out so says of its sides: a device is CUDA, a query succeeded."""
    equal = holds == (node.op in ("==", "is"))
    for side, other in ((left, right), (right, left)):
        told_equal(run, side, other, equal)
        if not isinstance(other, Const):
            continue
        if isinstance(side, Opaque) and side.reach and isinstance(side.reach[0], Device):
            _refine_device(run, side.reach[0], str(other.value), equal, atom)


def _refine_device(run: Run, device: Device, text: str, equal: bool, atom: str) -> None:
    if device.of is not None and (text.startswith("cuda") or (equal and text == "cpu")):
        _on_device(run, device.of, equal == text.startswith("cuda"))
    if equal and text.startswith("cuda"):
        device.space, device.evidence, device.told = "device", Evidence.LITERAL, atom
    elif equal and text == "cpu":
        device.space, device.told = "host", atom


def compare(op: str, left: Value, right: Value) -> bool | None:
    """The result of a comparison where it is known."""
    if op in ("is", "is not"):
        same = _same(left, right)
        return None if same is None else same == (op == "is")
    if isinstance(left, Const) and isinstance(right, Const):
        return _compare_constants(op, left.value, right.value)
    if op in ("==", "!="):
        if left is right and not isinstance(left, Buffer):
            return op == "=="
        same = _same(left, right) if not isinstance(left, Buffer) and not isinstance(right, Buffer) else None
        if isinstance(left, Opaque) and left.term == right.term:
            same = True
        return None if same is None else same == (op == "==")
    if op in ("in", "not in"):
        return _contains(op, left, right)
    return None


def _contains(op: str, left: Value, right: Value) -> bool | None:
    from streamlint.interpreter.values import Series, Table

    if isinstance(right, Table) and left.term in right.items:
        return op == "in"
    if isinstance(right, Table) and right.complete and isinstance(left, Const | Opaque):
        if not right.items or (all(k.startswith(("'", '"')) or k.isdigit() for k in right.items) and isinstance(left, Const)):
            return op == "not in"
        return None
    if isinstance(right, Series) and isinstance(left, Const) and right.items is not None and all(isinstance(i, Const) for i in right.items):
        return any(left.value == i.value for i in right.items if isinstance(i, Const)) == (op == "in")
    return None


def _compare_constants(op: str, left: Any, right: Any) -> bool | None:
    try:
        if op in _ORDERED:
            return bool(_ORDERED[op](left, right))
        if op == "in":
            return bool(left in right)
        if op == "not in":
            return bool(left not in right)
    except Exception:
        return None
    return None


def _same(left: Value, right: Value) -> bool | None:
    for one, two in ((left, right), (right, left)):
        if isinstance(two, Const) and two.value is None:
            if isinstance(one, Const):
                return one.value is None
            return None if isinstance(one, Opaque) and not one.there else False
    if isinstance(left, Const) and isinstance(right, Const):
        return bool(left.value == right.value)
    if left is right:
        return True
    return None
