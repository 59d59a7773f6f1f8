"""What a fetched number is used for, and whether the round could do without. The reads of a program stand in lines with ``# read``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from facts.programs import facts_of

from streamlint.facts.code.functions import Function
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.effects import Effects
from streamlint.ir import opcodes as op
from streamlint.waits.origins import ModelFacts
from streamlint.waits.regions import WaitRegions
from streamlint.waits.uses import Uses
from streamlint.waits.wait import CAST, READ, Wait

HEAD = """
import math
import statistics
import torch
from collections import defaultdict, deque
from dataclasses import dataclass

"""


def indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def loop(body: str, parameters: str = "", before: str = "", after: str = "") -> str:
    """A training loop with these lines behind its step; ``now`` is the number that it reads."""
    return f"""
def fit(net, loader, optimizer{parameters}):
{indented(before, 4)}
    for number, batch in enumerate(loader):
        loss = net(batch).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        now = loss.item()  # read
{indented(body, 8)}
{indented(after, 4)}
"""


def learner(body: str, methods: str = "") -> str:
    """A class that trains, with these lines behind its step, and more methods."""
    return f"""
class Learner:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer
        self.level, self.seen, self.rows, self.notes = 1.0, 0, [], {{}}

    def fit(self, batches):
        for batch in batches:
            loss = self.net(batch).sum() * self.factor()
            loss.backward()
            self.optimizer.step()
            now = loss.item()  # read
{indented(body, 12)}

    def factor(self):
        return 1.0

{indented(methods, 4)}
"""


def forward(body: str) -> str:
    """The forward of a module; ``now`` is a number that cannot be a size, ``count`` one that can."""
    return f"""
class Layer(torch.nn.Module):
    def forward(self, rows, lengths):
        out = self.inner(rows)
{indented(body, 8)}
"""


def reads(function: Function, rows: set[int]) -> Iterator[Wait]:
    for one in function.by_opcode[op.INVOKE]:
        if function.code.at(one[1])[0] in rows and function.text(one[4]) in ("item", "tolist", "cpu"):
            yield Wait(function, one, READ, f"torch.Tensor.{function.text(one[4])}", one[3])
    for one in function.by_opcode[op.CALL]:
        if function.code.at(one[1])[0] in rows and function.dotted(one[3]) in ("float", "int", "max", "print"):
            yield Wait(function, one, CAST, function.dotted(one[3]), one[5])


def answers(text: str, all_loops: bool = False) -> set[bool]:
    """Whether the reads of a program are avoidable, in all regions that they are in."""
    rows = {row for row, line in enumerate((HEAD + text).splitlines(), 1) if line.endswith("# read")}
    facts = facts_of(a=HEAD + text)
    hot = WaitRegions(Effects(CallGraph(ModelFacts(facts.program))), all_loops)
    hot.find()
    uses = Uses(hot)
    found = set()
    for function in facts.program.units["a.py"].functions:
        for wait in reads(function, rows):
            regions = hot.regions_of(function, hot.body(function).home[wait.instruction])
            found |= {uses.is_avoidable(wait, region, all_loops) for region in regions}
    return found


AVOIDABLE = {
    "a method of an unknown object": loop("plan.adapt(now)", ", plan"),
    "the least of two, which is clamp on the device": loop("rate = min(1.0, now)\nprint(rate)"),
    "a comparison that is shown": loop("high = now > 3\nprint(high)"),
    "a sum": loop("total += now", before="total = 0.0", after="return total / number"),
    "a running mean": loop("mean = 0.9 * mean + 0.1 * now", before="mean = 0.0", after="return mean"),
    "a list": loop("rows.append(now)", before="rows = []", after="return rows"),
    "a list that a caller gave": loop("rows.append(now)", ", rows"),
    "a list whose length decides": loop("rows.append(now)\nif len(rows) > 9 or not rows:\n    break", ", rows"),
    "a list that decides behind the loop": loop("rows.append(now)", before="rows = []", after="if rows[-1] > 3:\n    return None"),
    "a printed text": loop("print(f'{number}: {now:.3f}')"),
    "a text by %": loop("text = 'loss %.3f at %d' % (now, number)\nif number and text:\n    print(text)"),
    "a text by format": loop("text = '{}'.format(now)\nif text:\n    print(text)"),
    "a dict that is logged": loop("logger.log({'loss': now, 'step': number})", ", logger"),
    "a bar": loop("bar.set_postfix(loss=now)", ", bar"),
    "a writer": loop("writer.add_scalar('loss', now, number)", ", writer"),
    "another entry of a dict": loop("notes = {'a': now, 'b': number}\nif notes['b'] > 3:\n    break"),
    "the names in a dict": loop("notes = {'a': now}\nfor name, value in notes.items():\n    if name == 'b':\n        break"),
    "another element of a tuple": loop("pair = now, number\nfirst, second = pair\nif second > 4:\n    break"),
    "a test for None": loop("shown = now if number else None\nif shown is not None:\n    print(shown)"),
    "the largest so far": loop("worst = max(worst, now)", before="worst = 0.0", after="return worst"),
    "a decision in few rounds": loop("total += now\nif number % 100 == 0:\n    if total > 3:\n        print(total)", before="total = 0.0"),
    "a decision behind the loop": loop("total += now", before="total = 0.0", after="if total > 3:\n    return None"),
    "back to the device": loop("there = torch.full((), now, device=batch.device)\nif there > 3:\n    break"),
    "work on a tensor": loop("for p in net.parameters():\n    p.add_(p.grad, alpha=-now)"),
    "a factor of a tensor": loop("for p in net.parameters():\n    p.sub_(p.grad * (0.1 / now))"),
    "each part of a list": loop("parts = list(map(lambda part: part / now, batch.unbind()))\nsum(parts).backward()"),
    "a function that only adds": loop("add(now)") + "\ndef add(value):\n    print(value)\n",
    "a function that returns it": loop("rows.append(half(now))", ", rows") + "\ndef half(value):\n    return value / 2\n",
    "by keyword and by stars": loop("show(step=number, loss=now)")
    + "\ndef show(**values):\n    tell(**values)\n\ndef tell(step, loss):\n    if step > 3:\n        print(loss)\n",
    "a test that prints": loop("if now > 3:\n    print(number)"),
    "a test that counts": loop("if now > 3:\n    large += 1\nprint(large)", before="large = 0"),
    "an entry of a group that no step of the library uses": loop("for group in optimizer.param_groups:\n    group['peak'] = now"),
    "an entry named as one of a group, in a dict": loop("notes = {}\nnotes['lr'] = now\nprint(notes)"),
    "an attribute that is only summed": learner("self.seen += now", "@property\ndef mean(self):\n    return self.seen / 3"),
    "an attribute that decides once an epoch": learner(
        "self.seen += now", "def epochs(self, data):\n    self.fit(data)\n    if self.seen > 3:\n        return None"
    ),
    "the largest so far, in an attribute": learner("self.level = max(self.level, now)"),
    "the same attribute of another class": learner("self.level = now")
    + "\nclass Other:\n    def __init__(self):\n        self.level = 0\n\n    def grown(self):\n        return self.level > 3\n",
    "a meter": loop("meter.update(now, 3)\nbar.set_postfix(loss=meter.mean)", ", bar", "meter = Meter()")
    + """
