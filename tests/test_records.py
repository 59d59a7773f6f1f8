"""Records are dataclasses, made without the module of that name."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from streamlint.findings import Category, Finding, Report, Span
from streamlint.support.records import field, is_record, names_of, record, replace


@record(frozen=True, slots=True, order=True)
class Place:
    """A place."""

    row: int
    column: int = 1

    @property
    def told(self) -> str:
        """Both."""
        return f"{self.row}:{self.column}"


@record(slots=True)
class Held:
    """Mutable, with a list of its own."""

    names: list[str] = field(default_factory=list)
    place: Place | None = None


@record(eq=False, slots=True)
class Node:
    """A base, whose own field comes last and is named."""

    at: int = field(default=0, kw_only=True)


class Kind(Node):
    """Between the two, and no record of its own."""

    __slots__ = ()


@record(eq=False, slots=True)
class Leaf(Kind):
    """Has what its base has."""

    name: str
    held: list[str] = field(default_factory=list)


@record(unsafe_hash=True, slots=True)
class Counted:
    """Changes, and is a key all the same."""

    number: int = 0


def test_fields_of_a_base_are_inherited() -> None:
    leaf = Leaf("x", at=3)
    assert (leaf.at, leaf.name, leaf.held) == (3, "x", [])
    assert isinstance(leaf, Kind)
    assert names_of(Leaf) == ("at", "name", "held") == tuple(item.name for item in dataclasses.fields(leaf))
    assert Leaf.__match_args__ == ("name", "held")
    assert repr(leaf) == "Leaf(at=3, name='x', held=[])"
    assert (replace(leaf, name="y").at, dataclasses.replace(leaf, name="y").at) == (3, 3)
    assert is_record(leaf)
    assert not is_record("x")
    with pytest.raises(TypeError):
        Leaf("x", [], 3)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        leaf.unknown = 1  # type: ignore[attr-defined]
    assert copy.copy(leaf).at == pickle.loads(pickle.dumps(leaf)).at == 3


def test_who_asks_for_the_fields_changes_no_class() -> None:
    before = dict(vars(Leaf))
    dataclasses.replace(Leaf("x"), name="y")
    assert dict(vars(Leaf)) == before


@record(slots=False)
class Noted:
    """Finds out one of its fields, and may be given more."""

    name: str
    length: int = field(init=False)
    seen: list[str] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.length = len(self.name)


def test_fields_that_are_not_given() -> None:
    one = Noted("abc")
    vars(one)["more"] = 1
    assert (one.length, one.seen, Noted.__match_args__) == (3, [], ("name",))
    assert Noted("x").seen is not one.seen
    assert [item.init for item in dataclasses.fields(Noted)] == [True, False, False]
    assert replace(one, name="x").length == dataclasses.replace(one, name="x").length == 1
    with pytest.raises(TypeError):
        Noted("abc", 3)  # type: ignore[call-arg]


def test_equal_by_identity_where_that_is_asked_for() -> None:
    one, other = Leaf("x"), Leaf("x")
    assert one != other
    assert len({one, other}) == 2


def test_a_record_that_changes_can_be_a_key() -> None:
    one = Counted(1)
    one.number = 2
    assert {one: 1}[Counted(2)] == 1


def test_values() -> None:
    assert Place(3) == Place(3, 1) == Place(column=1, row=3)
    assert Place(3) != Place(4)
    assert Place(3) != (3, 1)
    assert repr(Place(3)) == "Place(row=3, column=1)"
    assert Place(3).told == "3:1"
    assert Place.__doc__ == "A place."
    assert sorted([Place(2), Place(1, 5), Place(1, 4)]) == [Place(1, 4), Place(1, 5), Place(2)]
    assert Place(1, 2) <= Place(1, 2) < Place(1, 3)
    with pytest.raises(TypeError):
        Place()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        assert Place(1) < (1, 1)  # type: ignore[operator]


def test_frozen_ones_are_keys_and_do_not_change() -> None:
    assert {Place(3): 1}[Place(3)] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        Place(3).row = 4  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del Place(3).row
    with pytest.raises(TypeError):
        hash(Held())


def test_defaults_are_not_shared() -> None:
    one, other = Held(), Held()
    one.names.append("x")
    assert other.names == []
    with pytest.raises(AttributeError):
        one.unknown = 1  # type: ignore[attr-defined]


def test_a_field_can_stay_out_of_the_hash() -> None:
    span = Span("a.py", 1, 1, 1, 2)
    one = Finding("SL001", "name", Category.STALL, "text", span, facts={"bytes": 1})
    assert hash(one) == hash(replace(one, facts={"bytes": 2}))
    assert one != replace(one, facts={"bytes": 2})


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_copies(protocol: int) -> None:
    for one in (Place(3, 4), Held(["x"], Place(1)), Span("a.py", 1, 2, 3, 4)):
        assert pickle.loads(pickle.dumps(one, protocol)) == copy.deepcopy(one) == copy.copy(one) == one


def test_the_functions_of_dataclasses_work() -> None:
    assert dataclasses.is_dataclass(Place)
    assert [(one.name, one.default) for one in dataclasses.fields(Place)] == [("row", dataclasses.MISSING), ("column", 1)]
    assert dataclasses.replace(Place(3), column=9) == Place(3, 9)
    assert dataclasses.asdict(Held(["x"], Place(1, 2))) == {"names": ["x"], "place": {"row": 1, "column": 2}}
    assert {one.name for one in dataclasses.fields(Report)} >= {"findings", "problems", "files"}


@record(eq=False, slots=True)
class Packed:
    """A field is held as a number."""

    __packed__ = (("at", (lambda at: at[0] * 10 + at[1], lambda kept: divmod(kept, 10))),)

    at: tuple[int, int] = field(default=(0, 1), kw_only=True)


@record(eq=False, slots=True)
class Below(Packed):
    """Another one beside it."""

    name: str = ""


@pytest.mark.parametrize("kind", [Packed, Below])
def test_a_field_is_held_otherwise_than_it_is_given(kind: type[Packed]) -> None:
    one = kind(at=(3, 4))
    assert one.at == (3, 4)
    assert one._at == 34  # type: ignore[attr-defined]
    assert kind().at == (0, 1)
    one.at = (5, 6)
    assert one._at == 56  # type: ignore[attr-defined]
    assert "at" in names_of(kind)
    assert replace(one).at == copy.copy(one).at == pickle.loads(pickle.dumps(one)).at == dataclasses.replace(one).at == (5, 6)
    assert repr(one).startswith(f"{kind.__qualname__}(at=(5, 6)")
    assert not hasattr(one, "__dict__")


def test_a_short_run_imports_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    script = (
        "import sys; from streamlint.cli import main\n"
        "assert main(['check', '--no-cache', '--quiet', 'a.py']) == 0\n"
        "heavy = {'dataclasses', 'inspect', 'typing', 'importlib.metadata', 'pathspec', 'platformdirs', 'hashlib', 'json', 'shutil'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
