"""What was compared, and in what replies may differ, as a table (`differential.py --long`)."""

import inspect
import sys
from collections import Counter


class Counts:
    """Commands of all runs, by family and protocol."""

    def __init__(self):
        self.commands = Counter()

    def add(self, family, version, count):
        """So many commands more."""
        self.commands[family, version] += count

    @property
    def total(self):
        """All of them."""
        return sum(self.commands.values())

    def table(self, families):
        """A row for each family: how often it was asked in RESP2 and in RESP3."""
        lines = [f"{'family':<14} {'RESP2':>9} {'RESP3':>9}"]
        for name in sorted({name for name, _ in self.commands} | set(families)):
            lines.append(f"{name:<14} {self.commands[name, 2]:>9} {self.commands[name, 3]:>9}")
        return "\n".join(lines)


def allowed(families):
    """What the families leave out, and which replies are not compared byte for byte: lines with reasons."""
    lines = []
    for name, family in sorted(families.items()):
        paper = inspect.getdoc(sys.modules[family.__module__]) or ""
        lines += [f"{name}: {paragraph}" for paragraph in map(joined, paper.split("\n\n")[1:])]
        for command, rule in family.RULES.items():
            lines.append(f"{name}: {command}: {joined(inspect.getdoc(rule) or 'numbers: see the family')}")
    return "\n".join(lines)


def joined(text):
    """A paragraph in one line."""
    return " ".join(text.split())
