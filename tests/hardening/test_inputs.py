"""Each source that is made to break a linter ends within a bounded time, with findings inside of it or with a message."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time

import pytest
from hardening.inputs import CUDA, MISUSE, PYTHON
from waiting import within

import streamlint
from streamlint.config.settings import Resolver, Settings
from streamlint.findings import Report
from streamlint.runner import linter
from streamlint.support.lines import split_lines

SECONDS = 120  # of processor time for an input: the worst takes an eighth of it, nearly all others a hundredth


def lint(name: str, text: str) -> Report:
    with within(SECONDS):
        return linter.run_text(text.encode("utf-8", "surrogatepass"), name, Resolver(Settings.of(select=["ALL"])))


def looked_at(name: str, text: str) -> Report:
    """Findings lie inside of the text, and faults of the linter itself are none."""
    report = lint(name, text)
    lines = split_lines(text.removeprefix("\ufeff"))
    for finding in report.findings:
        span = finding.span
        assert 1 <= span.row <= span.end_row <= len(lines)
        assert 1 <= span.column <= len(lines[span.row - 1]) + 1
    assert not [text for text in _said(report) if "internal error" in text]
    return report


def _said(report: Report) -> list[str]:
    return [*(problem.message for problem in report.problems), *(finding.message for finding in report.findings)]


@pytest.mark.parametrize("name", PYTHON)
def test_python(name: str) -> None:
    looked_at("a.py", PYTHON[name])


@pytest.mark.parametrize("name", CUDA)
def test_cuda(name: str) -> None:
    looked_at("a.cu", CUDA[name])


@pytest.mark.parametrize("name", ["brackets", "minus", "plus", "plus-in-lines", "attributes", "calls", "implicit-strings", "null", "tower"])
def test_cython(name: str) -> None:
    looked_at("a.pyx", PYTHON[name])


@pytest.mark.parametrize("name", ["minus", "not", "plus", "plus-in-lines", "dots-in-lines", "powers", "ternaries", "assigned", "calls"])
def test_what_nests_without_brackets_is_read_or_left_out(name: str) -> None:
    """How deep is the parser's to say, and differs between versions of Python."""
    assert {finding.message for finding in looked_at("a.py", PYTHON[name]).findings} <= {"left out: code is nested too deeply"}


FIXED = ("brackets-190", "elif-900", "calls-900", "ifs-99", "functions-90", "long-function")


@pytest.mark.parametrize("name", FIXED)
def test_fixes_beside_it(name: str) -> None:
    """What edits the file reads all of it once more."""
    more = {"elif-900": "if s: pass\n" + "elif s == 1: pass\n" * 900, "calls-900": "s" + ".a()" * 900 + "\n"}
    text = MISUSE + (more[name] if name in more else PYTHON[name])
    with within(SECONDS):
        report = linter.run_text(text.encode(), "a.py", Resolver(Settings.of(select=["SL005"])), fixes=True)
    assert [finding.code for finding in report.findings] == ["SL005"]
    assert not [problem.message for problem in report.problems if "internal error" in problem.message]


LINKS = {".a()": 1_000, ".a": 2_000, "[0]": 1_000, "()": 1_000, " + q": 2_000, ".a(1)[0].b": 300, ".to(q).cuda()": 250}
USES = ("z = {}", "if {}: pass", "for z in {}: f(z)", "with {} as z: f(z)", "f({}, host)", "q.b = {}", "{}.b = 1", "event.record({})")


@pytest.mark.parametrize("link", LINKS)
def test_chains_of_a_thousand_calls_are_followed_in_python(link: str) -> None:
    """Findings before and behind, and nothing is left out."""
    chain = "q" + link * LINKS[link]
    text = MISUSE.replace("def run():\n", f"def run(q):\n    event = torch.cuda.Event()\n    {chain}\n")
    assert [finding.code for finding in looked_at("a.py", text).findings] == ["SL005"]
    assert looked_at("a.py", text).problems == []


@pytest.mark.parametrize("use", USES)
def test_chains_wherever_they_stand(use: str) -> None:
    """As many links as there may be frames: what takes a frame for each is found out."""
    place = use.format("q" + ".a()" * 500)
    text = f"{MISUSE}    event = torch.cuda.Event()\n    {place}\n\n\nrun(torch.zeros(1))\n".replace("run():", "run(q):")
    assert looked_at("a.py", text).problems == []