class Meter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, count=1):
        self.sum += value * count
        self.count += count

    @property
    def mean(self):
        return self.sum / self.count if self.count > 0 else 0.0
""",
    "the helper that reads": """
def number_of(value):
    return value.detach().item()  # read

def fit(net, loader, rows):
    for batch in loader:
        loss = net(batch).sum()
        loss.backward()
        rows.append(number_of(loss))
""",
    "a step that returns a dict": """
def step(net, batch):
    loss = net(batch).sum()
    loss.backward()
    return {"loss": loss.item(), "count": 3}  # read

def fit(net, loader):
    sums = {}
    for batch in loader:
        for key, value in step(net, batch).items():
            sums[key] = sums.get(key, 0.0) + value
        if step(net, batch)["count"] > 3:
            break
    return sums
""",
    "a text of parts": loop("show([now, number])")
    + "\ndef show(parts):\n    line = ', '.join(f'{part:.2f}' for part in parts)\n    print(line, sum(part for part in parts))\n",
    "a generator that is only shown": loop("for part in parts(now):\n    print(part)")
    + "\ndef parts(value):\n    for i in range(3):\n        yield i * value\n",
    "a tensor that is copied and comes back": loop(
        "there = torch.cat([loss.cpu(), batch]).to(batch.device)  # read\nthere.sum().backward()"
    ),
    "a table of arrays": loop("table.append(loss.cpu().numpy())  # read", ", table"),
    "a mean of nothing": loop("share = 0.0 if loss.item() == 0 else 1 / loss.item()  # read\nprint(share)"),
    "a division that is guarded": loop(
        "count = batch.sum()\nshare = loss / count.item() if count.item() > 0 else 0.0  # read\nprint(share)"
    ),
    "a test that only limits": loop("if loss.item() < -30:  # read\n    loss.data = torch.full_like(loss.data, -30)"),
    "a tensor is clamped": loop("if scale.item() > 3:  # read\n    scale.data.clamp_(max=3)", ", scale"),
}

NEEDED = {
    "a condition": loop("if now:\n    break"),
    "a comparison": loop("high = now > 3\nif high:\n    break"),
    "a loop": loop("while now > 3:\n    now = now / 2"),
    "behind a sum": loop("total += now\nif total > 3:\n    break", before="total = 0.0"),
    "a value of the next round": loop("if before is not None and before > 3:\n    break\nbefore = now", before="before = None"),
    "a range": loop("for part in range(int(now)):\n    print(part)"),
    "an index": loop("print(batch[int(now)])"),
    "a key": loop("hits[round(now)] = number", ", hits"),
    "a slice": loop("print(batch[:, : int(now)])"),
    "how often": loop("print([0] * int(now))"),
    "an assertion": loop("assert now < 3"),
    "a question for what is no number": loop("bad = math.isnan(now)"),
    "the least of two, which decides": loop("rate = min(1.0, now)\nif rate < 1.0:\n    break"),
    "the largest so far, which decides": loop("worst = max(worst, now)\nif worst > 3:\n    break", before="worst = 0.0"),
    "a group of the optimizer": loop("for group in optimizer.param_groups:\n    group['lr'] = 0.1 * now"),
    "the first group of the optimizer": loop("optimizer.param_groups[0]['lr'] = now"),
    "a function sets a group": loop("slower(optimizer.param_groups[0], now)") + "\ndef slower(group, value):\n    group['lr'] = value\n",
    "a scheduler": loop("plan.step(now)", ", plan"),
    "an environment": loop("seen, reward = world.step(now)", ", world"),
    "a result that decides": loop("if judge(now):\n    break", ", judge"),
    "a function that decides": loop("check(now)") + "\ndef check(value):\n    if value > 3:\n        raise ValueError\n",
    "a function that returns the decision": loop("if high(now):\n    break") + "\ndef high(value):\n    return value + 1\n",
    "an entry of a dict": loop("notes = {'a': now, 'b': number}\nif notes['a'] > 3:\n    break"),
    "the entries of a dict": loop("notes = {'a': now}\nfor name, value in notes.items():\n    if value > 3:\n        break"),
    "a count that decides": loop("if now > 3:\n    large += 1\nif large > 2:\n    break", before="large = 0"),
    "the last of a list": loop("rows.append(now)\nif rows[-1] > 3:\n    break", before="rows = []"),
    "the mean of a list": loop("rows.append(now)\nif statistics.mean(rows[-9:]) > 3:\n    break", before="rows = []"),
    "an element of a tuple": loop("pair = now, number\nfirst, second = pair\nif first > 4:\n    break"),
    "any of some": loop("if any([now, number]):\n    break"),
    "by keyword and by stars": loop("show(step=number, loss=now)")
    + "\ndef show(**values):\n    tell(**values)\n\ndef tell(step, loss):\n    if loss > 3:\n        raise ValueError(step)\n",
    "an attribute that decides": learner(
        "self.level = now\nself.look()", "def look(self):\n    if self.level > 3:\n        raise ValueError"
    ),
    "an attribute of the base that decides": """
