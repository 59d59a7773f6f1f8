"""Lowers addresses, what they lead to, and casts: C++, and Cython."""

from __future__ import annotations

from streamlint.ir import opcodes as op
from streamlint.ir.exits import ExitLowering
from streamlint.ir.expressions import EXPRESSIONS
from streamlint.program import AddressOf, Attr, Cast, Deref, Expression, Index, Name, Position


class AddressLowering(ExitLowering):
    """Lowers what names places in memory."""

    def _address_of(self, node: AddressOf) -> int:
        return self.address(node.value, node.at)

    def address(self, node: Expression, at: Position) -> int:
        """The address of an lvalue; of anything else, the value."""
        if isinstance(node, Name):
            variable = self.variable(node.id)
            if variable in self.aliases:
                return self.builder.read(variable)
            if variable in self.locals:
                if variable not in self.cells:  # an array or function parameter that nobody shares
                    return self.builder.read(variable)
                return self.builder.define(op.ADDRESS, at, self.cell(variable, self.code.number))
            outer = self.free.get(node.id)
            if outer is not None:
                return self.builder.define(op.ADDRESS, at, self.cell(*outer))
            self.note_template(at, node.template)
            return self.builder.define(op.ADDRESS_NAME, at, self.k(node.id))
        if isinstance(node, Attr):
            return self.builder.define(op.ADDRESS_ATTR, at, self.value(node.value), self.k(node.name))
        if isinstance(node, Index):
            receiver = self.value(node.value)
            return self.builder.define(op.ADDRESS_ITEM, at, receiver, self.subscript(node))
        if isinstance(node, Deref):
            return self.value(node.value)
        return self.value(node)

    def _deref(self, node: Deref) -> int:
        return self.emit(op.DEREF, node.at, self.value(node.value))

    def _cast(self, node: Cast) -> int:
        return self.builder.define(op.CAST, node.at, self.type_constant(node.type), self.value(node.value))


EXPRESSIONS[AddressOf] = AddressLowering._address_of
EXPRESSIONS[Deref] = AddressLowering._deref
EXPRESSIONS[Cast] = AddressLowering._cast
