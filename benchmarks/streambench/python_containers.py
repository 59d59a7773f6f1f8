"""Ways through dicts, lists, tuples, queues and heaps, and what takes them apart."""

from __future__ import annotations

from benchmarks.streambench.pieces import Line, Way, indent, plain
from benchmarks.streambench.python_forms import carry, draw, joined, klass, packed, taker, texts, unpacked
from benchmarks.streambench.python_ways import Build, define


def _entries(build: Build) -> str:
    return joined(build, '"@": @')


def _names(build: Build) -> str:
    return joined(build, '"@"')


def dict_key(build: Build) -> None:
    """A dict with constant keys."""
    held = build.names.new("value")
    carry(build, [f"{held} = {{{_entries(build)}}}"], held, texts(build, f'@ = {held}["@"]'))


def dict_assigned(build: Build) -> None:
    """Entries of a dict that are assigned one by one."""
    held = build.names.new("value")
    carry(build, [f"{held} = {{}}", *texts(build, f'{held}["@"] = @')], held, texts(build, f'@ = {held}["@"]'))


def dict_variable_key(build: Build) -> None:
    """A dict whose keys are parameters."""
    held = build.names.new("value")
    keys = joined(build, "@_key")
    store = [f"{held} = {{}}", *texts(build, '@_key = "the @"'), *texts(build, f"{held}[@_key] = @")]
    carry(build, store, f"{held}, {keys}", texts(build, f"@ = {held}[@_key]"))


def dict_number_key(build: Build) -> None:
    """A dict from numbers of devices to a dict of each."""
    held, number = draw(build, "value", "value")
    store = [f"{number} = 0", f"{held} = {{{number}: {{{_entries(build)}}}}}"]
    carry(build, store, f"{held}, {number}", texts(build, f'@ = {held}[{number}]["@"]'))


def dict_of_dicts(build: Build) -> None:
    """A dict of dicts."""
    held = build.names.new("value")
    store = [f'{held} = {{"inner": {{}}}}', *texts(build, f'{held}["inner"]["@"] = @')]
    carry(build, store, held, texts(build, f'@ = {held}["inner"]["@"]'))


def dict_get(build: Build) -> None:
    """``get`` of a dict."""
    held = build.names.new("value")
    carry(build, [f"{held} = dict({joined(build, '@=@')})"], held, texts(build, f'@ = {held}.get("@")'))


def dict_setdefault(build: Build) -> None:
    """``setdefault`` of a dict."""
    held = build.names.new("value")
    carry(build, [f"{held} = {{}}", *texts(build, f'{held}.setdefault("@", @)')], held, texts(build, f'@ = {held}["@"]'))


def dict_update(build: Build) -> None:
    """``update`` of a dict."""
    held = build.names.new("value")
    store = [f'{held} = {{"rounds": 0}}', f"{held}.update({joined(build, '@=@')})"]
    carry(build, store, held, texts(build, f'@ = {held}["@"]'))


def dict_merged(build: Build) -> None:
    """A dict that is spread into another one."""
    held, other = draw(build, "value", "value")
    store = [f"{held} = {{{_entries(build)}}}", f'{other} = {{"rounds": 0, **{held}}}']
    carry(build, store, other, texts(build, f'@ = {other}["@"]'))


def dict_unpacked(build: Build) -> None:
    """A call that a dict is spread into."""
    held = build.names.new("value")
    name = taker(build, build.takes, [])
    build.place([*plain(f"{held} = {{{_entries(build)}}}"), *build.calls(f"{name}(**{held})")])


def dict_zipped(build: Build) -> None:
    """A dict of two sequences."""
    held = build.names.new("value")
    ends = "," if len(build.template.takes) == 1 else ""
    carry(build, [f"{held} = dict(zip(({_names(build)}{ends}), {packed(build)}))"], held, texts(build, f'@ = {held}["@"]'))


