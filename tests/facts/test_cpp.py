"""Program facts of C++: what parameters, members and variables may hold over a program, and whom calls enter."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest

from streamlint import cli
from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Program, SourceFile
from streamlint.facts.graph.facts import Facts, describe
from streamlint.frontends import cuda
from streamlint.ir import ModuleIR
from streamlint.ir import opcodes as op
from streamlint.ir.modules import lower

PAGEABLE, PINNED, DEVICE = "pointer in pageable host memory", "pointer in pinned host memory", "pointer in device memory"
OUTSIDE = "unknown (caller)"
NULL, BLOCKING, NON_BLOCKING = (f"object of cudaStream_t ({kind})" for kind in ("null", "blocking", "non-blocking"))
CALLING = (op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW, op.LAUNCH)


def facts_of(files: dict[str, str]) -> Facts:
    """The facts of files by their names."""
    texts = {name: dedent(text) for name, text in files.items()}
    return Facts(Program([SourceFile(name, "cuda", text, partial(_lowered, name, text)) for name, text in texts.items()]))


def _lowered(name: str, text: str) -> ModuleIR:
    return lower(cuda.lower(name, text))


def function(facts: Facts, name: str) -> Function:
    found = [one for unit in facts.program.units.values() for one in unit.functions if one.name == name]
    assert found, name
    return found[0]


def parameter(facts: Facts, name: str, index: int = 0) -> set[str]:
    """What a parameter may be, in words."""
    return {" ".join(describe(value)) for value in facts.argument(function(facts, name), index).values}


def callees(facts: Facts, name: str) -> set[str]:
    """What the calls of a function enter, in words."""
    caller = function(facts, name)
    calls = [one for opcode in CALLING for one in caller.by_opcode[opcode]]
    return {" ".join(describe(value)) for one in calls for value in facts.callees(caller, one)}


def callers(facts: Facts, name: str) -> set[str]:
    """The places of the calls of a function."""
    return {str(arguments.site) for _, arguments in facts.callers(function(facts, name))}


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("float* p = (float*)malloc(4);", PAGEABLE),
        ("float* p = new float[4];", PAGEABLE),
        ("float p[4];", "array in pageable host memory"),
        ("std::vector<float> v(4); float* p = v.data();", "std::vector in pageable host memory"),
        ("float* p; cudaMallocHost(&p, 4);", PINNED),
        ("float* p; cudaHostAlloc((void**)&p, 4, cudaHostAllocDefault);", PINNED),
        ("float* p; cudaMallocManaged(&p, 4);", "pointer in managed memory"),
        ("float* p; cudaMalloc(&p, 4);", DEVICE),
        ("float* p; cudaMallocAsync(&p, 4, 0);", DEVICE),
        ("float* q; hipMalloc(&q, 4); float* p = q + 4;", DEVICE),
        ("float* q; cudaMalloc(&q, 4); float* p = &q[2];", DEVICE),
        ("float* p; fill(&p);", PINNED),
        ("auto p = give(1);", DEVICE),
    ],
)
def test_the_kind_of_memory(made: str, kind: str) -> None:
    helpers = """
        static void use(float* p) { p; }
        static void fill(float** p) { cudaMallocHost(p, 4); }
        static float* give(int n) { float* p; cudaMalloc(&p, n); return p; }
    """
    facts = facts_of({"a.cu": f"{dedent(helpers)}\nvoid main() {{ {made} use(p); }}"})
    assert parameter(facts, "use") == {kind}


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("cudaStream_t s; cudaStreamCreate(&s);", BLOCKING),
        ("cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);", NON_BLOCKING),
        ("cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamDefault);", BLOCKING),
        ("cudaStream_t s = 0;", NULL),
        ("cudaStream_t s{};", NULL),
        ("auto s = nullptr;", NULL),
        ("auto s = cudaStreamPerThread;", "object of cudaStream_t (per-thread)"),
        ("cudaStream_t a[2]; cudaStreamCreate(&a[0]); auto s = a[1];", BLOCKING),
        ("std::vector<cudaStream_t> v(2); for (auto& x : v) cudaStreamCreate(&x); auto s = v[0];", BLOCKING),
    ],
)
def test_the_kind_of_stream(made: str, kind: str) -> None:
    facts = facts_of({"a.cu": f"static void use(cudaStream_t s) {{ s; }}\nvoid main() {{ {made} use(s); }}"})
    assert parameter(facts, "use") == {kind}


HEADER = """
    namespace n {
    void send(float* host, cudaStream_t s = 0);
    struct Buffer {
      explicit Buffer(int n);
      ~Buffer();
      void up(float* from);
      float* dev_ = nullptr;
      float* host_;
      cudaStream_t stream_;
    };
    }
