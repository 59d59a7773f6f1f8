"""Ways through threads, executors, coroutines and context variables."""

from __future__ import annotations

from benchmarks.streambench.pieces import Line, Way, indent, linked, plain
from benchmarks.streambench.python_forms import (
    acting,
    box_first,
    boxed,
    carry,
    draw,
    first_part,
    joined,
    keeping,
    klass,
    listed,
    packed,
    taker,
    unboxed,
    unpacked,
)
from benchmarks.streambench.python_ways import Build, define


def awaited(build: Build) -> None:
    """A coroutine does the second part."""
    build.need("import asyncio")
    name = build.names.new("function")
    build.add([Line(f"async def {name}({build.takes}):"), *indent(build.second)])
    build.place(build.calls(f"asyncio.run({name}({build.takes}))"))


def awaited_inner(build: Build) -> None:
    """A coroutine awaits another one, which does the second part."""
    build.need("import asyncio")
    inner, outer = draw(build, "function", "function")
    build.add([Line(f"async def {inner}({build.takes}):"), *indent(build.second)])
    within = [*plain("await asyncio.sleep(0)"), *linked(f"return await {inner}({build.takes})")]
    build.add([Line(f"async def {outer}({build.takes}):"), *indent(within)])
    build.place(build.calls(f"asyncio.run({outer}({build.takes}))"))


def task(build: Build) -> None:
    """A task of asyncio, which is awaited."""
    build.need("import asyncio")
    inner, outer, held = draw(build, "function", "function", "value")
    build.add([Line(f"async def {inner}({build.takes}):"), *indent(build.second)])
    within = linked(f"{held} = asyncio.create_task({inner}({build.takes}))", f"return await {held}")
    build.add([Line(f"async def {outer}({build.takes}):"), *indent(within)])
    build.place(build.calls(f"asyncio.run({outer}({build.takes}))"))


def gathered(build: Build) -> None:
    """`asyncio.gather` awaits two coroutines, one of which does the second part."""
    build.need("import asyncio")
    inner, outer, held = draw(build, "function", "function", "value")
    build.add([Line(f"async def {inner}({build.takes}):"), *indent(build.second)])
    within = [*linked(f"{held}, _ = await asyncio.gather({inner}({build.takes}), asyncio.sleep(0))"), *plain(f"return {held}")]
    build.add([Line(f"async def {outer}({build.takes}):"), *indent(within)])
    build.place(build.calls(f"asyncio.run({outer}({build.takes}))"))


def async_method(build: Build) -> None:
    """A method that is a coroutine uses what the constructor keeps."""
    build.need("import asyncio")
    owner, act, held = draw(build, "class", "function", "value")
    header, *body = acting(build, f"{act}(self)")
    build.add(klass(owner, keeping(build), [Line(f"async {header.text}"), *body]))
    build.place([*plain(f"{held} = {owner}({build.takes})"), *build.calls(f"asyncio.run({held}.{act}())")])


def async_queue(build: Build) -> None:
    """A queue of asyncio."""
    build.need("import asyncio")
    name, outer, held = draw(build, "function", "function", "value")
    build.add([Line(f"async def {name}({held}):"), *indent([*plain(f"{unpacked(build)} = await {held}.get()"), *build.second])])
    within = [*plain(f"{held} = asyncio.Queue()", f"await {held}.put({packed(build)})"), *linked(f"return await {name}({held})")]
    build.add([Line(f"async def {outer}({build.takes}):"), *indent(within)])
    build.place(build.calls(f"asyncio.run({outer}({build.takes}))"))


def async_context(build: Build) -> None:
    """An asynchronous context manager yields the values."""
    build.need("import asyncio", "import contextlib")
    make, outer, held, name = *draw(build, "function", "function", "value"), build.helper()
    build.add([Line("@contextlib.asynccontextmanager"), Line(f"async def {make}({build.takes}):"), *plain(f"    yield {packed(build)}")])
    within = [*plain(f"async with {make}({build.takes}) as {held}:"), *indent(linked(f"return {name}(*{held})"))]
    build.add([Line(f"async def {outer}({build.takes}):"), *indent(within)])
    build.place(build.calls(f"asyncio.run({outer}({build.takes}))"))


