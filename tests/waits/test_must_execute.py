"""Which conditions let a wait through in each round. The wait of a program is the call of `wait` in it: a marker, no real wait."""

from __future__ import annotations

import pytest
from facts.programs import facts_of

from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.effects import Effects
from streamlint.facts.repetition.hot import HotRegions
from streamlint.ir import opcodes as op
from streamlint.waits.must_execute import is_executed
from streamlint.waits.wait import DEVICE, Wait

HEAD = """
import logging
import math
import time
import torch
import torch.distributed as dist
from transformers import Trainer

logger = logging.getLogger(__name__)

"""


def indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def loop(body: str, parameters: str = "", before: str = "") -> str:
    """A training loop with these lines behind its step."""
    return f"""
def fit(net, loader, optimizer{parameters}):
{indented(before, 4)}
    for number, batch in enumerate(loader):
        loss = net(batch).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
{indented(body, 8)}
"""


def answers(text: str, all_loops: bool = False) -> set[bool]:
    """Whether the waits of a program are met, by all regions that they are in; without a region they are not."""
    facts = facts_of(a=HEAD + text)
    hot = HotRegions(Effects(CallGraph(facts)))
    hot.find()
    found = set()
    for function in facts.program.units["a.py"].functions:
        for one in function.by_opcode[op.CALL]:
            if function.dotted(one[3]) == "wait":
                regions = hot.regions_of(function, hot.body(function).home[one])
                wait = Wait(function, one, DEVICE, "wait", op.NONE)
                found |= {is_executed(hot, wait, region, all_loops) for region in regions} or {False}
    return found


