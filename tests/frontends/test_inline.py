"""CUDA C++ in Python strings: which strings are read, and where their code stands."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from streamlint.frontends import inline, python
from streamlint.program import Call, Declare, Function, Launch, Module, Name, Position, walk

HOST = """\
__global__ void twice(float* x) { x[0] *= 2; }
void run(float* x, cudaStream_t s) {
  twice<<<1, 32, 0, s>>>(x);
}
"""
KERNEL = """\
extern "C" __global__
void twice(float* x) {
  x[0] *= 2;
}
"""


def read(source: str) -> tuple[str, list[Module]]:
    text = textwrap.dedent(source)
    return text, inline.modules_in(python.lower("pkg/ops.py", text))


def functions(module: Module) -> list[str]:
    return sorted(module.functions)


def shown(text: str, at: Position) -> str:
    """The Python file's text at a position."""
    lines = text.replace("\r\n", "\n").split("\n")
    row, column, end_row, end_column = at
    if row == end_row:
        return lines[row - 1][column - 1 : end_column - 1]
    return "\n".join([lines[row - 1][column - 1 :], *lines[row : end_row - 1], lines[end_row - 1][: end_column - 1]])


def first(module: Module, kind: type, test: Callable[[object], bool] = lambda node: True) -> object:
    return next(node for node in walk(module) if isinstance(node, kind) and test(node))


def launch(module: Module) -> Launch:
    found = first(module, Launch)
    assert isinstance(found, Launch)
    return found


def call(module: Module, name: str) -> Call:
    found = first(module, Call, lambda node: isinstance(node, Call) and isinstance(node.function, Name) and node.function.id == name)
    assert isinstance(found, Call)
    return found


# --- which strings ------------------------------------------------------------------------

IMPORT = "from torch.utils.cpp_extension import load_inline\n"


@pytest.mark.parametrize(
    "code",
    [
        f"load_inline('m', '', '''{HOST}''')",
        f"load_inline(name='m', cuda_sources='''{HOST}''')",
        f"load_inline(name='m', cpp_sources=['''{HOST}'''])",
        f"SRC = r'''{HOST}'''\nload_inline(name='m', cuda_sources=SRC)",
        f"SRC = r'''{HOST}'''\nload_inline(name='m', cuda_sources=[SRC])",
        f"SRC = r'''{HOST}'''\nALL = [SRC]\nload_inline(name='m', cuda_sources=ALL)",
        f"HEAD = '#include <cuda.h>'\nSRC = HEAD\nSRC += r'''{HOST}'''\nload_inline(name='m', cuda_sources=SRC)",
        f"def build():\n    source = '''{HOST}'''\n    return load_inline('m', cuda_sources=source)",
        f"SRC = '''{HOST}'''\ndef build():\n    return load_inline('m', cuda_sources=SRC.replace('float', 'double'))",
        f"SRC = '''{HOST}'''\nload_inline('m', cuda_sources=textwrap.dedent(SRC).strip())",
        f"load_inline('m', cuda_sources='\\n'.join(['''{HOST}''']))",
        f"SRC = '''{HOST}''' % 4\nload_inline('m', cuda_sources=SRC)",
        f"load_inline('m', cuda_sources='''{HOST}''' if fast else '')",
    ],
    ids=[
        "positional",
        "in place",
        "list",
        "name",
        "list of names",
        "name of a list",
        "augmented",
        "name in a function",
        "replace",
        "dedent",
        "join",
        "percent",
        "conditional",
    ],
)
def test_sources_of_load_inline_are_torch_extensions(code: str) -> None:
    _, modules = read(IMPORT + code)
    found = [module for module in modules if "run" in module.functions]
    assert [functions(module) for module in found] == [["run", "twice"]]
    assert all(module.includes[-1] == "torch/extension.h" for module in modules)
    assert [(module.path, module.language) for module in found] == [("pkg/ops.py", "cuda")]


@pytest.mark.parametrize(
    "head",
    ["import torch.utils.cpp_extension as ext\nbuild = ext.load_inline", "from torch.utils.cpp_extension import load_inline as build"],
    ids=["attribute", "alias"],
)
def test_load_inline_under_another_name(head: str) -> None:
    call = "ext.load_inline" if "ext" in head.split() else "build"
    _, [module] = read(f"{head}\n{call}(name='m', cuda_sources='void f();')")
    assert functions(module) == ["f"]


def test_a_source_used_twice_is_read_once() -> None:
    _, modules = read(f"{IMPORT}S = '''{HOST}'''\na = load_inline('a', cuda_sources=S)\nb = load_inline('b', cuda_sources=S)\n")
    assert len(modules) == 1


