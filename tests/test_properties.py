"""What must hold for any trace, on generated input."""

from fractions import Fraction

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracediag.intervals import clip, cover, exclusive, intersect, merge, overlap, subtract, total
from tracediag.nesting import lineage_order, parents, self_times
from tracediag.stats import _rank_split
from tracediag.trace import Trace

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

time = st.integers(0, 60)
pairs = st.lists(st.tuples(time, time), max_size=12)


def spans(rows):
    return merge(np.asarray([a for a, _ in rows], np.int64), np.asarray([b for _, b in rows], np.int64))


def instants(rows):
    return {t for a, b in rows for t in range(a, b)}


def held(merged):
    return {t for a, b in zip(merged[0].tolist(), merged[1].tolist(), strict=True) for t in range(a, b)}


@given(pairs)
def test_merged_intervals_never_overlap_or_touch_and_hold_the_same_time(rows):
    merged = spans(rows)
    assert (merged[0] < merged[1]).all()
    assert (merged[0][1:] > merged[1][:-1]).all()
    assert held(merged) == instants(rows)
    assert total(merged) == len(instants(rows))


@given(pairs, pairs)
def test_intersection_and_difference_partition_a_set(a, b):
    first, second = spans(a), spans(b)
    both, only = intersect(first, second), subtract(first, second)
    assert held(both) == instants(a) & instants(b)
    assert held(only) == instants(a) - instants(b)
    assert total(both) + total(only) == total(first)


@given(pairs, time, time)
def test_measures_of_parts_equal_the_parts(rows, start, end):
    merged = spans(rows)
    assert overlap(merged, np.asarray([start]), np.asarray([end]))[0] == total(clip(merged, start, end))
    assert cover(merged, np.asarray([start]))[0] == len([t for t in instants(rows) if t < start])


@given(st.lists(pairs, max_size=5))
def test_exclusive_layers_are_disjoint_and_keep_the_union(layers):
    parts = exclusive([spans(rows) for rows in layers])
    union = set().union(*(instants(rows) for rows in layers)) if layers else set()
    assert sum(total(part) for part in parts) == len(union)
    assert set().union(set(), *(held(part) for part in parts)) == union


events = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(0, 12)), max_size=14)


@given(events)
def test_parents_equal_the_definition(rows):
    """The innermost of the events before it in lineage order that starts no later, ends no earlier and does not merely touch it."""
    lane = np.asarray([row[0] for row in rows], np.int64)
    start = np.asarray([row[1] for row in rows], np.int64)
    end = start + np.asarray([row[2] for row in rows], np.int64)
    found = parents(lane, start, end)
    order = lineage_order(lane, start, end).tolist()
    for at, inner in enumerate(order):
        enclosing = [
            outer
            for outer in order[:at]
            if lane[outer] == lane[inner] and end[outer] >= end[inner] and (start[inner] < end[outer] or start[outer] == end[outer])
        ]
        assert found[inner] == (enclosing[-1] if enclosing else -1)


@given(events)
def test_self_times_are_never_negative_nor_more_than_the_whole(rows):
    lane = np.asarray([row[0] for row in rows], np.int64)
    start = np.asarray([row[1] for row in rows], np.int64)
    end = start + np.asarray([row[2] for row in rows], np.int64)
    own = self_times(parents(lane, start, end), start, end)
    assert (own >= 0).all()
    assert (own <= end - start).all()


@st.composite
def trees(draw, depth=3):
    """Properly nested intervals as (start, end) rows in order of a walk: children lie apart within their parent."""
    rows = []

    def grow(start, level):
        at = start + draw(st.integers(0, 2))
        if level < depth:
            for _ in range(draw(st.integers(0, 3))):
                at = grow(at, level + 1) + draw(st.integers(0, 2))
        end = at + draw(st.integers(1, 3))
        rows.append((start, end))
        return end

    at = 0
    for _ in range(draw(st.integers(1, 3))):
        at = grow(at, 0) + draw(st.integers(0, 3))
    return rows


@given(trees())
def test_self_times_below_an_event_add_up_to_its_duration(rows):
    start, end = (np.asarray([row[i] for row in rows], np.int64) for i in (0, 1))
    lane = np.zeros(len(rows), np.int64)
    parent = parents(lane, start, end)
    below = self_times(parent, start, end)
    for row in lineage_order(lane, start, end)[::-1]:
        if parent[row] >= 0:
            below[parent[row]] += below[row]
    assert below.tolist() == (end - start).tolist()


NAMES = ("aten::mm", "aten::add", "aten::embedding", "autograd::engine::evaluate_function: X", "Optimizer.step#SGD.step", "aten::item")


@st.composite
def traces(draw, device=None):
    """Rows of a small torch trace: a few steps of nested operators, with or without device work. All starts differ."""
    device = draw(st.booleans()) if device is None else device
    rows, steps, now, free = [], [], 0, 0
    for step in range(draw(st.integers(1, 3))):
        begin = now
        for _ in range(draw(st.integers(1, 4))):
            name = draw(st.sampled_from(NAMES))
            now += draw(st.integers(1, 40))
            outer = {"name": name, "role": "annotation" if name.startswith("Optimizer") else "op", "start_ns": now, "lane": "a"}
            rows.append(outer)
            now += draw(st.integers(1, 9))
            if device and draw(st.booleans()):
                length = draw(st.integers(1, 9))
                rows.append({"name": "cudaLaunchKernel", "role": "runtime", "start_ns": now, "dur_ns": length, "lane": "a"})
                free = max(free, now) + draw(st.integers(1, 30))
                length = draw(st.integers(1, 60))
                rows.append({"name": "sgemm", "place": "device", "launch": len(rows) - 1, "start_ns": free, "dur_ns": length, "lane": "s"})
                free += length
                now += 10
            now += draw(st.integers(1, 40))
            outer["dur_ns"] = now - outer["start_ns"]
        now += draw(st.integers(1, 30))
        steps.append({"step": step, "start_ns": begin, "end_ns": now})
    return {"ops": rows, "steps": steps}


