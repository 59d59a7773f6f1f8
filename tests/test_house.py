"""Tests about the house: what every check looks like, what its pages and findings say, and which room may use which."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from snippets import real_findings
from wording import misshapen

from streamlint.checks import base, catalog
from streamlint.checks.base import HEADINGS, Check, registry
from streamlint.checks.rules import all_rules
from streamlint.config.options import Options
from streamlint.cuda_model import SENTENCES
from streamlint.findings import Category, Finding, Span, Step
from streamlint.runner.engine import analyse
from streamlint.support.records import replace
from streamlint.verify import evidence, templates
from streamlint_docs.programs import FENCE, blocks, whole

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "streamlint"
CHECK_FILES = sorted((PACKAGE / "checks").glob("sl*.py"))
CHECKS = registry()


def stems(paths: Iterable[Path]) -> list[str]:
    return [path.stem for path in paths]


# What the cache must know ----------------------------------------------------------------------------------------------------

_READING = re.compile(r"\bopen\(|read_text\(|read_bytes\(|\.is_file\(|\.exists\(|listdir\(|os\.stat\(|os\.environ\b")
_FOUND_FROM = ("checks", "cuda_model", "facts", "hazards", "ir", "ordering", "transfer", "waits")


@pytest.mark.parametrize("folder", _FOUND_FROM)
def test_what_finds_reads_no_files(folder: str) -> None:
    """Build files are asked in `build_files`, where it is noted: else findings would rest on files that the cache knows nothing of."""
    for path in {*(PACKAGE / folder).rglob("*.py")} - {PACKAGE / "checks" / "catalog.py"}:  # which names the rules by their files
        assert not _READING.search(path.read_text(encoding="utf-8")), path


# Checks -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CHECK_FILES, ids=stems(CHECK_FILES))
def test_a_file_is_a_rule(path: Path) -> None:
    module = importlib.import_module(f"streamlint.checks.{path.stem}")
    found = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]
    (check,) = (value for value in found if issubclass(value, Check))
    assert CHECKS[check.code] is check
    assert re.fullmatch(r"SL\d{3}", check.code)
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", check.name)
    assert path.stem == f"{check.code.lower()}_{check.name.replace('-', '_')}"
    assert isinstance(check.category, Category)
    assert check.default in {"on", "preview", "off"}


def test_the_folder_is_the_registry() -> None:
    assert len(CHECKS) == len(CHECK_FILES)
    assert len({check.name for check in CHECKS.values()}) == len(CHECKS)


def test_the_catalog_says_of_each_rule_what_its_class_says() -> None:
    assert [tuple(entry) for entry in catalog.entries().values()] == [(r.code, r.name, r.default) for r in all_rules().values()]


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_documentation_has_each_heading_in_order(check: type[Check]) -> None:
    text = inspect.cleandoc(check.__doc__ or "")
    assert tuple(re.findall(r"^#+ (.+)$", FENCE.sub("", text), flags=re.MULTILINE)) == HEADINGS
    assert all(check.documentation()[heading] for heading in HEADINGS)
    summary = check.documentation()[""]
    assert summary.endswith(".")
    assert "\n" not in summary


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_rule_rests_on_facts_of_the_model(check: type[Check]) -> None:
    assert isinstance(check.rests_on, tuple)
    assert [name for name in check.rests_on if name not in SENTENCES] == []


# New rules, in preview or off, that have not been run on a GPU yet; they may come without a template. A rule leaves the set with its
# evidence.
AWAITING_A_GPU: frozenset[str] = frozenset()


@pytest.mark.parametrize("code", CHECKS)
def test_a_rule_is_verified(code: str, tmp_path: Path) -> None:
    shipped = evidence.load(code, tmp_path)  # an empty folder: what was shipped, not the user's own
    if code in AWAITING_A_GPU:
        assert CHECKS[code].default != "on"
        assert not shipped, f"{code} has been verified: take it out of AWAITING_A_GPU"
        return
    template = templates.load().get(code)
    assert template, f"{code} has no template in streamlint/verify/templates; a new rule that nobody has run yet stands in AWAITING_A_GPU"
    assert template.name == CHECKS[code].name
    assert template.cases
    assert shipped, f"no evidence on {code} is shipped"


@pytest.mark.parametrize("path", sorted((PACKAGE / "fix").glob("sl*.py")), ids=lambda path: path.stem)
def test_a_fix_is_named_as_its_check(path: Path) -> None:
    assert path.stem in stems(CHECK_FILES)


def test_every_template_has_a_rule() -> None:
    assert set(templates.load()) <= set(CHECKS)


# Documented examples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("heading", "flagged"), [("Example", True), ("Use instead", False)])
@pytest.mark.parametrize("code", CHECKS)
def test_examples_are_linted(code: str, heading: str, flagged: bool) -> None:
    sections = CHECKS[code].documentation()
    page = "\n".join(sections[name] for name in ("Example", "Use instead"))
    found = blocks(sections[heading])
    assert found
    for language, body in found:
        source = whole(language, body, page)
        report = analyse([source], Options(codes=frozenset(CHECKS)))
        assert not report.problems
        assert {f.code for f in report.findings} == ({code} if flagged else set()), source.text


# Findings ---------------------------------------------------------------------------------------------------------------------

PLACE = Span("a.py", 1, 1, 1, 5)
WHOLE = Finding("SL001", "unpinned-non-blocking", Category.STALL, "copy waits", PLACE, (Step("made here", PLACE),), "pin it")


def test_findings_have_the_shape_of_the_house() -> None:
    """Those of the rules' documents are looked at where these are read."""
    assert {found.message: wrong for found in real_findings() if (wrong := misshapen(found))} == {}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, ""),
        ({"message": "Copy waits"}, "no sentence of ours"),
        ({"message": "cudaMemcpyAsync waits"}, ""),
        ({"help": "pin it."}, "no sentence of ours"),
        ({"help": ""}, "no sentence of ours"),
        ({"trail": (replace(WHOLE.trail[0], message=" made here"),)}, "no sentence of ours"),
        ({"message": "copy waits; please pin it"}, "the advice is in the message"),
        ({"trail": ()}, "it has no trail"),
        ({"trail": (), "code": "SL002"}, ""),
        ({"span": replace(WHOLE.span, end_row=2)}, "stands on one line"),
        ({"span": replace(WHOLE.span, end_column=1)}, "is not empty"),
        ({"trail": (replace(WHOLE.trail[0], span=replace(WHOLE.span, column=0)),)}, "a step stands nowhere"),
    ],
)
def test_faults_of_shape_are_seen(change: dict[str, Any], fault: str) -> None:
    wrong = misshapen(replace(WHOLE, **change))
    assert len(wrong) == bool(fault)
    assert all(fault in one for one in wrong)


