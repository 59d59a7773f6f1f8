"""Ways through other files: packages, star imports, imports within a function, and modules that hold state."""

from __future__ import annotations

from benchmarks.streambench.pieces import Way, linked, plain
from benchmarks.streambench.python_forms import acting, carry, draw, keeping, klass, texts
from benchmarks.streambench.python_ways import Build, define


def module_state(build: Build) -> None:
    """Attributes of another module, set from here and read from here."""
    state = build.elsewhere(plain(*texts(build, "@ = None"))) if build.template.takes else ""
    build.need(f"import {state}")
    carry(build, texts(build, f"{state}.@ = @"), "", texts(build, f"@ = {state}.@"))


def module_state_read(build: Build) -> None:
    """Attributes of another module, which a function of a third one reads."""
    state = build.elsewhere(plain(*texts(build, "@ = None")))
    name = build.names.new("function")
    module = build.elsewhere(define(f"{name}()", [*plain(*texts(build, f"@ = {state}.@")), *build.second]), [f"import {state}"])
    build.need(f"import {state}", f"from {module} import {name}")
    build.place([*plain(*texts(build, f"{state}.@ = @")), *build.calls(f"{name}()")])


def module_setter(build: Build) -> None:
    """Functions of another module set its globals, and use them."""
    keep, act = draw(build, "function", "function")
    own = {taken: f"the_{taken}" for taken in build.template.takes}
    lines = plain(*(f"{name} = None" for name in own.values()), "", "")
    store = [*plain(f"global {', '.join(own.values())}"), *plain(*(f"{name} = {taken}" for taken, name in own.items()))]
    use = [*plain(*(f"{taken} = {name}" for taken, name in own.items())), *build.second]
    lines += [*define(f"{keep}({build.takes})", store), *plain("", ""), *define(f"{act}()", use)]
    module = build.elsewhere(lines)
    build.need(f"import {module}")
    build.place([*plain(f"{module}.{keep}({build.takes})"), *build.calls(f"{module}.{act}()")])


def module_object(build: Build) -> None:
    """An object that another module makes when it is imported."""
    owner, held, keep, act = draw(build, "class", "value", "function", "function")
    body = klass(
        owner, define("__init__(self)", plain(*texts(build, "self.@ = None"))), keeping(build, keep), acting(build, f"{act}(self)")
    )
    module = build.elsewhere([*body, *plain("", "", f"{held} = {owner}()")])
    build.need(f"from {module} import {held}")
    build.place([*plain(f"{held}.{keep}({build.takes})"), *build.calls(f"{held}.{act}()")])


def other_class(build: Build) -> None:
    """A class of another file."""
    owner, act, held = draw(build, "class", "function", "value")
    module = build.elsewhere(klass(owner, keeping(build), acting(build, f"{act}(self)")))
    build.need(f"from {module} import {owner}")
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{held}.{act}()")])


def other_base(build: Build) -> None:
    """A base class of another file uses what the subclass keeps."""
    base, owner, act, held = draw(build, "class", "class", "function", "value")
    module = build.elsewhere(klass(base, acting(build, f"{act}(self)")))
    build.need(f"import {module}")
    build.add(klass(f"{owner}({module}.{base})", keeping(build)))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"{held}.{act}()")])


def package(build: Build) -> None:
    """A package, whose first file hands on a function of another file of it."""
    folder, inner, name = draw(build, "file", "file", "function")
    build.others[f"{folder}/__init__.py"] = ([], plain(f"from .{inner} import {name}", "", f'__all__ = ["{name}"]'))
    build.others[f"{folder}/{inner}.py"] = (list(build.template.imports), define(f"{name}({build.takes})", build.second))
    build.need(f"import {folder}")
    build.place(build.calls(f"{folder}.{name}({build.takes})"))


def star_import(build: Build) -> None:
    """A star import."""
    name = build.names.new("function")
    module = build.elsewhere(define(f"{name}({build.takes})", build.second))
    build.need(f"from {module} import *")
    build.place(build.calls(f"{name}({build.takes})"))


def renamed_import(build: Build) -> None:
    """Imports under other names."""
    name, other = draw(build, "function", "function")
    module = build.elsewhere(define(f"{name}({build.takes})", build.second))
    build.need(f"from {module} import {name} as {other}")
    build.place(build.calls(f"{other}({build.takes})"))


def late_import(build: Build) -> None:
    """An import within the function that calls."""
    name, outer = draw(build, "function", "function")
    module = build.elsewhere(define(f"{name}({build.takes})", build.second))
    build.add(define(f"{outer}({build.takes})", [*plain(f"from {module} import {name}", ""), *linked(f"return {name}({build.takes})")]))
    build.place(build.calls(f"{outer}({build.takes})"))


def imported_by_name(build: Build) -> None:
    """`importlib.import_module` with a constant name."""
    build.need("import importlib")
    name, held = draw(build, "function", "value")
    module = build.elsewhere(define(f"{name}({build.takes})", build.second))
    build.place([*plain(f'{held} = importlib.import_module("{module}")'), *build.calls(f"{held}.{name}({build.takes})")])


WAYS: dict[str, Way] = {
    "module-state": Way(module_state, carries=True, keeps=True),
    "module-state-read": Way(module_state_read, carries=True, keeps=True),
    "module-setter": Way(module_setter, carries=True, keeps=True),
    "module-object": Way(module_object, carries=True, keeps=True),
    "other-class": Way(other_class, carries=True, keeps=True),
    "other-base": Way(other_base, carries=True, keeps=True),
    "package": Way(package),
    "star-import": Way(star_import),
    "renamed-import": Way(renamed_import),
    "late-import": Way(late_import),
    "import-module": Way(imported_by_name),
}