def test_the_header_is_not_added_twice() -> None:
    _, [module] = read(f"{IMPORT}load_inline('m', cuda_sources='''#include <torch/extension.h>\n{HOST}''')")
    assert module.includes == ("torch/extension.h",)


def test_modules_stand_in_the_order_of_their_strings() -> None:
    _, modules = read(f"{IMPORT}A = 'void a();'\nB = 'void b();'\nload_inline('m', cpp_sources=B, cuda_sources=[A])\nC = '''{HOST}'''\n")
    assert [functions(module) for module in modules] == [["a"], ["b"], ["run", "twice"]]


def test_other_arguments_of_load_inline_are_no_sources() -> None:
    _, modules = read(f"{IMPORT}load_inline(name='void f();', functions=['void g();'], extra_cflags=['-O3'], cpp_sources='void h();')")
    assert [functions(module) for module in modules] == [["h"]]


@pytest.mark.parametrize("work", ["twice<<<1, 32>>>(x);", "cudaMemcpyAsync(x, y, n, k, s);", "cudaLaunchKernel(f, g, b, a, 0, s);"])
def test_any_longer_string_with_host_work_is_read(work: str) -> None:
    _, [module] = read(f"SOURCE = '''\nvoid run(float* x)\n{{\n  {work}\n}}\n'''\n")
    assert functions(module) == ["run"]
    assert module.includes == ()


def test_a_method_is_host_work_too() -> None:
    _, [module] = read("SOURCE = '''\nstruct Op {\n  void run(float* x) {\n    twice<<<1, 32>>>(x);\n  }\n};\n'''\n")
    assert list(module.classes) == ["Op"]


@pytest.mark.parametrize(
    "code",
    [
        f"k = cupy.RawKernel(r'''{KERNEL}''', 'twice')",
        f"m = SourceModule('''{KERNEL}''')",
        "m = SourceModule('''\n__global__ void parent() {\n  child<<<1, 1>>>();\n}\n''')",
        "SRC = 'void run() { twice<<<1, 32>>>(x); }'",
        f"'''{HOST}'''",
        f"def f():\n    '''Example:\n{HOST}'''",
        "HELP = '''\nLaunch kernels with k<<<grid, block>>>(args)\nand copy with\ncudaMemcpyAsync.\n'''",
        f"SRC = f'''{HOST.replace('{', '{{').replace('}', '}}')}{{x}}'''",
        f"{IMPORT}load_inline('m', cuda_sources=f'''{HOST.replace('{', '{{').replace('}', '}}')}{{x}}''')",
        f"{IMPORT}load_inline('m', cuda_sources=open('a.cu').read())  # <<<",
        f"SRC = b'''{HOST}'''",
        f"{IMPORT}load_inline(**options)",
    ],
    ids=[
        "RawKernel",
        "SourceModule",
        "launch in a kernel",
        "short",
        "bare string",
        "docstring",
        "prose",
        "f-string",
        "f-string of load_inline",
        "file",
        "bytes",
        "stars",
    ],
)
def test_silent(code: str) -> None:
    assert read(code)[1] == []


def test_names_that_refer_to_each_other_end() -> None:
    assert read(f"{IMPORT}A = B\nB = A\nload_inline('m', cuda_sources=A)")[1] == []


