"""The small language that every front end lowers to: expressions, statements, functions, classes, modules.

It is a plain syntax tree that keeps only what `ir` needs, the same for Python and C++. Nothing in it knows CUDA: what a call
does is said by the rows of ``streamlint/models``, and what happens on the machine by ``cuda_model``.

Positions are ``(row, column, end_row, end_column)``: rows and columns count from 1, columns in code points, ends exclusive.
Nodes compare by identity, so they can be keys.
"""

from __future__ import annotations

from streamlint.program.definitions import Class as Class
from streamlint.program.definitions import Defined as Defined
from streamlint.program.definitions import Field as Field
from streamlint.program.definitions import Function as Function
from streamlint.program.definitions import Module as Module
from streamlint.program.definitions import Param as Param
from streamlint.program.expressions import AddressOf as AddressOf
from streamlint.program.expressions import Arg as Arg
from streamlint.program.expressions import AssignExpr as AssignExpr
from streamlint.program.expressions import Attr as Attr
from streamlint.program.expressions import Await as Await
from streamlint.program.expressions import Binary as Binary
from streamlint.program.expressions import Bool as Bool
from streamlint.program.expressions import Call as Call
from streamlint.program.expressions import Cast as Cast
from streamlint.program.expressions import Clause as Clause
from streamlint.program.expressions import Collection as Collection
from streamlint.program.expressions import Compare as Compare
from streamlint.program.expressions import Comprehension as Comprehension
from streamlint.program.expressions import Conditional as Conditional
from streamlint.program.expressions import Const as Const
from streamlint.program.expressions import Construct as Construct
from streamlint.program.expressions import DeleteExpr as DeleteExpr
from streamlint.program.expressions import Deref as Deref
from streamlint.program.expressions import Expression as Expression
from streamlint.program.expressions import Format as Format
from streamlint.program.expressions import Index as Index
from streamlint.program.expressions import Lambda as Lambda
from streamlint.program.expressions import Launch as Launch
from streamlint.program.expressions import Mapping as Mapping
from streamlint.program.expressions import Name as Name
from streamlint.program.expressions import New as New
from streamlint.program.expressions import Node as Node
from streamlint.program.expressions import Slice as Slice
from streamlint.program.expressions import Starred as Starred
from streamlint.program.expressions import Type as Type
from streamlint.program.expressions import Unary as Unary
from streamlint.program.expressions import Unknown as Unknown
from streamlint.program.expressions import Yield as Yield
from streamlint.program.patterns import Case as Case
from streamlint.program.patterns import Pattern as Pattern
from streamlint.program.positions import NOWHERE as NOWHERE
from streamlint.program.positions import Position as Position
from streamlint.program.statements import Assert as Assert
from streamlint.program.statements import Assign as Assign
from streamlint.program.statements import Block as Block
from streamlint.program.statements import Body as Body
from streamlint.program.statements import Break as Break
from streamlint.program.statements import ClassDef as ClassDef
from streamlint.program.statements import Continue as Continue
from streamlint.program.statements import Declare as Declare
from streamlint.program.statements import Delete as Delete
from streamlint.program.statements import ExprStatement as ExprStatement
from streamlint.program.statements import FunctionDef as FunctionDef
from streamlint.program.statements import Handler as Handler
from streamlint.program.statements import If as If
from streamlint.program.statements import Import as Import
from streamlint.program.statements import Loop as Loop
from streamlint.program.statements import Raise as Raise
from streamlint.program.statements import Return as Return
from streamlint.program.statements import Scope as Scope
from streamlint.program.statements import Statement as Statement
from streamlint.program.statements import Switch as Switch
from streamlint.program.statements import Try as Try
from streamlint.program.statements import With as With
from streamlint.program.walking import argument as argument
from streamlint.program.walking import called_at as called_at
from streamlint.program.walking import children as children
from streamlint.program.walking import functions_of as functions_of
from streamlint.program.walking import walk as walk

for _each in list(vars().values()):
    if isinstance(_each, type) and _each.__module__.startswith(f"{__name__}."):
        _each.__module__ = __name__  # one room for who pickles nodes, whatever file of it they stand in
del _each
