"""Settings in which two runs differ."""

from types import SimpleNamespace

from tracediag.comparing.settingsdiff import settings_that_differ


def side(*flags):
    rows = [{"flag": name, "value": value} for name, value in flags]
    return SimpleNamespace(trace=SimpleNamespace(facts={"flags": rows}), report=SimpleNamespace(run={}), frameworks=("torch",))


def test_the_line_that_makes_a_setting_is_none_itself():
    a = side(("torch.num_threads", "2"), ("torch.num_threads.source", '"train.py:7"'))
    b = side(("torch.num_threads", "1"), ("torch.num_threads.source", '"train.py:9"'))
    assert settings_that_differ(a, b) == ({"name": "torch.num_threads", "a": "2", "b": "1"},)
