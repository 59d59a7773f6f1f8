"""The instructions of the intermediate representation: opcodes, their operands, and what ends a block.

An instruction is a flat tuple of integers ``(opcode, at, *operands)``; ``at`` numbers a place of the function's table of positions. The
signature of an opcode says what its operands are:

====== ==================================================================================================
letter operand
====== ==================================================================================================
``d``  the register that the instruction defines (SSA: one definition of each)
``r``  a register that it reads; ``R`` may be ``NONE``
``k``  an index into the module's constants (names, literals, call shapes, types); ``K`` may be ``NONE``
``i``  a plain integer
``b``  a block
``*``  the letter behind it repeats to the end
====== ==================================================================================================
"""

from __future__ import annotations

NONE = -1
"""An operand that is absent."""

_TABLE: tuple[tuple[str, str], ...] = (
    # Values and names.
    ("const", "dk"),
    ("param", "di"),
    ("undef", "dk"),  # a local variable that no path has bound
    ("phi", "d*r"),  # one operand for each predecessor, in their order
    ("name", "dk"),  # a global, a builtin, a C++ member or namespace variable: resolved by the program
    ("set_name", "kr"),
    ("del_name", "k"),
    ("load", "dk"),  # a cell: a local that closures share or whose address is taken
    ("store", "kr"),
    ("bind", "kr"),  # a local name refers to a register from here on: lifetimes, and names for printers
    ("unbind", "k"),
    ("unknown", "d*r"),  # a construct that no front end understands, with the parts that are understood
    # Access.
    ("attr", "drk"),
    ("set_attr", "rkr"),
    ("del_attr", "rk"),
    ("item", "drr"),
    ("set_item", "rrr"),
    ("del_item", "rr"),
    ("slice", "dRRR"),
    # Operators.
    ("unary", "dkr"),
    ("binary", "dkrr"),
    ("inplace", "dkrr"),  # augmented assignment: may change its left operand
    ("compare", "dkrr"),
    # Calls. A call shape is a tuple with one entry for each argument: None, a keyword, 1 (``*``) or 2 (``**``); NONE if all are None.
    ("call", "drK*r"),
    ("invoke", "drkK*r"),  # a method: receiver, name, shape
    ("launch", "drKi*r"),  # ``kernel<<<config>>>(args)``: kernel, shape, number of configuration operands
    # Displays. The kind of a ``build`` is "list", "tuple", "set", or (kind, positions of starred items).
    ("build", "dk*r"),
    ("dict", "d*R"),  # key, value, key, value …; a key of NONE spreads its value
    ("format", "dk*r"),
    ("append", "rr"),  # one more element of a comprehension
    ("put", "rrr"),
    ("function", "di*r"),  # a closure over code ``i`` of the module, with the values of its defaults
    ("class", "diK*r"),  # class ``i`` of the module, with its bases
    ("import", "dkK"),  # module, and a name of it
    # Loops and unpacking.
    ("iter", "dr"),
    ("more", "dr"),  # whether an iterator has one more element
    ("next", "dr"),
    ("unpack", "driii"),  # element ``index`` of ``count``, with the starred one at ``star`` or NONE
    # Scopes, generators, exceptions.
    ("enter", "dr"),
    ("exit", "drR"),  # the context manager and the exception that ends it; true where it swallows that
    ("yield", "dR"),
    ("yield_from", "dr"),
    ("await", "dr"),
    ("caught", "d"),  # the exception that a handler begins with
    ("catches", "drr"),
    ("match", "drk*r"),  # whether a subject fits a pattern: subject, pattern's shape, values and classes that it names
    ("capture", "drk"),  # what a pattern that fits binds: subject, access path
    # C++.
    ("declare", "dk"),  # a variable without initialiser, by its type
    ("construct", "dkK*r"),
    ("init", "rkK*r"),  # a member's initialiser
    ("new", "dkK*r"),
    ("new_array", "dkR"),
    ("delete", "ri"),
    ("address", "dk"),  # of a cell
    ("address_name", "dk"),
    ("address_attr", "drk"),
    ("address_item", "drr"),
    ("deref", "dr"),
    ("set_deref", "rr"),
    ("cast", "dkr"),
    ("copy", "dr"),  # the value of an lvalue that initialises another object
    ("destroy", "r"),  # an object ends with its scope
    ("out", "ir"),  # the value of a reference parameter where the function returns
    ("rebind", "drir"),  # a variable behind a call that may take it by reference: call, argument, value before
    # Terminators.
    ("jump", "b"),
    ("branch", "rbb"),
    ("return", "R"),
    ("raise", "R"),
    ("unreachable", ""),
)

