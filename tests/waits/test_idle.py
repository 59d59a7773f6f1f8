"""Waits that find nothing to wait for. Of each program the wait on the line marked `here` is asked about: the answer is the wait on a line
marked `other`, or none where there is no such line."""

from __future__ import annotations

import re

import pytest
from facts.programs import facts_of

from streamlint.facts.code.functions import Function
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.effects import Effects
from streamlint.waits.found import WaitFinder
from streamlint.waits.idle import Idle
from streamlint.waits.regions import WaitRegions
from streamlint.waits.wait import Wait

HEAD = """
import math
import torch

def data():
    return torch.randn(3, device="cuda", requires_grad=True)

"""


def loop(body: str, parameters: str = "") -> str:
    """A training loop with these lines behind its step."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"""
def fit(loader, optimizer{parameters}):
    total, most, rows = 0.0, 3.0, []
    for number in loader:
        images = torch.randn(3, device="cuda")
        loss = (images * data()).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
{lines}
"""


class Program:
    """A program, its waits, and the lines of its marks."""

    def __init__(self, text: str) -> None:
        text = HEAD + text
        facts = facts_of(a=text)
        graph = CallGraph(facts)
        self.hot = WaitRegions(Effects(graph), all_loops=False)
        self.hot.find()
        finder = WaitFinder(graph)
        self.waits: dict[Function, list[Wait]] = {function: finder.waits(function) for function in self.hot.regions}
        self.idle = Idle(self.hot, self.waits)
        lines = list(enumerate(text.split("\n"), 1))
        self.here = [row for row, line in lines if re.search("# .*here", line)]
        self.others = [row for row, line in lines if re.search("# .*other", line)]

    def row(self, wait: Wait) -> int:
        return wait.function.code.at(wait.instruction[1])[0]

    def asked(self) -> Wait:
        """The wait that is asked about."""
        (found,) = (wait for waits in self.waits.values() for wait in waits if self.row(wait) in self.here)
        return found

    def before(self) -> set[int]:
        wait = self.asked()
        (region,) = self.hot.regions[wait.function][:1]
        return set(map(self.row, self.idle.before(wait, region)))

    def after(self, needed: bool = True) -> int | None:
        wait = self.asked()
        (region,) = self.hot.regions[wait.function][:1]
        found = self.idle.after(wait, region, lambda _: needed)
        return None if found is None else self.row(found)


CHECK = "if not math.isfinite(loss.item()):  # other\n    raise ValueError"
BEFORE = {
    "two calls, one of them behind a brief operation": """
def finish():
    torch.cuda.synchronize()  # here
"""
    + loop(f"{CHECK}\nfinish()\nimages.mul_(2)\nfinish()"),
    "right behind a decision": loop(f"{CHECK}\ntotal += loss.item()  # here"),
    "with numbers in between": loop("share = loss.item() / 4 * 100.0  # other\nif share > most:\n    break\ntotal += loss.item()  # here"),
    "with a list and a table in between": loop(f"{CHECK}\nrows.append(3)\nheld = {{'a': rows}}\ntotal += loss.item()  # here"),
    "with a size in between": loop(f"{CHECK}\ncount = images.size(0) + len(rows)\ntotal += loss.item()  # here"),
    "behind either of two": loop(
        "if careful:\n    odd = math.isnan(images.sum().item())  # other\nelse:\n    odd = math.isnan(loss.item())  # other\n"
        "if odd:\n    raise ValueError\ntotal += loss.item()  # here",
        ", careful",
    ),
    "under the same condition": loop(
        "if careful:\n    rows.append(loss.item())  # other\nif careful:\n    total += loss.item()  # here", ", careful"
    ),
    "a device behind a read": loop(f"{CHECK}\ntorch.cuda.synchronize()  # here"),
    "a read behind a device": loop("torch.cuda.synchronize()  # other\ntotal += loss.item()  # here"),
    "a handful of passes in between": loop(f"{CHECK}\nkept = (images * 2).relu() + images.sum()\ntotal += loss.item()  # here"),
    "a new tensor and another type in between": loop(
        f"{CHECK}\nkept = torch.zeros(3, device='cuda') + images.to(torch.float16)\ntotal += loss.item()  # here"
    ),
    "a pass that is read": loop(f"{CHECK}\nrows.append((images * images).cpu())  # here"),
    "a mask behind a decision": loop(f"{CHECK}\nkept = images[images > 0]  # here"),
    "behind a mask": loop("kept = images[images > 0]  # other\ntotal += loss.item()  # here"),
    "a helper makes a pass": """