# Shape ------------------------------------------------------------------------------------------------------------------------

MOST_BRANCHES, MOST_LINES, MOST_PARAMETERS = 15, 50, 8
_BRANCH = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.BoolOp, ast.IfExp, ast.comprehension, ast.match_case)
# Functions that are still to be split. None is added.
TO_SPLIT = {
    "facts/values/flow.py:__init__",
}


def is_large(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function branches too often, is too long, or takes too much."""
    branches = 1 + sum(isinstance(each, _BRANCH) for each in ast.walk(node))
    given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    lines = (node.end_lineno or 0) - node.lineno + 1
    return branches > MOST_BRANCHES or lines > MOST_LINES or len(given) > MOST_PARAMETERS


def test_functions_are_small() -> None:
    large: set[str] = set()
    for path in {*PACKAGE.rglob("*.py")} - {*(PACKAGE / "verify" / "templates" / "snippets").rglob("*.py")}:
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        large |= {f"{path.relative_to(PACKAGE).as_posix()}:{node.name}" for node in functions if is_large(node)}
    assert large <= TO_SPLIT


# Arrows -----------------------------------------------------------------------------------------------------------------------

# The folders from the lowest to the highest: each imports those below it, and none above.
LAYERS = (
    *("support", "cuda_model", "findings", "models", "checks", "config"),
    *("program", "ir", "frontends", "build_files", "facts", "waits", "transfer", "ordering", "hazards"),
    *("discovery", "triage", "report", "cache", "fix", "runner"),
    *("trace", "record", "verify", "litmus", "silence", "server", "cli", "commands"),
)
# The same within a folder that has folders of its own.
WITHIN = {
    "facts": ("code", "files", "values", "cpp", "graph", "repetition"),
    "ordering": ("places", "paths", "streams", "memory", "walk", "null_stream", "captures", "threads", "races"),
}
# What a check may import of streamlint.
FOR_CHECKS = {"checks.base", "findings", "support.records"}
# What stands above the facts: nobody at or below them may look up.
ABOVE = {"checks", "cli", "commands", "config", "fix", "litmus", "report", "runner", "server", "triage", "verify"}
BELOW = ("cuda_model", "facts", "findings", "frontends", "ir", "models", "ordering", "program", "support", "transfer")
# Rooms that know few others; a room knows itself.
NARROW = {
    "support": {"TYPE_CHECKING"},
    "findings": {"TYPE_CHECKING", "cuda_model", "support"},
    "program": {"support"},
    "cuda_model": {"support"},
    "models": {"support"},
    "frontends": {"TYPE_CHECKING", "program", "support"},
    "ir": {"program", "support.declared_words"},
    # A fix proposes, by places and text; who lints again is handed to it.
    "fix": {"findings", "frontends.python_positions", "frontends.python", "support"},
}


def modules(*rooms: str) -> list[Path]:
    """The files of rooms: a room is a module or a folder."""
    found: list[Path] = []
    for room in rooms:
        found += [PACKAGE / f"{room}.py"] if (PACKAGE / f"{room}.py").exists() else sorted((PACKAGE / room).rglob("*.py"))
    return found


# Imports of ours inside functions: code that travels to a machine without streamlint. What a run may not need stands at the top of its
# module, as `lazy`.
LATE = {"runner/cluster/client.py": "runner.cluster.job streamlint"}
_WHY_LATE = re.compile(r"  # (?:start-up|optional|platform|worker): \w")


def late_imports(path: Path) -> list[tuple[int, str]]:
    """The imports inside functions of a file: rows, and modules or names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = {node for function in functions for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)}
    return [(node.lineno, f"{getattr(node, 'module', '')}.{one.name}".strip(".")) for node in found for one in node.names]


