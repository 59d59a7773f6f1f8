"""Prints the intermediate representation in the form that `streamlint debug ir` shows and tests compare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamlint.ir import opcodes as op
from streamlint.ir.code import Code, Instruction, ModuleIR, Parameter, spelled


def print_module(module: ModuleIR, wanted: str = "") -> str:
    """All functions of a module, or those whose name or qualified name is ``wanted``."""
    codes = [code for code in module.codes() if not wanted or wanted in (code.name, code.qualname)]
    return "\n\n".join(print_code(module, code) for code in codes)


def print_code(module: ModuleIR, code: Code, rows: bool = True) -> str:
    """One function: a head, and its blocks with one instruction a line."""
    lines = [_head(module, code)]
    before = code.predecessors()
    for number, block in enumerate(code.blocks):
        handler = code.handlers.get(number)
        come_from = f"  from {', '.join(f'b{one}' for one in before[number])}" if before[number] else ""
        lines.append(f"b{number}:{come_from}{f'  unwinds to b{handler}' if handler is not None else ''}")
        lines += [_line(module, code, one, rows) for one in block]
    return "\n".join(lines)


def _head(module: ModuleIR, code: Code) -> str:
    params = ", ".join(map(_parameter, code.parameters))
    flags = "".join(f" {flag}" for flag in sorted(code.flags))
    returns = code.returns if isinstance(code.returns, str) else spelled(code.returns) if code.returns else ""
    returns = f" -> {returns}" if returns else ""
    declared = "".join(f"\n  {name}: {kind}" for (owner, name), kind in module.annotations.items() if owner == code.number)
    return f"{code.kind} {code.qualname}({params}){returns}{flags}{declared}"


def _parameter(one: Parameter) -> str:
    stars = {"star": "*", "double": "**", "keyword": "=", "captured": "&"}
    kind = one.annotation or (spelled(one.type) if one.type else "")
    return f"{stars.get(one.kind, '')}{one.name}{f': {kind}' if kind else ''}"


def _line(module: ModuleIR, code: Code, instruction: Instruction, rows: bool) -> str:
    template = code.templates.get(instruction[1]) if instruction[0] in _NAMING else None
    text = "  " + " ".join(_operands(module, instruction)) + (f" <{','.join(map(spelled, template))}>" if template else "")
    row = code.at(instruction[1])[0] if rows else 0
    return f"{text:<46} ; {row}" if row else text


def _operands(module: ModuleIR, instruction: Instruction) -> Iterator[str]:
    opcode = instruction[0]
    signature = op.SIGNATURES[opcode]
    operands = list(instruction[2:])
    if op.DEFINES[opcode]:
        yield f"r{operands.pop(0)} ="
        signature = signature[1:]
    yield op.NAMES[opcode]
    star = signature.find("*")
    for index, operand in enumerate(operands):
        letter = signature[-1] if 0 <= star <= index else signature[index]
        if operand == op.NONE and letter in "RKi":
            yield "-"
        elif letter in "rR":
            yield f"r{operand}"
        elif opcode == op.FUNCTION and not index:
            yield module.outline[operand][1]
        elif opcode == op.CLASS and not index:
            yield module.classes[operand].qualname
        elif letter in "kK":
            yield _constant(module.constants[operand], opcode)
        else:
            yield f"b{operand}" if letter == "b" else str(operand)


_NAMING = frozenset({op.CALL, op.INVOKE, op.NAME, op.ADDRESS_NAME})
_TYPED = frozenset({op.DECLARE, op.CONSTRUCT, op.NEW, op.NEW_ARRAY, op.CAST})


def _constant(value: Any, opcode: int) -> str:
    if isinstance(value, str) and opcode != op.CONST:
        return value
    if opcode in _TYPED and isinstance(value, tuple) and len(value) == 5 and isinstance(value[1], tuple):
        return spelled(value)
    return _spelled(value)


def _spelled(value: Any) -> str:
    """A constant without blanks between the parts of a tuple."""
    if not isinstance(value, tuple):
        return repr(value)
    return f"({','.join(map(_spelled, value))}{',' * (len(value) == 1)})"
