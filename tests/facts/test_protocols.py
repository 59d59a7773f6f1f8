"""What classes and attributes call by protocol, and what declared types say where values end."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.code.objects import Instance
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import opcodes as op


def entered(text: str, mark: str = "# here") -> set[str]:
    """The functions that the marked line of a program may enter, by their qualified names."""
    facts = facts_of(main=text)
    graph, unit = CallGraph(facts), facts.program.units["main.py"]
    row = next(number for number, line in enumerate(text.splitlines(), 1) if mark in line)
    graph.prepare(unit.functions)
    edges = [(function, edge) for function in unit.functions for edge in graph.all_calls(function).edges]
    return {edge.callee.name for function, edge in edges if function.code.at(edge.instruction[1])[0] == row}


DESCRIPTOR = """
class Field:
    def __get__(self, owner, kind): return Part()
    def __set__(self, owner, value): pass
    def __set_name__(self, owner, name): pass
class Part:
    def go(self): pass
class Plain:
    def go(self): pass
class Owner:{0}
    part = Field()
    other = Plain()
owner = Owner()
"""


@pytest.mark.parametrize(
    ("line", "functions"),
    [
        ("owner.part", {"Field.__get__"}),
        ("Owner.part", {"Field.__get__"}),
        ("owner.part.go()", {"Field.__get__", "Part.go"}),
        ("owner.part = 1", {"Field.__set__"}),
        ("owner.other", set()),
        ("owner.other.go()", {"Plain.go"}),
        ("owner.other = 1", set()),
    ],
)
def test_descriptors(line: str, functions: set[str]) -> None:
    assert entered(DESCRIPTOR.format("") + f"{line}  # here\n") == functions


def test_a_class_statement_tells_descriptors_their_names() -> None:
    assert entered(DESCRIPTOR.format("  # here")) == {"Field.__set_name__"}


METACLASS = """
class Meta(type):
    def __new__(mcs, name, bases, names): return super().__new__(mcs, name, bases, names)
    def __init__(cls, name, bases, names): pass
    def ready(cls): pass
    @property
    def size(cls): pass
class Base(metaclass=Meta): pass
"""


def test_metaclasses() -> None:
    assert entered(METACLASS + "class Derived(Base):  # here\n    pass\n") == {"Meta.__new__", "Meta.__init__"}
    assert entered(METACLASS + "Base.ready()  # here\n") == {"Meta.ready"}
    assert entered(METACLASS + "Base.size  # here\n") == {"Meta.size"}
    assert entered("class Meta: pass\nclass Base: pass\nclass Derived(Base):  # here\n    pass\n") == set()


def test_bases_are_told_of_subclasses() -> None:
    text = "class Base:\n    def __init_subclass__(cls): pass\nclass Derived(Base):  # here\n    pass\n"
    assert entered(text) == {"Base.__init_subclass__"}
    assert entered(text.replace("Derived(Base)", "Derived(object)")) == set()


@pytest.mark.parametrize(("name", "functions"), [("size", {"Bag.__getattr__"}), ("keys", set()), ("kept", set())])
def test_what_an_object_lacks_is_asked_for(name: str, functions: set[str]) -> None:
    text = "class Bag(dict):\n    def __init__(self): self.kept = 1\n    def __getattr__(self, name): return 1\nbag = Bag()\n"
    assert entered(f"{text}bag.{name}  # here\n") == functions


FAMILY = """
class Base:
    def __init__(self): pass
    def copy(self):
        return self.__class__()  # one
    def again(self):
        return type(self)()  # two
    @classmethod
    def make(cls):
        return cls().copy()  # three
class Derived(Base):
    def __init__(self): pass
    def copy(self): pass
