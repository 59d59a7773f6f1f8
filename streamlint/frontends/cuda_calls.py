"""Calls, launches and casts that are written as calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamlint.frontends.cuda_checks import KNOWN_CHECK
from streamlint.frontends.cuda_function_pointers import called_member
from streamlint.frontends.cuda_types import TypeReader
from streamlint.program import Arg, AssignExpr, Call, Cast, Const, Construct, Expression, Lambda, Launch, Name, Position, Type, Unknown

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"})
_ARITHMETIC = re.compile(r"(?:un)?signed|std::(?:size_t|ptrdiff_t|u?int(?:ptr|\d+)_t)")
"""The language's own types that the parser knows by no node of their own where they are called: ``unsigned(x)``."""
_TEMPLATE_TYPES = re.compile(
    r"(?:.*::)?(?:vector|unique_ptr|shared_ptr|array|tuple|pair|function|lock_guard|unique_lock|scoped_lock|deque|list|map|unordered_map|set"
    r"|unordered_set|optional|span|future|promise|packaged_task|atomic|device_vector|host_vector|device_ptr|device_buffer|device_uvector"
    r"|device_scalar|complex|basic_string|queue|stack|priority_queue|weak_ptr|initializer_list|universal_vector|numeric_limits)"
)
_INVOKE = "std::invoke"
"""What a call of a pointer to a member is short for: ``(object.*pointer)(x)`` calls the pointer with the object and ``x``."""
_CHECK_NAME = re.compile(r"_*[A-Z][A-Z0-9_]{2,}")
_API_NAME = re.compile(r"(?:.*::)?(?:cuda|cu|nccl|hip)[A-Z]\w*|(?:cublas|cudnn|cufft|cusparse|curand|cusolver)\w+")


class CallReader(TypeReader):
    """Lowers calls; the other expressions are read by the subclass."""

    def expression(self, node: Syntax | None) -> Expression:
        """Lower an expression."""
        raise NotImplementedError

    def unknown(self, node: Syntax) -> Expression:
        """Keep the calls and launches inside of something that is not understood."""
        raise NotImplementedError

    def arguments(self, node: Syntax | None) -> tuple[Arg, ...]:
        """The arguments of a call, or the items of a brace list; designated initialisers become keywords."""
        return tuple(self.argument(child) for child in node.named_children if child.type != "comment") if node else ()

    def argument(self, node: Syntax) -> Arg:
        if node.type == "parameter_pack_expansion":
            return Arg(self.expression(self.field(node, "pattern")), None, 1)
        if node.type == "initializer_pair":
            designator = self.field(node, "designator")
            return Arg(self.expression(self.field(node, "value")), self.text(designator).lstrip(".") if designator else None)
        return Arg(self.expression(node))

    def call(self, node: Syntax) -> Expression:
        function = self.field(node, "function")
        arguments = self.field(node, "arguments")
        if function is None:
            return self.unknown(node)
        if (config := self.launch_of(node)) is not None:
            return self.launch(node, function, config)
        if (member := called_member(function)) is not None:
            given = (Arg(self.expression(member[1])), Arg(self.expression(member[0])), *self.arguments(arguments))
            return Call(Name(_INVOKE, at=self.at(function)), given, self.name_at(function), at=self.at(node))
        name = self.name(function) if function.type in ("identifier", "qualified_identifier", "template_function") else ""
        template = self.template_arguments(function) or self.member_template(function)
        if name in _CASTS:
            return self.named_cast(node, function)
        if template and _TEMPLATE_TYPES.fullmatch(name):
            return Construct(self.called_type(name, function), self.arguments(arguments), at=self.at(node))
        args = self.arguments(arguments)
        if name and self.is_check(name, args):
            return args[0].value
        callee = self.expression(function)
        if isinstance(callee, Name) and (function.type == "primitive_type" or _ARITHMETIC.fullmatch(callee.id)) and len(args) == 1:
            return Cast(Type(callee.id), args[0].value, at=self.at(node))
        return Call(callee, args, self.name_at(function), template, at=self.at(node))

    def called(self, node: Syntax, function: Expression) -> Call:
        """The call of a member, or of what a call or a subscript gives, which is lowered already."""
        callee = self.field(node, "function")
        assert callee is not None
        arguments = self.arguments(self.field(node, "arguments"))
        at = function.name_at if isinstance(function, Call) else self.name_at(callee)  # the name of `f()()` is f
        return Call(function, arguments, at, self.member_template(callee), at=self.at(node))

    def launch_of(self, node: Syntax) -> Syntax | None:
        """What stands between ``<<<`` and ``>>>`` of a launch."""
        return next((child for child in node.named_children if child.type == "kernel_call_syntax"), None)

    def name_at(self, function: Syntax) -> Position:
        """The place of the callee's last name."""
        node = self.last_part(function)
        return self.places.name_span(node.start_byte, node.end_byte)

    def member_template(self, function: Syntax) -> tuple[Type | Const, ...]:
        field = self.field(function, "field") if function.type == "field_expression" else None
        return self.template_arguments(field) if field else ()

    def named_cast(self, node: Syntax, function: Syntax) -> Expression:
        arguments = self.field(function, "arguments")
        wanted = arguments.named_children[0] if arguments and arguments.named_children else None
        values = self.arguments(self.field(node, "arguments"))
        return Cast(self.type(wanted), values[0].value if values else Unknown(), at=self.at(node))

    def called_type(self, name: str, function: Syntax) -> Type:
        while function.type == "qualified_identifier" and (inner := self.field(function, "name")) is not None:
            function = inner
        arguments = self.field(function, "arguments")
        args = (
            tuple(self.type(child) if child.type == "type_descriptor" else Type(self.text(child)) for child in arguments.named_children)
            if arguments
            else ()
        )
        return Type(name, args)

    def launch(self, node: Syntax, function: Syntax, config: Syntax) -> Expression:
        values = tuple(self.expression(child) for child in config.named_children if child.type != "comment")
        args = self.arguments(self.field(node, "arguments"))
        return Launch(self.expression(function), values, args, self.name_at(function), at=self.at(node))

    def is_check(self, name: str, args: tuple[Arg, ...]) -> bool:
        """Whether a call of an unknown macro or of a well-known helper only checks its one argument."""
        if not args or not (_CHECK_NAME.fullmatch(name) or KNOWN_CHECK.fullmatch(name)) or self.defines(name):
            return False
        value = args[0].value
        if len(args) == 1:
            return isinstance(value, Call | Launch | AssignExpr) and not (isinstance(value, Call) and isinstance(value.function, Lambda))
        callee = value.function if isinstance(value, Call) else None
        api = isinstance(callee, Name) and bool(_API_NAME.fullmatch(callee.id))
        return api and all(isinstance(arg.value, Const) for arg in args[1:])

    def defines(self, name: str) -> bool:
        """Whether the file defines a function ``name``."""
        raise NotImplementedError
