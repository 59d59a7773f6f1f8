"""Sources that are made to overflow a stack, to fill the memory, or to take for ever; and one with a finding."""

from __future__ import annotations

MISUSE = """import torch


def run():
    y = torch.empty(1 << 20, device="cuda")
    host = y.to("cpu", non_blocking=True)
    return host.numpy()
"""
PYTHON_HEAD = "import torch\n\ns = torch.cuda.Stream()\n"
CUDA_HEAD = "#include <cuda_runtime.h>\n"
N = 10_000


def _chain(head: str, link: str, end: str = "s", number: int = N) -> str:
    return f"{PYTHON_HEAD}x = {head}{link * number}{end}\n"


def _nested(head: str, number: int, body: str = "pass") -> str:
    return PYTHON_HEAD + "".join(f"{' ' * depth}{head}\n" for depth in range(number)) + " " * number + body + "\n"


def _lines(head: str, line: str, number: int, end: str = "") -> str:
    return head + "".join(line.replace("%", str(index)) for index in range(number)) + end


def _macros(first: str, further: str, number: int, use: str) -> str:
    bodies = "".join(further.replace("<N>", str(index + 1)).replace("<M>", str(index)) for index in range(number))
    return f"{CUDA_HEAD}{first}\n{bodies}void f() {{ {use} }}\n"


WAIT = "cudaDeviceSynchronize();"
CONDITIONS, ENDS = "#if A\n" * N, "#endif\n" * N
IN_F = f"{CUDA_HEAD}void f(int a, cudaStream_t s) {{ "

