"""``python -m streamlint.litmus``: the command alone, where the linter's own packages are not installed."""

from __future__ import annotations

import sys

from streamlint.commands.litmus import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
