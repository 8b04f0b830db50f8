"""What the process that all lives are forked from has loaded."""

from importlib import import_module

from pager import tokens
from tests.support.embedders import Words

for module in (
    "anthropic",
    "chromadb",
    "chromadb.api.rust",
    "numpy",
    "pytest",
    "tests.crash.load",
    "tests.support.stage",
):
    import_module(module)
tokens.total("the table of tokens, read once for all")
Words().embed(["what it imports"])  # a child that is somebody else may not read these files any more
