"""Stretches of time as whole microseconds: their union, common part and difference; no energy."""

from collections.abc import Iterable, Sequence

Span = tuple[int, int]  # start, end, microseconds


def merged_spans(spans: Iterable[Span], *, slack: int = 0) -> list[Span]:
    """Stretches of time as few that neither overlap nor touch.

    join [a, b) and [c, d) where c <= b + slack

    Args:
        spans: (start, end), us, in any order; start = end marks an instant.
        slack: how far apart two may lie that are joined, us, >= 0.

    Returns:
        Ascending stretches, us.

    Source: interval union, Cormen et al., Introduction to Algorithms, sorted sweep.

    >>> merged_spans([(5, 9), (0, 3), (3, 4)]), merged_spans([(0, 3), (5, 9)], slack=2)
    ([(0, 4), (5, 9)], [(0, 9)])
    """
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1] + slack:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def common_spans(one: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """What lies in both of two sets of stretches.

    [max(a, c), min(b, d)) where not empty

    Args:
        one: ascending stretches without overlap, us.
        other: the same.

    Returns:
        Ascending stretches, us.

    Source: interval intersection, as merged_spans.

    >>> common_spans([(0, 4), (6, 9)], [(2, 7)])
    [(2, 4), (6, 7)]
    """
    found = []
    mine = theirs = 0
    while mine < len(one) and theirs < len(other):
        start, end = max(one[mine][0], other[theirs][0]), min(one[mine][1], other[theirs][1])
        if start < end:
            found.append((start, end))
        if one[mine][1] < other[theirs][1]:
            mine += 1
        else:
            theirs += 1
    return found


def uncovered_spans(whole: Span, covered: Sequence[Span]) -> list[Span]:
    """What of a stretch no other covers.

    [start, end) without the covered stretches

    Args:
        whole: (start, end), us.
        covered: ascending stretches without overlap, us.

    Returns:
        Ascending stretches, us.

    Source: interval difference, as merged_spans.

    >>> uncovered_spans((0, 10), [(2, 3), (8, 12)])
    [(0, 2), (3, 8)]
    """
    cuts = [whole[0]]
    for start, end in covered:
        if end > whole[0] and start < whole[1]:
            cuts += [max(start, whole[0]), min(end, whole[1])]
    cuts.append(whole[1])
    return [(low, high) for low, high in zip(cuts[::2], cuts[1::2], strict=True) if low < high]