@pytest.mark.parametrize("link", ["->a()", ".a().b", "[0]", "()", " << q", " + q"])
def test_chains_of_a_thousand_calls_are_followed_in_cpp(link: str) -> None:
    chain = "q" + link * 1_000
    text = (
        "#include <cuda_runtime.h>\nvoid run(Q& q, float* d) {\n  float* h = new float[1 << 20];\n"
        f"  cudaMemcpyAsync(h, d, 4 << 20, cudaMemcpyDeviceToHost, 0);\n  {chain};\n  use(h[0]);\n  auto x = {chain};\n}}\n"
    )
    report = looked_at("a.cu", text)
    assert [finding.code for finding in report.findings if finding.span.row == 4] != []
    assert report.problems == []


def test_a_class_that_makes_itself() -> None:
    """Never in a program that ends; where it stands in a file, the file is looked at all the same."""
    members = "A x = A(); A* next = new A(); A y; std::unique_ptr<A> z = std::make_unique<A>();"
    body = "cudaMallocHost(&h, 4 << 20); cudaMemcpyAsync(h, d, 4 << 20, cudaMemcpyDeviceToHost, s);\n  use(h[0]);"
    for head in ("", "A() : y(A()) {}", "A(int a) : y(A(a - 1)) {}"):
        text = f"#include <cuda_runtime.h>\nclass A {{ {head} {members}\n void m(cudaStream_t s, float* h, float* d) {{ {body} }} }};\n"
        report = looked_at("a.cu", text + "void f() { A a; A b(1); A c = A(); a.m(0, 0, 0); }\n")
        assert report.problems == []
        assert ("SL005", 4) in [(finding.code, finding.span.row) for finding in report.findings]


