"""The order of tests for two workers that take a half each, from its beginning (`--dist worksteal`)."""


def longest_first(items, folder, long):
    """Deal the tests of a folder to two halves, in place, so that long ones begin both.

    `long` holds parts of ids, the longest test first; tests of one part, and all others, keep their
    order. So what is left to share, when one worker has nothing to do any more, is short.
    """
    ours = [item for item in items if item.path.parent == folder]
    order = sorted(ours, key=lambda item: _rank(item.nodeid, long))
    dealt = iter(order[1::2] + order[0::2])  # of an odd number, the first half is the smaller one
    items[:] = [next(dealt) if item in ours else item for item in items]


def _rank(name, long):
    return next((rank for rank, part in enumerate(long) if part in name), len(long))
