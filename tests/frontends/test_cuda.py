"""C++ and CUDA in, a short text of the lowered program out."""

from __future__ import annotations

import textwrap

import pytest

from streamlint.frontends import LOST, UnreadableSource
from streamlint.frontends.cuda import lower
from streamlint.program import (
    AddressOf,
    Arg,
    AssignExpr,
    Attr,
    Await,
    Binary,
    Block,
    Body,
    Bool,
    Break,
    Call,
    Cast,
    ClassDef,
    Collection,
    Compare,
    Conditional,
    Const,
    Construct,
    Continue,
    Declare,
    DeleteExpr,
    Deref,
    Expression,
    ExprStatement,
    Function,
    If,
    Index,
    Lambda,
    Launch,
    Loop,
    Module,
    Name,
    New,
    Position,
    Raise,
    Return,
    Statement,
    Switch,
    Try,
    Type,
    Unary,
    Unknown,
    walk,
)

# --- a short text for what was lowered ------------------------------------------------------------------------------------------


def kind(given: Type | None) -> str:
    if given is None:
        return "?"
    args = f"<{', '.join(map(kind, given.args))}>" if given.args else ""
    array = "" if given.array is None else f"[{given.array or ''}]"
    return given.name + args + "*" * given.pointers + "&" * given.reference + array


def listed(args: tuple[Arg, ...] | tuple[Expression, ...] | None) -> str:
    return ", ".join(argument(each) if isinstance(each, Arg) else show(each) for each in args or ())


def argument(arg: Arg) -> str:
    return (f".{arg.keyword}=" if arg.keyword else "") + show(arg.value) + "..." * arg.stars


def show(node: Expression | None) -> str:
    match node:
        case None:
            return ""
        case Const(value):
            return repr(value)
        case Name(name):
            return name
        case Attr(value, name, arrow):
            return f"{show(value)}{'->' if arrow else '.'}{name}"
        case Index(value, indices):
            return f"{show(value)}[{listed(indices)}]"
        case Call(function, args, _, template):
            given = ", ".join(kind(one) if isinstance(one, Type) else show(one) for one in template)
            return f"{show(function)}{f'<{given}>' if given else ''}({listed(args)})"
        case Launch(kernel, config, args):
            return f"{show(kernel)}<<<{listed(config)}>>>({listed(args)})"
        case Unary(op, operand):
            return f"({op} {show(operand)})"
        case Binary(op, left, right) | Compare(op, left, right):
            return f"({show(left)} {op} {show(right)})"
        case Bool(op, values):
            return "(" + f" {op} ".join(map(show, values)) + ")"
        case Conditional(test, then, otherwise):
            return f"({show(test)} ? {show(then)} : {show(otherwise)})"
        case Lambda(function):
            return f"[]({', '.join(param.name for param in function.params)}){{{' '.join(lines(function.body))}}}"
        case Collection(_, items):
            return "{" + listed(items) + "}"
        case AssignExpr(target, value, op):
            return f"({show(target)} {op or ''}= {show(value)})"
        case AddressOf(value):
            return f"&{show(value)}"
        case Deref(value):
            return f"*{show(value)}"
        case Cast(type_, value):
            return f"cast<{kind(type_)}>({show(value)})"
        case New(type_, args, count):
            return f"new {kind(type_)}({listed(args)})" + (f"[{show(count)}]" if count else "")
        case DeleteExpr(value, array):
            return f"delete{'[]' if array else ''} {show(value)}"
        case Construct(type_, args):
            return f"{kind(type_)}{{{listed(args)}}}"
        case Await(value):
            return f"co_await {show(value)}"
        case Unknown(parts):
            return f"?({listed(parts)})"
    raise AssertionError(node)


def lines(body: Body) -> list[str]:
    return [line for statement in body for line in said(statement)]


def braced(head: str, body: Body) -> list[str]:
    return [f"{head} {{", *("  " + line for line in lines(body)), "}"]


def said(statement: Statement) -> list[str]:
    match statement:
        case ExprStatement(value):
            return [show(value) + ";"]
        case Declare():
            return [declared(statement)]
        case If(test, then, otherwise):
            return braced(f"if {show(test)}", then) + (braced("else", otherwise) if otherwise else [])
        case Loop():
            return looped(statement)
        case Block(body):
            return braced("", body)
        case Return(value):
            return [f"return {show(value)};"]
        case Raise(value):
            return [f"throw {show(value)};"]
        case Break():
            return ["break;"]
        case Continue():
            return ["continue;"]
        case Switch(subject, cases):
            found = [line for labels, body in cases for line in braced(f"case {listed(labels)}:", body)]
            return [f"switch {show(subject)} {{", *("  " + line for line in found), "}"]
        case Try(body, handlers):
            caught = [line for each in handlers for line in braced(f"catch {show(each.type)} {each.name}", each.body)]
            return braced("try", body) + caught
        case ClassDef(definition):
            return [f"class {definition.qualname};"]
    raise AssertionError(statement)


def looped(loop: Loop) -> list[str]:
    if loop.kind == "c-for":
        return braced(f"for ({' '.join(lines(loop.init))} {show(loop.test)}; {show(loop.update)})", loop.body)
    if loop.kind == "for":
        return braced(f"for ({show(loop.target)} : {show(loop.iterable)})", loop.body)
    return braced(f"{loop.kind} {show(loop.test)}", loop.body)


