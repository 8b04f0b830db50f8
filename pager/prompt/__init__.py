"""The next request, always valid and always within the window.

`prompt` takes appends and makes requests, `state` is what is in the prompt now and how large it is, `budget` decides
(pure), `renewal` and `epochs` carry out what it decides, `render` makes the request (pure), `digest` and `summary` are
the words for evicted steps, `drops` takes out what may not go back, `setup` is the program's own part. The facades, and
the rooms `inspect` and `upkeep`, may call this room. Start with `Prompt.request` in `prompt`.
"""