def doubled(images):
    return images * 2
"""
    + loop(f"{CHECK}\nkept = doubled(images)\ntotal += loss.item()  # here"),
    "a view that is read": loop(f"{CHECK}\nrows.append(loss.detach().cpu())  # here"),
    "a conversion that is read": loop(f"{CHECK}\nrows.append(loss.detach().half().cpu())  # here"),
    "a rare branch with work in between": loop(
        f"{CHECK}\nif number % 50 == 0:\n    torch.mm(images, images)\ntotal += loss.item()  # here"
    ).replace("for number in loader", "for number in range(9)"),
    "a function has waited": """
def check(loss):
    if not math.isfinite(loss.item()):  # other
        raise ValueError
"""
    + loop("check(loss)\ntotal += loss.item()  # here"),
    "before the call": """
def finish():
    torch.cuda.synchronize()  # here
"""
    + loop(f"{CHECK}\nfinish()"),
    "a method that waits if there are several": """
class Ranks:
    def __init__(self, several):
        self.several = several

    def mean(self, loss):
        if not self.several:
            return loss
        return loss.item()  # other

    def finish(self):
        if self.several:
            torch.cuda.synchronize()  # here

"""
    + loop("ranks.mean(loss)\nranks.finish()", ", ranks: Ranks"),
}
NOT_BEFORE = {
    "alone": loop("total += loss.item()  # here"),
    "work in between": loop(f"{CHECK}\nkept = images @ images\ntotal += loss.item()  # here"),
    "more than a handful of passes in between": loop(
        f"{CHECK}\nkept = images * 2 + images * 3 + images * 4 + images * 5 + images * 6\ntotal += loss.item()  # here"
    ),
    "a pass in each round of a loop in between": loop(
        f"{CHECK}\nfor part in range(100):\n    images = images * 2\ntotal += loss.item()  # here"
    ),
    "a call out of view in between": loop(f"{CHECK}\nwatchers.tell(loss)\ntotal += loss.item()  # here", ", watchers"),
    "a call out of view in a condition": loop(
        "if loss.item() > 3 and hook(3):\n    raise ValueError\ntotal += loss.item()  # here", ", hook"
    ),
    "work that is read": loop(f"{CHECK}\nrows.append((images @ images).cpu())  # here"),
    "work beside what is converted": loop(f"{CHECK}\nshort = torch.sort(images)\nrows.append(loss.half().cpu())  # here"),
    "only if a setting says so": loop("if careful:\n    rows.append(loss.item())\ntotal += loss.item()  # here", ", careful"),
    "as often as an option says": loop("for _ in range(times):\n    rows.append(loss.item())\ntotal += loss.item()  # here", ", times=0"),
    "in the round before": """
def fit(loader):
    total = 0.0
    for number in loader:
        total += data().item()  # here
        loss = data().sum()
        loss.backward()
        if loss.item() > 3:
            raise ValueError
""",
    "an event": loop("ready = torch.cuda.Event()\nready.synchronize()\ntotal += loss.item()  # here"),
    "the cache": loop("torch.cuda.empty_cache()\ntotal += loss.item()  # here"),
    "what works itself before it waits": loop(f"{CHECK}\nkept = images[torch.sort(images)[0] > 0]  # here"),
    "another stream in between": loop(f"{CHECK}\nwith torch.cuda.stream(side):\n    total += loss.item()  # here", ", side"),
    "another device": loop('torch.cuda.synchronize("cuda:0")\ntorch.cuda.synchronize("cuda:1")  # here'),
    "a device, beside another stream": loop(f"side = torch.cuda.Stream()\n{CHECK}\ntorch.cuda.synchronize()  # here"),
    "two calls, one of them behind work": """
def finish():
    torch.cuda.synchronize()  # here
"""
    + loop(f"{CHECK}\nfinish()\nimages = images @ images\nfinish()"),
    "a function that may return before": """
def check(loss, careful):
    if careful:
        rows = [loss.item()]
"""
    + loop("check(loss, careful)\ntotal += loss.item()  # here", ", careful"),
    "a function that is handed over": """
def check(loss):
    return loss.item()