NAMES: tuple[str, ...] = tuple(name for name, _ in _TABLE)
SIGNATURES: tuple[str, ...] = tuple(signature for _, signature in _TABLE)
OPCODES: dict[str, int] = {name: number for number, name in enumerate(NAMES)}

CONST = OPCODES["const"]
PARAM = OPCODES["param"]
UNDEF = OPCODES["undef"]
PHI = OPCODES["phi"]
NAME = OPCODES["name"]
SET_NAME = OPCODES["set_name"]
DEL_NAME = OPCODES["del_name"]
LOAD = OPCODES["load"]
STORE = OPCODES["store"]
BIND = OPCODES["bind"]
UNBIND = OPCODES["unbind"]
UNKNOWN = OPCODES["unknown"]
ATTR = OPCODES["attr"]
SET_ATTR = OPCODES["set_attr"]
DEL_ATTR = OPCODES["del_attr"]
ITEM = OPCODES["item"]
SET_ITEM = OPCODES["set_item"]
DEL_ITEM = OPCODES["del_item"]
SLICE = OPCODES["slice"]
UNARY = OPCODES["unary"]
BINARY = OPCODES["binary"]
INPLACE = OPCODES["inplace"]
COMPARE = OPCODES["compare"]
CALL = OPCODES["call"]
INVOKE = OPCODES["invoke"]
LAUNCH = OPCODES["launch"]
BUILD = OPCODES["build"]
DICT = OPCODES["dict"]
FORMAT = OPCODES["format"]
APPEND = OPCODES["append"]
PUT = OPCODES["put"]
FUNCTION = OPCODES["function"]
CLASS = OPCODES["class"]
IMPORT = OPCODES["import"]
ITER = OPCODES["iter"]
MORE = OPCODES["more"]
NEXT = OPCODES["next"]
UNPACK = OPCODES["unpack"]
ENTER = OPCODES["enter"]
EXIT = OPCODES["exit"]
YIELD = OPCODES["yield"]
YIELD_FROM = OPCODES["yield_from"]
AWAIT = OPCODES["await"]
CAUGHT = OPCODES["caught"]
CATCHES = OPCODES["catches"]
MATCH = OPCODES["match"]
CAPTURE = OPCODES["capture"]
DECLARE = OPCODES["declare"]
CONSTRUCT = OPCODES["construct"]
INIT = OPCODES["init"]
NEW = OPCODES["new"]
NEW_ARRAY = OPCODES["new_array"]
DELETE = OPCODES["delete"]
ADDRESS = OPCODES["address"]
ADDRESS_NAME = OPCODES["address_name"]
ADDRESS_ATTR = OPCODES["address_attr"]
ADDRESS_ITEM = OPCODES["address_item"]
DEREF = OPCODES["deref"]
SET_DEREF = OPCODES["set_deref"]
CAST = OPCODES["cast"]
COPY = OPCODES["copy"]
DESTROY = OPCODES["destroy"]
OUT = OPCODES["out"]
REBIND = OPCODES["rebind"]
JUMP = OPCODES["jump"]
BRANCH = OPCODES["branch"]
RETURN = OPCODES["return"]
RAISE = OPCODES["raise"]
UNREACHABLE = OPCODES["unreachable"]

TERMINATORS = frozenset({JUMP, BRANCH, RETURN, RAISE, UNREACHABLE})
RAISING = frozenset(
    {CALL, INVOKE, LAUNCH, CONSTRUCT, NEW, ENTER, AWAIT, YIELD, YIELD_FROM, IMPORT, ITEM, ATTR, UNPACK, BINARY, NEXT, MORE, ITER}
)
"""What may raise: inside of ``try`` their block ends behind them, with an edge to the handler."""

DEFINES: tuple[bool, ...] = tuple(signature.startswith("d") for signature in SIGNATURES)
"""By opcode: whether the operand behind the place is the register that it defines."""

FIXED: tuple[str, ...] = tuple(signature.split("*")[0] for signature in SIGNATURES)
"""By opcode: the letters of the operands that are always there."""
REPEATED: tuple[str, ...] = tuple(signature.partition("*")[2] for signature in SIGNATURES)
"""By opcode: the letter of the operands that follow, if any may."""


_READ: tuple[tuple[tuple[int, ...], int], ...] = tuple(
    (tuple(2 + place for place, letter in enumerate(fixed) if letter in "rR"), 2 + len(fixed) if more else 0)
    for fixed, more in zip(FIXED, REPEATED, strict=True)
)
"""By opcode: where the registers stand that are read, and where those begin that follow; 0 if none may."""


def reads(instruction: tuple[int, ...]) -> list[int]:
    """The registers that an instruction reads."""
    places, more = _READ[instruction[0]]
    found = [operand for place in places if (operand := instruction[place]) >= 0]
    if more:
        found += [operand for operand in instruction[more:] if operand >= 0]
    return found
