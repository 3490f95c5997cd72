"""The memory screen says its verdict and everything that it assumed."""

from formulae.memory import MemoryNeed, screen_memory
from planning.memory_words import assumption, verdict


def test_a_run_that_does_not_fit_says_so_and_what_to_do() -> None:
    screen = screen_memory(MemoryNeed(params=70e9, accelerators=8, memory_gb=80))
    assert "of 80.0 GB" in verdict(screen)
    assert "does not fit" in verdict(screen)


def test_every_assumption_has_a_sentence() -> None:
    screen = screen_memory(
        MemoryNeed(params=70e9, accelerators=8, memory_gb=80, accelerators_per_node=8)
    )
    sentences = [assumption(one) for one in screen.assumed]
    assert len(sentences) == len(set(sentences)) == 8
    assert "full recompute of activations" in sentences
    assert "activations divided over 8 accelerators" in sentences
