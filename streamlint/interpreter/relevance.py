"""What can matter: which functions are roots for which checks, which calls can be passed over, which branches are worth a second path.

Everything here is decided from words in the text of a function and of what it calls, before anything is run. Passing over is only right
where nothing that a check asks of could have happened; a test holds this against runs without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from streamlint import program as p
from streamlint.interpreter.index import File

# Words without which a body neither makes nor moves device memory, nor orders anything.
_WORDS = (
    "cuda", "Cuda", "CUDA", "tream", "vent(", "Event", "record(", "pin", "non_block", "blocking", "device", ".to(", ".cpu(", "item(", "numpy", "tolist", "copy_",
    "cupy", "cp.", "malloc", "Malloc", "ynchronize", "<<<", "thrust", "cub", "wait(", "query(", "Memcpy", "memcpy", "empty_cache",
    "launch_host_func", "callback", ".get(", ".set(", "free(", "Free(", "hip", "DataLoader", "collate", "loader", "to_host", "asnumpy", "done", "new ", "vector<", "torch.",
    "Queue", "Thread", "Lock", "Executor", "get_context", "Condition",
)  # fmt: skip


@dataclass(eq=False, slots=True)
class Relevance:
    """Words of the bodies of one file, with those of what they call."""

    file: File
    lines: list[str] = field(default_factory=list)
    _text: dict[int, str] = field(default_factory=dict)
    _callees: dict[int, list[p.Function]] = field(default_factory=dict)
    _matters: dict[int, bool] = field(default_factory=dict)
    _bodies: dict[int, bool] = field(default_factory=dict)
    _methods: dict[str, list[p.Function]] | None = None

    def text(self, node: p.Node) -> str:
        """The source lines of a node."""
        key = id(node)
        if key not in self._text:
            if not self.lines:
                self.lines = self.file.module.text.splitlines()
            self._text[key] = "\n".join(self.lines[max(node.at[0] - 1, 0) : node.at[2]])
        return self._text[key]

    def callees(self, function: p.Function) -> list[p.Function]:
        """The functions of the file, and of those that it imports or includes, that a body may call: by name."""
        key = id(function)
        if key not in self._callees:
            self._callees[key] = []
            names = {node.name if isinstance(node, p.Attr) else node.id.rpartition("::")[2] for node in p.walk(function) if isinstance(node, p.Attr | p.Name)}
            found: list[p.Function] = []
            for name in sorted(names):
                found.extend(f for f in self._named(name) if f is not function)
            self._callees[key] = found
        return self._callees[key]

    def _named(self, name: str) -> Iterable[p.Function]:
        if self._methods is None:
            self._methods = {}
            for file in self._reach():
                for definition in dict.fromkeys(file.module.classes.values()):
                    for method, overloads in definition.methods.items():
                        self._methods.setdefault(definition.name if method == "__init__" else method, []).extend(overloads)
                        if method in ("__call__", "forward", "operator()", "__enter__", "__exit__", "__iter__", "__next__", "__del__", "__getitem__"):
                            self._methods.setdefault(definition.name, []).extend(overloads)
                for overloads in file.module.functions.values():
                    for function in overloads:
                        self._methods.setdefault(function.name, []).append(function)
        return self._methods.get(name, ())

    def _reach(self) -> list[File]:
        """This file and the files at hand that it names in imports or includes."""
        found = [self.file]
        if self.file.is_cuda:
            return [*found, *self.file.neighbours()]
        for dotted in self.file.module.imports.values():
            for candidate in (dotted, dotted.rpartition(".")[0]):
                target = self.file.program.python_module(candidate, self.file) if candidate else None
                if target is not None and target not in found:
                    found.append(target)
        return found

    def matters(self, function: p.Function, depth: int = 4) -> bool:
        """Whether a body, or one that it calls, holds any of the words."""
        key = id(function)
        if key in self._matters:
            return self._matters[key]
        self._matters[key] = False
        own = self._has_word(self.text_of(function))
        result = own or (depth > 0 and any(self.matters(callee, depth - 1) for callee in self.callees(function)))
        self._matters[key] = result
        return result

    def text_of(self, function: p.Function) -> str:
        """The text of a function, wherever in the program it stands."""
        return self._holder(function).text(function)

    def _holder(self, function: p.Function) -> Relevance:
        if self._belongs(self.file, function):
            return self
        for file in self._reach():
            if file is not self.file and self._belongs(file, function):
                return file.relevance
        return self

    def _belongs(self, file: File, function: p.Function) -> bool:
        return any(function is f for f in file.functions.get(function.qualname, ())) or any(
            function is f for c in (file.classes.get(function.class_name),) if c is not None for f in c.methods.get(function.name, ())
        )

    def body_matters(self, body: Sequence[p.Statement]) -> bool:
        """Whether statements hold any of the words, or call what does."""
        if not body:
            return False
        key = id(body)
        if key not in self._bodies:
            if not self.lines:
                self.lines = self.file.module.text.splitlines()
            text = "\n".join(self.lines[max(body[0].at[0] - 1, 0) : max(s.at[2] for s in body)])
            self._bodies[key] = self._has_word(text) or any(self.matters(f) for s in body for f in self._called_in(s))
        return self._bodies[key]

    def _has_word(self, text: str) -> bool:
        return any(word in text for word in _WORDS) or (self.file.is_cuda and "cu" in text)

    def _called_in(self, statement: p.Statement) -> Iterable[p.Function]:
        names = {n.name if isinstance(n, p.Attr) else n.id.rpartition("::")[2] for n in p.walk(statement) if isinstance(n, p.Attr | p.Name)}
        for name in names:
            yield from self._named(name)

    def satisfies(self, function: p.Function, needs: Sequence[Sequence[Sequence[tuple[str, ...]]]]) -> bool:
        """Whether a root's text, with that of what it may call, holds what one of the checks needs."""
        texts = [self.text_of(function)]
        seen = {id(function)}
        waiting = [(callee, 1) for callee in self.callees(function)]
        while waiting and len(seen) < 200:
            callee, depth = waiting.pop()
            if id(callee) in seen:
                continue
            seen.add(id(callee))
            texts.append(self.text_of(callee))
            if depth < 4:
                waiting.extend((inner, depth + 1) for inner in self._holder(callee).callees(callee))
        return satisfies_text("\n".join(texts), needs)


def satisfies_text(text: str, needs: Sequence[Sequence[Sequence[tuple[str, ...]]]]) -> bool:
    """Whether one text holds what one of the checks needs."""
    return any(all(any(word in text for word in group) for group in alternative) for need in needs for alternative in need)
