"""Why no finding stands at a line: ``streamlint check --explain-silence FILE:LINE``.

What is known of the line follows from what its instructions do. The rules are asked once more with orders left out and copies taken for
asynchronous: what they report then is what those orders and copies keep silent.
"""

from streamlint.silence.answer import Answer, Reason
from streamlint.silence.explain import explain, explain_each

__all__ = ["Answer", "Reason", "explain", "explain_each"]
