"""The energy counter and the power of a device are compared all the time."""

import pytest

from costwatch_agent.crosscheck import CrossCheck


def run(check, watts_by_counter, watts_read, *, seconds=600, start_s=0, epoch=1):
    for at_s in range(start_s, start_s + seconds, 10):
        check.add(
            "GPU-1",
            at_s=float(at_s),
            counter_millijoule=int(at_s * watts_by_counter * 1000),
            power_w=watts_read,
            epoch=epoch,
        )


@pytest.mark.parametrize(
    ("counted_w", "read_w", "divergence", "flagged"),
    [
        (500.0, 500.0, 0.0, False),
        (500.0, 524.0, 24 / 524, False),
        (500.0, 530.0, 30 / 530, True),
        (500.0, 470.0, -30 / 500, True),
        (37.4, 65.4, 28 / 65.4, True),  # an idle device, as was seen: 187 J and 327 J in 5 s
        (0.0, 60.0, 1.0, True),  # a counter that stands still
        (0.0, 0.0, 0.0, False),
    ],
)
def test_a_divergence_above_five_percent_is_flagged(counted_w, read_w, divergence, flagged):
    check = CrossCheck()
    run(check, counted_w, read_w)
    assert check.divergence("GPU-1") == pytest.approx(divergence)
    assert check.flagged("GPU-1") is flagged


def test_it_is_said_once_and_again_when_they_agree(caplog):
    check = CrossCheck()
    run(check, 500.0, 600.0)
    assert len([line for line in caplog.messages if "diverge" in line]) == 1
    run(check, 500.0, 500.0, start_s=600)
    assert not check.flagged("GPU-1")
    assert "they agree again" in caplog.messages[-1]


def test_too_little_is_no_comparison_and_an_epoch_begins_anew():
    check = CrossCheck()
    run(check, 500.0, 600.0, seconds=50)
    assert check.divergence("GPU-1") is None
    run(check, 500.0, 600.0, start_s=50, seconds=100)
    assert check.divergence("GPU-1") == pytest.approx(1 / 6)
    run(check, 500.0, 600.0, start_s=150, seconds=20, epoch=2)
    assert check.divergence("GPU-1") is None


def test_a_long_pause_is_not_integrated():
    check = CrossCheck()
    run(check, 500.0, 500.0, seconds=100)
    run(check, 500.0, 500.0, start_s=5000, seconds=100)
    assert check.divergence("GPU-1") == pytest.approx(0.0)
