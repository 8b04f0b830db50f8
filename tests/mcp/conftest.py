from pathlib import Path

from agents import Agent


def agent_with(folder: Path, tools: str, base_url: str = "http://127.0.0.1:9", **environ: str) -> Agent:
    """Load an agent with these entries in `tools`."""
    window = "window: {limit_tokens: 60000}\narchival: {embedder: none}"
    text = f"name: x\nmodel: {{id: m, base_url: '{base_url}'}}\n{window}\ntools: [{tools}]\n"
    (folder / "x.yaml").write_text(text, encoding="utf-8")
    return Agent.load(folder / "x.yaml", home=folder, environ=environ)
