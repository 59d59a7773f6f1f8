"""How one helper is made and called in Python: each kind of link takes one value and gives one back."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from generated.texts import Line, Names, indent, plain

Refer = Callable[[str], str]
Called = tuple[list[Line], str]  # what stands before the call, and the expression


@dataclass
class Link:
    """One helper: its body, of one parameter, ends in ``return``."""

    name: str
    parameter: str
    body: Sequence[Line]
    names: Names
    chance: random.Random
    carries: str


@dataclass
class Made:
    """What a kind makes of a helper. ``call`` is given the argument, and a way to say a name of the helper's file from outside."""

    lines: list[Line]
    exports: tuple[str, ...]
    call: Callable[[str, Refer], Called]
    imports: tuple[str, ...] = field(default=())
    caller_imports: tuple[str, ...] = field(default=())


def _def(header: str, body: Sequence[Line]) -> list[Line]:
    return [Line(f"def {header}:"), *indent(body)]


def _class(header: str, *members: Sequence[Line]) -> list[Line]:
    lines = plain(f"class {header}:")
    for number, member in enumerate(members):
        lines += [*(plain("") if number else []), *indent(member)]
    return lines


def _simple(link: Link, lines: list[Line], form: str, **more: tuple[str, ...]) -> Made:
    """A helper that one expression calls: ``NAME`` is said from where it is called, ``VALUE`` is the argument."""
    return Made(lines, (link.name,), lambda value, say: ([], form.replace("NAME", say(link.name)).replace("VALUE", value)), **more)


def function(link: Link) -> Made:
    return _simple(link, _def(f"{link.name}({link.parameter})", link.body), "NAME(VALUE)")


def keyword(link: Link) -> Made:
    return _simple(link, _def(f"{link.name}(*, {link.parameter}, scale=1.0)", link.body), f"NAME({link.parameter}=VALUE)")


def star_kwargs(link: Link) -> Made:
    options = link.names.new()
    body = [Line(f'{link.parameter} = {options}["{link.parameter}"]'), *link.body]
    return _simple(link, _def(f"{link.name}(**{options})", body), f'NAME(**{{"{link.parameter}": VALUE, "scale": 1.0}})')


def star_args(link: Link) -> Made:
    rest = link.names.new()
    return _simple(link, _def(f"{link.name}(*{rest})", [Line(f"{link.parameter} = {rest}[0]"), *link.body]), "NAME(*(VALUE, 1.0))")


def method(link: Link) -> Made:
    owner, act = replace(link, name=link.names.big()), link.names.new()
    lines = _class(owner.name, _def(f"{act}(self, {link.parameter})", link.body))
    return _simple(owner, lines, f"NAME().{act}(VALUE)")


def static_method(link: Link) -> Made:
    owner, act = replace(link, name=link.names.big()), link.names.new()
    lines = _class(owner.name, [Line("@staticmethod"), *_def(f"{act}({link.parameter})", link.body)])
    return _simple(owner, lines, f"NAME.{act}(VALUE)")


def callable_object(link: Link) -> Made:
    owner = replace(link, name=link.names.big())
    return _simple(owner, _class(owner.name, _def(f"__call__(self, {link.parameter})", link.body)), "NAME()(VALUE)")


def overriding(link: Link) -> Made:
    """The base class calls a method that its subclass defines."""
    base, owner = link.names.big(), replace(link, name=link.names.big())
    run, act, other = link.names.new(), link.names.new(), link.names.new()
    above = _class(
        base,
        _def(f"{run}(self, {other})", [Line(f"return self.{act}({other})", ("call",))]),
        _def(f"{act}(self, {other})", plain("raise NotImplementedError")),
    )
    lines = [*above, *plain("", ""), *_class(f"{owner.name}({base})", _def(f"{act}(self, {link.parameter})", link.body))]
    return _simple(owner, lines, f"NAME().{run}(VALUE)")