@functools.cache
def imported(path: Path, *, typing: bool = True) -> frozenset[str]:
    """The modules of streamlint that a file imports, wherever and whenever, by name below the package. ``typing``: those for annotations
    too."""
    names: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guards = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    passed = set() if typing else {inner for guard in guards for one in guard.body for inner in ast.walk(one)}
    for node in ast.walk(tree):
        if node in passed:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy":
            package, *modules = (str(ast.literal_eval(given)) for given in node.args)
            names |= {f"{package}.{module}" for module in modules}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            names |= {f"{node.module}.{alias.name}" if is_package(node.module or "") else node.module or "" for alias in node.names}
    return frozenset(name.removeprefix("streamlint.") for name in names if name.startswith("streamlint."))


def is_package(name: str) -> bool:
    """Whether a name is a folder of ours, so that what is imported from it may be a module."""
    return (ROOT / name.replace(".", "/") / "__init__.py").is_file()


def within(name: str, rooms: Iterable[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def test_imports_inside_functions_say_why() -> None:
    late: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        rows = path.read_text(encoding="utf-8").split("\n")
        for row, name in late_imports(path):
            assert _WHY_LATE.search(rows[row - 1]), f"{path}:{row}: {name}"
            if name.startswith("streamlint"):
                file = module_of(name.removeprefix("streamlint").strip("."))
                assert file is not None
                own = file.parent if file.name == "__init__.py" else file.with_suffix("")
                late.setdefault(path.relative_to(PACKAGE).as_posix(), set()).add(".".join(own.relative_to(PACKAGE).parts) or "streamlint")
    assert {name: " ".join(sorted(modules)) for name, modules in late.items()} == LATE


def pairs_of(nodes: Iterable[ast.stmt]) -> set[tuple[str, str]]:
    """What statements import, lazily or not: modules, each with the package that it is taken from."""
    found: set[tuple[str, str]] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            found |= {(node.module or "", one.name) for one in node.names}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "lazy":
            package, *modules = (str(ast.literal_eval(given)) for given in node.value.args)
            found |= {(package, module) for module in modules}
    return found


def test_what_is_lazy_is_what_type_checkers_see() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                assert pairs_of(node.orelse) <= pairs_of(node.body), path


def module_of(name: str) -> Path | None:
    """The file of a module, or of the one that a name is imported from."""
    place = PACKAGE.joinpath(*name.split("."))
    found = [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]
    return found[0] if found else module_of(name.rpartition(".")[0]) if "." in name else None


@pytest.mark.parametrize("room", LAYERS)
def test_imports_point_downwards(room: str) -> None:
    """Imports inside of functions count; those for annotations do not, and neither do those of ``__main__``, which starts a command."""
    below = {*LAYERS[: LAYERS.index(room) + 1], "TYPE_CHECKING", "__version__"}
    files = [path for path in modules(room) if path.name != "__main__.py"]
    assert {name for path in files for name in imported(path, typing=False) if name.partition(".")[0] not in below} == set()


def test_every_folder_is_a_layer() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} | {"cli"} == set(LAYERS)


@pytest.mark.parametrize(("room", "inner"), [(room, inner) for room, inners in WITHIN.items() for inner in inners])
def test_imports_within_a_folder_point_downwards(room: str, inner: str) -> None:
    inners = WITHIN[room]
    below = inners[: inners.index(inner) + 1]
    files = sorted((PACKAGE / room / inner).rglob("*.py"))
    own = {name.removeprefix(f"{room}.") for path in files for name in imported(path, typing=False) if within(name, [room])}
    assert files
    assert {name for name in own if not within(name, below)} == set()


@pytest.mark.parametrize("room", WITHIN)
def test_a_folder_of_folders_has_no_loose_modules(room: str) -> None:
    assert {path.parent.name for path in (PACKAGE / room).glob("*/__init__.py")} == set(WITHIN[room])
    assert [path.name for path in (PACKAGE / room).glob("*.py")] == ["__init__.py"]


def test_no_module_is_imported_by_what_it_imports() -> None:
    """Imports inside of functions count."""
    files = sorted(PACKAGE.rglob("*.py"))
    arrows = {path: {module_of(name) for name in imported(path, typing=False)} - {path, None} for path in files}
    graphlib.TopologicalSorter(arrows).prepare()  # raises CycleError, which names the modules


@pytest.mark.parametrize("path", CHECK_FILES, ids=stems(CHECK_FILES))
def test_a_check_imports_only_what_checks_may(path: Path) -> None:
    assert {name for name in imported(path) if not within(name, FOR_CHECKS)} == set()


def test_the_base_of_checks_imports_no_more() -> None:
    assert {name for name in imported(Path(base.__file__)) if not within(name, FOR_CHECKS)} == set()


@pytest.mark.parametrize("path", modules(*BELOW), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_nobody_below_looks_up(path: Path) -> None:
    assert {name for name in imported(path) if within(name, ABOVE)} == set()


@pytest.mark.parametrize("room", NARROW)
def test_narrow_rooms(room: str) -> None:
    foreign = {name for path in modules(room) for name in imported(path) if not within(name, {room, *NARROW[room]})}
    assert foreign == set()


def test_the_server_is_known_to_its_command_alone() -> None:
    others = [
        path for path in PACKAGE.rglob("*.py") if PACKAGE / "server" not in path.parents and path != PACKAGE / "commands" / "server.py"
    ]
    assert [path for path in others if any(within(name, {"server"}) for name in imported(path))] == []
    assert not any(within(name, {"cli", "commands", "litmus"}) for path in modules("server") for name in imported(path))


def test_the_cluster_is_known_to_check_and_verify_alone() -> None:
    """The others name its types for annotations: nothing of Dask is imported without the option."""
    told = {"commands/running.py", "runner/engine.py", "runner/linter.py", "verify/far.py"}
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if PACKAGE / "runner" / "cluster" not in path.parents and any(within(name, {"runner.cluster"}) for name in imported(path))
    }
    assert users == told
    assert not any(within(name, {"cli", "commands", "runner.linter"}) for path in modules("runner/cluster") for name in imported(path))


def test_imports_are_seen(tmp_path: Path) -> None:
    """In functions, from a package and from a module."""
    path = tmp_path / "made_up.py"
    path.write_text(
        "from streamlint.runner import engine\ndef f():\n    from streamlint.checks.base import Check\n    import streamlint.verify\n"
        "(client,) = lazy('streamlint.runner.cluster', 'client')\n"
    )
    assert imported(path) == {"runner.engine", "checks.base", "verify", "runner.cluster.client"}