"""
SOURCE = """
    #include "lib/n.h"
    namespace n {
    static void inner(float* p) { p; }
    void send(float* host, cudaStream_t s) {
      inner(host);
    }
    Buffer::Buffer(int n) {
      cudaMalloc(&dev_, n);
      cudaMallocHost(&this->host_, n);
      cudaStreamCreate(&stream_);
    }
    Buffer::~Buffer() { cudaFree(dev_); }
    void Buffer::up(float* from) {
      send(from, stream_);
      inner(host_);
    }
    }
"""
PROGRAM = """
    #include "n.h"
    void run() {
      n::Buffer b(4);
      b.up((float*)malloc(4));
      auto* c = new n::Buffer(3);
      c->up(nullptr);
      n::send(nullptr);
      delete c;
    }
"""
SHAPES = """
    struct Base {
      virtual ~Base() {}
      virtual void send(float* p) { p; }
      void run(float* p) { send(p); }
    };
    struct One : Base { void send(float* p) override { p; } };
    struct Two : Base { void send(float* p) override { p; } };
    struct Never : Base { void send(float* p) override { p; } };
    void each(Base* b, Base& c, float* p);
"""
EACH = """
    #include "shapes.h"
    void each(Base* b, Base& c, float* p) { b->send(p); c.run(p); }
"""
MADE = """
    #include "shapes.h"
    void make() { One one; auto two = std::make_unique<Two>(); each(nullptr, one, new float[1]); }
