"""The trial of a fix: the edited file is linted again, with all rules and with the files around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from streamlint.findings import Edit, Finding, Fix
from streamlint.fix import proposals
from streamlint.fix.edits import Edited, Overlap

Lint = Callable[[str, str], "Sequence[Finding] | None"]  # path, text -> findings there; None: it does not parse
Place = tuple[str, int, int]
COMMENTS = ("#", "//", "/*")


@dataclass(slots=True)
class Trial:
    """One file's fixes, held against its findings."""

    file: str
    text: str
    language: str
    lint: Lint  # by the widest set of rules
    found: Sequence[Finding] = ()  # what the run found from the file, by its own rules
    _own: set[Place] = field(init=False)
    _before: set[Place] | None = field(default=None)
    _known: dict[str, set[Place] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._own = {_place(finding) for finding in self.found}

    def propose(self, finding: Finding) -> Fix | None:
        """The first proposal that ends the finding and brings none."""
        for fix in proposals(finding, self.text, self.language):
            if all(edit.span.file == self.file for edit in fix.edits) and self.holds([finding], fix.edits):
                return self._judged(fix)
        return None

    def holds(self, ended: Sequence[Finding], edits: Iterable[Edit]) -> bool:
        """Whether the edits end these findings, bring none, and leave a file that parses."""
        try:
            edited = Edited(self.text, edits)
        except Overlap:
            return False
        gone = {_place(finding) for finding in ended}
        if edited.text == self.text or not (self._own >= gone or self._places() >= gone):
            return False
        after = self._linted(edited)
        if after is None or after & gone:
            return False
        return after <= self._own or after <= self._places()  # mostly the first, which costs nothing

    def _linted(self, edited: Edited) -> set[Place] | None:
        """What is found in the edited text, by its places in the old one; None where it does not parse, or where a place is new."""
        if edited.text not in self._known:
            findings = self.lint(self.file, edited.text)
            places: set[Place] | None = None if findings is None else set()
            for finding in findings or ():
                was = edited.was_at(finding.span.row, finding.span.column)
                if was is None:
                    places = None
                    break
                assert places is not None
                places.add((finding.code, *was))
            self._known[edited.text] = places
        return self._known[edited.text]

    def _places(self) -> set[Place]:
        if self._before is None:
            self._before = {_place(finding) for finding in self.lint(self.file, self.text) or ()}
        return self._before

    def _judged(self, fix: Fix) -> Fix:
        """Unsafe where a comment would go."""
        added = "".join(edit.content for edit in fix.edits)
        for gone, _ in Edited(self.text, fix.edits).deleted():
            if any(sign in gone and sign not in added for sign in COMMENTS):
                return replace(fix, applicability="unsafe")
        return fix


def together(trial: Trial, findings: Sequence[Finding]) -> tuple[str, list[Finding]]:
    """The file's text with the fixes of findings applied, as many as hold together, and the findings that are mended."""
    fixes: Mapping[int, Fix] = {number: finding.fix for number, finding in enumerate(findings) if finding.fix}
    everything = [edit for fix in fixes.values() for edit in fix.edits]
    mended = [findings[number] for number in fixes]
    if len(mended) == 1 or (mended and trial.holds(mended, everything)):  # one alone was tried before
        return Edited(trial.text, everything).text, mended
    edits: list[Edit] = []
    mended = []
    for number, fix in fixes.items():
        if trial.holds([*mended, findings[number]], [*edits, *fix.edits]):
            edits += fix.edits
            mended.append(findings[number])
    return Edited(trial.text, edits).text, mended


def _place(finding: Finding) -> Place:
    return finding.code, finding.span.row, finding.span.column
