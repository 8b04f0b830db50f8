"""A mirror: what an agent remembers as a folder of Markdown files, for people and for git; and edits of it, taken back.

forms.py    the files as texts: front matter and body. Pure
folder.py   the folder on disk: it is somebody else's, so nothing in it is followed, and every size has a limit
edits.py    the differences between a folder and a memory: edits, or errors with file and line
mirror.py   write_mirror and import_mirror

The same memory always gives the same bytes, a fact is a file, and nothing in it changes by itself. An import takes all
edits or none. Called by the commands `export` and `import`.
"""

from agents.mirror.mirror import import_mirror, is_mirror, name_in, write_mirror

__all__ = ["import_mirror", "is_mirror", "name_in", "write_mirror"]