def shuffled(rows, order):
    """The op rows in another order, with launch indexes that still point at the same rows."""
    place = {old: new for new, old in enumerate(order)}
    return [{**rows[old], **({"launch": place[rows[old]["launch"]]} if "launch" in rows[old] else {})} for old in order]


def seen(trace, scale=1, shift=0):
    """What a trace says, without row numbers: ops, steps and gaps as sorted rows, times moved back to the original."""
    names = trace.strings("name").to_objects()
    start = (trace.start - shift) // scale

    def who(rows):
        return [(names[row], int(start[row])) if row >= 0 else None for row in rows.tolist()]

    text = {column: trace.strings(column).to_objects() for column in ("kind", "phase", "role", "place")}
    ops = sorted(
        zip(
            names, start.tolist(), (trace.col("dur_ns") // scale).tolist(), (trace.col("self_ns") // scale).tolist(),
            *(map(str, values) for values in text.values()), trace.step_row.tolist(), map(str, who(trace.parent)),
            map(str, who(trace.launch)), map(str, who(trace.owner)), (trace.col("device_ns") // scale).tolist(), strict=True,
        )
    )  # fmt: skip
    gap = trace.gap_table
    gaps = sorted(zip(
        ((gap.start - shift) // scale).tolist(), ((gap.end - shift) // scale).tolist(), gap.owner.tolist(), map(str, who(gap.host)),
        map(str, who(gap.next)), strict=True,
    ))  # fmt: skip
    steps = [((trace.step_table.start - shift) // scale).tolist(), ((trace.step_table.end - shift) // scale).tolist()]
    split = _rank_split(trace, int(trace.step_table.rank[0]))
    parts = [{name: value // scale for name, value in part.items()} for part in (split.host, split.device, split.idle)]
    return {"ops": ops, "gaps": gaps, "steps": steps, "parts": parts, "shares": [row["share"] for row in trace.breakdown()]}


@few
@given(traces(), st.randoms(use_true_random=False))
def test_the_order_of_events_changes_nothing(rows, random):
    order = list(range(len(rows["ops"])))
    random.shuffle(order)
    assert seen(Trace.from_rows({**rows, "ops": shuffled(rows["ops"], order)})) == seen(Trace.from_rows(rows))


@few
@given(traces(), st.integers(1, 10**15))
def test_a_shift_of_time_changes_nothing(rows, shift):
    moved = {
        "ops": [{**row, "start_ns": row["start_ns"] + shift} for row in rows["ops"]],
        "steps": [{**row, "start_ns": row["start_ns"] + shift, "end_ns": row["end_ns"] + shift} for row in rows["steps"]],
    }
    assert seen(Trace.from_rows(moved)) == seen(Trace.from_rows(rows))


@few
@given(traces())
def test_doubling_all_times_doubles_all_costs_and_leaves_the_shares(rows):
    doubled = {
        "ops": [{**row, "start_ns": 2 * row["start_ns"], "dur_ns": 2 * row["dur_ns"]} for row in rows["ops"]],
        "steps": [{**row, "start_ns": 2 * row["start_ns"], "end_ns": 2 * row["end_ns"]} for row in rows["steps"]],
    }
    once, twice = Trace.from_rows(rows), Trace.from_rows(doubled)
    assert seen(twice, scale=2) == seen(once)
    assert (twice.col("self_ns") == 2 * once.col("self_ns")).all()
    assert twice.gap_table.end.sum() - twice.gap_table.start.sum() == 2 * (once.gap_table.end.sum() - once.gap_table.start.sum())


@few
@given(traces(), st.text("xyz 0123456789/", min_size=1, max_size=8))
def test_names_of_processes_threads_and_streams_change_nothing(rows, prefix):
    renamed = {**rows, "ops": [{**row, "lane": f"{prefix}{'zb'[row['lane'] == 'a']}"} for row in rows["ops"]]}
    assert seen(Trace.from_rows(renamed)) == seen(Trace.from_rows(rows))


@few
@given(traces())
def test_parts_of_a_step_add_up_to_it_and_shares_to_one(rows):
    trace = Trace.from_rows(rows)
    split = _rank_split(trace, -1)
    whole = sum(step["end_ns"] - step["start_ns"] for step in rows["steps"])
    assert sum(sum(part.values()) for part in (split.host, split.device, split.idle)) == whole
    assert sum(Fraction(str(row["share"])) for row in trace.breakdown()) == 1


@few
@given(traces(device=True))
def test_busy_and_gaps_partition_the_steps(rows):
    trace = Trace.from_rows(rows)
    if not trace.has_device:
        return
    window = trace.step_intervals()
    gaps = trace.gap_claim(np.arange(len(trace.gap_table.start)))
    busy = intersect(trace.busy(0), window)
    assert total(intersect(gaps, busy)) == 0
    assert total(gaps) + total(busy) == total(window)
    assert int((trace.gap_table.end - trace.gap_table.start).sum()) == total(gaps)
