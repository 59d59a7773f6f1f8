"""``streamlint server``: the Language Server Protocol, by pygls.

Two processes. The one that the editor talks to (`app`, `session`, `desk`) answers at once. Its child (`worker`, `project`, `near`,
`memory`) lints, and knows nothing of the protocol: between them go the records of `jobs`. What this room does is asked of `linter`,
`repairs` and `ignores`: it has no rules of its own.
"""
