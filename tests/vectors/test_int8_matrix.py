"""Vectors a byte a number: what that takes from a cosine."""

from __future__ import annotations

import numpy as np

from pager.vectors.int8_matrix import LARGEST, Int8Matrix, quantize
from pager.vectors.turns import SCALE_BYTES, pack
from tests.contract.vector_sources import unit_vectors
from tests.support import Words


def test_a_vector_loses_next_to_nothing_by_its_bytes() -> None:
    rows = Words(dimension=384).embed([f"topic{number} of many" for number in range(50)])
    scales, raw = quantize(rows)
    assert (np.abs(raw).max(axis=1) == LARGEST).all()
    assert np.abs((raw * scales[:, None]) @ rows.T - rows @ rows.T).max() < 0.01
    head, body = pack(rows)[7][:SCALE_BYTES], pack(rows)[7][SCALE_BYTES:]
    assert (np.frombuffer(head, dtype=np.float32)[0], np.frombuffer(body, dtype=np.int8).tolist()) == (
        scales[7], raw[7].tolist()
    )  # fmt: skip


def test_of_many_rows_each_has_its_cosine() -> None:
    rows, asked = unit_vectors(1500), unit_vectors(1, seed=7)[0]
    held = Int8Matrix(rows.shape[1])
    assert held.cosines(asked).tolist() == []
    held.extend(range(1000), *quantize(rows[:1000]))
    held.extend(range(1000, 1500), *quantize(rows[1000:]))
    np.testing.assert_allclose(held.cosines(asked), rows @ asked, atol=0.01)
    odd = held.only(held.ids % 2 == 1)
    assert odd.ids.tolist() == list(range(1, 1500, 2))
    assert odd.cosines(asked).tolist() == held.cosines(asked)[1::2].tolist()


def test_a_vector_of_noughts_is_far_from_everything() -> None:
    held = Int8Matrix(8)
    held.extend([1], *quantize(np.zeros((1, 8), dtype=np.float32)))
    assert held.cosines(np.eye(8, dtype=np.float32)[0]).tolist() == [0.0]
