"""How one helper is made and called in C++: each kind of link takes one value and gives one back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from generated.texts import Line, Names, indent, plain

Called = tuple[list[Line], str]  # what stands before the call, and the expression


@dataclass
class Link:
    """One helper: its body, of one parameter, ends in ``return``; ``type`` is that of parameter and result."""

    name: str
    parameter: str
    body: Sequence[Line]
    names: Names
    type: str


@dataclass
class Made:
    """What a kind makes of a helper."""

    lines: list[Line]
    call: Callable[[str], Called]
    imports: tuple[str, ...] = ()


def _block(header: str, body: Sequence[Line], end: str = "}") -> list[Line]:
    return [Line(f"{header} {{"), *indent(body), Line(end)]


def _class(name: str, base: str, *members: Sequence[Line]) -> list[Line]:
    return _block(f"struct {name}{f' : {base}' if base else ''}", [line for member in members for line in member], "};")


def _calling(link: Link, lines: list[Line], form: str, *imports: str) -> Made:
    return Made(lines, lambda value: ([], form.replace("NAME", link.name).replace("VALUE", value)), imports)


def function(link: Link) -> Made:
    return _calling(link, _block(f"inline {link.type} {link.name}({link.type} {link.parameter})", link.body), "NAME(VALUE)")


def template(link: Link) -> Made:
    kind = link.names.big()
    lines = [Line(f"template <typename {kind}>"), *_block(f"{kind} {link.name}({kind} {link.parameter})", link.body)]
    return _calling(link, lines, f"NAME<{link.type}>(VALUE)")


def namespaced(link: Link) -> Made:
    space = link.names.new()
    inner = _block(f"inline {link.type} {link.name}({link.type} {link.parameter})", link.body)
    return _calling(link, [Line(f"namespace {space} {{"), *inner, Line("}")], f"{space}::NAME(VALUE)")


def member(link: Link) -> Made:
    owner, held = link.names.big(), link.names.new()
    lines = _class(owner, "", _block(f"{link.type} {link.name}({link.type} {link.parameter})", link.body))
    return Made(lines, lambda value: ([Line(f"{owner} {held};")], f"{held}.{link.name}({value})"))


def static_member(link: Link) -> Made:
    owner = link.names.big()
    lines = _class(owner, "", _block(f"static {link.type} {link.name}({link.type} {link.parameter})", link.body))
    return _calling(link, lines, f"{owner}::NAME(VALUE)")


def virtual(link: Link) -> Made:
    """The call goes through a reference to the base."""
    base, owner, held, seen = link.names.big(), link.names.big(), link.names.new(), link.names.new()
    abstract = plain(f"virtual ~{base}() = default;", f"virtual {link.type} {link.name}({link.type} {link.parameter}) = 0;")
    concrete = _block(f"{link.type} {link.name}({link.type} {link.parameter}) override", link.body)
    lines = [*_class(base, "", abstract), Line(""), *_class(owner, base, concrete)]
    return Made(lines, lambda value: (plain(f"{owner} {held};", f"{base}& {seen} = {held};"), f"{seen}.{link.name}({value})"))


def functor(link: Link) -> Made:
    owner = link.names.big()
    lines = _class(owner, "", _block(f"{link.type} operator()({link.type} {link.parameter}) const", link.body))
    return _calling(link, lines, f"{owner}{{}}(VALUE)")


def lambda_(link: Link) -> Made:
    header = f"static const auto {link.name} = []({link.type} {link.parameter}) -> {link.type}"
    return _calling(link, _block(header, link.body, "};"), "NAME(VALUE)")


def function_pointer(link: Link) -> Made:
    inner = link.names.new()
    lines = _block(f"inline {link.type} {inner}({link.type} {link.parameter})", link.body)
    return _calling(link, [*lines, Line(""), Line(f"static {link.type} (*const {link.name})({link.type}) = {inner};")], "NAME(VALUE)")


def callback(link: Link) -> Made:
    """A template is handed the helper, and calls it."""
    kind, apply, act, other = link.names.big(), link.names.new(), link.names.new(), link.names.new()
    inner = _block(f"inline {link.type} {link.name}({link.type} {link.parameter})", link.body)
    body = [Line(f"return {act}({other});", ("call",))]
    outer = [Line(f"template <typename {kind}>"), *_block(f"{link.type} {apply}({kind} {act}, {link.type} {other})", body)]
    return _calling(link, [*inner, Line(""), *outer], f"{apply}(NAME, VALUE)")


def std_function(link: Link) -> Made:
    inner, held = link.names.new(), link.names.new()
    lines = _block(f"inline {link.type} {inner}({link.type} {link.parameter})", link.body)
    before = f"std::function<{link.type}({link.type})> {held} = {inner};"
    return Made(lines, lambda value: ([Line(before)], f"{held}({value})"), ("#include <functional>",))


def reference(link: Link) -> Made:
    """The result is written through a parameter."""
    out, got = link.names.new(), link.names.new()
    head = "return "
    body = [
        Line(f"{out} = {line.text[len(head) :]}", line.roles, line.differs) if line.text.startswith(head) else line for line in link.body
    ]
    lines = _block(f"inline void {link.name}({link.type} {link.parameter}, {link.type}& {out})", body)

    def call(value: str) -> Called:
        return [Line(f"{link.type} {got} = nullptr;"), Line(f"{link.name}({value}, {got});", ("call",))], got

    return Made(lines, call)


def in_struct(link: Link) -> Made:
    owner, held, outer = link.names.big(), link.names.new(), link.names.new()
    body = [Line(f"{link.type} {link.parameter} = {outer}.{held};"), *link.body]
    lines = [
        *_class(owner, "", plain(f"{link.type} {held};", "int scale;")),
        Line(""),
        *_block(f"inline {link.type} {link.name}(const {owner}& {outer})", body),
    ]
    return _calling(link, lines, f"NAME({owner}{{VALUE, 1}})")


def own_member(link: Link) -> Made:
    """The constructor keeps the value, a method takes it from there."""
    owner, held, given = link.names.big(), link.names.new(), link.names.new()
    body = [Line(f"{link.type} {link.parameter} = {held}_;"), *link.body]
    lines = _class(
        owner,
        "",
        plain(f"explicit {owner}({link.type} {given}) : {held}_({given}) {{}}"),
        _block(f"{link.type} {link.name}()", body),
        plain(f"{link.type} {held}_;"),
    )
    return Made(lines, lambda value: ([Line(f"{owner} {held}({value});")], f"{held}.{link.name}()"))


LINKS: dict[str, Callable[[Link], Made]] = {
    "function": function,
    "template": template,
    "namespaced": namespaced,
    "member": member,
    "static-member": static_member,
    "virtual": virtual,
    "functor": functor,
    "lambda": lambda_,
    "function-pointer": function_pointer,
    "callback": callback,
    "std-function": std_function,
    "reference": reference,
    "in-struct": in_struct,
    "own-member": own_member,
}
