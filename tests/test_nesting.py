import numpy as np
import pytest

from tracediag.nesting import inherit, parents, self_times


def nest(*rows):
    """rows: (lane, start, end)."""
    lane, start, end = (np.asarray(column, np.int64) for column in zip(*rows, strict=True))
    return parents(lane, start, end).tolist()


def test_the_innermost_enclosing_event_is_the_parent():
    assert nest((0, 0, 100), (0, 10, 50), (0, 20, 30), (0, 60, 70)) == [-1, 0, 1, 0]


def test_lanes_do_not_enclose_each_other():
    assert nest((0, 0, 100), (1, 10, 50)) == [-1, -1]


def test_order_of_the_file_does_not_matter():
    assert nest((0, 20, 30), (0, 60, 70), (0, 0, 100), (0, 10, 50)) == [3, 2, -1, 2]


def test_of_two_equal_events_the_first_is_the_outer():
    assert nest((0, 0, 10), (0, 0, 10), (0, 2, 3)) == [-1, 0, 1]


def test_an_event_that_begins_where_another_ends_is_outside():
    assert nest((0, 0, 10), (0, 10, 20), (0, 10, 10), (0, 20, 20)) == [-1, -1, 1, -1]


def test_an_event_that_sticks_out_is_a_sibling():
    assert nest((0, 0, 10), (0, 5, 15), (0, 6, 9)) == [-1, -1, 1]


def test_no_events():
    assert parents(*(np.zeros(0, np.int64),) * 3).tolist() == []


@pytest.mark.parametrize("depth", [1, 200_000])
def test_many_siblings_and_deep_chains_stay_fast(depth):
    n = 200_000
    start = np.arange(n, dtype=np.int64) * 10
    end = start + 5 if depth == 1 else 4 * 10 * n - start
    rows = parents(np.zeros(n + 1, np.int64), np.append(start, -1), np.append(end, 50 * n))
    if depth == 1:
        assert (rows[:n] == n).all()
    else:
        assert rows[0] == n
        assert (rows[1:n] == np.arange(n - 1)).all()


def test_self_time_counts_children_that_overlap_once():
    parent = np.asarray([-1, 0, 0, 0])
    start, end = np.asarray([0, 10, 15, 40]), np.asarray([100, 20, 30, 50])
    assert self_times(parent, start, end).tolist() == [70, 10, 15, 10]


def test_self_time_of_a_trace_too_long_to_pack():
    parent = np.asarray([-1, 0, 0, -1, 3])
    start = np.asarray([0, 1, 2, 2**61, 2**61 + 5])
    end = np.asarray([10, 4, 6, 2**61 + 100, 2**61 + 25])
    assert self_times(parent, start, end).tolist() == [5, 3, 4, 80, 20]


def test_inherit_takes_the_nearest_value():
    parent = np.asarray([-1, 0, 1, 2, -1, 4])
    own = np.asarray([7, -1, 3, -1, -1, -1])
    assert inherit(parent, own).tolist() == [7, 7, 3, 3, -1, -1]
