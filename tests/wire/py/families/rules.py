"""What two replies to the same command may differ in.

For: functions (left, right) -> bool on parsed replies, which families name in RULES.
Not here: parsing for programs; a reply stays what it was on the wire: (kind, content).
"""


def parse(data):
    """A raw reply as (kind, content): content is bytes, None of a null, or a list of replies (of a map: key, value …)."""
    reply, rest = _parse(data)
    assert not rest, "one reply at a time"
    return reply


def _parse(data):
    line, _, rest = data.partition(b"\r\n")
    kind, text = line[:1], line[1:]
    if kind in b"$=!" and text != b"-1":
        return (kind, rest[: int(text)]), rest[int(text) + 2 :]
    if kind in b"*~>%" and text != b"-1":
        items = []
        for _ in range(int(text) * (2 if kind == b"%" else 1)):
            item, rest = _parse(rest)
            items.append(item)
        return (kind, items), rest
    return (kind, None if text == b"-1" and kind in b"$*" else text), rest


def _both_lists(left, right):
    return left[0] == right[0] and isinstance(left[1], list) and isinstance(right[1], list)


def exact(left, right):
    """The same, byte for byte."""
    return left == right


def unordered(left, right):
    """The same items in any order."""
    return left == right or _both_lists(left, right) and sorted(left[1], key=repr) == sorted(right[1], key=repr)


def unordered_pairs(left, right):
    """The same pairs in any order, whether they stand in a map, in a flat array or in arrays of two."""
    def pairs(items):
        if items and all(isinstance(item[1], list) for item in items):
            return sorted(map(repr, items))
        return sorted(map(repr, zip(items[::2], items[1::2])))
    return left == right or _both_lists(left, right) and pairs(left[1]) == pairs(right[1])


def scanned(left, right):
    """Of a walk: the same items in any order if both are at the end at once, else anything of that kind."""
    if left == right:
        return True
    if not (_both_lists(left, right) and len(left[1]) == len(right[1]) == 2):
        return False
    if left[1][0][1] == right[1][0][1] == b"0":
        return unordered(left[1][1], right[1][1])
    return _both_lists(left[1][1], right[1][1])


def scanned_pairs(left, right):
    """As `scanned`, of pairs."""
    if left == right:
        return True
    if not (_both_lists(left, right) and len(left[1]) == len(right[1]) == 2):
        return False
    if left[1][0][1] == right[1][0][1] == b"0":
        return unordered_pairs(left[1][1], right[1][1])
    return _both_lists(left[1][1], right[1][1])


def kind(left, right):
    """Only the kind of reply, of an error its text too."""
    return left == right or left[0] == right[0] != b"-"


def shape(left, right):
    """By chance: replies of the same kinds and numbers of items, whatever is in them; nulls and errors exactly."""
    if left == right:
        return True
    if _both_lists(left, right):
        return len(left[1]) == len(right[1]) and all(map(shape, left[1], right[1]))
    return left[0] == right[0] and left[0] not in b"-_" and isinstance(left[1], bytes) and isinstance(right[1], bytes)


def near(distance):
    """Replies that depend on the moment: numbers above zero may differ by `distance`, also inside lists."""
    def compare(left, right):
        if left == right:
            return True
        if _both_lists(left, right):
            return len(left[1]) == len(right[1]) and all(map(compare, left[1], right[1]))
        if left[0] == right[0] == b":":
            return min(int(left[1]), int(right[1])) >= 0 and abs(int(left[1]) - int(right[1])) <= distance
        return False
    return compare


def near_float(relative):
    """Floating point numbers, as bulk strings or doubles, that may differ by rounding, also inside lists."""
    def compare(left, right):
        if left == right:
            return True
        if _both_lists(left, right):
            return len(left[1]) == len(right[1]) and all(map(compare, left[1], right[1]))
        if left[0] != right[0] or left[0] not in b"$,":
            return False
        try:
            one, other = float(left[1]), float(right[1])
        except (TypeError, ValueError):
            return False
        return abs(one - other) <= relative * max(abs(one), abs(other))
    return compare