def declared(node: Declare) -> str:
    name = node.name or f"[{', '.join(node.names)}]"
    value = f" = {show(node.value)}" if node.value else ""
    args = "" if node.args is None else f"({listed(node.args)})"
    return f"{'static ' if node.static else ''}{kind(node.type)} {name}{args}{value};"


def module(source: str) -> Module:
    return lower("a.cu", textwrap.dedent(source))


def body_of(source: str, name: str = "f") -> str:
    (function,) = module(source).functions[name]
    return "\n".join(lines(function.body))


def inside(statements: str, before: str = "") -> str:
    """What the statements of a function become; ``before`` stands at file scope."""
    return body_of(f"{before}\nvoid f() {{\n{textwrap.dedent(statements)}\n}}\n")


def signature(function: Function) -> str:
    params = ", ".join(
        f"{kind(param.type)} {param.name}" + (f" = {show(param.default)}" if param.default else "") for param in function.params
    )
    return f"{function.space} {kind(function.returns)} {function.qualname}({params})"


def cut(source: str, at: Position) -> str:
    """The source between two places on one line."""
    assert at[0] == at[2]
    return source.split("\n")[at[0] - 1][at[1] - 1 : at[3] - 1]


def names(source: str) -> list[str]:
    """The source at each call's and launch's ``name_at``."""
    found = [node for each in _functions(lower("a.cu", source)) for node in walk(each) if isinstance(node, Call | Launch)]
    return [cut(source, node.name_at) for node in sorted(found, key=lambda node: node.name_at)]


def _functions(lowered: Module) -> list[Function]:
    return [function for functions in lowered.functions.values() for function in functions]


# --- expressions ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "lowered"),
    [
        ("cudaFree(p)", "cudaFree(p)"),
        ("::cudaFree(p)", "cudaFree(p)"),
        ("at::cuda::getCurrentCUDAStream().stream()", "at::cuda::getCurrentCUDAStream().stream()"),
        ("f<float, 4>(x)", "f<float, 4>(x)"),
        ("ns::C<int>::make<T>(x)", "ns::C::make<T>(x)"),
        ("t->template data<float>()", "t->data<float>()"),
        ("this->stream_", "this->stream_"),
        ("p->q.r[i + 1]", "p->q.r[(i + 1)]"),
        ("p[]", "p[?()]"),
        ("*p", "*p"),
        ("&p[0]", "&p[0]"),
        ("!a && (b || c)", "((not a) and (b or c))"),
        ("a < b ? 1 : 2", "((a < b) ? 1 : 2)"),
        ("x += 2", "(x += 2)"),
        ("++x", "(x += 1)"),
        ("x--", "(x -= 1)"),
        ("a = b = c", "(a = (b = c))"),
        ("a(), b()", "(a() , b())"),
        ("(float*)p", "cast<float*>(p)"),
        ("static_cast<char*>(p) + 1", "(cast<char*>(p) + 1)"),
        ("reinterpret_cast<cudaStream_t>(h)", "cast<cudaStream_t>(h)"),
        ("size_t(3)", "cast<size_t>(3)"),
        ("y = unsigned(n)", "(y = cast<unsigned>(n))"),
        ("sizeof(float) * n", "(sizeof(float) * n)"),
        ("new T(1, 2)", "new T(1, 2)"),
        ("new float[n]", "new float()[n]"),
        ("delete[] p", "delete[] p"),
        ("T{a, b}", "T{a, b}"),
        ("std::vector<float>(n)", "std::vector<float>{n}"),
        ("f({1, 2})", "f({1, 2})"),
        ("f(args...)", "f(args...)"),
        ("c = Config{.grid = g, .stream = s}", "(c = Config{.grid=g, .stream=s})"),
        ('f(0x10u, 1.5f, 1\'000, 010, 1e3, \'c\', "a" "b")', "f(16, 1.5, 1000, 8, 1000.0, 'c', 'ab')"),
        ("f(nullptr, NULL, true)", "f(None, None, True)"),
        ("(*fp)(1)", "*fp(1)"),
        ("[&](int i) { g(i); }(3)", "[](i){g(i);}(3)"),
        ("std::thread([=] { w(); })", "std::thread([](){w();})"),
        ("co_await x", "co_await x"),
        ("f(std::forward<T>(x)...)", "f(std::forward<T>(x)...)"),
    ],
)
def test_expression(written: str, lowered: str) -> None:
    assert inside(f"{written};") == f"{lowered};"


@pytest.mark.parametrize(
    ("written", "lowered"),
    [
        ("k<<<1, 2>>>(x)", "k<<<1, 2>>>(x)"),
        ("k << <1, 2, 0, s >> >(x)", "k<<<1, 2, 0, s>>>(x)"),
        ("k<float, 4><<<dim3(1, 2), 32, n * sizeof(float), s>>>(x, y)", "k<<<dim3(1, 2), 32, (n * sizeof(float)), s>>>(x, y)"),
        ("ns::k<T><<<g, b>>>()", "ns::k<<<g, b>>>()"),
        ("(*kp)<<<g, b>>>(1)", "*kp<<<g, b>>>(1)"),
        ("table[i].kernel<<<g, b, 0, 0>>>(1)", "table[i].kernel<<<g, b, 0, 0>>>(1)"),
    ],
)
def test_launch(written: str, lowered: str) -> None:
    assert inside(f"{written};") == f"{lowered};"


def test_launch_over_several_lines_points_at_the_kernel() -> None:
    source = "void f() {\n  ns::scale<float>\n      <<<grid,\n         block, 0,\n         stream>>>(p);\n}\n"
    assert names(source) == ["scale"]


