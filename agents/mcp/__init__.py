"""MCP on both sides: the tools of other servers in an agent, and an agent's memory for other clients.

client.py  connect to a server; its tools as tools of an agent (called by `agents.assembly`)
link.py    one connection
server.py  the tools that `selfpager mcp` offers, over stdio or HTTP (called by `agents.cli`)

Needs the extra `selfpager[mcp]`. Only link.py and server.py import it, and only when they are used.
"""