MET = {
    "no condition": loop("wait()"),
    "an option": loop("if weighted:\n    wait()", ", weighted"),
    "an option that is compared": loop("if clip > 0:\n    wait()", ", clip"),
    "one of two modes": loop("if kind == 'row' or kind == 'token':\n    wait()", ", kind"),
    "a mode, behind another": loop("if kind == 'row':\n    pass\nelif kind == 'token':\n    wait()", ", kind"),
    "an option with a default of None": loop("if writer:\n    wait()", ", writer=None"),
    "the other arm of an option": loop("if weighted:\n    pass\nelse:\n    wait()", ", weighted"),
    "two options": loop("if weighted and (clip or kind == 'a'):\n    wait()", ", weighted, clip, kind"),
    "an option that is on by default": loop("if loud:\n    wait()", ", loud=True"),
    "an option that somebody turns on": loop("if loud:\n    wait()", ", loud=False") + "\nfit(1, 2, 3, loud=True)",
    "a test for None": loop("if batch.mask is not None:\n    wait()"),
    "a key": loop("if 'mask' in batch:\n    wait()"),
    "a kind": loop("if isinstance(batch, torch.Tensor) and batch.is_cuda:\n    wait()"),
    "a question to a library": loop("if dist.get_rank() == 0:\n    wait()"),
    "what was computed before the loop": loop("if main:\n    wait()", before="main = dist.get_rank() == 0"),
    "what is computed in the loop of options": loop("main = rank == 0 or alone\nif main:\n    wait()", ", rank, alone"),
    "behind a rare continue": loop("if number % 50 == 0:\n    continue\nwait()"),
    "behind an early stop": loop("if loss > 5:\n    break\nwait()"),
    "behind a return that ends the loop": loop("if loss > 5:\n    return None\nwait()"),
    "behind an exception": loop("if loss > 5:\n    raise ValueError\nwait()"),
    "behind a test for what is no number": loop("if not torch.isfinite(loss):\n    continue\nwait()"),
    "behind one of several values": loop("if torch.isnan(loss).any() or math.isinf(loss.item()):\n    continue\nwait()"),
    "in an inner loop": loop("for part in batch.chunk(3):\n    wait()"),
    "in an inner loop that counts": loop("i = 0\nwhile i < 3:\n    wait()\n    i += 1"),
    "in an inner loop, behind what ends it": loop("for part in batch:\n    if part.sum() > 3:\n        break\n    wait()"),
    "behind an inner loop that may end early": loop("for part in batch:\n    if part.sum() > 3:\n        break\nwait()"),
    "a comprehension": loop("seen = [wait() for part in batch if part is not None]"),
    "a try": loop("try:\n    wait()\nexcept RuntimeError:\n    pass"),
    "a with": loop("with torch.no_grad():\n    wait()"),
    "the mode of the module": loop("kind = 'a' if net.training else 'b'\nif kind == 'a':\n    wait()"),
    "a round without data is skipped": loop("if len(batch) == 0:\n    continue\nwait()"),
    "a mean of nothing": loop("x = wait() / batch.sum() if batch.sum() > 0 else 0.0"),
    "an attribute that nothing changes": """
class Learner:
    def __init__(self, net, weighted):
        self.net, self.weighted = net, weighted

    def fit(self, loader):
        for batch in loader:
            self.net(batch).sum().backward()
            if self.weighted:
                wait()
""",
    "the arguments of a called function": """
def tell(loss, loud):
    if loud:
        wait()

def fit(net, loader, loud):
    for batch in loader:
        loss = net(batch).sum()
        loss.backward()
        tell(loss, loud)
""",
    "what a function returns": """
def wanted(kind):
    if kind == "a":
        return True
    return False

def fit(net, loader, kind):
    for batch in loader:
        net(batch).sum().backward()
        if wanted(kind):
            wait()
""",
    "the test of an accumulation": """
def fit(net, loader, optimizer, parts):
    for step, batch in enumerate(loader):
        net(batch).sum().backward()
        if (step + 1) % parts == 0 or step == 99:
            optimizer.step()
            optimizer.zero_grad()
            wait()
""",
    "the test of an accumulation, asked again": """
def fit(net, loader, optimizer, parts):
    for step, batch in enumerate(loader):
        net(batch).sum().backward()
        if (step + 1) % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        if (step + 1) % 2 == 0:
            wait()
""",
    "gradients that were gathered": """
class Scaled(torch.optim.Optimizer):
    def step(self):
        gathered = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                gathered.append(p.grad)
        if len(gathered) > 0:
            wait()
""",
}
NOT_EXECUTED = {
    "what is computed": loop("if loss > 3:\n    wait()"),
    "what a round is given": loop("if batch:\n    wait()"),
    "a counter": loop("if number > 5:\n    wait()"),
    "every other round": loop("if number % 2 == 0:\n    wait()"),
    "an interval in an attribute": loop("if net.steps % 100 == 0:\n    wait()"),
    "an interval in a variable": loop("wanted = number % 50 == 0 and number > 0\nif wanted:\n    wait()"),
    "a list of rounds": loop("if number in chosen:\n    wait()", ", chosen"),
    "a clock": loop("if time.time() - begin > 10:\n    wait()", before="begin = time.time()"),
    "a continue": loop("if loss > 3:\n    continue\nwait()"),
    "a continue for all but one of several rounds": loop("if number % 50 != 0:\n    continue\nwait()"),
    "a flag that is lowered behind the first round": loop("if fresh:\n    wait()\nfresh = False", before="fresh = True"),
    "a flag that is raised now and then": loop("told = False\nif number % 20 == 0:\n    told = True\nif told:\n    wait()"),
    "what is no number": loop("if torch.isnan(loss):\n    wait()"),
    "what is no number, by arithmetic": loop("if loss != loss:\n    wait()"),
    "what is not finite": loop("if not math.isfinite(loss.item()):\n    wait()"),
    "what is not finite, through a variable": loop("fine = torch.isfinite(loss).all()\nif not fine:\n    wait()"),
    "evaluation": loop("if not net.training:\n    wait()"),
    "evaluation by a word": loop("kind = 'a' if net.training else 'b'\nif kind == 'b':\n    wait()"),
    "evaluation by another word": loop("kind = 'a' if net.training else 'b'\nif kind != 'a':\n    wait()"),
    "without gradients": loop("if not torch.is_grad_enabled():\n    wait()"),
    "a loud logger": loop("if logger.isEnabledFor(logging.DEBUG):\n    wait()"),
    "a mode that is another": loop("if options.level == 'row':\n    if options.level == 'token':\n        wait()", ", options"),
    "a mode that is no other": loop("if kind != 'row':\n    pass\nelif kind == 'row' and kind != 'row':\n    wait()", ", kind"),
    "an export": loop("if torch.jit.is_tracing():\n    wait()"),
    "an option that is off by default": loop("if loud:\n    wait()", ", loud=False"),
    "a level that is 0 by default": loop("if loud > 1:\n    wait()", ", loud=0"),
    "an inner loop with a condition": loop("while batch.sum() > 3:\n    wait()"),
    "a list that is filled now and then": loop("odd = []\nif loss > 3:\n    odd.append(loss)\nif len(odd) > 0:\n    wait()"),
    "an early return of what is called": """
def tell(loss, kept):
    if loss > 3:
        return
    wait()

def fit(net, loader, kept):
    for batch in loader:
        loss = net(batch).sum()
        loss.backward()
        tell(loss, kept)
""",
    "the arguments of a called function": """
def tell(loss, number):
    if number > 5:
        wait()

def fit(net, loader):
    for number, batch in enumerate(loader):
        loss = net(batch).sum()
        loss.backward()
        tell(loss, number)
""",
    "the call of a function": """
def tell(loss):
    wait()

def fit(net, loader):
    for number, batch in enumerate(loader):
        loss = net(batch).sum()
        loss.backward()
        if number > 5:
            tell(loss)
""",
    "what a function returns": """
def wanted(number):
    return number > 50

def fit(net, loader):
    for number, batch in enumerate(loader):
        net(batch).sum().backward()
        if wanted(number):
            wait()
""",
    "an option of a constructor": """
class Learner:
    def __init__(self, net, loud=False):
        self.net, self.loud = net, loud

    def fit(self, loader):
        for batch in loader:
            self.net(batch).sum().backward()
            if self.loud:
                wait()
""",
    "an attribute that a round changes": """
class Learner:
    def fit(self, loader):
        for batch in loader:
            self.net(batch).sum().backward()
            self.note(batch)
            if self.full:
                wait()

    def note(self, batch):
        self.full = len(batch) > 8
""",
    "what a framework counts": """
class Teacher(Trainer):
    def training_step(self, model, inputs, count):
        if count > 3:
            wait()
        return model(inputs)
""",
}