class Base:
    def fit(self, batches):
        for batch in batches:
            self.learn(batch)
            if self.level > 3:
                break

class Child(Base):
    def learn(self, batch):
        loss = self.net(batch).sum()
        loss.backward()
        self.level = loss.item()  # read
""",
    "an attribute that weighs the loss": learner("self.level = now").replace("self.factor()", "self.level"),
    "an attribute that gives the range": learner("self.level = int(now)\nfor i in range(self.level):\n    print(i)"),
    "an entry of an attribute": learner("self.notes['a'] = now\nif self.notes['a'] > 3:\n    break"),
    "a list of an object": learner(
        "self.rows.append(now)\nself.look()", "def look(self):\n    if self.rows[-1] > 3:\n        raise ValueError"
    ),
    "an attribute of what is unknown": loop("state.level = now\nif state.level > 3:\n    break", ", state"),
    "a generator that gives what decides": loop("for part in parts(now):\n    if part > 3:\n        break")
    + "\ndef parts(value):\n    for i in range(3):\n        yield i * value\n",
    "a sum of parts that decides": loop("if sum(part / 2 for part in [now, number]) > 3:\n    break"),
    "what others compute of a list": loop(
        "gains = judge(loss.tolist())  # read\nthere = torch.tensor(gains, device=batch.device)", ", judge"
    ),
    "what others compute of an array": loop(
        "gains = judge(loss.cpu())  # read\nmore = torch.tensor(gains) * batch\nmore.backward()", ", judge"
    ),
    "nothing is left to do": """
def fit(net, loader):
    for batch in loader:
        count = net(batch).sum()
        if count.item() == 0:  # read
            continue
        loss = net(batch).sum() / count.item()
        loss.backward()