def async_generator(build: Build) -> None:
    """An asynchronous generator yields the values."""
    build.need("import asyncio")
    make, outer, name = *draw(build, "function", "function"), build.helper()
    build.add([Line(f"async def {make}({build.takes}):"), *plain(f"    yield {packed(build)}")])
    within = [*plain(f"async for {unpacked(build)} in {make}({build.takes}):"), *indent(linked(f"return {name}({build.takes})"))]
    build.add([Line(f"async def {outer}({build.takes}):"), *indent(within)])
    build.place(build.calls(f"asyncio.run({outer}({build.takes}))"))


def context_variable(build: Build) -> None:
    """A context variable holds the values."""
    build.need("import contextvars")
    held = build.names.new("value")
    build.add(plain(f'{held.upper()} = contextvars.ContextVar("{held}")'))
    carry(build, [f"{held.upper()}.set({packed(build)})"], "", [f"{unpacked(build)} = {held.upper()}.get()"])


def thread_local(build: Build) -> None:
    """Attributes of a `threading.local`."""
    build.need("import threading")
    held = build.names.new("value").upper()
    build.add(plain(f"{held} = threading.local()"))
    store = [f"{held}.{taken} = {taken}" for taken in build.template.takes]
    carry(build, store, "", [f"{taken} = {held}.{taken}" for taken in build.template.takes])


def submitted(build: Build) -> None:
    """A pool of threads does the second part; its result is waited for."""
    build.need("import concurrent.futures")
    name, pool = build.helper(), build.names.new("value")
    inner = build.calls(f"{pool}.submit({listed(name, build.takes)}).result()")
    build.place([*plain(f"with concurrent.futures.ThreadPoolExecutor(max_workers=1) as {pool}:"), *indent(inner)])


def submitted_kept(build: Build) -> None:
    """The future stands in a list until all are done."""
    build.need("import concurrent.futures")
    name, pool, held, one = build.helper(), *draw(build, "value", "value", "value")
    inner = [
        *linked(f"{held} = [{pool}.submit({listed(name, build.takes)})]"),
        *plain(f"for {one} in concurrent.futures.as_completed({held}):"),
        *indent(build.calls(f"{one}.result()")),
    ]
    build.place([*plain(f"with concurrent.futures.ThreadPoolExecutor() as {pool}:"), *indent(inner)])


def pool_attribute(build: Build) -> None:
    """The pool of threads is an attribute of an object."""
    build.need("from concurrent.futures import ThreadPoolExecutor")
    name, owner, run, held = build.helper(), *draw(build, "class", "function", "value")
    start = define("__init__(self)", plain("self.pool = ThreadPoolExecutor(max_workers=1)"))
    act = define(f"{run}({listed('self', build.takes)})", linked(f"return self.pool.submit({listed(name, build.takes)})"))
    build.add(klass(owner, start, act))
    build.place([*plain(f"{held} = {owner}()"), *build.calls(f"{held}.{run}({build.takes}).result()")])


def pool_map(build: Build) -> None:
    """``map`` of a pool of threads."""
    build.need("from concurrent.futures import ThreadPoolExecutor")
    name, pool = build.helper(), build.names.new("value")
    lists = joined(build, "[@]")
    inner = build.calls(f"list({pool}.map({listed(name, lists)}))[0]")
    build.place([*plain(f"with ThreadPoolExecutor(max_workers=2) as {pool}:"), *indent(inner)])


def thread_class(build: Build) -> None:
    """A subclass of `threading.Thread`, whose ``run`` does the second part."""
    build.need("import threading")
    owner, held = draw(build, "class", "value")
    gives = build.template.gives
    run = acting(build, "run(self)")
    if gives:
        run = [*run[:-1], *plain(f"    self.result = {f'self.{gives}' if gives in build.template.takes else gives}")]
    build.add(klass(f"{owner}(threading.Thread)", keeping(build, first=["super().__init__()"]), run))
    after = linked(f"{gives} = {held}.result") if gives else []
    build.place([*linked(f"{held} = {owner}({build.takes})", f"{held}.start()", f"{held}.join()"), *after])


