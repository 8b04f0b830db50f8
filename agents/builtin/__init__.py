"""Built-in tools: what an agent can do without Python of its own. `agents.assembly` makes them, the loop runs them.

- `files`: list, read, search, write and edit below one directory (`confined`), searched by `search`, without what
  `ignored` names; PDF, Office and HTML as text (`documents`). `protected` names what no tool writes.
- `shell`: one command in a directory, inside of bubblewrap where it is there (`sandbox`), ended with all its children
  by `supervisor`.
- `web`: a page as Markdown, over connections to checked addresses (`http`, `addresses`), converted in a process of its
  own (`markdown`).

What a tool refuses is an error result that says why, and what would be allowed.
"""