"""
    + loop("list(map(check, [loss]))\ntotal += loss.item()  # here"),
    "a function that works behind its wait": """
def check(loss):
    if loss.item() > 3:
        raise ValueError
    return loss * torch.mm(data()[None], data()[:, None])
"""
    + loop("check(loss)\ntotal += loss.item()  # here"),
}
NOT_BEFORE = {title: text.replace("# other", "") for title, text in NOT_BEFORE.items()}


@pytest.mark.parametrize("text", BEFORE.values(), ids=BEFORE)
def test_behind_a_wait(text: str) -> None:
    program = Program(text)
    assert set() < program.before() <= set(program.others)


@pytest.mark.parametrize("text", NOT_BEFORE.values(), ids=NOT_BEFORE)
def test_behind_none(text: str) -> None:
    assert not Program(text).before()


AFTER = {
    "right before a decision": loop("total += loss.item()  # here\nif loss.item() > 3:  # other\n    raise ValueError"),
    "before a question about the number": loop("total += loss.item()  # here\nif torch.isnan(loss):  # other\n    break"),
    "before a question about any": loop("total += loss.item()  # here\nif torch.isnan(loss).any():  # other\n    break"),
    "before a comparison": loop("total += loss.item()  # here\nif loss * 2 > 3:  # other\n    break"),
    "before a decision on either way": loop(
        "total += loss.item()  # here\nif careful:\n    odd = loss.item() > 3  # other\nelse:\n    odd = loss.item() > 5  # other",
        ", careful",
    ),
    "before a function that decides": """
def check(loss):
    if torch.isnan(loss):  # other
        raise ValueError
"""
    + loop("total += loss.item()  # here\ncheck(loss)"),
    "in the arm of the same condition": loop(
        "if scaler is not None:\n    total += loss.item()  # here\nif scaler is None:\n    optimizer.step()\n"
        "elif loss.item() > 3:  # other\n    raise ValueError",
        ", scaler",
    ),
    "in the arm that a helper takes for it": """
def step(optimizer, loss, scaler):
    if scaler is None:
        optimizer.step()
    elif loss.item() > 3:  # other
        raise ValueError
"""
    + loop(
        "total += loss.item() if scaler is not None else 0.0  # here\nkept = images * 2\nstep(optimizer, loss, scaler=scaler)",
        ", scaler",
    ),
    "passes in between": loop("total += loss.item()  # here\nkept = images * 2\nif loss.item() > 3:  # other\n    break"),
    "behind the call": """
def fetched(loss):
    return loss.item()  # here
"""
    + loop("total += fetched(loss)\nif loss > 3:  # other\n    break"),
}
NOT_AFTER = {
    "alone": loop("total += loss.item()  # here"),
    "work in between": loop("total += loss.item()  # here\nkept = torch.sort(images)\nif loss.item() > 3:\n    break"),
    "work on something else for the decision": loop(
        "total += loss.item()  # here\nkept = torch.sort(images)\nif torch.isnan(loss):\n    break"
    ),
    "the arm without the step that reads": loop(
        "total += loss.item()  # here\nif scaler is None:\n    optimizer.step()\nelse:\n    if loss.item() > 3:\n        raise ValueError",
        ", scaler",
    ),
    "under a condition that is computed anew": loop(
        "for part in rows:\n    scaler = part.scaler\n    if scaler is not None:\n        total += loss.item()  # here\n"
        "    if scaler is None:\n        images = images @ images\nif loss.item() > 3:\n    raise ValueError"
    ),
    "a product of matrices for the decision": loop("total += loss.item()  # here\nif (images @ images) > 3:\n    break"),
    "only if a setting says so": loop("total += loss.item()  # here\nif careful:\n    rows.append(loss.item())", ", careful"),
    "in the next round": """
def fit(loader):
    total = 0.0
    for number in loader:
        if data().item() > 3:
            break
        loss = data().sum()
        loss.backward()
        total += loss.item()  # here
""",
}


@pytest.mark.parametrize("text", AFTER.values(), ids=AFTER)
def test_before_a_wait(text: str) -> None:
    program = Program(text)
    assert program.after() in program.others
    assert program.after(needed=False) is None


@pytest.mark.parametrize("text", NOT_AFTER.values(), ids=NOT_AFTER)
def test_before_none(text: str) -> None:
    assert Program(text).after() is None