def super_call(link: Link) -> Made:
    """The subclass hands on to the method of its base class."""
    base, owner = link.names.big(), replace(link, name=link.names.big())
    act, other = link.names.new(), link.names.new()
    below = _class(f"{owner.name}({base})", _def(f"{act}(self, {other})", [Line(f"return super().{act}({other})", ("call",))]))
    lines = [*_class(base, _def(f"{act}(self, {link.parameter})", link.body)), *plain("", ""), *below]
    return _simple(owner, lines, f"NAME().{act}(VALUE)")


def attribute(link: Link) -> Made:
    """An object holds the helper, and calls it."""
    owner, held, run, other = link.names.big(), link.names.new(), link.names.new(), link.names.new()
    holder = _class(
        owner,
        _def(f"__init__(self, {held})", plain(f"self.{held} = {held}")),
        _def(f"{run}(self, {other})", [Line(f"return self.{held}({other})", ("call",))]),
    )
    lines = [*_def(f"{link.name}({link.parameter})", link.body), *plain("", ""), *holder]
    return Made(lines, (link.name, owner), lambda value, say: ([], f"{say(owner)}({say(link.name)}).{run}({value})"))


def lambda_(link: Link) -> Made:
    inner, other = link.names.new(), link.names.new()
    lines = [*_def(f"{inner}({link.parameter}, scale)", link.body), *plain("", "")]
    return _simple(link, [*lines, Line(f"{link.name} = lambda {other}: {inner}({other}, 1.0)", ("call",))], "NAME(VALUE)")


def partial(link: Link) -> Made:
    inner = link.names.new()
    lines = [*_def(f"{inner}(scale, {link.parameter})", link.body), *plain("", "", f"{link.name} = functools.partial({inner}, 1.0)")]
    return _simple(link, lines, "NAME(VALUE)", imports=("import functools",))


def decorator(link: Link) -> Made:
    wrap, inner, act = link.names.new(), link.names.new(), link.names.new()
    wrapper = [Line(f"@functools.wraps({act})"), *_def(f"{inner}(*args, **kwargs)", [Line(f"return {act}(*args, **kwargs)", ("call",))])]
    lines = [*_def(f"{wrap}({act})", [*wrapper, *plain("", f"return {inner}")]), *plain("", "", f"@{wrap}")]
    return _simple(link, [*lines, *_def(f"{link.name}({link.parameter})", link.body)], "NAME(VALUE)", imports=("import functools",))


def table(link: Link) -> Made:
    inner, other, key = link.names.new(), link.names.new(), link.names.new()
    others = _def(f"{other}({link.parameter})", plain(f"return {link.parameter}"))
    entries = plain("", "", f'{link.name} = {{"{key}": {inner}, "{other}": {other}}}')
    lines = [*_def(f"{inner}({link.parameter})", link.body), *plain("", ""), *others, *entries]
    return _simple(link, lines, f'NAME["{key}"](VALUE)')


def module(link: Link) -> Made:
    """A module of PyTorch: its call is its ``forward``."""
    owner = replace(link, name=link.names.big())
    lines = _class(f"{owner.name}(torch.nn.Module)", _def(f"forward(self, {link.parameter})", link.body))
    return _simple(owner, lines, "NAME()(VALUE)", imports=("import torch",))


def closure(link: Link) -> Made:
    inner = link.names.new()
    body = [*_def(f"{inner}({link.parameter})", link.body), *plain("", f"return {inner}")]
    return _simple(link, _def(f"{link.name}()", body), "NAME()(VALUE)")


def _yielding(body: Sequence[Line]) -> list[Line]:
    """A body that yields what it returned; returns of its inner functions stay."""
    return [replace(line, text=line.text.replace("return ", "yield ", 1)) if line.text.startswith("return ") else line for line in body]


def context_manager(link: Link) -> Made:
    got = link.names.new()
    lines = [Line("@contextlib.contextmanager"), *_def(f"{link.name}({link.parameter})", _yielding(link.body))]

    def call(value: str, say: Refer) -> Called:
        return [Line(f"with {say(link.name)}({value}) as {got}:", ("call",)), Line("    pass")], got

    return Made(lines, (link.name,), call, ("import contextlib",))


