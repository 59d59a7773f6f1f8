"""The statement that matters, taken out into a function of its own, or into a method where it uses ``self``."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field

import libcst as cst
from rename import File
from rewrites.labels import Label, comment
from rewrites.trees import imported, label_of, loaded, parameters, parsed, stored, walk

NAME = "taken_out"
_STAYS = (cst.Yield, cst.Await, cst.Break, cst.Continue, cst.Global, cst.Nonlocal, cst.Del, cst.Import, cst.ImportFrom, cst.Pass, cst.Raise)


def rewrite(files: list[File], wanted: list[Label]) -> list[File] | None:
    for number, file in enumerate(files):
        if file.language == "python":
            text = extracted(file.text, {label for label in wanted if label[0] == number})
            if text is not None:
                return [File(f.name, f.language, text) if f is file else f for f in files]
    return None


def extracted(text: str, wanted: set[Label]) -> str | None:
    """The module with the first statement that has one of the labels in a function of its own."""
    module = parsed(text)
    find = _Find(wanted)
    module.visit(find)
    if find.found is None:
        return None
    return module.visit(_Extract(find.found, _module_names(module))).code


def _module_names(module: cst.Module) -> set[str]:
    """What a function of the module can name without being handed it: not what statements of the module itself assign."""
    definitions = {s.name.value for s in module.body if isinstance(s, cst.FunctionDef | cst.ClassDef)}
    return imported(module) | definitions | set(dir(builtins))


@dataclass
class _Spot:
    """A statement, the functions around it (outermost first), and whether a class holds the outermost."""

    statement: cst.SimpleStatementLine
    functions: list[cst.FunctionDef]
    owner: cst.ClassDef | None


class _Find(cst.CSTVisitor):
    def __init__(self, wanted: set[Label]) -> None:
        self.wanted = wanted
        self.found: _Spot | None = None
        self.around: list[cst.CSTNode] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.around.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self.around.pop()

    visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]
    leave_ClassDef = leave_FunctionDef  # type: ignore[assignment]

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        if self.found is None and self.wanted.intersection(label_of(node)) and _can_move(node):
            self._take(node)
        return False

    def _take(self, node: cst.SimpleStatementLine) -> None:
        functions = [n for n in self.around if isinstance(n, cst.FunctionDef)]
        classes = [n for n in self.around if isinstance(n, cst.ClassDef)]
        if len(classes) > 1 or (classes and self.around[0] is not classes[0]) or (classes and not functions):
            return
        self.found = _Spot(node, functions, classes[0] if classes else None)


def _can_move(line: cst.SimpleStatementLine) -> bool:
    if len(line.body) != 1 or any(isinstance(node, _STAYS) for node in walk(line)):
        return False
    return isinstance(line.body[0], cst.Assign | cst.AnnAssign | cst.AugAssign | cst.Expr | cst.Return)


@dataclass
class _Plan:
    """The definition that is added, and the statement that takes the place of the one that moved."""

    definition: cst.FunctionDef
    call: cst.SimpleStatementLine
    as_method: bool
    before: cst.CSTNode | None = field(default=None)


def _plan(spot: _Spot, known: set[str]) -> _Plan:
    line, small = spot.statement, spot.statement.body[0]
    own = {name for f in spot.functions for name in (*parameters(f), *stored(f.body))}
    inner = {f.name.value for outer in spot.functions for f in walk(outer.body) if isinstance(f, cst.FunctionDef)}
    made = stored(line)
    alone = {n for node in walk(line) if isinstance(node, cst.Lambda) for n in parameters(node)}
    alone |= {n for node in walk(line) if isinstance(node, cst.CompFor) for n in loaded(node.target)}
    read = _read(small)
    given = [name for name in read if name not in alone and (name in own or name in inner or (name not in known and not spot.functions))]
    as_method = spot.owner is not None and "self" in given and len(spot.functions) == 1
    given = [name for name in given if not (as_method and name == "self")]
    names = (["self"] if as_method else []) + given
    body: list[cst.BaseStatement] = [line.with_changes(leading_lines=[])]
    if made and not isinstance(small, cst.Return):
        body.append(cst.parse_statement(f"return {', '.join(made)}\n"))  # type: ignore[arg-type]
    definition = cst.FunctionDef(cst.Name(NAME), cst.Parameters([cst.Param(cst.Name(n)) for n in names]), cst.IndentedBlock(body))
    call = f"{'self.' if as_method else ''}{NAME}({', '.join(given)})"
    start = "return " if isinstance(small, cst.Return) else f"{', '.join(made)} = " if made else ""
    statement = cst.parse_statement(f"{start}{call}  {comment(dict.fromkeys(label_of(line)))}\n")
    assert isinstance(statement, cst.SimpleStatementLine)
    return _Plan(definition, statement.with_changes(leading_lines=line.leading_lines), as_method)


def _read(small: cst.BaseSmallStatement) -> list[str]:
    """The names that a statement needs: all that it mentions but those that it only assigns."""
    if isinstance(small, cst.Assign):
        targets = [t.target for t in small.targets if not isinstance(t.target, cst.Name)]
        pieces = [small.value, *(piece for t in targets for piece in _needed(t))]
    elif isinstance(small, cst.AnnAssign):
        pieces = [*([small.value] if small.value is not None else []), *_needed(small.target)]
    else:
        pieces = [small]
    return list(dict.fromkeys(name for piece in pieces for name in loaded(piece)))


def _needed(target: cst.BaseExpression) -> list[cst.CSTNode]:
    if isinstance(target, cst.Tuple | cst.List):
        return [piece for element in target.elements for piece in _needed(element.value)]
    return [] if isinstance(target, cst.Name) else [target]


class _Extract(cst.CSTTransformer):
    def __init__(self, spot: _Spot, known: set[str]) -> None:
        self.spot = spot
        self.plan = _plan(spot, known)
        outermost: cst.CSTNode = spot.functions[0] if spot.functions else spot.statement
        self.before = outermost if self.plan.as_method or spot.owner is None else spot.owner

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        return False

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        if original_node is not self.spot.statement:
            return updated_node
        if self.before is original_node:
            return cst.FlattenSentinel([self.plan.definition, self.plan.call])
        return self.plan.call

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        return cst.FlattenSentinel([self.plan.definition, updated_node]) if original_node is self.before else updated_node

    leave_ClassDef = leave_FunctionDef  # type: ignore[assignment]
