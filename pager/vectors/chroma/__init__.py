"""The vector index on Chroma. The only room that calls Chroma's index.

`collection` opens a directory or a server, `build` is the child process that writes and proves a generation, `places`
says where generations are. What stands here follows from measurements on chromadb 1.5.9:

- Its flush is not atomic: a process that is killed while it writes leaves files that raise, grow to terabytes, or end
  every process that reads them. So nobody reads what is being written, and nothing is written that anybody reads.
- Its native code does not check what it reads: a flipped bit can end the process. So a generation is opened only while
  all its files have the digests of the build.
- Its graph loses what lies apart among many that are alike. So a generation proves itself before it is used.
"""
