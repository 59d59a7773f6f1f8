"""Why no finding stands at a line: ``streamlint check --explain-silence FILE:LINE``.

Whatever the rules may be, the answer is found in one way. What is known of the line is told from the operations of the paths that were run.
Then the paths are run once more, with orders left out and unknown or harmless facts turned round, until a check speaks; the smallest such
change is what that check lacked.
"""

from streamlint.silence.answer import Answer, Reason
from streamlint.silence.explain import explain

__all__ = ["Answer", "Reason", "explain"]