def dict_values(build: Build) -> None:
    """The values of a dict in their order."""
    held = build.names.new("value")
    carry(build, [f"{held} = {{{_entries(build)}}}"], held, [f"{unpacked(build)} = {held}.values()"])


def default_dict(build: Build) -> None:
    """Lists in a `collections.defaultdict`."""
    build.need("import collections")
    held = build.names.new("value")
    store = [f"{held} = collections.defaultdict(list)", *texts(build, f'{held}["@"].append(@)')]
    carry(build, store, held, texts(build, f'@ = {held}["@"][0]'))


def list_index(build: Build) -> None:
    """A list by index."""
    held = build.names.new("value")
    unpack = [f"{taken} = {held}[{number}]" for number, taken in enumerate(build.template.takes)]
    carry(build, [f"{held} = [{build.takes}]"], held, unpack)


def list_last(build: Build) -> None:
    """The last one of a list that was appended to."""
    held = build.names.new("value")
    carry(build, [f"{held} = []", f"{held}.append({packed(build)})"], held, [f"{unpacked(build)} = {held}[-1]"])


def list_pool(build: Build) -> None:
    """A list that one function puts into and another one takes from."""
    held, give = draw(build, "value", "function")
    build.add(plain(f"{held.upper()} = []"))
    build.add(define(f"{give}({build.takes})", plain(f"{held.upper()}.append({packed(build)})")))
    carry(build, [f"{give}({build.takes})"], "", [f"{unpacked(build)} = {held.upper()}.pop()"])


def list_extended(build: Build) -> None:
    """A list that is joined to another one."""
    held = build.names.new("value")
    store = [f"{held} = []", f"{held}.extend([{packed(build)}])", f"{held} += []"]
    carry(build, store, held, [f"{unpacked(build)} = {held}[0]"])


def ring(build: Build) -> None:
    """A slot of a list, whose index is a remainder."""
    held, turn = draw(build, "value", "value")
    store = [f"{held} = [None] * 2", f"{turn} = 3", f"{held}[{turn} % 2] = {packed(build)}"]
    carry(build, store, f"{held}, {turn}", [f"{unpacked(build)} = {held}[{turn} % 2]"])


def _loop(build: Build, store: list[str], head: str, unpack: list[str], held: str) -> None:
    """A function with a loop of one round, in which the second part stands."""
    name, gives = build.names.new("function"), build.template.gives
    first = plain(f"{gives} = None") if gives and gives not in build.template.takes else []
    ending = plain(f"return {gives}") if gives else []
    body = build.second[:-1] if gives else build.second
    build.add(define(f"{name}({held})", [*first, Line(head), *indent([*plain(*unpack), *body]), *ending]))
    build.place([*plain(*store), *build.calls(f"{name}({held})")])


def loop_over_list(build: Build) -> None:
    """A loop over a list of one."""
    held = build.names.new("value")
    _loop(build, [f"{held} = [{packed(build)}]"], f"for {unpacked(build)} in {held}:", [], held)


def while_list(build: Build) -> None:
    """A loop that takes from a list until it is empty."""
    held = build.names.new("value")
    _loop(build, [f"{held} = [{packed(build)}]"], f"while {held}:", [f"{unpacked(build)} = {held}.pop(0)"], held)


def zipped(build: Build) -> None:
    """A loop over several lists at a time."""
    held, number = draw(build, "value", "value")
    lists = joined(build, f'{held}["@"]')
    head = f"for {number}, {build.takes} in zip(range(1), {lists}):"
    _loop(build, [f"{held} = {{{joined(build, chr(34) + '@' + chr(34) + ': [@]')}}}"], head, [], held)


def enumerated(build: Build) -> None:
    """A loop over a list and its numbers."""
    held, number = draw(build, "value", "value")
    _loop(build, [f"{held} = [{packed(build)}]"], f"for {number}, ({unpacked(build)}) in enumerate({held}):", [], held)