# --- declarations ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "lowered"),
    [
        ("T* p = nullptr, q[3];", ["T* p = None;", "T[3] q;"]),
        ("const std::vector<cudaStream_t>& v = a;", ["std::vector<cudaStream_t>& v = a;"]),
        ("unsigned long n = 3;", ["unsigned long n = 3;"]),
        ("auto x = f(1);", ["auto x = f(1);"]),
        ("auto [a, b] = pair();", ["auto [a, b] = pair();"]),
        ("static cudaStream_t s;", ["static cudaStream_t s;"]),
        ("cudaEvent_t e[n];", ["cudaEvent_t[] e;"]),
        ("dim3 grid(1, n);", ["dim3 grid(1, n);"]),
        ("T x{a, b};", ["T x(a, b);"]),
        ("T x{};", ["T x();"]),
        ("T x = {a, b};", ["T x = {a, b};"]),
        ("struct cudaDeviceProp p;", ["cudaDeviceProp p;"]),
        ("void (*fp)(int) = &g;", ["void* fp = &g;"]),
        ("void (*fp)(cudaStream_t, State) = g;", ["void* fp = g;"]),
        ("cudaError_t (*fp)(cudaStream_t) = &g;", ["cudaError_t* fp = &g;"]),
        ("void (*fp)(cudaStream_t);", ["void* fp;"]),
        ("found(*at)(b);", ["found(*at)(b);"]),
        ("int g(int n);", []),
    ],
)
def test_declaration(written: str, lowered: list[str]) -> None:
    assert inside(written).splitlines() == lowered


@pytest.mark.parametrize(
    ("written", "lowered"),
    [
        ("T x(a);", "T x(a);"),
        ("std::lock_guard<std::mutex> lock(mu);", "std::lock_guard<std::mutex> lock(mu);"),
        ("Foo x(n * m, a);", "Foo x((n * m), a);"),
        ("Guard g(Other(a));", "Guard g(Other(a));"),
        ("T x();", ""),
        ("T x(int);", ""),
        ("T x(A a);", ""),
    ],
)
def test_vexing_declaration(written: str, lowered: str) -> None:
    assert inside(written) == lowered


def test_array_size_may_be_a_macro() -> None:
    assert inside("cudaStream_t s[N];", before="#define N 4") == "cudaStream_t[4] s;"


# --- statements -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "lowered"),
    [
        ("if (a) b(); else if (c) { d(); }", "if a {\n  b();\n}\nelse {\n  if c {\n    d();\n  }\n}"),
        ("if constexpr (A) b();", "if A {\n  b();\n}"),
        ("if (auto e = g(); e != 0) return;", " {\n  auto e = g();\n  if (e != 0) {\n    return ;\n  }\n}"),
        ("if (T* p = g()) h(p);", " {\n  T* p = g();\n  if p {\n    h(p);\n  }\n}"),
        ("for (int i = 0; i < n; ++i) g(i);", "for (int i = 0; (i < n); (i += 1)) {\n  g(i);\n}"),
        ("for (;;) { break; }", "for ( ; ) {\n  break;\n}"),
        ("for (auto& x : v) g(x);", "for (x : v) {\n  g(x);\n}"),
        ("for (auto [k, v] : m) g(k);", "for ({k, v} : m) {\n  g(k);\n}"),
        ("while (a()) continue;", "while a() {\n  continue;\n}"),
        ("do { a(); } while (b);", "do b {\n  a();\n}"),
        ("do { a(); } while (0);", " {\n  a();\n}"),
        ("do { if (x) break; a(); } while (0);", "do 0 {\n  if x {\n    break;\n  }\n  a();\n}"),
        ("while (auto p = g()) h(p);", " {\n  auto p;\n  while (p = g()) {\n    h(p);\n  }\n}"),
        ("{ T x; }", " {\n  T x;\n}"),
        ('throw std::runtime_error("x");', "throw std::runtime_error('x');"),
        ("end: a(); goto end;", "a();"),
        ("if (!ok) [[unlikely]] { a(); }", "if (not ok) {\n  a();\n}"),
        (
            "try { a(); } catch (const E& e) { b(); } catch (...) { throw; }",
            "try {\n  a();\n}\ncatch E e {\n  b();\n}\ncatch  None {\n  throw ;\n}",
        ),
    ],
)
def test_statement(written: str, lowered: str) -> None:
    assert inside(written) == lowered


def test_switch_spells_out_fall_through() -> None:
    assert inside("switch (x) { case 1: case 2: a(); case 3: { b(); break; } case 4: return; default: c(); }") == textwrap.dedent("""\
        switch x {
          case 1, 2: {
            a();
             {
              b();
            }
          }
          case 3: {
             {
              b();
            }
          }
          case 4: {
            return ;
          }
          case : {
            c();
          }
        }""")


def test_class_inside_a_function() -> None:
    lowered = module("void f() { struct L { int n; void g() { h(); } } one; }")
    assert "\n".join(lines(lowered.functions["f"][0].body)) == "class L;\nL one;"


# --- definitions ----------------------------------------------------------------------------------------------------------------