"""


@pytest.mark.parametrize(
    ("mark", "functions"),
    [("# one", {"__init__"}), ("# two", {"__init__"}), ("# three", {"__init__", "copy"})],
)
def test_the_class_of_an_object_may_be_a_subclass(mark: str, functions: set[str]) -> None:
    assert entered(FAMILY, mark) == {f"{owner}.{name}" for owner in ("Base", "Derived") for name in functions}


def test_the_class_of_an_object_that_was_just_made_is_known() -> None:
    assert entered(FAMILY + "Base().__class__()  # here\n") == {"Base.__init__"}


THINGS = "import typing as t\nclass Thing:\n    def go(self): pass\nclass Other:\n    def go(self): pass\n"


@pytest.mark.parametrize(
    ("annotation", "use"),
    [
        ("list[Thing]", "x[0].go()"),
        ("t.Sequence[Thing]", "x[0].go()"),
        ("dict[str, Thing]", "x['a'].go()"),
        ("t.Mapping[str, 'Thing']", "next(iter(x.values())).go()"),
        ("dict[Thing, int]", "next(iter(x)).go()"),
        ("dict[str, list[Thing]]", "x['a'][0].go()"),
        ("tuple[Other, Thing]", "x[1].go()"),
        ("tuple[Thing, ...]", "x[3].go()"),
        ("t.Iterator[Thing] | None", "next(x).go()"),
        ("t.Optional[t.List[Thing]]", "x[0].go()"),
        ("type[Thing]", "x().go()"),
    ],
)
def test_elements_of_declared_containers(annotation: str, use: str) -> None:
    assert entered(f"{THINGS}def run(x: {annotation}):\n    {use}  # here\n") == {"Thing.go"}
    assert entered(f"{THINGS}def run(x: {annotation.replace('Thing', 'int')}):\n    {use}  # here\n") == set()


@pytest.mark.parametrize(
    ("said", "found"),
    [("Thing", {"Thing.go"}), ("'Thing'", {"Thing.go"}), ("t.Optional[Thing]", set()), ("t.Any", set())],
)
def test_a_cast_says_the_type_of_what_is_unknown(said: str, found: set[str]) -> None:
    assert entered(f"{THINGS}def run(x):\n    t.cast({said}, x).go()  # here\n") == found
    assert entered(f"{THINGS}t.cast({said}, Other()).go()  # here\n") == {"Other.go"}


def test_a_signature_that_is_only_declared_is_no_method() -> None:
    text = "import typing\nclass Base:\n    def __init__(self, x): pass\nclass Derived(Base):\n"
    text += "    @typing.overload\n    def __init__(self, x: int): ...\n"
    assert entered(text + "    @typing.overload\n    def __init__(self, x: str): ...\nDerived(1)  # here\n") == {"Base.__init__"}
    assert entered(text + "    def __init__(self, x): pass\nDerived(1)  # here\n") == {"Derived.__init__"}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("','.join(c)", {"__getitem__", "__len__"}),
        ("list(c)", {"__getitem__", "__len__"}),
        ("[].extend(c)", {"__getitem__", "__len__"}),
        ("f'{c}'", {"__str__"}),
        ("'%s' % c", {"__str__"}),
        ("'{} {x}'.format(1, x=c)", {"__str__"}),
        ("[c].index(1)", {"__eq__"}),
        ("1 in [c]", {"__eq__"}),
        ("hasattr(c, 'size')", {"size"}),
        ("','.join(['c'])", set()),
        ("f'{1}'", set()),
    ],
)
def test_what_methods_of_texts_and_lists_call(line: str, names: set[str]) -> None:
    methods = "".join(f"    def {name}(self, *rest): pass\n" for name in ("__getitem__", "__len__", "__str__", "__eq__"))
    text = f"class C:\n{methods}    @property\n    def size(self): pass\nc = C()\n"
    assert entered(f"{text}{line}  # here\n") == {f"C.{name}" for name in names}


@pytest.mark.parametrize(
    "line",
    ["xs.sort(key=f)", "functools.reduce(f, xs)", "re.compile('x').sub(f, 'text')", "pattern.sub(f, 'text')", "re.sub('x', f, 'text')"],
)
def test_functions_that_the_library_calls(line: str) -> None:
    text = "import functools, re\npattern = re.compile('x')\ndef f(*given): return 1\nxs = [2, 1]\n"
    assert entered(f"{text}{line}  # here\n") == {"f"}


FOLDER = {f"pkg/{name}": f"class Made:\n    def __init__(self): pass  # {name}\n" for name in ("one", "two", "__init__")}


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("importlib.import_module('pkg.' + input()).Made()", {"pkg/one.py", "pkg/two.py"}),
        ("importlib.import_module('pkg.t' + input()).Made()", {"pkg/two.py"}),
        ("importlib.import_module('pkg.one').Made()", {"pkg/one.py"}),
        ("importlib.import_module(input()).Made()", set()),
    ],
)
def test_modules_of_a_package_by_computed_names(line: str, files: set[str]) -> None:
    facts = facts_of(main=f"import importlib\n{line}\n", **FOLDER)
    calls = CallGraph(facts).all_calls(facts.program.units["main.py"].body)
    assert {edge.callee.unit.path for edge in calls.edges} == files


def test_one_of_many_names_means_each_definition_of_a_module() -> None:
    names = ", ".join(f"'x{number}': 'f{number}'" for number in range(50))
    lib = "def f1(): pass\ndef f2(): pass\nnumber = 1\n"
    facts = facts_of(main=f"import lib\nnames = {{{names}}}\ngetattr(lib, names[input()])()\n", lib=lib)
    assert {edge.callee.name for edge in CallGraph(facts).all_calls(facts.program.units["main.py"].body).edges} == {"f1", "f2"}


@pytest.mark.parametrize(
    ("returns", "use"),
    [
        ("Thing", "make().go()"),
        ("t.List[Thing]", "make()[0].go()"),
        ("t.Iterator[Thing]", "next(items()).go()"),
    ],
)
def test_what_a_function_declares_to_return(returns: str, use: str) -> None:
    text = f"{THINGS}import outside\ndef make() -> {returns}: return outside.make()\ndef items() -> {returns}: yield outside.make()\n"
    assert "Thing.go" in entered(f"{text}{use}  # here\n")
    known = text.replace("outside.make()", "Other()")
    assert "Thing.go" not in entered(f"{known}{use}  # here\n")


def test_the_subclasses_of_a_class() -> None:
    text = "class Base:\n    def go(self): pass\nclass One(Base):\n    def go(self): pass\nclass Two(One):\n    def go(self): pass\n"
    assert entered(text + "for kind in Base.__subclasses__():\n    kind().go()  # here\n") == {"One.go", "Two.go"}
    walk = (
        "found = Base.__subclasses__()\nwhile found:\n    kind = found.pop()\n    found += kind.__subclasses__()\n    kind().go()  # here\n"
    )
    assert entered(text + walk) == {"One.go", "Two.go"}
    assert entered(text + "for kind in Two.__subclasses__():\n    kind().go()  # here\n") == set()


@pytest.mark.parametrize(("name", "functions"), [("run", {"plain"}), ("_run", set())])
def test_callers_from_outside_may_leave_a_callable_out(name: str, functions: set[str]) -> None:
    assert entered(f"def plain(x): pass\ndef {name}(x, f=plain):\n    f(x)  # here\n") == functions


def test_a_package_is_no_module_in_it_of_the_same_name() -> None:
    files = {"pkg/__init__": "", "pkg/pkg": "def f(): pass\n", "pkg/tools": "def f(): pass\n", "script/helper": "def f(): pass\n"}
    uses = {
        "pkg/use": "from pkg import tools\ntools.f()\n",
        "script/use": "import helper\nhelper.f()\n",
        "pkg/alone": "import tools\ntools.f()\n",
    }
    facts = facts_of(**files, **uses)
    graph = CallGraph(facts)
    found = {name: [edge.callee.unit.path for edge in graph.all_calls(facts.program.units[f"{name}.py"].body).edges] for name in uses}
    assert found == {"pkg/use": ["pkg/tools.py"], "script/use": ["script/helper.py"], "pkg/alone": ["pkg/tools.py"]}


def test_context_of_autograd_keeps_what_forward_gives_it() -> None:
    """The functions of one class of autograd share a context: what `forward` keeps there, `backward` finds."""
    facts = facts_of(
        main="""
        import torch

        class Own:
            pass

        class Pass(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, own):
                ctx.own = own
                return x

            @staticmethod
            def backward(ctx, gradient):
                return gradient, ctx.own

        def run(x):
            return Pass.apply(x, Own())
        """
    )
    backward = function(facts, "main", "Pass.backward")
    read = next(one for one in backward.by_opcode[op.ATTR] if backward.text(one[4]) == "own")
    found = facts.values(backward, read[2]).values
    assert {value.definition.name for value in found if isinstance(value, Instance)} == {"Own"}