""",
    "a function that is kept": loop("batch.keep(lambda slope: slope / now)"),
    "a function of one line that decides": loop("print(list(map(lambda part: part if now > 3 else 0, batch.unbind())))"),
    "the helper that reads, for a decision": """
def number_of(value):
    return value.detach().item()  # read

def fit(net, loader):
    for batch in loader:
        loss = net(batch).sum()
        loss.backward()
        if number_of(loss) > 3:
            break
""",
    "a global": """
import torch
net = torch.nn.Linear(2, 2)
level = 0
for batch in batches:
    loss = net(batch).sum()
    loss.backward()
    level = loss.item()  # read
    if level > 3:
        break
""",
    "a test that limits, and ends the loop": loop("if scale.item() > 3:  # read\n    scale.data.clamp_(max=3)\n    break", ", scale"),
    "a test that limits, and calls": loop("if scale.item() > 3:  # read\n    scale.data.clamp_(max=3)\n    tell(number)", ", scale, tell"),
}

FORWARD_AVOIDABLE = {
    "a divisor": forward("now = out.abs().sum().item()  # read\nreturn out / now"),
    "a factor that is a mean": forward("now = out.mean().item()  # read\nreturn self.last(out * now, now)"),
    "a log": forward("print(lengths.sum().item())  # read\nreturn out"),
    "a note of the step": forward("return out, {'count': lengths.sum().item()}  # read"),
    "a float in a bound": forward("now = max(float(lengths.sum()), 1.0)  # read\nreturn out / now"),
    "one of each": forward(
        "for i in range(8):\n    count = lengths[i].item()  # read\n    if count:\n        out[i, :count] = 0\nreturn out"
    ),
    "a loss that keeps itself in its range": forward(
        "loss = out.mean()\nif loss.item() > 1:  # read\n    print('high')\n    loss = torch.ones(())\nreturn loss"
    ),
}

FORWARD_NEEDED = {
    "a size": forward("count = lengths.max().item()  # read\nreturn out[:, :count]"),
    "a size of a new tensor": forward("count = int(lengths.max())  # read\nreturn torch.arange(count)"),
    "a size in a function": forward("count = lengths.max().item()  # read\nreturn mask(count)")
    + "\ndef mask(count):\n    return torch.arange(count)\n",
    "a result that may be a size": forward("return lengths.max().item()  # read"),
    "an attribute that may be a size": forward("self.longest = lengths.max().item()  # read\nreturn out"),
    "a decision": forward("if out.mean().item() > 3:  # read\n    return None\nreturn out"),
    "a scheduler": forward("self.plan.step(out.std().item())  # read\nreturn out"),
    "a whole tensor": forward("there = out.cpu()  # read\nreturn there"),
    "made of the pass before": forward(
        "for i in range(4):\n    out = self.cell(out)\n    if out.sum().item() > 3:  # read\n        break\nreturn out"
    ),
}

DECODING_AVOIDABLE = {
    "a stop test": """
@torch.inference_mode()
def write(net, tokens, end, limit):
    net.to("cuda")
    tokens = tokens.to("cuda")
    for _ in range(limit):
        following = net(tokens)[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat((tokens, following), dim=1)
        if following.item() == end:  # read
            break
    return tokens
""",
    "a time step": """
@torch.no_grad()
def paint(net, schedule, picture, limit, device):
    schedule.set_timesteps(9, device=device)
    for moment in schedule.timesteps:
        share = moment.expand(3)[0].item()  # read
        strength = 0.0 if share > limit else 1.0
        picture = schedule.step(net(picture, moment) * strength, moment, picture).prev_sample
    return picture
""",
}

DECODING_NEEDED = {
    "a number of parts": """
@torch.no_grad()
def march(net, field, count):
    field = field.to("cuda")
    for _ in range(count):
        field = net(field)
        for _ in range(int(field.abs().max().item())):  # read
            field = field / 2
    return field
""",
}


@pytest.mark.parametrize("title", AVOIDABLE)
def test_avoidable(title: str) -> None:
    assert answers(AVOIDABLE[title]) == {True}


@pytest.mark.parametrize("title", NEEDED)
def test_needed(title: str) -> None:
    assert False in answers(NEEDED[title])


@pytest.mark.parametrize("title", [*FORWARD_AVOIDABLE, *DECODING_AVOIDABLE])
def test_avoidable_in_other_loops(title: str) -> None:
    assert answers({**FORWARD_AVOIDABLE, **DECODING_AVOIDABLE}[title], True) >= {True}


@pytest.mark.parametrize("title", [*FORWARD_NEEDED, *DECODING_NEEDED])
def test_needed_in_other_loops(title: str) -> None:
    assert answers({**FORWARD_NEEDED, **DECODING_NEEDED}[title], True) == {False}