def timer(build: Build) -> None:
    """A `threading.Timer` that is joined."""
    build.need("import threading")
    name, held, box = draw(build, "function", "value", "value")
    takes = listed(build.takes, box if build.template.gives else "")
    build.add(define(f"{name}({takes})", boxed(build, box)))
    start = linked(f"{held} = threading.Timer(0.01, {name}, args=[{takes}])", f"{held}.start()", f"{held}.join()")
    build.place([*box_first(build, box), *start, *unboxed(build, box)])


def to_thread(build: Build) -> None:
    """`asyncio.to_thread`."""
    build.need("import asyncio")
    name, outer = build.helper(), build.names.new("function")
    build.add([Line(f"async def {outer}({build.takes}):"), *indent(linked(f"return await asyncio.to_thread({listed(name, build.takes)})"))])
    build.place(build.calls(f"asyncio.run({outer}({build.takes}))"))


def in_executor(build: Build) -> None:
    """``run_in_executor`` of the running loop."""
    build.need("import asyncio")
    name, outer = build.helper(), build.names.new("function")
    call = f"return await loop.run_in_executor({listed('None', name, build.takes)})"
    within = [*plain("loop = asyncio.get_running_loop()"), *linked(call)]
    build.add([Line(f"async def {outer}({build.takes}):"), *indent(within)])
    build.place(build.calls(f"asyncio.run({outer}({build.takes}))"))


def worker_queue(build: Build) -> None:
    """A thread takes the values out of a queue, until it is told to end."""
    build.need("import queue", "import threading")
    name, inbox, worker, box, part = draw(build, "function", "value", "value", "value", "value")
    takes = listed(inbox, box if build.template.gives else "")
    loop = [*plain(f"{part} = {inbox}.get()", f"if {part} is None:", "    break", f"{unpacked(build)} = {part}"), *boxed(build, box)]
    build.add(define(f"{name}({takes})", [Line("while True:"), *indent(loop)]))
    ends = "," if takes == inbox else ""
    build.place(
        [
            *box_first(build, box),
            *plain(f"{inbox} = queue.Queue()"),
            *linked(f"{worker} = threading.Thread(target={name}, args=({takes}{ends}))", f"{worker}.start()"),
            *linked(f"{inbox}.put({packed(build)})"),
            *plain(f"{inbox}.put(None)"),
            *linked(f"{worker}.join()"),
            *unboxed(build, box),
        ]
    )


def producer_queue(build: Build) -> None:
    """A thread does the first part, and puts what it made into a queue."""
    build.need("import queue", "import threading")
    name, outbox, worker = draw(build, "function", "value", "value")
    before, after, kept = first_part(build)
    build.add(define(f"{name}({outbox})", [*before, *linked(f"{outbox}.put(({kept},))" if "," not in kept else f"{outbox}.put(({kept}))")]))
    start = linked(f"{worker} = threading.Thread(target={name}, args=({outbox},), daemon=True)", f"{worker}.start()")
    got = linked(f"{kept}{'' if ',' in kept else ','} = {outbox}.get()")
    act = taker(build, build.takes, [])
    build.body = [*plain(f"{outbox} = queue.Queue(maxsize=1)"), *start, *got, *build.calls(f"{act}({build.takes})"), *after]


_CARRYING = {
    "async-method": async_method,
    "async-queue": async_queue,
    "async-context": async_context,
    "async-generator": async_generator,
    "context-variable": context_variable,
    "thread-local": thread_local,
}
_THREADS = {
    "submitted": submitted,
    "submitted-kept": submitted_kept,
    "pool-attribute": pool_attribute,
    "thread-class": thread_class,
    "timer": timer,
    "to-thread": to_thread,
    "in-executor": in_executor,
}
WAYS: dict[str, Way] = {
    "async": Way(awaited),
    "async-inner": Way(awaited_inner),
    "async-task": Way(task),
    "async-gather": Way(gathered),
    **{name: Way(act, carries=True, keeps=True) for name, act in _CARRYING.items()},
    **{name: Way(act, keeps=True, threads=True) for name, act in _THREADS.items()},
    "pool-map": Way(pool_map, carries=True, keeps=True, threads=True),
    "worker-queue": Way(worker_queue, carries=True, keeps=True, threads=True),
    "producer-queue": Way(producer_queue, flat=True, keeps=True, threads=True),
}