def test_names_join_namespaces_and_classes() -> None:
    lowered = module("""
        namespace a::b { namespace { void f() {} } class C { void g() {} struct In { void h() {} }; }; }
        void a::b::C::g2() {}
    """)
    assert sorted(lowered.functions) == ["a::b::C::g2", "a::b::f"]
    assert lowered.classes["a::b::C"].methods["g"][0].qualname == "a::b::C::g"
    assert lowered.classes["a::b::C"].classes["In"].methods["h"][0].class_name == "a::b::C::In"


def test_method_outside_joins_its_class() -> None:
    lowered = module("""
        namespace n {
        class A { public: A(int a); ~A(); void f(); int a_; };
        A::A(int a) : a_(a) {}
        A::~A() { cudaFree(p); }
        template <typename T> void A::f() {}
        }
    """)
    methods = lowered.classes["n::A"].methods
    assert sorted(methods) == ["__del__", "__init__", "f"]
    assert methods["f"] == lowered.functions["n::A::f"]
    assert [(name, listed(args)) for name, args in methods["__init__"][0].initialisers] == [("a_", "a")]
    assert (methods["__init__"][0].kind, methods["__del__"][0].kind) == ("constructor", "destructor")
    assert methods["f"][0].template == ("T",)


def test_namespace_function_defined_outside_is_no_method() -> None:
    assert module("namespace n { void f(); }\nvoid n::f() {}").functions["n::f"][0].class_name == ""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("__global__ void f(float* p, int n) { k<<<1, 1>>>(); }", "kernel void f(float* p, int n)"),
        ("template <int N> __global__ __launch_bounds__(256, 2) void f(const T* __restrict__ p) {}", "kernel void f(T* p)"),
        ("static __device__ int f() { return 1; }", "device int f()"),
        ("__host__ __device__ int f() { return 1; }", "host int f()"),
        ("CUTLASS_DEVICE int f() { return 1; }", "device int f()"),
        ("auto f(int a = 3) -> cudaError_t { return g(a); }", "host cudaError_t f(int a = 3)"),
        ("std::unique_ptr<T> f(std::vector<T>&& v, T&) {}", "host std::unique_ptr<T> f(std::vector<T>& v, T& )"),
        ("cudaError_t CUDART_CB __stdcall f(void* p) {}", "host cudaError_t f(void* p)"),
        ("MY_API const char* f() {}", "host char* f()"),
        ('__attribute__((visibility("default"))) [[nodiscard]] int f() { return 1; }', "host int f()"),
        ('extern "C" int f(int a[3]) { return 1; }', "host int f(int[3] a)"),
        ("T* f() { return p; }", "host T* f()"),
    ],
)
def test_signature(written: str, expected: str) -> None:
    (function,) = module(written).functions["f"]
    assert signature(function) == expected
    assert function.body == [] or function.space == "host"


def test_module_macro_names_its_parameters() -> None:
    (function,) = module('PYBIND11_MODULE(_ext, m) { m.def("f", &f, py::call_guard<py::gil_scoped_release>()); }').functions[
        "PYBIND11_MODULE"
    ]
    assert [param.name for param in function.params] == ["_ext", "m"]
    assert lines(function.body) == ["m.def('f', &f, py::call_guard<py::gil_scoped_release>());"]


def test_fields() -> None:
    definition = module("""
        class Pool : public Base<int>, private ns::Other {
          cudaStream_t stream_ = nullptr, other_;
          std::vector<cudaEvent_t> events_{4};
          static int count;
          void* slots_[8];
          union { int a; float b; };
          void (*callback_)(void*) = nullptr;
          Pool(const Pool&) = delete;
          virtual void run() = 0;
        };
    """).classes["Pool"]
    assert [show(base) for base in definition.bases] == ["Base", "ns::Other"]
    told = [
        f"{kind(each.type)} {each.name}|{show(each.value)}|{'' if each.args is None else listed(each.args)}" for each in definition.fields
    ]
    assert told == [
        "cudaStream_t stream_|None|",
        "cudaStream_t other_||",
        "std::vector<cudaEvent_t> events_||4",
        "int count||",
        "void*[8] slots_||",
        "int a||",
        "float b||",
        "void* callback_|None|",
    ]
    assert definition.fields[3].static
    assert definition.methods == {}


def test_defaults_of_a_declaration_go_to_the_definition() -> None:
    lowered = module("""
        void f(int n, cudaStream_t s = 0);
        struct A { void g(cudaStream_t s = nullptr); };
        void f(int n, cudaStream_t s) {}
        void A::g(cudaStream_t s) {}
    """)
    assert [signature(function) for function in lowered.functions["f"]] == ["host void f(int n, cudaStream_t s = 0)"]
    assert signature(lowered.classes["A"].methods["g"][0]) == "host void A::g(cudaStream_t s = None)"


def test_a_declaration_alone_has_no_body() -> None:
    (function,) = module("void f(int n, cudaStream_t s = 0);").functions["f"]
    assert signature(function) == "host void f(int n, cudaStream_t s = 0)"
    assert function.body == []


def test_overloads_share_a_name() -> None:
    assert [signature(each) for each in module("void f(int a) {}\nvoid f(float a) {}").functions["f"]] == [
        "host void f(int a)",
        "host void f(float a)",
    ]


