"""What Python that builds (setup.py, calls of ``load``) says of default streams. It is parsed, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_BUILDERS = frozenset(("CUDAExtension", "CppExtension", "Extension", "load", "load_inline", "Pybind11Extension", "CUDA_ext", "library"))
_FLAG = re.compile(
    r"(?:^|\s)(?:-?-default-stream(?:=|\s+)per-thread|(?:-D ?)?CUDA_API_PER_THREAD_DEFAULT_STREAM(?:=(?!0)\S*)?)(?=\s|$)",
)
_GUARDS = ("CUDA_HOME", "cuda.is_available", "use_cuda", "USE_CUDA", "with_cuda", "WITH_CUDA", "__name__")


def said_of(text: str, source: str) -> bool | None:
    """Whether Python gives a source per-thread default streams: None if that hangs on a condition, False if not.

    Raises SyntaxError for what is no Python.
    """
    if "per-thread" not in text and "PER_THREAD" not in text:
        return False
    tree = ast.parse(text)
    reader = _Reader(tree)
    answer: bool | None = False
    for flag in reader.flags:
        if not reader.reaches(flag, source):
            continue
        if not reader.is_conditional(flag):
            return True
        answer = None
    return answer


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self.parents: dict[ast.AST, ast.AST] = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last_name(node.func) in _BUILDERS]
        self.named: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            for name, value in _given(node):
                self.named.setdefault(name, []).append(value)
        self.flags = [node for node in ast.walk(tree) if self._is_flag(node)]

    def _is_flag(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or isinstance(self.parents.get(node), ast.Expr):
            return False
        if node.value.lstrip("-") == "default-stream":
            siblings = getattr(self.parents.get(node), "elts", [])
            after = siblings[siblings.index(node) + 1 :][:1] if node in siblings else []
            return bool(after) and isinstance(after[0], ast.Constant) and after[0].value == "per-thread"
        return _FLAG.search(node.value) is not None and not self._is_text_only(node)

    def _is_text_only(self, node: ast.AST) -> bool:
        """Whether a text is only compared with, looked up in the environment, or shown to people."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.keyword):
            return parent.arg in ("help", "description", "msg", "message")
        return isinstance(parent, ast.Compare) or (isinstance(parent, ast.Call) and _last_name(parent.func) in ("getenv", "get", "print"))

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def is_conditional(self, flag: ast.AST) -> bool:
        """Whether an ``if`` stands around a flag that asks for more than CUDA itself."""
        return any(isinstance(n, ast.If | ast.IfExp) and not any(g in ast.unparse(n.test) for g in _GUARDS) for n in self.around(flag))

    def reaches(self, flag: ast.AST, source: str) -> bool:
        """Whether a flag goes to what compiles a source: all, where that is unknown."""
        builders = [call for call in self.calls if flag in self._behind(call, set())]
        if not builders:
            return True
        lists = [self._sources(call) for call in builders]
        return any(held is None or any(_is_source(source, word) for word in held) for held in lists)

    def _behind(self, node: ast.AST, seen: set[str]) -> set[ast.AST]:
        """A node with all that its names stand for."""
        found: set[ast.AST] = set()
        for inner in ast.walk(node):
            found.add(inner)
            if isinstance(inner, ast.Name) and inner.id not in seen:
                seen.add(inner.id)
                for value in self.named.get(inner.id, ()):
                    found |= self._behind(value, seen)
        return found

    def _sources(self, call: ast.Call) -> list[str] | None:
        """The sources of an extension, where they are written out."""
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "sources"), call.args[1] if len(call.args) > 1 else None)
        if isinstance(given, ast.Name) and len(self.named.get(given.id, ())) == 1:
            given = self.named[given.id][0]
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            return [given.value]
        if not isinstance(given, ast.List | ast.Tuple):
            return None
        words = [_text(item) for item in given.elts]
        return None if any(word is None for word in words) else [word for word in words if word is not None]


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What a name is given: by assignment, by ``+=``, by ``append`` and ``extend``, by an item."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            held = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(held, ast.Name):
                yield held.id, node.value
    elif isinstance(node, ast.AugAssign | ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend", "insert", "update"):
        held = node.func.value
        while isinstance(held, ast.Subscript):
            held = held.value
        if isinstance(held, ast.Name):
            for value in node.args:
                yield held.id, value


def _text(node: ast.expr) -> str | None:
    """A path that is written out; of ``join(here, "a.cu")`` and ``here / "a.cu"`` the last part."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Call) and _last_name(node.func) in ("join", "str", "Path") and node.args:
        return _text(node.args[-1])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
        return _text(node.right)
    return None


def _is_source(path: str, word: str) -> bool:
    return f"/{path}".replace("\\", "/").endswith("/" + word.replace("\\", "/").removeprefix("./").lstrip("/"))


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
