import numpy as np
import pytest

from tracediag.intervals import clip, cover, empty, exclusive, intersect, locate, merge, overlap, subtract, total


def spans(*pairs):
    return np.asarray([a for a, _ in pairs], np.int64), np.asarray([b for _, b in pairs], np.int64)


def pairs(result):
    return list(zip(result[0].tolist(), result[1].tolist(), strict=True))


def test_merge_joins_what_overlaps_or_touches_and_drops_what_is_empty():
    assert pairs(merge(*spans((5, 7), (0, 2), (2, 4), (6, 9), (3, 3), (8, 1)))) == [(0, 4), (5, 9)]


def test_merge_keeps_the_far_end_of_an_interval_that_holds_others():
    assert pairs(merge(*spans((0, 100), (10, 20), (30, 40), (99, 101)))) == [(0, 101)]


def test_nothing_stays_nothing():
    assert pairs(merge(*empty())) == []
    assert total(empty()) == 0
    assert pairs(intersect(empty(), spans((0, 5)))) == []
    assert pairs(subtract(empty(), spans((0, 5)))) == []
    assert pairs(subtract(spans((0, 5)), empty())) == [(0, 5)]


def test_intersect_and_subtract_split_a_set_in_two():
    a, b = spans((0, 10), (20, 30)), spans((5, 22), (25, 26))
    assert pairs(intersect(a, b)) == [(5, 10), (20, 22), (25, 26)]
    assert pairs(subtract(a, b)) == [(0, 5), (22, 25), (26, 30)]


def test_clip_keeps_what_lies_within():
    assert pairs(clip(spans((0, 10), (20, 30)), 5, 25)) == [(5, 10), (20, 25)]
    assert pairs(clip(spans((0, 10)), 10, 20)) == []


def test_cover_and_overlap_measure_parts():
    a = spans((0, 10), (20, 30))
    assert cover(a, np.asarray([-5, 0, 4, 15, 25, 99])).tolist() == [0, 0, 4, 10, 15, 20]
    assert overlap(a, np.asarray([5, 12, 0, 9]), np.asarray([25, 18, 99, 3])).tolist() == [10, 0, 20, 0]
    assert cover(empty(), np.asarray([3])).tolist() == [0]


@pytest.mark.parametrize(("time", "row"), [(-1, -1), (0, 0), (9, 0), (10, -1), (20, 1), (29, 1), (30, -1)])
def test_locate_counts_the_start_and_not_the_end(time, row):
    assert locate(*spans((0, 10), (20, 30)), np.asarray([time])).tolist() == [row]


def test_locate_without_intervals():
    assert locate(*empty(), np.asarray([1, 2])).tolist() == [-1, -1]


def test_exclusive_gives_each_instant_to_the_first_layer():
    layers = exclusive([spans((0, 10)), spans((5, 15)), spans((0, 30))])
    assert [pairs(layer) for layer in layers] == [[(0, 10)], [(10, 15)], [(15, 30)]]