def test_file_scope() -> None:
    lowered = module("""
        #include <cuda_runtime.h>
        #include "x/y.cuh"
        using namespace std;
        using Vec = std::vector<float>;
        typedef cudaStream_t Stream;
        using at::Tensor;
        namespace py = pybind11;
        __constant__ float weights[16];
        namespace n { static cudaStream_t stream = nullptr, *other; }
        extern int elsewhere;
        typedef struct { int n; } Pair;
        enum class E { A, B };
    """)
    assert lowered.includes == ("cuda_runtime.h", "x/y.cuh")
    assert lowered.using == ("std",)
    assert {name: kind(alias) for name, alias in lowered.aliases.items()} == {
        "Vec": "std::vector<float>",
        "Stream": "cudaStream_t",
        "Tensor": "at::Tensor",
    }
    assert lowered.namespaces == {"py": "pybind11"}
    assert [declared(each) for each in lowered.globals] == [
        "float[16] weights;",
        "static cudaStream_t n::stream = None;",
        "static cudaStream_t* n::other;",
    ]
    assert [each.name for each in lowered.classes["Pair"].fields] == ["n"]


def test_device_lambda_has_no_body() -> None:
    told = inside(
        "each(n, [=] __device__ (int i) { g(i); }); each(n, [=] __host__ __device__ (int i) { g(i); }); each([] __device__ { g(); });"
    )
    assert told == "each(n, [](i){});\neach(n, [](i){g(i);});\neach([](){});"


# --- preprocessor ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "lowered"),
    [
        ("#if 0\na();\n#endif\nb();", "b();"),
        ("#ifdef USE_ROCM\na();\n#else\nb();\n#endif", "b();"),
        ("#if defined(__HIP_PLATFORM_AMD__) || defined(USE_HIP)\na();\n#elif 1\nb();\n#else\nc();\n#endif", "b();"),
        ("#ifndef __CUDA_ARCH__\na();\n#else\nb();\n#endif", "a();"),
        ("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700\na();\n#endif\nb();", "b();"),
        ("#ifndef NDEBUG\na();\n#endif\nb();", "b();"),
        ("#ifdef DEBUG\na();\n#endif\nb();", "b();"),
        ("#if CUDART_VERSION >= 11020\na();\n#else\nb();\n#endif", "a();"),
        ("#ifdef WITH_X\na();\n#endif", "a();"),
        ("#ifdef WITH_X\na();\n#else\nb();\n#endif\nc();", "if ?() {\n  a();\n}\nelse {\n  b();\n}\nc();"),
        ("#ifdef WITH_X\nint n = a();\n#else\nint n = b();\n#endif\nc(n);", "int n = a();\nc(n);"),
        (
            "#ifdef WITH_X\nint n = a();\nb(n);\n#else\nint m = c();\nd(m);\n#endif",
            "if ?() {\n  int n = a();\n  b(n);\n}\nelse {\n  int m = c();\n  d(m);\n}",
        ),
        (
            "#ifdef WITH_X\na();\n#if 0\nb();\n#endif\n#else\nc();\n#if 0\nd();\n#endif\n#endif\ne();",
            "if ?() {\n  a();\n}\nelse {\n  c();\n}\ne();",
        ),
        (
            "#ifdef WITH_X\na();\n#else\n#pragma unroll\nfor (;;) b();\n#ifdef WITH_Y\nc();\n#else\nd();\n#endif\n#endif",
            "if ?() {\n  a();\n}\nelse {\n  for ( ; ) {\n    b();\n  }\n  if ?() {\n    c();\n  }\n  else {\n    d();\n  }\n}",
        ),
        ("#ifdef WITH_X\na();\n#else\n#ifdef WITH_Y\nb();\n#else\n#error none\n#endif\n#endif", "if ?() {\n  a();\n}\nelse {\n  b();\n}"),
        ("#ifdef WITH_X\na();\n#else\n#error none\n#endif\nb();", "a();\nb();"),
        ("#ifdef WITH_X\na();\n#else\n#define N 1\nb(N);\n#ifdef WITH_Y\nc();\n#else\nd();\n#endif\n#endif\ne();", "a();\ne();"),
        (
            "#ifdef WITH_X\nif (a) {\n#else\nif (b) {\n#endif\nc();\n}\n#ifdef WITH_Y\nd();\n#else\ne();\n#endif",
            "if a {\n  c();\n}\nif ?() {\n  d();\n}\nelse {\n  e();\n}",
        ),
        ("x = y +\n#ifdef WITH_X\n1;\n#else\n2;\n#endif", "(x = (y + 1));"),
        ("#if ONE\na();\n#elif TWO\nb();\n#endif", "a();"),
        ("#pragma unroll\nfor (;;) a();", "for ( ; ) {\n  a();\n}"),
    ],
)
def test_conditional(written: str, lowered: str) -> None:
    assert inside(written) == lowered


def test_comments_and_strings_are_not_code() -> None:
    told = inside('// k<<<1, 1>>>();\n/* CHECK(\n */ a("CHECK(x) // <<<", R"(#if 0\n)");')
    assert told == "a('CHECK(x) // <<<', '#if 0\\n');"


# --- macros ---------------------------------------------------------------------------------------------------------------------

CHECK = """
#define CUDA_CHECK(expr)                                            \\
  do {                                                              \\
    cudaError_t status = (expr);                                    \\
    if (status != cudaSuccess) {                                    \\
      fprintf(stderr, "%s", cudaGetErrorString(status)); exit(1);   \\
    }                                                               \\
  } while (0)
"""


