"""The debug view: a local web page that shows what agents remember and why a text left the prompt, live while they run.

It only reads, and sends edits as commands that the agent's process applies. `routes` and `serving` import `starlette`
and `uvicorn`: import them only to serve the view.

- `routes`: the view as an ASGI application, which any other can mount.
- `serving`: the server of `selfpager view`, and who may ask.
- `opening`: the browser, which gets the address without showing it to other users.
- `answers`: what each address returns; `requests` those about requests.
- `readers`: the agents of a home, kept open for reading, and the commands that were sent to them.
- `page/`: the page itself in plain HTML, CSS and JavaScript. It loads nothing from elsewhere.
"""
