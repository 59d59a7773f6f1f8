"""Rows of libraries that are too heavy to install: their names and parameters are read off unpacked sources, where there are any.

The trees are those of ``benchmarks/corpus.py fetch``, or of the folder that ``STREAMLINT_CORPUS`` names.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamlint.models
from streamlint.models import load_file
from streamlint.models.vocabulary import parse_selector

ROWS = Path(streamlint.models.__file__).parent
FILES = ("frameworks", "torch", "numba", "decoders", "tensor_libraries")
PACKAGES = (
    *("accelerate", "lightning", "torchrec", "numba_cuda", "torchvision", "causal_conv1d", "einops", "flash_attn", "gsplat", "lpips"),
    *(
        "mamba_ssm",
        "nerfacc",
        "pytorch_msssim",
        "torch_cluster",
        "torch_geometric",
        "torch_scatter",
        "torch_sparse",
        "torchmetrics",
        "xformers",
    ),
)
# Names that the newest version lacks, with the reason.
ABSENT = {"torchvision.io.read_video": "went with torchvision 0.24"} | dict.fromkeys(
    (
        *("gsplat.rasterize_gaussians", "gsplat.rasterize.rasterize_gaussians", "gsplat.sh.spherical_harmonics"),
        *("gsplat.project_gaussians", "gsplat.project_gaussians.project_gaussians"),
    ),
    "of gsplat before 1.0",
)


def folder() -> Path:
    given = os.environ.get("STREAMLINT_CORPUS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "streamlint" / "corpus"


def roots() -> dict[str, Path]:
    """Packages by name."""
    return {name: path for name in PACKAGES for path in sorted(folder().glob(f"*/{name}")) if path.is_dir()}


class Sources:
    """Dotted names in trees of Python files: modules, what they define, and what they import from each other."""

    def __init__(self, packages: dict[str, Path]) -> None:
        self.packages = packages
        self.parsed: dict[Path, ast.Module] = {}

    def has(self, name: str) -> bool:
        return name.partition(".")[0] in self.packages

    def find(self, name: str, depth: int = 0) -> ast.AST | None:
        """What a dotted name stands for."""
        if depth > 12:
            return None
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            file = self.module(parts[:length])
            if file is None:
                continue
            tree = self.parse(file)
            package = parts[:length] if file.name == "__init__.py" else parts[: length - 1]
            return self.inside(tree, parts[length:], package, depth)
        return None

    def module(self, parts: list[str]) -> Path | None:
        base = self.packages.get(parts[0])
        if base is None:
            return None
        path = base.joinpath(*parts[1:])
        for file in (path / "__init__.py", path.with_suffix(".py") if parts[1:] else path / "__init__.py"):
            if file.is_file():
                return file
        return None

    def parse(self, file: Path) -> ast.Module:
        if file not in self.parsed:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the package's own texts
                self.parsed[file] = ast.parse(file.read_text(encoding="utf-8"))
        return self.parsed[file]

    def inside(self, tree: ast.AST, rest: list[str], package: list[str], depth: int) -> ast.AST | None:
        if not rest:
            return tree
        for node in statements(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == rest[0]:
                return self.of_class(node, rest[1:], tree, package, depth) if isinstance(node, ast.ClassDef) else node
            if rest[0] in assigned(node):
                return node
            if isinstance(node, ast.ImportFrom):
                for item in node.names:
                    if item.name == "*" or (item.asname or item.name) == rest[0]:
                        name = rest[0] if item.name == "*" else item.name
                        base = package[: len(package) - node.level + 1] if node.level else []
                        found = self.find(".".join([*base, *([node.module] if node.module else []), name, *rest[1:]]), depth + 1)
                        if found is not None:
                            return found
        return None

    def of_class(self, node: ast.ClassDef, rest: list[str], module: ast.AST, package: list[str], depth: int) -> ast.AST | None:
        if not rest:
            return node
        for item in statements(node):
            if (isinstance(item, ast.FunctionDef) and item.name == rest[0]) or rest[0] in assigned(item):
                return item
        for base in node.bases:
            found = self.inside(module, [*ast.unparse(base).split("[")[0].split("."), *rest], package, depth + 1) if depth < 12 else None
            if found is not None:
                return found
        return None


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a body, those under conditions and in ``try`` too. Of overloads the last counts."""
    body = getattr(node, "body", [])
    for item in reversed(body):
        if isinstance(item, ast.If | ast.Try):
            yield from statements(item)
            yield from statements(ast.Module(getattr(item, "orelse", []), []))
        else:
            yield item


def assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


SOURCES = Sources(roots())


def named_rows() -> list[tuple[str, dict[str, object]]]:
    found = []
    for stem in FILES:
        data = load_file(ROWS / f"{stem}.toml")
        for table in ("type", "call", "attribute"):
            for row in data.get(table, ()):
                names = [row["names"]] if isinstance(row["names"], str) else row["names"]
                found += [(name, row) for name in names if "*" not in name and SOURCES.has(name) and name not in ABSENT]
    return found


def parameters(node: ast.AST) -> tuple[list[str], set[str], bool] | None:
    """Positional names, keyword names, and whether there are more; of a class those of its constructor."""
    if isinstance(node, ast.ClassDef):
        made = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        return parameters(made) if made is not None else None
    if not isinstance(node, ast.FunctionDef):
        return None
    plain = [item.arg for item in (*node.args.posonlyargs, *node.args.args)]
    plain = plain[1:] if plain[:1] in (["self"], ["cls"]) else plain
    variable = node.args.vararg is not None or node.args.kwarg is not None
    return plain, {*plain, *(item.arg for item in node.args.kwonlyargs)}, variable


@pytest.fixture(autouse=True)
def sources() -> None:
    if not SOURCES.packages:
        pytest.skip("no sources: benchmarks/corpus.py fetch, or STREAMLINT_CORPUS")


def test_names_exist() -> None:
    assert not [name for name, _ in named_rows() if SOURCES.find(name) is None]


def test_positions_agree() -> None:
    wrong = []
    for name, row in named_rows():
        node = SOURCES.find(name)
        known = parameters(node) if node is not None else None
        if known is None:
            continue
        positional, keywords, variable = known
        for key, value in row.items():
            for text in value if isinstance(value, list) else [value]:
                if key in ("names", "effect", "type") or not isinstance(text, str) or not re.match(r"!?(\d|:\w)", text):
                    continue
                selector = parse_selector(text.partition("=")[0] if key == "waits_if" else text.lstrip("!"))
                if selector.keyword is None or variable:
                    continue
                place = selector.position
                if selector.keyword not in keywords or (place is not None and positional[place : place + 1] != [selector.keyword]):
                    wrong.append(f"{name}: {key} = {text}, but {positional}")
    assert not wrong, "\n".join(wrong)


def test_a_name_that_is_not_there_is_noticed() -> None:
    package = next(iter(SOURCES.packages))
    assert SOURCES.find(package) is not None
    assert SOURCES.find(f"{package}.there_is_no_such_name") is None