@pytest.mark.parametrize(
    ("before", "written", "lowered"),
    [
        (CHECK, "CUDA_CHECK(cudaFree(p));", "cudaFree(p);"),
        (CHECK, "CUDA_CHECK(cudaFree(p))\na();", "cudaFree(p);\na();"),
        (CHECK, "CUDA_CHECK(status);", "status;"),
        (CHECK + "#define RUN(x) CUDA_CHECK(x)", "RUN(cudaFree(p));", "cudaFree(p);"),
        (
            CHECK + "#define SYNCED(x) { CUDA_CHECK(x); cudaDeviceSynchronize(); }",
            "SYNCED(cudaFree(p));",
            " {\n  cudaFree(p);\n  cudaDeviceSynchronize();\n}\n?();",
        ),
        ("#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }", "gpuErrchk(cudaFree(p));", "cudaFree(p);"),
        ("#define TRY(x, msg) if ((x) != cudaSuccess) fail(msg)", 'TRY(cudaFree(p), "free");', "cudaFree(p);"),
        ("", "CUDA_CHECK(cudaFree(p));", "cudaFree(p);"),
        ("", "CHECK(err = cudaFree(p));", "(err = cudaFree(p));"),
        ("", "checkCudaErrors(cudaFree(p));", "cudaFree(p);"),
        ("", 'CUDA_SAFE_CALL(cudaFree(p), "free");', "cudaFree(p);"),
        ("", "CHECK_EQ(cudaFree(p), cudaSuccess);", "CHECK_EQ(cudaFree(p), cudaSuccess);"),
        ("", 'TORCH_CHECK(x.is_cuda(), "cuda");', "TORCH_CHECK(x.is_cuda(), 'cuda');"),
        ("static void check(cudaError_t e) { if (e) throw e; }", "check(cudaFree(p));", "check(cudaFree(p));"),
    ],
)
def test_check_macro(before: str, written: str, lowered: str) -> None:
    assert inside(written, before).removesuffix("\n?();") == lowered.removesuffix("\n?();")


@pytest.mark.parametrize(
    ("before", "written", "lowered"),
    [
        ("#define GO(k, n, ...) k<<<(n), 256, 0, s>>>(__VA_ARGS__)", "GO(scale, m + 1, p, q);", "scale<<<(m + 1), 256, 0, s>>>(p, q);"),
        ("#define GO(T) go_##T<T><<<1, 1>>>(#T)", "GO(float);", "go_float<<<1, 1>>>('float');"),
        ("#define GO(fmt, ...) log(fmt, ##__VA_ARGS__)", 'GO("a"); GO("b", c);', "log('a');\nlog('b', c);"),
        (
            "#define BLOCK 128\n#define GRID(n) (((n) + BLOCK - 1) / BLOCK)",
            "k<<<GRID(m), BLOCK>>>();",
            "k<<<(((m + 128) - 1) / 128), 128>>>();",
        ),
        ("#define ONE k<<<1, 1>>>()\n#define TWO ONE; ONE", "TWO;", "k<<<1, 1>>>();\nk<<<1, 1>>>();"),
        ("#define ME ME", "a(ME);", "a(ME);"),
        ("#define cudaMalloc hipMalloc", "cudaMalloc(&p, n);", "cudaMalloc(&p, n);"),
        ("#define cudaCheckErrors(msg) log(cudaGetLastError(), msg)", 'cudaCheckErrors("x");', "log(cudaGetLastError(), 'x');"),
        ("#define OLD(x) a(x)\n#undef OLD", "OLD(1);", "OLD(1);"),
    ],
)
def test_macro(before: str, written: str, lowered: str) -> None:
    assert inside(written, before) == lowered


SWITCH = """
#define BOOL_SWITCH(COND, NAME, ...)                                     \\
  [&] {                                                                  \\
    if (COND) { constexpr bool NAME = true; return __VA_ARGS__(); }      \\
    else { constexpr bool NAME = false; return __VA_ARGS__(); }          \\
  }()
"""


@pytest.mark.parametrize(
    ("before", "written", "lowered"),
    [
        ("", 'AT_DISPATCH_ALL(t.type(), "n", [&] { k<<<1, 2>>>(x); });', "[](){k<<<1, 2>>>(x);}();"),
        ("", 'AT_DISPATCH_ALL(t.type(), "n", ([&] { k<<<1, 2>>>(x); }));', "[](){k<<<1, 2>>>(x);}();"),
        ("", "DISPATCH(t, { k<<<1, 2>>>(x); });", "k<<<1, 2>>>(x);"),
        ("", "DISPATCH(t, using T = float; k<T, 3><<<1, 2>>>(x); a();)\nb();", "k<<<1, 2>>>(x);\na();\nb();"),
        ("", 'AT_SWITCH(t, "n", AT_CASE(kHalf, [&] { a(); }) AT_CASE(kFloat, [&] { b(); }));', "[](){a();}();\n[](){b();}();"),
        (SWITCH, "BOOL_SWITCH(a, A, [&] { BOOL_SWITCH(b, B, [&] { k<A, B><<<1, 2>>>(x); }); });", "[](){[](){k<<<1, 2>>>(x);}();}();"),
        (
            "#define TIMED(x) cudaEventRecord(a); x; cudaEventRecord(b)",
            "TIMED({ k<<<1, 2>>>(); });",
            "cudaEventRecord(a);\nk<<<1, 2>>>();\ncudaEventRecord(b);",
        ),
    ],
)
def test_dispatch_macro_runs_its_block_once(before: str, written: str, lowered: str) -> None:
    told = [line.strip() for line in inside(written, before).splitlines() if line.strip() not in ("{", "}")]
    assert told == lowered.splitlines()


