"""How often a client may ask, by a clock set by hand; and which keys are right."""

import pytest

from nmt.serving import limits
from nmt.serving.limits import Rates, is_allowed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its only number is the time in seconds."""
    now = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    return now


def test_so_many_at_once_and_then_one_every_few_seconds(clock: list[float]) -> None:
    """Three a minute: three at once, then one each 20 seconds."""
    rates = Rates(3)
    assert [rates.seconds_until_allowed("a") for _ in range(4)] == [0.0, 0.0, 0.0, pytest.approx(20.0)]
    clock[0] += 15
    assert rates.seconds_until_allowed("a") == pytest.approx(5.0)
    assert rates.seconds_until_allowed("b") == 0.0
    clock[0] += 5
    assert rates.seconds_until_allowed("a") == 0.0
    assert rates.seconds_until_allowed("a") == pytest.approx(20.0)
    clock[0] += 3600
    assert [rates.seconds_until_allowed("a") for _ in range(4)] == [0.0, 0.0, 0.0, pytest.approx(20.0)]


def test_any_number() -> None:
    rates = Rates(None)
    assert not any(rates.seconds_until_allowed("a") for _ in range(1000))


def test_few_clients_are_remembered(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was quiet for longest is forgotten: b."""
    monkeypatch.setattr(limits, "CLIENTS", 2)
    rates = Rates(2)
    for client in ("a", "b", "a", "c"):
        clock[0] += 1
        assert rates.seconds_until_allowed(client) == 0.0
    assert rates.seconds_until_allowed("a") > 0
    assert [rates.seconds_until_allowed("b") for _ in range(2)] == [0.0, 0.0]


@pytest.mark.parametrize("key", ["one", "zwö"])
def test_right_keys(key: str) -> None:
    assert is_allowed(key, ["one", "zwö", "one more"])


@pytest.mark.parametrize("key", ["", "on", "one ", "two", "\ud800"])
def test_wrong_keys(key: str) -> None:
    assert not is_allowed(key, ["one", "zwö", "one more"])
    assert not is_allowed(key, [])
