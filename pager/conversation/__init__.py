"""Writes user messages, replies and tool results, each as it came and as the prompt carries it.

It promises that a message is checked before it is written, and is never changed.

`conversation` writes, `replies` decides what becomes of a reply (pure), `content` checks what people, tools and models
hand over, `spill` shortens what is too large. The rooms above may call this one; it knows no prompt.
"""