def test_macro_defines_functions() -> None:
    source = "#define MAKE(T) void run_##T(T* p) { k<T><<<1, 1>>>(p); }\nMAKE(int)\nMAKE(float)\n"
    lowered = lower("a.cu", source)
    assert [signature(each) for each in _functions(lowered)] == ["host void run_int(int* p)", "host void run_float(float* p)"]
    assert names(source) == ["MAKE", "MAKE"]


def test_macros_are_kept() -> None:
    assert module("#define N 4\n#define F(a, b) \\\n  a + b\n").macros == {"N": "4", "F": "a + b"}


# --- places ---------------------------------------------------------------------------------------------------------------------


def test_names_are_where_they_stand() -> None:
    source = 'void f() {\n  log("größe 流"); cudaFree(p->q); a.b<int>(1); ns::g(); k<T><<<1, 1>>>(x);\n}\n'
    assert names(source) == ["log", "cudaFree", "b", "g", "k"]


def test_macro_body_takes_the_place_of_its_use() -> None:
    source = "#define GO(k, x) k<<<1, 1>>>(x); cudaDeviceSynchronize()\nvoid f() {\n  GO(scale, load(p));\n}\n"
    assert names(source) == ["GO", "scale", "load"]
    (function,) = lower("a.cu", source).functions["f"]
    assert [cut(source, statement.at) for statement in function.body] == ["GO(scale, load(p))", "GO(scale, load(p))"]


def test_code_in_macro_arguments_keeps_its_place() -> None:
    source = CHECK + 'void f() {\n  AT_DISPATCH(t, "n", [&] {\n    CUDA_CHECK(cudaFree(p));\n    k<<<1, 1>>>(x);\n  });\n}\n'
    assert names(source) == ["[&]", "cudaFree", "k"]


def test_statements_are_where_they_stand() -> None:
    source = "#include <x>\n\nvoid f(int n) {\n  int i = 0;\n  for (; i < n; ++i) {\n    g(i);\n  }\n}\n"
    (function,) = lower("a.cu", source).functions["f"]
    assert function.at == (3, 1, 8, 2)
    assert [statement.at for statement in function.body] == [(4, 3, 4, 13), (5, 3, 7, 4)]


# --- errors ---------------------------------------------------------------------------------------------------------------------


def test_error_costs_a_statement() -> None:
    lowered = module("void f() {\n  a();\n  b(x @ k<<<1, 1>>>(y)) = = 3;\n  c();\n}\nvoid g() { d(); }\n")
    told = "\n".join(lines(lowered.functions["f"][0].body))
    assert told.startswith("a();\n")
    assert told.endswith("c();")
    assert "k<<<1, 1>>>(y)" in told
    assert lines(lowered.functions["g"][0].body) == ["d();"]


@pytest.mark.parametrize(
    "source", ["", "}", "void f( {", "#if", "#endif\n#else", "#define", "((((", "k<<<", '"', "template <", "\ufeffint x;", "A(B(C("]
)
def test_broken_text_is_survived(source: str) -> None:
    lower("a.cu", source)


TORN = "void first(float* x) {\n  if (x) {\n    k<<<1, 1>>>(x);\n}\n\nvoid second() {}\n"
TEMPLATE = "void {{ name }}(float* x) {\n  {% if doubled %}\n  if (x) {\n  {% endif %}\n  k<<<1, 1>>>(x);\n}\n\nvoid second() {}\n"
FORMAT = 'void first(float* x) {\n  if (x) {\n    printf("{%d}", 1);\n    k<<<1, 1>>>(x);\n}\n\nvoid second() {}\n'


HIDDEN = "#define BEGIN_WORK try {\nint first(float* x) {\n  BEGIN_WORK\n  k<<<1, 1>>>(x);\n  END_WORK(-1);\n}\n\nvoid second() {}\n"


@pytest.mark.parametrize(("source", "is_lost"), [(TORN, True), (FORMAT, True), (TEMPLATE, False), (HIDDEN, False)])
def test_a_function_without_its_brace_is_told_but_in_a_template_or_where_a_macro_has_it(source: str, is_lost: bool) -> None:
    problems = lower("a.cu", source).problems
    assert problems
    assert any(text.startswith(LOST) for _, text in problems) == is_lost


def test_blocks_that_the_macros_of_torch_open_are_closed() -> None:
    ends = ("END_HANDLE_TH_ERRORS", "END_HANDLE_TH_ERRORS_RET(-1);", "END_HANDLE_TH_ERRORS_PYBIND")
    for end in ends:
        lowered = lower(
            "a.cpp", f"int f(float* x) {{\n  HANDLE_TH_ERRORS\n  float* y = x;\n  return 0;\n  {end}\n}}\nvoid g() {{ d(); }}\n"
        )
        assert not lowered.problems
        assert list(lowered.functions) == ["f", "g"]


def test_stray_statements_are_not_lost() -> None:
    (function,) = _functions(module("}\nk<<<1, 1>>>(x);\n"))
    assert lines(function.body) == ["k<<<1, 1>>>(x);"]


def test_windows_line_ends() -> None:
    source = "#define C(x) \\\r\n do { x; } while (0)\r\nvoid f() {\r\n  C(cudaFree(p));\r\n}\r\n"
    assert body_of(source) == " {\n  cudaFree(p);\n}"
    assert names(source) == ["cudaFree"]


def test_a_carriage_return_alone_ends_a_line() -> None:
    (function,) = _functions(module("\rint n;\rvoid f() {}"))
    assert function.at == (3, 1, 3, 12)