@pytest.mark.parametrize("text", MET.values(), ids=MET)
def test_met(text: str) -> None:
    assert answers(text) == {True}


@pytest.mark.parametrize("text", NOT_EXECUTED.values(), ids=NOT_EXECUTED)
def test_not_met(text: str) -> None:
    assert answers(text) == {False}


ALL_LOOPS = {
    "as many in each step": ("losses = []\nfor part in model.parts:\n    losses.append(part)\nif len(losses) > 1:\n    wait()", True),
    "the first of some": ("x = wait(inputs[0]) if len(inputs) > 0 else 0", True),
    "an option of the constructor": ("if self.file is not None:\n    wait()", False),
    "a flag that a framework hands over": ("if flag and not self.elsewhere:\n    wait()", True),
}


@pytest.mark.parametrize(("body", "met"), ALL_LOOPS.values(), ids=ALL_LOOPS)
def test_steps_of_frameworks(body: str, met: bool) -> None:
    text = f"""
class Teacher(Trainer):
    def __init__(self, target=None, elsewhere=False):
        self.file = open(target, "w") if target else None
        self.elsewhere = elsewhere

    def compute_loss(self, model, inputs, flag):
{indented(body, 8)}
        return model(inputs)
"""
    assert answers(text, all_loops=True) == {met}