PYTHON = {
    "brackets": _chain("(" * N, "1", ")" * N, 1),
    "brackets-190": _chain("(" * 190, "1", ")" * 190, 1),
    "unclosed": _chain("", "("),
    "squares": _chain("[" * N, "", "]" * N, 1),
    "braces": _chain("{" * N, "", "}" * N, 1),
    "minus": _chain("", "-"),
    "not": _chain("", "not "),
    "plus": _chain("", "1 + ", number=100_000),
    "plus-in-lines": f"{PYTHON_HEAD}x = (\n" + "    1 +\n" * N + "    1)\n",
    "dots-in-lines": f"{PYTHON_HEAD}x = (s\n" + "    .a\n" * N + ")\n",
    "powers": _chain("", "2 ** "),
    "attributes": _chain("s", ".a", ""),
    "calls": _chain("s", ".a()", ""),
    "empty-calls": _chain("s", "()", ""),
    "subscripts": _chain("s", "[0]", ""),
    "ternaries": _chain("", "1 if s else "),
    "lambdas": _chain("", "lambda: "),
    "ands": _chain("", "s and "),
    "compared": _chain("", "1 < "),
    "assigned": PYTHON_HEAD + "x = " * N + "s\n",
    "implicit-strings": _chain("", "'a' ", ""),
    "elif": f"{PYTHON_HEAD}if s: pass\n" + "elif s == 1: s.synchronize()\n" * 3_000,
    "ifs-99": _nested("if s:", 99),
    "ifs-1000": _nested("if s:", 1_000),
    "functions-90": _nested("def f():", 90, "s.synchronize()"),
    "loops-60": _nested("for i in range(3):", 60, "s.synchronize()"),
    "formats": PYTHON_HEAD + "x = " + 'f"{' * 100 + "1" + '}"' * 100 + "\n",
    "long-string": f"{PYTHON_HEAD}x = '{'a' * 5_000_000}'\n",
    "long-number": f"{PYTHON_HEAD}x = {'9' * 1_000_000}\n",
    "long-hex": f"{PYTHON_HEAD}x = 0x{'f' * 1_000_000}\ny = x * x * x\n",
    "tower": f"{PYTHON_HEAD}x = 9 ** 9 ** 9 ** 9\ny = 1 << (1 << 40)\nz = 'a' * (1 << 40)\nb = [0] * (1 << 40)\ns.synchronize()\n",
    "long-range": f"{PYTHON_HEAD}for i in range(1 << 62):\n    s.synchronize()\nx = list(range(1 << 40))\n",
    "long-function": _lines(f"{PYTHON_HEAD}def f(a):\n", "    x% = 1\n", 5_000, "    s.synchronize()\n"),
    "long-function-of-copies": _lines(f"{PYTHON_HEAD}def f(a):\n", "    x% = a.to('cuda', non_blocking=True)\n", 2_000),
    "branches": _lines(f"{PYTHON_HEAD}def f(a):\n", "    if a[%]:\n        s.synchronize()\n    else:\n        a = a.to('cuda')\n", 300),
    "calls-in-circles": "".join(  # more than calls are followed deep
        [PYTHON_HEAD, *(f"def f{i}(a):\n    f{(i + 1) % 30}(a)\n    f{(i + 2) % 30}(a)\n    s.synchronize()\n" for i in range(30))]
    ),
    "classes-in-circles": f"{PYTHON_HEAD}class A(B): pass\nclass B(A):\n    def m(self): s.synchronize(); self.q()\n",
    "imports-itself": f"{PYTHON_HEAD}from a import *\nfrom .a import f\nimport a\na.f()\n",
    "matches": _lines(f"{PYTHON_HEAD}match s:\n", "    case %: s.synchronize()\n", 1_000),
    "decorators": PYTHON_HEAD + "@s\n" * 3_000 + "def f(): pass\n",
    "large-table": _chain("{", "'a': s, ", "}", 20_000),
    "backslashes": PYTHON_HEAD + "\\\n" * N + "x = 1\n",
    "blanks": PYTHON_HEAD + " " * 500_000 + "\n" + "\t" * 500_000 + "\n",
    "hashes": PYTHON_HEAD + "#" * 1_000_000 + "\n",
    "quotes": PYTHON_HEAD + '"' * 100_001 + "\n",
    "mixed-quotes": PYTHON_HEAD + "'\"" * 50_000,
    "open-text": PYTHON_HEAD + '"""\\' * 20_000,
    "null": PYTHON_HEAD + "x = '\0'\n",
    "mark": "\ufeff" + PYTHON_HEAD,
    "marks": "\ufeff\ufeff" + PYTHON_HEAD,
    "carriage-returns": PYTHON_HEAD.replace("\n", "\r") + "def f():\r    s.synchronize()\r",
    "form-feeds": PYTHON_HEAD + "\f\nx = 1\f\n\f\n",
    "separators": PYTHON_HEAD + "x = '\u2028\u2029\x85'\ns.synchronize()\n",
    "suppressions": PYTHON_HEAD + "x = 1  # streamlint: ignore[" + "SL001, " * 20_000 + "] a\n",
}
CUDA = {
    "brackets": f"{CUDA_HEAD}int x = {'(' * N}1{')' * N};\n",
    "unclosed": f"{CUDA_HEAD}void f() {{ cudaDeviceSynchronize({'(' * N}",
    "braces": f"{CUDA_HEAD}void f() {'{' * N}{WAIT}{'}' * N}",
    "templates": f"{CUDA_HEAD}{'std::vector<' * N}int{'>' * N} x;\nvoid f() {{ {WAIT} }}",
    "ifs": f"{IN_F}{'if (a) ' * N}{WAIT} }}\n",
    "else-ifs": f"{IN_F}{f'if (a) {WAIT} else ' * 3_000}{WAIT} }}\n",
    "pointers": f"{CUDA_HEAD}int {'*' * N}x;\nvoid f() {{ {WAIT} }}",
    "nots": f"{IN_F}int x = {'!' * N}1; {WAIT} }}",
    "plus": f"{IN_F}int x = {'1 + ' * N}1; {WAIT} }}",
    "arrows": f"{IN_F}a{'->b' * N}; {WAIT} }}",
    "calls": f"{IN_F}a{'()' * N}; {WAIT} }}",
    "lambdas": f"{IN_F}auto x = {'[](){ return ' * 500}1;{'};' * 500} {WAIT} }}",
    "macro-bomb": _macros(f"#define A0 {WAIT}", "#define A<N> A<M> A<M>\n", 60, "A60"),
    "macro-bombs": _macros(f"#define A0 {WAIT}", "#define A<N> A<M> A<M>\n", 60, "A60 " * 20),
    "macro-bomb-of-functions": _macros("#define A0(x) x;", "#define A<N>(x) A<M>(x x) A<M>(x x)\n", 60, "A60(cudaDeviceSynchronize())"),
    "macro-bomb-of-arguments": _macros("#define D(x) x x", "", 0, "D(" * 40 + WAIT + ")" * 40),
    "macros-in-circles": _macros("#define A B\n#define B A", "", 0, f"A; {WAIT}"),
    "macro-of-itself": _macros("#define F(x) F(F(x))", "", 0, "F(F(F(cudaDeviceSynchronize())));"),
    "many-macros": _macros("", "#define M<N> <M>\n", 5_000, WAIT),
    "many-parameters": _macros(f"#define A({'a,' * 5_000}b) a", "", 0, f"A(1); {WAIT}"),
    "nested-conditions": f"{CUDA_HEAD}{CONDITIONS}void f() {{ {WAIT} }}\n{ENDS}",
    "unknown-conditions": f"{IN_F}\n" + f"#ifdef FOO_X\n{WAIT}\n#else\ncudaStreamSynchronize(0);\n#endif\n" * 1_000 + "}\n",
    "condition-brackets": f"{CUDA_HEAD}#if {'(' * N}1{')' * N}\nvoid f() {{ {WAIT} }}\n#endif\n",
    "condition-nots": f"{CUDA_HEAD}#if {'!' * N}1\nvoid f() {{ {WAIT} }}\n#endif\n",
    "condition-number": f"{CUDA_HEAD}#if {'9' * 100_000} * 9 / 0\nvoid f() {{ {WAIT} }}\n#endif\n",
    "condition-shift": f"{CUDA_HEAD}#if 1 << 99999999999\nvoid f() {{ {WAIT} }}\n#endif\n",
    "arrows-before-a-brace": f"{CUDA_HEAD}void f() {'-> ' * 60}@{{ {WAIT}\n#if FOO\nx;\n#else\ny;\n#endif\n}}\n",
    "includes-itself": f'#include "a.cu"\n#include "./a.cu"\n{IN_F}{WAIT} }}\n',
    "long-function": _lines(IN_F, "float* x%; cudaMalloc(&x%, 1024);\n", 3_000, "}\n"),
    "open-comments": CUDA_HEAD + "/*" * 100_000,
    "slashes": CUDA_HEAD + "/" * 200_000 + "\n",
    "stars": CUDA_HEAD + "/*" + "*" * 200_000 + "\n",
    "continued": CUDA_HEAD + "\\\n" * 50_000 + f"void f() {{ {WAIT} }}\n",
    "continued-macro": f"{CUDA_HEAD}#define A \\\n" + " \\\n" * 50_000 + f"void f() {{ {WAIT} }}\n",
    "raw-strings": CUDA_HEAD + 'R"(' * 50_000,
    "marked-raw-strings": CUDA_HEAD + 'R"aaaaaaaaaaaaaaaa(' * 5_000,
    "quotes": CUDA_HEAD + '"' * 100_001,
    "single-quotes": CUDA_HEAD + "'" * 100_001,
    "escaped-quotes": CUDA_HEAD + '"\\' * 50_000,
    "launches": f"{IN_F}k{'<<<1, 1>>>(); k' * 2_000}(); }}",
    "open-launches": CUDA_HEAD + "k<<<" * 10_000,
    "long-number": f"{IN_F}long x = {'9' * 1_000_000}; double y = 0x1p{'9' * 20}; {WAIT} }}",
    "long-string": f'{CUDA_HEAD}const char* x = "{"a" * 5_000_000}";\nvoid f() {{ {WAIT} }}',
    "null": CUDA_HEAD + "\0",
    "carriage-returns": CUDA_HEAD.replace("\n", "\r") + f"void f() {{\r {WAIT}\r}}\r",
    "initializer": f"{CUDA_HEAD}int x[] = {{{'1,' * 50_000}}};\nvoid f() {{ {WAIT} }}",
    "cases": _lines(f"{IN_F}switch (a) {{", f"case %: {WAIT} break;\n", 1_000, "} }"),
    "jumps": _lines(IN_F, f"L%: {WAIT} goto L1%;\n", 500, "}"),
    "loops": f"{IN_F}" + "".join(f"for (int i{i} = 0; i{i} < a; i{i}++) " for i in range(200)) + f"{WAIT} }}",
    "calls-in-circles": CUDA_HEAD
    + "".join(
        f"void f{(i + 1) % 30}(); void f{(i + 2) % 30}();\nvoid f{i}() {{ f{(i + 1) % 30}(); f{(i + 2) % 30}(); {WAIT} }}\n"
        for i in range(30)
    ),
}