"""
FILES = {"lib/n.h": HEADER, "lib/n.cu": SOURCE, "run.cu": PROGRAM, "shapes.h": SHAPES, "each.cpp": EACH, "made.cpp": MADE}


def test_calls_are_followed_over_headers() -> None:
    facts = facts_of(FILES)
    assert parameter(facts, "n::inner") == {PAGEABLE, PINNED, OUTSIDE, "constant None"}
    assert callees(facts, "run") >= {"class n::Buffer", "method n::Buffer::up", "function n::send"}
    assert callers(facts, "n::Buffer::up") == {"run.cu:5", "run.cu:7"}
    assert callers(facts, "n::Buffer::Buffer") == {"run.cu:4", "run.cu:6"}
    assert callers(facts, "n::Buffer::~Buffer") == {"run.cu:4", "run.cu:9"}
    assert callers(facts, "n::send") == {"lib/n.cu:15", "run.cu:8"}


def test_places_may_lead_to_one_another_in_a_circle() -> None:
    text = """
        struct Item { Item* next; int count; };
        void f() { void* slot = nullptr; slot = &slot; ((Item*)slot)->count = 1; }
        int g(Item* item) { return item->count; }
    """
    facts = facts_of({"a.cu": text})
    counted = next(one for one in function(facts, "g").by_opcode[op.ATTR])
    assert facts.values(function(facts, "g"), counted[2]) is not None


def test_what_is_put_into_a_container_through_a_circle_of_places_is_followed_once() -> None:
    text = """
        std::vector<float*> kept;
        void f() { void* slot = &kept; slot = &slot; ((std::vector<float*>*)slot)->push_back(new float[1]); }
        float* g() { return kept[0]; }
    """
    facts = facts_of({"a.cu": text})
    taken = next(one for one in function(facts, "g").by_opcode[op.ITEM])
    assert {" ".join(describe(value)) for value in facts.values(function(facts, "g"), taken[2]).values} == {PAGEABLE}


def test_a_default_of_a_declaration_counts_where_it_is_left_out() -> None:
    assert parameter(facts_of(FILES), "n::send", 1) == {BLOCKING, NULL, "object of cudaStream_t"}


def test_members_hold_what_methods_store() -> None:
    facts = facts_of(FILES)
    up = function(facts, "n::Buffer::up")
    host = next(one for one in up.by_opcode[op.NAME] if up.text(one[3]) == "host_")
    node = facts.values(up, host[2])
    assert {" ".join(describe(value)) for value in node.values} == {PINNED}
    assert "lib/n.cu:10" in [str(site) for value in node.values for site in node.trace(value)]


def test_overloads_are_told_apart_by_their_arguments() -> None:
    text = "static void f(float* p) {}\nstatic void f(float* p, int n) {}\nvoid main() { f(new float[1], 2); f(nullptr); }"
    facts = facts_of({"a.cu": text})
    assert parameter(facts, "f") == {"constant None"}
    assert callers(facts, "f") == {"a.cu:3"}


@pytest.mark.parametrize("own", ["static ", "namespace { ", "inline "])
def test_who_else_may_call(own: str) -> None:
    facts = facts_of({"a.cu": f"{own}void f(float* p) {{ p; }}{' }' if '{' in own else ''}\nvoid main() {{ f(new float[1]); }}"})
    assert parameter(facts, "f") == {PAGEABLE} | ({OUTSIDE} if own == "inline " else set())


def test_virtual_methods_are_those_of_classes_that_are_made() -> None:
    facts = facts_of(FILES)
    assert callees(facts, "each") == {"method One::send", "method Two::send", "method Base::run"}
    assert parameter(facts, "One::send", 1) == parameter(facts, "Two::send", 1) == {PAGEABLE, OUTSIDE}
    assert callers(facts, "Two::send") == {"each.cpp:3", "shapes.h:5"}
    assert callers(facts, "Never::send") == set()


def test_a_wide_hierarchy_is_unknown() -> None:
    shapes = "struct Base { virtual void f() {} };\n" + "".join(f"struct S{n} : Base {{ void f() {{}} }};\n" for n in range(70))
    facts = facts_of({"a.cu": f"{shapes}void main(Base* b) {{ b->f(); }}"})
    assert callees(facts, "main") == {"unknown (dynamic)"}


PASSED = [
    "void (*f)(float*) = &use; f(p);",
    "auto f = use; (*f)(p);",
    "std::function<void(float*)> f = use; f(p);",
    "auto f = [](float* q) { use(q); }; f(p);",
    "auto f = [&]() { use(p); }; f();",
    "auto f = [=] { use(p); }; std::function<void()> g(f); g();",
    "auto f = [q = p] { use(q); }; f();",
    "apply([](float* q) { use(q); }, p);",
    "auto f = std::bind(use, p); f();",
    "std::thread t(use, p); t.join();",
    "std::thread t([=] { use(p); });",
    "cudaLaunchHostFunc(0, later, p);",
    "through<float>(p);",
    "Holder<float> h; h.put(p);",
    "Holder<float>::all(p);",
    "Table t; t.run(p);",
    "Functor f; f(p);",
    "Functor()(p);",
    "std::thread t(&Table::run, &table, p);",
    "kernel<<<1, 1>>>(p);",
    "std::vector<Item> v; v.push_back(Item{p}); use(v[0].data);",
    "Item i{p}; use(i.data);",
    "Item i; i.data = p; Item* j = &i; use(j->data);",
    "std::vector<float*> v; v.push_back(p); for (auto q : v) use(q);",
    "std::vector<float*> v{p}; use(v.back());",
    "std::map<int, float*> m; m[1] = p; use(m.at(1));",
    "float* v[2] = {p, p}; use(v[1]);",
    "auto pair = std::make_pair(1, p); use(pair.second);",
    "auto [n, q] = std::make_pair(1, p); use(q);",
    "auto t = std::make_tuple(p, 1); use(std::get<0>(t));",
    "Base* b = new Derived(p); b->go(); delete b;",
    "auto b = std::make_shared<Derived>(p); b->go();",
    "std::unique_ptr<Base> b(new Derived(p)); b->go();",
    "shared = p; use(shared);",
    "ns::other = p; ns::sink();",
    "Once::get().keep(p);",
]


@pytest.mark.parametrize("call", PASSED)
def test_ways_to_hand_a_pointer_over(call: str) -> None:
    helpers = """
        static void use(float* p) { p; }
        static __global__ void kernel(float* p) {}
        template <typename F> void apply(F f, float* p) { f(p); }
        static void later(void* data) { use((float*)data); }
        template <typename T> void through(T* p) { use(p); }
        template <typename T> struct Holder {
          void put(T* p) { held = p; use(held); }
          static void all(T* p) { use(p); }
          T* held;
        };
        struct Table {
          Table() : f(use) {}
          void run(float* p) { f(p); }
          std::function<void(float*)> f;
        };
        struct Functor { void operator()(float* p) const { use(p); } };
        struct Item { float* data; };
        struct Base { virtual void go() = 0; virtual ~Base() {} };
        struct Derived : Base {
          explicit Derived(float* p) : p_(p) {}
          void go() override { use(p_); }
          float* p_;
        };
        float* shared;
        static Table table;
        namespace ns { static float* other; static void sink() { use(other); } }
        struct Once {
          static Once& get() { static Once one; return one; }
          void keep(float* p) { kept_ = p; use(this->kept_); }
          float* kept_;
        };
    """
    facts = facts_of({"a.cu": f"{dedent(helpers)}\nvoid main() {{ float* p; cudaMallocHost(&p, 4); {call} }}"})
    assert PINNED in parameter(facts, "kernel" if "kernel<" in call else "use"), parameter(facts, "use")


def answers(facts: Facts) -> dict[str, object]:
    """All that is known of the values of a program, without its places."""
    found: dict[str, object] = {}
    for unit in facts.program.units.values():
        for one in unit.functions:
            if one.code.kind == "function" and unit.path != "alone.cu":
                for index in range(len(one.code.parameters)):
                    found[f"{one.name} {index}"] = parameter(facts, one.name, index)
                found[one.name] = callees(facts, one.name), len(callers(facts, one.name))
    return found


@pytest.mark.parametrize("alone", ["static void inner(float* p) {}\nvoid x() { inner(new float[1]); }", "namespace n { struct Other {}; }"])
def test_an_unrelated_file_changes_nothing(alone: str) -> None:
    assert answers(facts_of({**FILES, "alone.cu": alone})) == answers(facts_of(FILES))


def test_the_order_of_files_changes_nothing() -> None:
    assert answers(facts_of(dict(reversed(FILES.items())))) == answers(facts_of(FILES))


def test_one_file_says_what_several_do() -> None:
    whole = "".join(dedent(text).replace("#include", "// ") for text in FILES.values())
    assert answers(facts_of({"whole.cu": whole})) == answers(facts_of(FILES))


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(dedent(text))
    assert cli.main(["debug", "facts", "lib/n.cu:6", "--root", "."]) == 0
    assert "host:\n" in (printed := capsys.readouterr().out)
    assert f"  {PAGEABLE} from lib/n.cu:5, lib/n.cu:15" in printed
    assert cli.main(["debug", "callers", "lib/n.cu:n::Buffer::up", "--root", "."]) == 0
    assert capsys.readouterr().out == "run.cu:5\nrun.cu:7\n"
    assert cli.main(["debug", "callees", "run.cu:6", "--root", "."]) == 0
    assert capsys.readouterr().out == "class n::Buffer\n"
