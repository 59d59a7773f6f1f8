"""``python -m streamlint.verify``: the command alone, for a machine that has CUDA but not the linter's dependencies."""

from __future__ import annotations

import argparse
import sys

from streamlint.verify import command


def main() -> int:
    parser = argparse.ArgumentParser(prog="streamlint verify", description="verify the rules' predictions on a GPU")
    command.add_arguments(parser)
    try:
        return command.run(parser.parse_args())
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
