"""The further ways of CUDA C++ in one table, and which templates they suit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.streambench import cuda_calls, cuda_containers, cuda_firsts, cuda_members, cuda_places, cuda_scopes
from benchmarks.streambench.cuda_ways import Build
from benchmarks.streambench.pieces import Template, Way


@dataclass(frozen=True)
class CppWay(Way):
    """A way of CUDA C++. ``files``: a part stands in another file; ``ends``: the second part hands nothing back, being a destructor;
    ``last``: what comes after it stands in the destructor as well.
    """

    files: bool = False
    ends: bool = False
    last: bool = False

    def fits(self, template: Template) -> bool:
        """Whether the program says what the template says, and is one."""
        left_out = ({"returned"} if self.flat else set()) | ({"other-file"} if self.files else set())
        if not super().fits(template) or left_out & template.without or any("&" in text for text in template.takes):
            return False
        return not (self.ends and template.gives) and not (
            self.last and any(line.startswith("return ") for line in template.body.split("\n"))
        )


def _table() -> dict[str, Way]:
    acts: dict[str, Callable[[Build], None]] = {
        **cuda_members.WAYS,
        **cuda_containers.WAYS,
        **cuda_calls.WAYS,
        **cuda_places.WAYS,
        **cuda_scopes.WAYS,
        **cuda_firsts.WAYS,
    }
    return {
        name: CppWay(
            act,
            carries=True,
            flat=name in _FLAT,
            threads=name in _THREADS,
            files=name in _FILES,
            ends=name in _ENDS,
            last=name == "constructor-destructor",
        )
        for name, act in acts.items()
    }


_FLAT = frozenset("constructor-destructor out-pointers out-references filled-struct made-object setup-run".split())
_THREADS = frozenset("thread-method thread-arguments async packaged-task hand-over".split())
_FILES = frozenset("source-file class-in-files namespace-variables".split())
_ENDS = frozenset("destructor deleter reset".split())
WAYS = _table()
