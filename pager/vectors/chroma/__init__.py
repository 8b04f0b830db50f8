"""The vector index on Chroma: files on disk, builds in a child process, and a check before anything is opened.

`index.ChromaIndex` is what `pager.opening` makes. `client` alone knows Chroma's index; `files` knows the directory,
`build` writes a generation, `probe` looks whether one may be opened, `child_process` starts our modules as processes.
"""