DEEP = {
    "an arm": ("def f(q, c, y):\n    x = q{0} if c else y\n    torch.cuda.synchronize()\n    return x\n", ".a" * 2_000),
    "a size": (
        "def f(model, opt, data, q):\n    for x in data:\n        loss = model(x.cuda()).sum()\n        loss.backward()\n"
        "        opt.step()\n"
        "        n = loss.item()\n        y = x[q{0}]\n        print(n, y)\n",
        " + 1" * 2_000,
    ),
    "a sum of options": (
        "from torch.utils.cpp_extension import CUDAExtension\nflags = ['-O3']{0}\n"
        "CUDAExtension('a', ['a.cu'], extra_compile_args={{'nvcc': flags}})\ntorch.cuda.synchronize()\n",
        " + ['-g']" * 1_000,
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_chains_in_what_is_looked_through_beside_the_paths(name: str) -> None:
    text, chain = DEEP[name]
    assert looked_at("a.py", "import torch\n" + text.format(chain)).problems == []


def test_chains_of_getters() -> None:
    getter = "at::cuda::getCurrentCUDAStream()" + ".stream()" * 1_000
    text = f"#include <ATen/cuda/CUDAContext.h>\nclass A {{ cudaStream_t s_ = {getter}; void m(float* d) {{ k<<<1, 1, 0, s_>>>(d); }} }};\n"
    assert looked_at("a.cu", text).problems == []


def test_terms_stay_short() -> None:
    """A sum of long chains is a text of megabytes, and each step of it would copy all of it."""
    chain = "q" + ".a" * 2_000
    text = f"import torch\n\n\ndef f(q):\n    m = {chain}\n    n = m{' + m' * 2_000}\n    torch.cuda.synchronize()\n    return n\n"
    assert looked_at("a.py", text).problems == []


def test_many_functions_on_one_line() -> None:
    """Nothing that is kept of one of them is as long as the line."""
    text = "#include <cuda_runtime.h>\n" + "".join(f"class A{index} {{ cudaStream_t s; void m(); }}; " for index in range(20_000)) + "\n"
    assert looked_at("a.cu", text).problems == []


def test_large_tables_are_no_chains() -> None:
    assert looked_at("a.py", PYTHON["large-table"]).problems == []
    assert looked_at("a.py", "import torch.cuda\nx = [\n" + "    -1 + 2,\n" * 3_000 + "]\n").problems == []


LONG = 26_000  # statements


@pytest.mark.parametrize(
    ("name", "head", "line", "end"),
    [
        ("a.py", "import torch\ndef f(a):\n", "    x = 1\n", '    a.to("cuda", non_blocking=True)\n'),
        (
            "a.cu",
            "#include <cuda_runtime.h>\nvoid f(int* x, int* d) {\n",
            "  x[0] = 1;\n",
            "  cudaMemcpyAsync(x, d, 4, cudaMemcpyDeviceToHost, 0);\n}\n",
        ),
    ],
)
def test_a_long_function_is_followed_to_its_end(name: str, head: str, line: str, end: str) -> None:
    long, short = (looked_at(name, head + line * count + end) for count in (LONG, 100))
    assert long.problems == short.problems == []
    assert [finding.code for finding in long.findings] == [finding.code for finding in short.findings]


# Encodings ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "coding", ["idna", "punycode", "undefined", "hex", "rot13", "utf-16", "utf-32", "utf-7", "unicode_escape", "zip", "x" * 5000]
)
def test_declared_encodings(coding: str) -> None:
    data = f"# coding: {coding}\nimport torch.cuda\n".encode() + b"x = 'xn--\xff\xfe'  # " + b"a-" * 200_000
    with within(SECONDS):
        report = linter.run_text(data, "a.py", Resolver(Settings()))
    unread = [finding.span.row for finding in report.findings if finding.code == "SL000"]
    assert unread == ([] if coding == "unicode_escape" else [1])


@pytest.mark.parametrize("name", ["a.py", "a.cu", "a.pyx"])
@pytest.mark.parametrize(
    "data", [bytes(range(256)) * 40, b"\xff\xfe" + "import torch.cuda".encode("utf-16-le"), b"torch.cuda " + b"\xed\xa0\x80" * 99]
)
def test_bytes_that_are_no_text(name: str, data: bytes) -> None:
    with within(SECONDS):
        report = linter.run_text(data + b" torch.cuda cudaMalloc", name, Resolver(Settings()))
    assert all("internal error" not in text for text in _said(report))


# Regular expressions ------------------------------------------------------------------------------------------------------------

LENGTH = 800
REPEATED = (
    *(
        " ",
        "\n",
        "\\\n",
        "a",
        "A",
        "_",
        "1",
        "(",
        "[",
        "{",
        "}",
        "<",
        ">",
        '"',
        "'",
        '"""',
        "/*",
        "*/",
        "//",
        "#",
        "\\",
        '\\"',
        ",",
        ";",
        ":",
    ),
    *(
        "::",
        "=",
        "*",
        "&",
        " a",
        " a,",
        "a.",
        "a(",
        "()",
        "const ",
        "-> ",
        "->a ",
        "\r",
        'R"(',
        "##",
        "#if ",
        "#define A ",
        "<<<",
        "0x",
        "!",
    ),
    *("template<", "torch.", "add_library(", "set(", "# noqa: SL001,", "streamlint: ignore["),
)
BEGUN = ("", '"', "(", ")", "#")


def patterns() -> dict[str, re.Pattern[str] | re.Pattern[bytes]]:
    """All that are compiled when a module of streamlint is imported, those in tables among them."""
    found = {}
    for module in pkgutil.walk_packages(streamlint.__path__, "streamlint."):
        if ".snippets" in module.name or module.name.endswith("__main__") or module.name.startswith("streamlint.server"):
            continue
        try:
            values = vars(importlib.import_module(module.name)).items()
        except ImportError:  # of what is optional
            continue
        for name, value in values:
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else (value,)
            for number, each in enumerate(inner):
                if isinstance(each, re.Pattern):
                    found[f"{module.name}.{name}.{number}"] = each
    return {name: each for name, each in found.items() if list(found.values()).index(each) == list(found).index(name)}


def test_no_pattern_is_slow_on_what_is_made_for_it() -> None:
    """Quadratic is allowed at this length, for files have a limit on time; exponential or cubic is not."""
    slow = []
    with within(400):
        for name, pattern in patterns().items():
            for piece in REPEATED:
                for begun in BEGUN:
                    text = begun + piece * (LENGTH // len(piece) // (1 if len(piece) < 3 else 2)) + "\x01"
                    subject = text.encode() if isinstance(pattern.pattern, bytes) else text
                    start = time.process_time()
                    for _ in pattern.finditer(subject):  # type: ignore[arg-type]
                        pass
                    if time.process_time() - start > 1.0:
                        slow.append((name, begun, piece))
    assert slow == []
