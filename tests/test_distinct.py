import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracediag.distinct import combinations, distinct

_wide = st.one_of(st.integers(-3, 3), st.integers(-(2**60), 2**60))


@given(st.lists(st.tuples(_wide, _wide, st.integers(-1, 2))))
def test_combinations_number_the_rows_like_a_sorted_set(rows):
    columns = [np.asarray([row[i] for row in rows], np.int64) for i in range(3)]
    found, index = combinations(*columns)
    wanted = sorted(set(rows))
    assert [tuple(row) for row in found.tolist()] == wanted
    assert index.tolist() == [wanted.index(row) for row in rows]


def test_combinations_of_codes_of_any_width():
    found, index = combinations(np.asarray([1, -1, 1], np.int32), np.asarray([0, 0, 0], np.int16))
    assert found.tolist() == [[-1, 0], [1, 0]]
    assert index.tolist() == [1, 0, 1]


@given(st.lists(_wide))
def test_distinct_is_a_sorted_set(values):
    assert distinct(np.asarray(values, np.int64)).tolist() == sorted(set(values))
