"""Lowers ``switch`` and ``match``. A pattern becomes one test after the other, and what it binds becomes the values that these look at."""

from __future__ import annotations

from streamlint.ir import opcodes as op
from streamlint.ir.lowering import Frame, annotation_text
from streamlint.ir.statements import STATEMENTS, StatementLowering
from streamlint.program import Body, Case, Const, Expression, Pattern, Position, Switch, Unknown

Bound = tuple[str, int, Position]
"""A name of a pattern, the register that it is bound to, and where it stands."""


class SwitchLowering(StatementLowering):
    """Lowers what chooses one of several arms."""

    def _switch(self, node: Switch) -> None:
        subject = self.value(node.subject)
        after = self.builder.new_block()
        if node.patterns:
            for (_, body), case in zip(node.cases, node.patterns, strict=True):
                self.case(case, subject, body, after)
        else:
            self.labelled(node, subject, after)
        self.builder.jump(after)
        self.builder.start(after)

    # --- switch

    def labelled(self, node: Switch, subject: int, after: int) -> None:
        """Labels are compared in their order; one that is not understood may or may not fit."""
        self.frames.append(Frame(after=after))
        default: Body | None = None
        for labels, body in node.cases:
            if not labels and node.cases[-1][1] is not body:
                default = body  # stands anywhere, comes last
                continue
            fits, more = self.builder.new_block(), self.builder.new_block()
            if not labels:
                self.builder.jump(fits)
            for label in labels:
                following = self.builder.new_block()
                self.builder.branch(self.label(subject, label), fits, following, label.at)
                self.builder.start(following)
            self.builder.jump(more)
            self.arm(fits, body, after)
            self.builder.start(more)
        if default is not None:
            arm = self.builder.new_block()
            self.builder.jump(arm)
            self.arm(arm, default, after)
        self.frames.pop()

    def label(self, subject: int, label: Expression) -> int:
        """Whether a label fits."""
        if isinstance(label, Unknown):
            return self.value(label)
        return self.emit(op.COMPARE, label.at, self.k("=="), subject, self.value(label))

    def arm(self, block: int, body: Body, after: int) -> None:
        """One arm of a switch."""
        self.builder.start(block)
        self.body(body)
        self.builder.jump(after)
        if self.builder.ended:
            self.builder.start(self.builder.new_block())

    # --- match

    def case(self, case: Case, subject: int, body: Body, after: int) -> None:
        """One arm of ``match``: its pattern, the names that this binds, the guard, the statements. It ends where the next one begins."""
        more = self.builder.new_block()
        bound: list[Bound] = []
        self.pattern(case.pattern, subject, more, bound)
        for name, value, at in bound:
            self.write_name(name, value, at)
        if case.guard is not None:
            holds = self.builder.new_block()
            self.condition(case.guard, holds, more)
            self.builder.start(holds)
        self.body(body[case.bindings :])
        self.builder.jump(after)
        self.builder.start(more)

    def pattern(self, pattern: Pattern, subject: int, otherwise: int, bound: list[Bound]) -> None:
        """Go on where the subject fits, and to ``otherwise`` where it does not."""
        if pattern.kind == "or":
            self.alternatives(pattern, subject, otherwise, bound)
        elif pattern.kind in ("value", "single"):
            assert pattern.value is not None
            comparison = self.k("==" if pattern.kind == "value" else "is")
            self.demand(self.emit(op.COMPARE, pattern.at, comparison, subject, self.value(pattern.value)), otherwise, pattern.at)
        elif pattern.kind == "sequence":
            self.sequence(pattern, subject, otherwise, bound)
        elif pattern.kind == "mapping":
            self.mapping(pattern, subject, otherwise, bound)
        elif pattern.kind == "class":
            self.instance(pattern, subject, otherwise, bound)
        if pattern.name:
            bound.append((pattern.name, subject, pattern.at))

    def demand(self, test: int, otherwise: int, at: Position) -> None:
        """Go on where a test holds."""
        holds = self.builder.new_block()
        self.builder.branch(test, holds, otherwise, at)
        self.builder.start(holds)

    def alternatives(self, pattern: Pattern, subject: int, otherwise: int, bound: list[Bound]) -> None:
        """``a | b``: all alternatives bind the same names."""
        fits = self.builder.new_block()
        names: dict[str, tuple[str, Position]] = {}
        for one in pattern.items:
            following = otherwise if one is pattern.items[-1] else self.builder.new_block()
            own: list[Bound] = []
            self.pattern(one, subject, following, own)
            for name, value, at in own:
                names.setdefault(name, (self.temporary("or"), at))
                self.builder.write(names[name][0], value)
            self.builder.jump(fits)
            if following != otherwise:
                self.builder.start(following)
        self.builder.start(fits)
        bound += [(name, self.builder.read(variable), at) for name, (variable, at) in names.items()]

    def sequence(self, pattern: Pattern, subject: int, otherwise: int, bound: list[Bound]) -> None:
        """``[a, *b]``."""
        count = len(pattern.items)
        self.demand(self.fits(pattern, subject, ("sequence", count, pattern.star)), otherwise, pattern.at)
        for index, one in enumerate(pattern.items):
            if one.kind != "any" or one.name:
                part = self.builder.define(op.UNPACK, one.at, subject, index, count, pattern.star)
                self.pattern(one, part, otherwise, bound)

    def mapping(self, pattern: Pattern, subject: int, otherwise: int, bound: list[Bound]) -> None:
        """``{key: a, **rest}``."""
        keys = [self.value(key) for key in pattern.keys]
        self.demand(self.fits(pattern, subject, ("mapping",), *keys), otherwise, pattern.at)
        for key, one in zip(keys, pattern.items, strict=True):
            if one.kind != "any" or one.name:
                self.pattern(one, self.builder.define(op.ITEM, one.at, subject, key), otherwise, bound)
        if pattern.rest:
            spelled = tuple(key.value if isinstance(key, Const) else annotation_text(key) for key in pattern.keys)
            bound.append((pattern.rest, self.builder.define(op.CAPTURE, pattern.at, subject, self.k(("rest", spelled))), pattern.at))

    def instance(self, pattern: Pattern, subject: int, otherwise: int, bound: list[Bound]) -> None:
        """``C(a, x=b)``."""
        assert pattern.value is not None
        places = len(pattern.items) - len(pattern.names)
        kind = self.value(pattern.value)
        self.demand(self.fits(pattern, subject, ("class", places, pattern.names), kind), otherwise, pattern.at)
        for index, one in enumerate(pattern.items):
            if one.kind == "any" and not one.name:
                continue
            if index < places:
                where = self.k(("place", index, annotation_text(pattern.value)))
                part = self.builder.define(op.CAPTURE, one.at, subject, where)
            else:
                part = self.builder.define(op.ATTR, one.at, subject, self.k(pattern.names[index - places]))
            self.pattern(one, part, otherwise, bound)

    def fits(self, pattern: Pattern, subject: int, shape: object, *values: int) -> int:
        """Whether a subject has the shape of a pattern."""
        return self.builder.define(op.MATCH, pattern.at, subject, self.k(shape), *values)


STATEMENTS[Switch] = SwitchLowering._switch
