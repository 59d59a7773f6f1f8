"""Operators of torch extensions on a side stream and in a captured graph, each built as it was released and with its report's patch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import busy, replaced, wrong_of
from .reports import patched

KINDS = ("released", "repaired")
Operator = Callable[..., Any]


@dataclass(frozen=True)
class Extension:
    """What is built: the package's own sources (headers that a patch changes among them), the reports with the patch, and a binding.

    ``binding`` is the text of a C++ file of our own where the package's will not do. ``flags`` are for both compilers. ``substitutes`` take
    the place of what the installed PyTorch no longer has, in both.
    """

    name: str
    sources: Sequence[str]
    reports: Sequence[str]
    binding: str = ""
    include: Sequence[str] = ()
    flags: Sequence[str] = ()
    cuda_flags: Sequence[str] = ()
    substitutes: Mapping[str, str] = field(default_factory=dict)

    def build(self, tree: Path, scratch: Path) -> dict[str, Any]:
        """The two modules, built side by side."""
        with ThreadPoolExecutor() as pool:
            return dict(zip(KINDS, pool.map(lambda kind: self._build(kind, tree, scratch), KINDS), strict=True))

    def _build(self, kind: str, tree: Path, scratch: Path) -> Any:
        from torch.utils import cpp_extension

        folder = scratch / f"{self.name}_{kind}"
        folder.mkdir()
        texts = {Path(source).name: self._text(kind, tree, source) for source in self.sources}
        if self.binding:
            texts["binding.cpp"] = self.binding
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        paths = [folder, *dict.fromkeys((tree / source).parent for source in self.sources), *(tree / each for each in self.include)]
        return cpp_extension.load(
            folder.name,
            [str(folder / name) for name in texts if name.endswith((".cpp", ".cu"))],
            extra_include_paths=[str(path) for path in paths],
            extra_cflags=list(self.flags),
            extra_cuda_cflags=[*self.flags, *self.cuda_flags],
            build_directory=str(folder),
            with_cuda=True,
        )

    def _text(self, kind: str, tree: Path, source: str) -> str:
        text = (tree / source).read_text(encoding="utf-8")
        text = patched(source, text, *self.reports) if kind == "repaired" else text
        return replaced(text, self.substitutes) if source.endswith(".cu") else text


def results(torch: Any, out: Any) -> list[Any]:
    """Copies of the tensors that an operator gave, when the GPU has ended."""
    torch.cuda.synchronize()
    return [each.clone() for each in (out if isinstance(out, list | tuple) else [out])]


def differ(torch: Any, found: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether results are not what they must be: integers exactly, others to a hundredth of the largest (atomics add in any order)."""
    torch.cuda.synchronize()
    for one, other in zip(found, expected, strict=True):
        if one.shape != other.shape:
            return True
        if not one.is_floating_point():
            if not torch.equal(one, other):
                return True
        elif not bool((one.double() - other.double()).abs().max() <= 0.01 * other.double().abs().max()):  # so is a NaN
            return True
    return False


def on_side_stream(torch: Any, operator: Operator, inputs: Sequence[Any]) -> dict[str, Any]:
    """A busy side stream writes the inputs, which were zero until then, and the operator is called on it: is the result theirs?

    The operator has run with the zeros just before, so that what it allocates is memory of such a call, and nothing wilder.
    """
    expected = results(torch, operator(*inputs))
    side = torch.cuda.Stream()

    def trial() -> bool:
        made = [torch.zeros_like(each) for each in inputs]
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            operator(*made)
            torch.cuda.synchronize()
            busy(torch)
            for one, value in zip(made, inputs, strict=True):
                one.copy_(value)
            out = operator(*made)
        return differ(torch, results(torch, out), expected)

    return wrong_of(trial)


def in_a_graph(torch: Any, operator: Operator, inputs: Sequence[Any]) -> dict[str, Any]:
    """The operator is captured with inputs of zeros, and replayed with others: is the result theirs? Where capture fails, all is wrong."""
    expected = results(torch, operator(*inputs))
    given = [torch.zeros_like(each) for each in inputs]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            given[0] + 0  # a graph with nothing in it cannot be replayed
            out = operator(*given)
    except RuntimeError as error:
        return {"wrong": 20, "trials": 20, "errors": [f"capture: {str(error).splitlines()[0][:120]}"]}

    def trial() -> bool:
        for one, value in zip(given, inputs, strict=True):
            one.copy_(value)
        graph.replay()
        return differ(torch, results(torch, out), expected)

    return wrong_of(trial)


def both_ways(torch: Any, place: str, operators: Mapping[str, Operator], inputs: Sequence[Any], graph: bool = True) -> dict[str, Any]:
    """The outcomes of one operator, as released and repaired, on a side stream and (where it may be captured at all) in a graph."""
    ways = {"on a side stream": on_side_stream, **({"in a captured graph": in_a_graph} if graph else {})}
    return {f"{place} {way}": {kind: ask(torch, operators[kind], inputs) for kind in KINDS} for way, ask in ways.items()}
