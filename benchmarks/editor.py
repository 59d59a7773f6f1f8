"""What an editor waits for: the answer to ``initialize``, diagnostics after opening, code actions, of streamlint and of ruff.

    python benchmarks/editor.py [--rounds 9] [--settle 3]

Both servers run in turns, in this environment, on the same file of 200 lines, of which some functions hold a misuse for streamlint and an
unused import for ruff. "at once" is the first file of a server that has just answered; "later" is another file, ``--settle`` seconds after.
Told are medians and the slowest, in milliseconds, and the load of the machine before and after. Exit code 1 if a server said nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(sys.executable).parent
SERVERS = {"streamlint": [str(HERE / "streamlint"), "server"], "ruff": [str(HERE / "ruff"), "server", "--isolated"]}
GOALS = {"initialize": 300, "diagnostics, later": 250, "code action, later": 50}
MISUSE = 'def load%d(n):\n    import sys\n    host = torch.empty(n)\n    return host.to("cuda", non_blocking=True)\n\n\n'
PLAIN = "def plain%d(x):\n    y = x * 2\n    return y\n\n\n"
LINE = 6  # of the first misuse that both can mend: the import is above it


def text(name: str) -> str:
    """A file of 200 lines, of which no other file has a function by the same name and body."""
    first = 1000 * ord(name[0])
    plain = "".join((PLAIN % at).replace("* 2", f"* {at}") for at in range(first, first + 36))
    return "import torch\n\n\n" + "".join(MISUSE % at for at in range(first, first + 3)).replace("host", f"host_{name[0]}") + plain


class Client:
    """A client that waits for each answer."""

    def __init__(self, command: list[str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.folder, self.number = folder, 0
        self.process = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def say(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            size = 0
            while line := self.process.stdout.readline().strip():
                name, _, value = line.partition(b":")
                size = int(value) if name.lower() == b"content-length" else size
            if not size:
                sys.exit(f"{self.process.args} has ended")
            message: dict[str, Any] = json.loads(self.process.stdout.read(size))
            if wanted(message):
                return message

    def ask(self, method: str, params: Any) -> Any:
        self.number += 1
        self.say(id=self.number, method=method, params=params)
        return self.until(lambda message: message.get("id") == self.number and "method" not in message)["result"]

    def open(self, name: str) -> list[Any]:
        uri = (self.folder / name).as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text(name)}
        self.say(method="textDocument/didOpen", params={"textDocument": document})
        shown = self.until(lambda message: message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri)
        return list(shown["params"]["diagnostics"])

    def act(self, name: str, diagnostics: list[Any]) -> list[Any]:
        place = {"start": {"line": 4, "character": 0}, "end": {"line": LINE, "character": 50}}
        document = {"uri": (self.folder / name).as_uri()}
        asked = {"textDocument": document, "range": place, "context": {"diagnostics": diagnostics}}
        return list(self.ask("textDocument/codeAction", asked))


def measure(command: list[str], settle: float) -> dict[str, float]:
    """One server from its start to its end: milliseconds of each step."""
    found: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        found[name] = 1000 * (time.perf_counter() - start)
        if not result:
            sys.exit(f"{command}: nothing for {name}")
        return result

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}}
        clients: list[Client] = []

        def begin() -> Any:
            clients.append(Client(command, folder))
            return clients[0].ask("initialize", start)

        timed("initialize", begin)
        client = clients[0]
        try:
            client.say(method="initialized", params={})
            told = timed("diagnostics, at once", lambda: client.open("a.py"))
            timed("code action, at once", lambda: client.act("a.py", told))
            time.sleep(settle)
            told = timed("diagnostics, later", lambda: client.open("b.py"))
            time.sleep(settle)
            timed("code action, later", lambda: client.act("b.py", told))
        finally:
            client.process.kill()
            client.process.communicate()
    return found


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--settle", type=float, default=3.0, metavar="SECONDS")
    options = parser.parse_args()
    before, rows = os.getloadavg()[0], {name: [] for name in SERVERS}  # type: dict[str, list[dict[str, float]]]
    for _ in range(options.rounds):
        for name, command in SERVERS.items():
            rows[name].append(measure(command, options.settle))
    print(f"load {before:.2f} before, {os.getloadavg()[0]:.2f} after; {os.cpu_count()} processors; {options.rounds} rounds; ms\n")
    print(f"| {'step':<21} | {'goal':>4} | " + " | ".join(f"{name:>10} | slowest" for name in SERVERS) + " |")
    print("|---|--:|" + "--:|--:|" * len(SERVERS))
    for step in rows["ruff"][0]:
        each = [[row[step] for row in rows[name]] for name in SERVERS]
        cells = " | ".join(f"{statistics.median(row):>10.0f} | {max(row):>7.0f}" for row in each)
        print(f"| {step:<21} | {GOALS.get(step, ''):>4} | {cells} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
