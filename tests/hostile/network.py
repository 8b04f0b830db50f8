"""A long offline life of an agent, in a network of its own in which only the loopback interface is up.

`python -m tests.hostile.network DIRECTORY` needs root. Native code passes no audit of Python's, so the kernel is asked:
names are looked up at a server here, which answers none and notes them; packets to other hosts have no route, and are
counted. It prints what was looked up, how many packets had no route, and the files outside of the home.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CLONE_NEWNS, CLONE_NEWNET, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x40000000, 4096, 16384, 1 << 18
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
AGENT = """\
name: anna
model: {provider: scripted, script: ok.yaml, id: m}
window: {limit_tokens: 20000}
"""
SCRIPT = """\
- {when: seats, call: [{archive: {text: prefers window seats}}]}
- {otherwise: true, say: ok}
"""
FACTS = """
import sys
from pager.home import Home
with Home(sys.argv[1]).open("anna") as memory:
    for number in range(300):
        memory.archive(f"On day {number} the train to town {number * 7 % 300} left from platform {number % 9}.")
    while memory.embed_pending():
        pass
    memory.compact()
    assert memory.search_archive("When did the train leave?")
"""


def call(function: str, *arguments: Any) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*arguments):
        raise OSError(ctypes.get_errno(), f"{function}: {os.strerror(ctypes.get_errno())}")


def isolate(directory: Path) -> list[str]:
    """Leave the network of the machine. Return the list to which names that are looked up are added."""
    call("unshare", CLONE_NEWNS | CLONE_NEWNET)
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    resolver = directory / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    call("mount", bytes(resolver), b"/etc/resolv.conf", None, MS_BIND, None)
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(listener, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    listener.bind(("127.0.0.1", 53))
    names: list[str] = []

    def note() -> None:
        while True:
            question, asker = listener.recvfrom(4_096)
            labels, place = list[str](), 12
            while length := question[place]:
                labels.append(question[place + 1 : place + 1 + length].decode("latin-1"))
                place += length + 1
            names.append(".".join(labels))
            listener.sendto(question[:2] + b"\x81\x83" + question[4:6] + bytes(6) + question[12 : place + 5], asker)

    threading.Thread(target=note, daemon=True).start()
    return names


def without_route() -> int:
    """How many packets were for a host that cannot be reached."""
    lines = [line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Ip:")]
    six = [line.split() for line in Path("/proc/net/snmp6").read_text().splitlines()]
    return int(lines[1][lines[0].index("OutNoRoutes")]) + sum(int(line[1]) for line in six if "OutNoRoutes" in line[0])


def live(home: Path, directory: Path, environ: dict[str, str]) -> None:
    """Use everything that an agent has."""

    def selfpager(*arguments: str, said: str = "") -> str:
        command = [sys.executable, "-m", "agents", *arguments, "--home", str(home)]
        done = subprocess.run(
            command, input=said, cwd=directory, env=environ, capture_output=True, text=True, timeout=200, check=False
        )
        if done.returncode:
            raise AssertionError(f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    (directory / "anna.yaml").write_text(AGENT)
    (directory / "ok.yaml").write_text(SCRIPT)
    selfpager("chat", "anna.yaml", said="I like window seats.\nWhich seats do I like?\nThank you.\n")
    subprocess.run([sys.executable, "-c", FACTS, str(home)], cwd=directory, env=environ, check=True)
    assert list((home / "anna" / "chroma").glob("g*")), "there is a generation"
    selfpager("chat", "anna.yaml", said="When did the train to town 7 leave?\n")
    search = {"name": "search_archive", "arguments": {"query": "trains"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search},
    ]  # fmt: skip
    selfpager("mcp", "anna", said="".join(f"{json.dumps(request)}\n" for request in requests))
    for command in ("show", "check"):
        selfpager(command, "anna")
    selfpager("trace", "anna", "trains")
    selfpager("export", "anna", str(home / "anna.export"))
    selfpager("import", str(home / "anna.export"), "--as", "berta")
    selfpager("check", "berta")
    command = [sys.executable, "-m", "agents", "view", "--no-browser", "--json", "--home", str(home)]
    with subprocess.Popen(command, cwd=directory, env=environ, stdout=subprocess.PIPE, text=True) as view:
        assert view.stdout
        address = json.loads(view.stdout.readline())["address"]
        try:
            for path in ("", "api/agents", "api/anna/state", "api/anna/facts"):
                with urllib.request.urlopen(address + path, timeout=60) as answer:
                    answer.read()
        finally:
            view.terminate()


ASKING = """\
name: {name}
model: {{provider: {name}, id: m, base_url: "{url}", api_key: k}}
window: {{limit_tokens: 20000}}
archival: {{embedder: none}}
tools: [{{mcp: {{command: ["{python}", -m, tests.support.mcp_servers], name: stdio, env: {{PYTHONPATH: "{root}"}}}}}}]
"""
INDEXED = """
import sys
from pager import ChromaServer, Memory
with Memory.open(sys.argv[1], index=ChromaServer("127.0.0.1", int(sys.argv[2]))) as memory:
    for number in range(300):
        memory.archive(f"On day {number} the train to town {number * 7 % 300} left from platform {number % 9}.")
    while memory.embed_pending():
        pass
    memory.compact()
    assert memory.search_archive("When did the train leave?")
