"""``python -m streamlint.verify``: the command alone, for a machine that has CUDA but not the linter's dependencies."""

from __future__ import annotations

import argparse
import sys

from streamlint import TYPE_CHECKING
from streamlint.support.lazy import lazy

if TYPE_CHECKING:
    from streamlint.verify import command, options
else:
    command, options = lazy("streamlint.verify", "command", "options")


def main() -> int:
    if sys.platform == "win32":
        print("streamlint: `verify` does not run on Windows; use Linux or WSL 2. `check` runs on Windows", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(prog="streamlint verify", description="verify the rules' predictions on a GPU")
    options.add_arguments(parser)
    try:
        return command.run(parser.parse_args())
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