def generator(link: Link) -> Made:
    return _simple(link, _def(f"{link.name}({link.parameter})", _yielding(link.body)), "next(NAME(VALUE))")


def loop_over(link: Link) -> Made:
    """A generator whose values a loop takes."""
    got, last = link.names.new(), link.names.new()

    def call(value: str, say: Refer) -> Called:
        return [Line(f"for {got} in {say(link.name)}({value}):", ("call",)), Line(f"    {last} = {got}")], last

    return Made(_def(f"{link.name}({link.parameter})", _yielding(link.body)), (link.name,), call)


def _wrapped(link: Link, wrap: str, take: str, above: Sequence[Line] = (), more: tuple[str, ...] = (), **imports: tuple[str, ...]) -> Made:
    """The value goes in something that holds it: down where the argument matters, up where the result does."""
    outer = link.names.new()
    if link.carries == "argument":
        body = [Line(f"{link.parameter} = {take.replace('HELD', outer)}"), *link.body]
        lines = _def(f"{link.name}({outer})", body)
    else:
        lines = _def(f"{link.name}({link.parameter})", _returning(link.body, wrap))

    def call(value: str, say: Refer) -> Called:
        holder = wrap
        for name in more:
            holder = holder.replace(name, say(name))
        if link.carries == "argument":
            return [], f"{say(link.name)}({holder.replace('VALUE', value)})"
        return [], take.replace("HELD", f"{say(link.name)}({value})")

    needed = (link.name, *more) if link.carries == "argument" else (link.name,)
    return Made([*above, *lines], needed, call, **imports)


def _returning(body: Sequence[Line], wrap: str) -> list[Line]:
    head = "return "
    return [
        replace(line, text=f"return {wrap.replace('VALUE', line.text[len(head) :])}") if line.text.startswith(head) else line
        for line in body
    ]


def in_list(link: Link) -> Made:
    return _wrapped(link, "[VALUE, None]", "HELD[0]")


def in_dict(link: Link) -> Made:
    key = link.names.new()
    return _wrapped(link, f'{{"{key}": VALUE, "scale": 1.0}}', f'HELD["{key}"]')


def in_dataclass(link: Link) -> Made:
    owner, held = link.names.big(), link.names.new()
    above = plain("@dataclasses.dataclass", f"class {owner}:", f"    {held}: object", "    scale: float = 1.0", "", "")
    return _wrapped(link, f"{owner}(VALUE)", f"HELD.{held}", above, (owner,), imports=("import dataclasses",))


def in_attribute(link: Link) -> Made:
    owner, held = link.names.big(), link.names.new()
    above = [*_class(owner, _def(f"__init__(self, {held})", plain(f"self.{held} = {held}"))), *plain("", "")]
    return _wrapped(link, f"{owner}(VALUE)", f"HELD.{held}", above, (owner,))


def own_attribute(link: Link) -> Made:
    """One method keeps the value in an attribute, another one takes it from there."""
    owner, held, act = link.names.big(), link.names.new(), link.names.new()
    keep = _def(f"__init__(self, {held})", plain(f"self.{held} = {held}"))
    body = [Line(f"{link.parameter} = self.{held}"), *link.body]
    lines = _class(owner, keep, _def(f"{act}(self)", body))
    return Made(lines, (owner,), lambda value, say: ([], f"{say(owner)}({value}).{act}()"))


LINKS: dict[str, Callable[[Link], Made]] = {
    "function": function,
    "keyword": keyword,
    "star-kwargs": star_kwargs,
    "star-args": star_args,
    "method": method,
    "static-method": static_method,
    "callable-object": callable_object,
    "overriding": overriding,
    "super": super_call,
    "attribute": attribute,
    "lambda": lambda_,
    "partial": partial,
    "decorator": decorator,
    "table": table,
    "module": module,
    "closure": closure,
    "context-manager": context_manager,
    "generator": generator,
    "loop-over": loop_over,
    "in-list": in_list,
    "in-dict": in_dict,
    "in-dataclass": in_dataclass,
    "in-attribute": in_attribute,
    "own-attribute": own_attribute,
}