def items(build: Build) -> None:
    """A loop over the items of a dict."""
    held, key = draw(build, "value", "value")
    _loop(build, [f'{held} = {{"first": {packed(build)}}}'], f"for {key}, ({unpacked(build)}) in {held}.items():", [], held)


def chained(build: Build) -> None:
    """A loop over two lists, one behind the other."""
    build.need("import itertools")
    held = build.names.new("value")
    _loop(build, [f"{held} = [{packed(build)}]"], f"for {unpacked(build)} in itertools.chain({held}, []):", [], held)


def reversed_(build: Build) -> None:
    """A loop over a list from its end."""
    held = build.names.new("value")
    _loop(build, [f"{held} = [{packed(build)}]"], f"for {unpacked(build)} in reversed({held}):", [], held)


def comprehension(build: Build) -> None:
    """A comprehension makes objects of the list, another one takes what they hold."""
    held, one = draw(build, "value", "value")
    store = [f"{held} = [{{{_entries(build)}}} for _ in range(1)]"]
    carry(build, store, held, texts(build, f'@ = [{one}["@"] for {one} in {held}][0]'))


def generator_expression(build: Build) -> None:
    """`next` of a generator expression with a condition."""
    held, one = draw(build, "value", "value")
    store = [f'{held} = [("first", {build.takes})]']
    carry(build, store, held, [f'_, {build.takes} = next({one} for {one} in {held} if {one}[0] == "first")'])


def selected(build: Build) -> None:
    """The smallest one of a list, by a key."""
    held, one = draw(build, "value", "value")
    carry(build, [f"{held} = [(1, {build.takes})]"], held, [f"_, {build.takes} = min({held}, key=lambda {one}: {one}[0])"])


def deque(build: Build) -> None:
    """A deque: in at the end, out at the front."""
    build.need("import collections")
    held = build.names.new("value")
    store = [f"{held} = collections.deque(maxlen=4)", f"{held}.append({packed(build)})"]
    carry(build, store, held, [f"{unpacked(build)} = {held}.popleft()"])


def queue(build: Build) -> None:
    """A queue of the standard library, in one thread."""
    build.need("import queue")
    held = build.names.new("value")
    carry(build, [f"{held} = queue.Queue()", f"{held}.put({packed(build)})"], held, [f"{unpacked(build)} = {held}.get()"])


def own_queue(build: Build) -> None:
    """A small class of one's own with ``push`` and ``pop``."""
    owner, held = draw(build, "class", "value")
    build.add(
        klass(
            owner,
            define("__init__(self)", plain("self._items = []")),
            define("push(self, item)", plain("self._items.append(item)")),
            define("pop(self)", plain("return self._items.pop(0)")),
        )
    )
    carry(build, [f"{held} = {owner}()", f"{held}.push({packed(build)})"], held, [f"{unpacked(build)} = {held}.pop()"])


def own_mapping(build: Build) -> None:
    """A class of one's own with subscripts."""
    owner, held = draw(build, "class", "value")
    build.add(
        klass(
            owner,
            define("__init__(self)", plain("self._items = {}")),
            define("__setitem__(self, key, item)", plain("self._items[key] = item")),
            define("__getitem__(self, key)", plain("return self._items[key]")),
        )
    )
    carry(build, [f"{held} = {owner}()", *texts(build, f'{held}["@"] = @')], held, texts(build, f'@ = {held}["@"]'))


def own_list(build: Build) -> None:
    """A class of one's own that is iterated over."""
    owner, held = draw(build, "class", "value")
    build.add(
        klass(
            owner,
            define("__init__(self, *items)", plain("self._items = list(items)")),
            define("__iter__(self)", plain("return iter(self._items)")),
            define("__len__(self)", plain("return len(self._items)")),
        )
    )
    _loop(build, [f"{held} = {owner}({packed(build)})"], f"for {unpacked(build)} in {held}:", [], held)


