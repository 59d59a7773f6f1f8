"""Strongly connected components of a graph that is given by a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Vertex = TypeVar("Vertex")


def components(vertices: Iterable[Vertex], after: Callable[[Vertex], Iterable[Vertex]]) -> Iterator[list[Vertex]]:
    """The components, each behind those that it leads to (Tarjan's algorithm)."""
    number: dict[Vertex, int] = {}
    low: dict[Vertex, int] = {}
    open_: dict[Vertex, None] = {}
    for root in vertices:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        open_[root] = None
        stack = [(root, iter(after(root)))]
        while stack:
            vertex, rest = stack[-1]
            for one in rest:
                if one not in number:
                    number[one] = low[one] = len(number)
                    open_[one] = None
                    stack.append((one, iter(after(one))))
                    break
                if one in open_:
                    low[vertex] = min(low[vertex], number[one])
            else:
                stack.pop()
                if stack:
                    before = stack[-1][0]
                    low[before] = min(low[before], low[vertex])
                if low[vertex] == number[vertex]:
                    yield _closed(open_, vertex)


def _closed(open_: dict[Vertex, None], vertex: Vertex) -> list[Vertex]:
    """Take a finished component from the vertices that are open."""
    found: list[Vertex] = []
    while True:
        one, _ = open_.popitem()
        found.append(one)
        if one == vertex:
            return found
