"""The linting process is started before anything else: what it imports takes longest."""

from __future__ import annotations

import subprocess
import sys

# The child's path is ours and nothing else: started with `-m` or `-c`, Python would look for modules in the folder that is linted.
# An interrupt is meant for the server, whose end ends the pipe that the child listens to.
_CHILD = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = {path!r}; "
    "from streamlint.server.worker import main; main()"
)


def start() -> subprocess.Popen[bytes]:
    """A new linting process, which warms up until it is asked for something."""
    return subprocess.Popen([sys.executable, "-c", _CHILD.format(path=sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
