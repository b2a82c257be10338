import pytest

from tracediag.engine import run
from tracediag.occurs import Words, pattern_problem
from tracediag.rules import load_rules
from tracediag.trace import Trace

OPS = [
    {"name": "aten::conv2d", "kind": "conv", "start_ns": 0, "dur_ns": 10, "role": "op", "place": "host"},
    {"name": "Iterator::Root::Map", "start_ns": 10, "dur_ns": 10, "role": "framework", "place": "host"},
]


@pytest.fixture(scope="module")
def words() -> Words:
    return Words(Trace.from_rows({"framework": "torch", "ops": OPS}))


@pytest.mark.parametrize(
    ("entries", "met"),
    [
        ((), True),
        (("aten::conv2d",), True),
        (("aten::conv",), False),
        (("aten::conv*",), True),
        (("*conv2d*",), True),
        (("Iterator::*::Map",), True),
        (("Iterator::*::Batch",), False),
        (("kind=conv",), True),
        (("kind=matmul",), False),
        (("kind=matmul|aten::conv2d",), True),
        (("aten::conv2d", "kind=matmul"), False),
        (("owner=alloc",), False),
        (("label=*",), False),
    ],
)
def test_every_entry_must_occur_and_of_alternatives_one(words: Words, entries: tuple[str, ...], met: bool) -> None:
    assert words.meet(entries) is met


def test_special_characters_of_patterns_are_plain() -> None:
    row = {"name": "a.b(c)[d]", "start_ns": 0, "dur_ns": 1, "role": "op", "place": "host"}
    words = Words(Trace.from_rows({"framework": "torch", "ops": [row]}))
    assert words.meet(["a.b(c)*"])
    assert not words.meet(["aXb(c)*"])


@pytest.mark.parametrize(
    ("entry", "wrong"), [("aten::mm", False), ("kind=conv|owner=op", False), ("step=3", True), ("nothing=x", True), ("*", True)]
)
def test_an_entry_names_a_text_column_and_a_word(entry: str, wrong: bool) -> None:
    assert (pattern_problem(entry) is not None) is wrong


def test_a_rule_that_is_about_something_else_is_silent_and_not_skipped() -> None:
    rules = [rule for rule in load_rules() if rule.id == "cast-churn"]
    row = {"name": "aten::mm", "in_dtypes": '["float32"]', "start_ns": 0, "dur_ns": 1, "role": "op", "place": "host"}
    result = run(Trace.from_rows({"framework": "torch", "ops": [row]}), rules)
    assert (result.findings, result.skipped) == ((), ())