def dict_subclass(build: Build) -> None:
    """A dict whose entries are attributes as well."""
    owner, held = draw(build, "class", "value")
    build.add(
        klass(
            f"{owner}(dict)",
            define("__getattr__(self, name)", plain("return self[name]")),
            define("__setattr__(self, name, value)", plain("self[name] = value")),
        )
    )
    carry(build, [f"{held} = {owner}()", *texts(build, f"{held}.the_@ = @")], held, texts(build, f"@ = {held}.the_@"))


def heap(build: Build) -> None:
    """A heap of numbered entries."""
    build.need("import heapq")
    held = build.names.new("value")
    carry(build, [f"{held} = []", f"heapq.heappush({held}, (1, {build.takes}))"], held, [f"_, {build.takes} = heapq.heappop({held})"])


def starred(build: Build) -> None:
    """A tuple that is taken apart with a star."""
    held = build.names.new("value")
    carry(build, [f'{held} = ("first", "second", {build.takes})'], held, [f"*_, {build.takes} = {held}"])


def nested_tuple(build: Build) -> None:
    """A tuple within a tuple."""
    held = build.names.new("value")
    carry(build, [f"{held} = (0, {packed(build)})"], held, [f"_, ({unpacked(build)}) = {held}"])


def sliced(build: Build) -> None:
    """A slice of a list."""
    held = build.names.new("value")
    carry(build, [f"{held} = [None, {build.takes}, None]"], held, [f"{unpacked(build)} = {held}[1:-1]"])


def starred_call(build: Build) -> None:
    """A call that a tuple is spread into."""
    held = build.names.new("value")
    name = taker(build, build.takes, [])
    build.place([*plain(f"{held} = {packed(build)}"), *build.calls(f"{name}(*{held})")])


def star_parameters(build: Build) -> None:
    """A function that takes any number of arguments."""
    held = build.names.new("value")
    name = taker(build, f"*{held}", [f"{unpacked(build)} = {held}"])
    build.place(build.calls(f"{name}({build.takes})"))


def star_options(build: Build) -> None:
    """A function that takes what it needs out of its keywords."""
    held = build.names.new("value")
    name = taker(build, f"**{held}", texts(build, f'@ = {held}.pop("@", None)'))
    build.place(build.calls(f"{name}({joined(build, '@=@')})"))


_ACTS = {
    "dict-key": dict_key,
    "dict-assigned": dict_assigned,
    "dict-variable-key": dict_variable_key,
    "dict-number-key": dict_number_key,
    "dict-of-dicts": dict_of_dicts,
    "dict-get": dict_get,
    "dict-setdefault": dict_setdefault,
    "dict-update": dict_update,
    "dict-merged": dict_merged,
    "dict-unpacked": dict_unpacked,
    "dict-zipped": dict_zipped,
    "dict-values": dict_values,
    "defaultdict": default_dict,
    "list-index": list_index,
    "list-last": list_last,
    "list-pool": list_pool,
    "list-extended": list_extended,
    "ring": ring,
    "loop-over-list": loop_over_list,
    "while-list": while_list,
    "zip": zipped,
    "enumerate": enumerated,
    "items": items,
    "chain": chained,
    "reversed": reversed_,
    "comprehension": comprehension,
    "generator-expression": generator_expression,
    "selected": selected,
    "deque": deque,
    "queue": queue,
    "own-queue": own_queue,
    "own-mapping": own_mapping,
    "own-list": own_list,
    "dict-subclass": dict_subclass,
    "heap": heap,
    "starred": starred,
    "nested-tuple": nested_tuple,
    "slice": sliced,
    "starred-call": starred_call,
    "star-parameters": star_parameters,
    "star-options": star_options,
}
WAYS: dict[str, Way] = {name: Way(act, carries=True, keeps=True) for name, act in _ACTS.items()}