"""
CALLING = """
import sys
from agents.config.tool_sections import ServerConfig
from agents.mcp.client import connected
with connected(ServerConfig(url=sys.argv[1], headers={"Authorization": f"Bearer {sys.argv[2]}"})) as server:
    [search] = [tool for tool in server.tools() if tool.name == "search_archive"]
    assert "train" in search.run({"query": "trains"})
"""


def ask_servers(home: Path, directory: Path, environ: dict[str, str]) -> None:
    """Use the clients of all kinds of servers, each of which is here."""
    from agents.testing import ScriptedServer
    from tests.standin.chat import ChatStandin
    from tests.standin.chat_server import ChatServer
    from tests.vectors.test_chroma_server import Running

    def run(*command: str, said: str = "") -> None:
        whole = [sys.executable, *command]
        done = subprocess.run(
            whole, input=said, cwd=directory, env=environ, capture_output=True, text=True, timeout=200, check=False
        )
        if done.returncode:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")

    chroma = Running(directory.with_name("chroma"))
    with ScriptedServer() as messages, ChatServer(ChatStandin(limit_tokens=20_000)) as chat:
        messages.otherwise("ok")
        for name, url in (("anthropic", messages.base_url), ("openai", chat.url)):
            text = ASKING.format(name=name, url=url, python=sys.executable, root=ROOT)
            (directory / f"{name}.yaml").write_text(text)
            run("-m", "agents", "chat", f"{name}.yaml", "--home", str(home), said="hello\nand now?\n")
        assert messages.requests
        assert chat.asked
    chroma.start()
    try:
        run("-c", INDEXED, str(home / "indexed"), str(chroma.port))
    finally:
        chroma.close()
    token = "a-token-of-its-client"
    command = [sys.executable, "-m", "agents", "mcp", "anna", "--http", "0", "--home", str(home)]
    given = {**environ, "SELFPAGER_MCP_TOKEN": token}
    with subprocess.Popen(command, cwd=directory, env=given, stderr=subprocess.PIPE, text=True) as served:
        assert served.stderr
        address = served.stderr.readline().split(" is served at ")[1].split()[0]
        try:
            run("-c", CALLING, address, token)
        finally:
            served.terminate()


def main() -> None:
    directory = Path(sys.argv[1])
    names = isolate(directory)
    places = {name: directory / name for name in ("user", "work", "temporary", "home")}
    for place in places.values():
        place.mkdir()
    own = ("SELFPAGER", "ANTHROPIC", "XDG_", "ORT_", "ANONYMIZED")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environ |= {"HOME": str(places["user"]), "TMPDIR": str(places["temporary"]), "PYTHONPATH": str(ROOT)}
    environ |= {"PYTHONDONTWRITEBYTECODE": "1"}
    live(places["home"], places["work"], environ)
    ask_servers(places["home"], places["work"], environ)
    lived = {"names": list(names), "without_route": without_route()}
    written = [str(path) for name in ("user", "work", "temporary") for path in places[name].rglob("*")]
    # The two are noticed: otherwise nothing was proven.
    noticed = subprocess.run(
        [sys.executable, "-c", "import socket; socket.getaddrinfo('noticed.example', 1)"],
        capture_output=True,
        check=False,
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packet:
        reached = packet.connect_ex(("192.0.2.1", 9))
    control = {"names": names[len(lived["names"]) :], "without_route": without_route() - lived["without_route"]}
    print(json.dumps({**lived, "written": written, "control": control, "codes": [noticed.returncode, reached]}))  # noqa: T201


if __name__ == "__main__":
    main()
