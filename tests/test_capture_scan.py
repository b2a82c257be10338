"""Where scripts read the clock."""

import textwrap

import pytest

from tracediag.capture.scan import scan, scan_source


def rows(source):
    return scan_source(textwrap.dedent(source), "train.py")


LOOP = """
import time
for step in range(100):
    {first}
    opt.zero_grad(); loss = f(); loss.backward(); opt.step()
    {last}
"""


def one(first, last, after=""):
    found = rows(LOOP.format(first=first, last=last) + after)
    assert len(found) == 1
    return found[0]


def test_start_before_the_loop_includes_the_first_step():
    found = rows("from time import perf_counter as now\nt0 = now()\nfor b in loader:\n    loss.backward(); opt.step()\nprint(now() - t0)\n")
    assert [(row["source"], row["includes_first_step"], row["synchronised"]) for row in found] == [("train.py:2", True, False)]


def test_start_after_a_warm_up_loop():
    found = rows("""
    import time
    for _ in range(3): train_step()
    t0 = time.time()
    for _ in range(100): train_step()
    print(time.time() - t0)
    """)
    assert [row["includes_first_step"] for row in found] == [False]


@pytest.mark.parametrize(
    ("first", "last", "after", "included"),
    [
        ("t = time.time()", "times.append(time.time() - t)", "print(sum(times))", True),
        ("t = time.time()", "times.append(time.time() - t)", "print(sum(times[5:]))", False),
        ("t = time.time()", "times.append(time.time() - t)", "times = times[10:]\nprint(sum(times) / len(times))", False),
        ("t = time.time()", "times.append(time.time() - t)", "del times[:10]\nprint(sum(times) / len(times))", False),
        ("t = time.time()", "times.append(time.time() - t)", "last = times[-1:]\nprint(sum(times) / len(times))", True),
        ("t = time.time()", "times.append(time.time() - t)", "print(statistics.median(times))", None),
        ("t = time.time()", "if step > 3: times.append(time.time() - t)", "", False),
        ("t = time.time()", "dt = time.time() - t\n    if step >= WARM: times.append(dt)", "", False),
        ("t = time.time()", "end = time.time(); dt = end - t\n    print(dt)", "", True),
        ("if step == 5: t = time.time()", "pass", "print(time.time() - t)", False),
        ("t = time.time()", "dt = time.time() - t\n    if step % 10 == 0: print(dt)", "", True),
    ],
)
def test_first_step(first, last, after, included):
    assert one(first, last, after)["includes_first_step"] is included


@pytest.mark.parametrize(
    ("last", "synchronised"),
    [
        ("torch.cuda.synchronize(); dt = time.time() - t", True),
        ("total += loss.item(); dt = time.time() - t", True),
        ("total += float(loss); dt = time.time() - t", True),
        ("dt = time.time() - t; total += loss.item()", False),
        ("dt = time.time() - t", False),
    ],
)
def test_synchronisation(last, synchronised):
    assert one("t = time.time()", last)["synchronised"] is synchronised


def test_unknown_when_the_step_is_a_function_of_the_script():
    source = """
    import time
    def train(): opt.step()
    t = time.time()
    train()
    print(time.time() - t)
    """
    assert [row["synchronised"] for row in rows(source)] == [None]


def test_clock_in_a_traced_function():
    source = """
    import time, tensorflow as tf
    @tf.function(jit_compile=True)
    def train(x):
        t = time.time(); g(x); return time.time() - t
    def other(x): return time.perf_counter()
    fast = torch.compile(other)
    """
    found = rows(source)
    assert {(row["function"], row["in_traced_function"]) for row in found} == {("train", True), ("other", True)}


def test_clocks_that_measure_no_training():
    assert rows("import time\nt = time.time()\nload()\nprint(time.time() - t)\nseed = time.time()\nx.time()\n") == []


def test_a_script_that_does_not_parse(tmp_path):
    (tmp_path / "bad.py").write_text("def (:\n")
    assert scan(tmp_path / "bad.py") == scan(tmp_path / "none.py") == []