@pytest.mark.parametrize(
    "code", ["import torch\nx = torch.ones(3)\n", f"k = cupy.RawKernel(r'''{KERNEL}''', 'twice')\n"], ids=["torch", "kernel"]
)
def test_nothing_is_walked_where_no_host_code_is_mentioned(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = python.lower("a.py", code)

    def refuse(node: object) -> object:
        raise AssertionError("walked")

    monkeypatch.setattr(inline, "walk", refuse)
    assert inline.modules_in(module) == []


# --- where the code stands ------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "r", "R", "u"])
@pytest.mark.parametrize("quote", ["'''", '"""'])
def test_places_in_a_triple_quoted_literal_are_exact(prefix: str, quote: str) -> None:
    text, [module] = read(f"import os\n\n  \nif os:\n    SOURCE = {prefix}{quote}{HOST}{quote}\n")
    assert shown(text, launch(module).name_at) == "twice"
    assert shown(text, launch(module).at) == "twice<<<1, 32, 0, s>>>(x)"
    assert launch(module).name_at == (7, 3, 7, 8)
    [kernel] = module.functions["twice"]
    assert kernel.at[0] == 5
    assert shown(text, kernel.at).startswith("__global__ void twice") or shown(text, kernel.at) == "twice"


def test_places_on_the_first_line_of_a_literal_are_exact() -> None:
    text, [module] = read(f"{IMPORT}mod = load_inline('m', cuda_sources='void f() {{ g(); }}', functions=[])\n")
    assert shown(text, call(module, "g").name_at) == "g"


def test_places_in_a_list_in_a_function_are_exact() -> None:
    text, [short, module] = read(f"{IMPORT}def build():\n    return load_inline('m', cuda_sources=['void a();', '''\n{HOST}'''])\n")
    assert shown(text, launch(module).name_at) == "twice"
    assert shown(text, short.functions["a"][0].at)[:6] in ("a", "void a")


def test_windows_line_ends_and_wide_characters() -> None:
    text = f"é = 1; SOURCE = '''// größe\n{HOST}'''\n".replace("\n", "\r\n")
    [module] = inline.modules_in(python.lower("a.py", text))
    assert shown(text, launch(module).name_at) == "twice"


@pytest.mark.parametrize(
    ("literal", "why"),
    [
        ('r"""\nvoid f() { printf("%d\\n", 1); twice<<<1, 2>>>(x); }\n\n\n"""', "raw: a backslash is a backslash"),
        ('"""\nvoid f() { printf("%d\\\\n", 1); twice<<<1, 2>>>(x); }\n\n\n"""', "an escaped backslash"),
        ('"""\nvoid f() { puts(\\"hi\\"); twice<<<1, 2>>>(x); }\n\n\n"""', "escaped quotes"),
        ('"""\\\nvoid f() { twice<<<1, 2>>>(x); }\n\n\n\n"""', "a line continued"),
        ('"""\n#define N \\\\\n  4\nvoid f() { twice<<<1, 2>>>(x); }\n\n"""', "a macro of two lines"),
    ],
    ids=lambda value: value if "\n" not in value else "",
)
def test_escapes_of_one_character_keep_places(literal: str, why: str) -> None:
    text, [module] = read(f"SOURCE = {literal}\n")
    assert shown(text, launch(module).name_at) == "twice", why


def test_behind_another_escape_the_place_is_the_first_line() -> None:
    source = '"""\nvoid f() { g(); }\n// a tab: \\t\nvoid h() { twice<<<1, 2>>>(x); }\n"""'
    text, [module] = read(f"SOURCE = {source}\n")
    assert shown(text, call(module, "g").name_at) == "g"
    assert launch(module).at == launch(module).name_at == (1, 10, 1, 13)
    assert [function.at for function in module.functions["h"]] == [(1, 10, 1, 13)]
    assert shown(text, (1, 10, 1, 13)) == '"""'


def test_what_begins_before_the_escape_ends_at_it() -> None:
    text, [module] = read('SOURCE = """\nvoid f() {\n  g();\n  puts("\\x41");\n  twice<<<1, 2>>>(x);\n}\n"""\n')
    [function] = module.functions["f"]
    assert isinstance(function, Function)
    assert function.at[0] == 2
    assert function.at[2:] <= (4, 9)
    assert shown(text, call(module, "puts").name_at) == "puts"


def test_escaped_line_ends_are_read_as_lines() -> None:
    _, [module] = read(f"{IMPORT}load_inline('m', cuda_sources='#include <a.h>\\nvoid f() {{\\n  twice<<<1, 2>>>(x);\\n}}\\n')\n")
    assert module.includes == ("a.h", "torch/extension.h")
    assert launch(module).at[0] == 2


def test_several_literals_side_by_side_fall_back_to_the_first_line() -> None:
    code = 'SOURCE = (\n    "int count;\\n"\n    "void f() {\\n"\n    "  int n = 1;\\n"\n    "  twice<<<n, 2>>>(x);\\n"\n    "}\\n"\n)\n'
    text, [module] = read(code)
    [declared] = [node for node in walk(module.functions["f"][0]) if isinstance(node, Declare)]
    assert launch(module).name_at == declared.at == module.globals[0].at == (2, 5, 2, 19)
    assert shown(text, (2, 5, 2, 19)) == '"int count;\\n"'


def test_side_by_side_with_one_prefix_is_not_taken_for_one_literal() -> None:
    _, [module] = read("SOURCE = r'''\nvoid f() {\n  twice<<<1, 2>>>(x);\n''' r'''}\n\n'''\n")
    assert launch(module).name_at[:2] == (1, 10)


def test_places_of_members_fall_back_too() -> None:
    _, [module] = read('SOURCE = ("struct S {\\n  int size;\\n"\n "  void f() {\\n    twice<<<1, 2>>>(x);\\n  }\\n};\\n")\n')
    definition = module.classes["S"]
    assert {definition.at[0], definition.fields[0].at[0], definition.methods["f"][0].at[0]} == {1}


def test_a_null_character_in_a_string_is_no_obstacle() -> None:
    _, [module] = read('SOURCE = """\nchar end = \'\\0\';\nvoid f() {\n  twice<<<1, 2>>>(x);\n}\n"""\n')
    assert functions(module) == ["f"]