@pytest.mark.parametrize("ends", ["\r", "\n", "\r\n", "\n\r\n"])
def test_places_by_offset_count_the_same_lines(ends: str) -> None:
    text = f"int n;{ends}#define TWO 2"
    start = text.index("TWO")
    row = 1 + len(text[:start].splitlines()) - 1
    assert module(text).position(start, start + 3) == (row, 9, row, 12)


def test_binary_file_is_unreadable() -> None:
    with pytest.raises(UnreadableSource) as caught:
        lower("a.cu", "\0\1")
    assert (caught.value.row, caught.value.column) == (1, 1)


def test_long_chain_of_else_if() -> None:
    chain = " else ".join(f"if (x == {n}) {{ a({n}); }}" for n in range(400))
    lowered = module(f"void f() {{ {chain} }}")
    assert lowered.problems == []
    assert sum(isinstance(node, Call) for node in walk(lowered.functions["f"][0])) == 400


# --- a hard file ----------------------------------------------------------------------------------------------------------------

HARD = """\
#pragma once
#include <ATen/cuda/CUDAContext.h>
#define CEIL(a, b) (((a) + (b) - 1) / (b))
#ifdef USE_ROCM
#define STREAM hipStream()
#else
#define STREAM at::cuda::getCurrentCUDAStream()
#endif
#define LAUNCH(kernel, n, ...)                                      \\
  do {                                                              \\
    kernel<<<CEIL(n, 256), 256, 0, STREAM>>>(__VA_ARGS__);          \\
    C10_CUDA_CHECK(cudaGetLastError());                             \\
  } while (0)

namespace ext {
template <typename T>
__global__ void __launch_bounds__(256) scale(T* __restrict__ p, int n) {
  for (int i = threadIdx.x; i < n; i += 32) p[i] *= 2;
}

class EXT_API Worker final : public Base {
 public:
  explicit Worker(int n) : n_(n), event_{nullptr} { CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Worker();
  void run(at::Tensor x, cudaStream_t stream = nullptr);

 private:
  int n_;
  cudaEvent_t event_;
};

Worker::~Worker() { cudaEventDestroy(event_); }

void Worker::run(at::Tensor x, cudaStream_t stream) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
    LAUNCH(scale<scalar_t>, x.numel(), x.data_ptr<scalar_t>(), n_);
  });
  thrust::for_each(thrust::cuda::par.on(stream), a, b, [=] __device__(int i) { p[i] = 0; });
  if (cudaError_t e = cudaStreamSynchronize(stream); e != cudaSuccess) throw std::runtime_error("x");
}
}  // namespace ext
"""


def test_hard_file() -> None:
    lowered = lower("a.cu", HARD)
    assert lowered.problems == []
    worker = lowered.classes["ext::Worker"]
    assert lines(worker.methods["__init__"][0].body) == ["cudaEventCreate(&event_);"]
    assert lines(worker.methods["__del__"][0].body) == ["cudaEventDestroy(event_);"]
    assert signature(worker.methods["run"][0]) == "host void ext::Worker::run(at::Tensor x, cudaStream_t stream = None)"
    assert [line.strip() for line in lines(worker.methods["run"][0].body)] == [
        "[](){ {   scale<<<(((x.numel() + 256) - 1) / 256), 256, 0, at::cuda::getCurrentCUDAStream()>>>"
        "(x.data_ptr<scalar_t>(), n_);   cudaGetLastError(); }}();",
        "thrust::for_each(thrust::cuda::par.on(stream), a, b, [](i){});",
        "{",
        "cudaError_t e = cudaStreamSynchronize(stream);",
        "if (e != cudaSuccess) {",
        "throw std::runtime_error('x');",
        "}",
        "}",
    ]
    assert "scale" in names(HARD)


def test_statements_before_the_first_label_are_arms() -> None:
    """Macros out of view that bring their own ``case``."""
    source = """
        void f(int t) {
            switch (t) {
                CASE_OF(1, float, [&] { a(); })
                CASE_OF(2, int, [&] { b(); })
                default: c();
            }
        }
    """
    found = [
        node.function.id
        for each in _functions(lower("a.cu", source))
        for node in walk(each)
        if isinstance(node, Call) and isinstance(node.function, Name)
    ]
    assert sorted(found) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("statement", "is_declared"),
    [
        ("void (*act)(Box) = finish;", True),
        ("void (*act)(Box* box) = finish;", True),
        ("Status (*act)(Box) = finish;", True),
        ("Row* act; table(*act)(Box) = v;", False),
        ("if (Row* act = f()) { table(*act)(Box) = v; }", False),
        ("for (auto* act : rows) { table(*act)(Box) = v; }", False),
        ("for (int j = 0; j < i; ++j) table(*act)(j) = v;", False),
        ("table(*act)(i) = v;", False),
        ("at(*act)(Box) = v;", False),
        ("{ Row* act; } Status (*act)(Box) = finish;", True),
    ],
)
def test_names_that_are_declared_tell_a_pointer_to_a_function_from_a_call(statement: str, is_declared: bool) -> None:
    module = lower("a.cu", f"float& at(int i);\nvoid run(int i, float v) {{ {statement} }}\n")
    (run,) = (one for one in _functions(module) if one.name == "run")
    found = [node for node in walk(run) if isinstance(node, Declare) and node.name == "act"]
    assert any(node.value is not None and isinstance(node.value, Name) and node.value.id == "finish" for node in found) == is_declared
