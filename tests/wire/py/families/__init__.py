"""The families of commands that `differential.py` compares, one a file.

For: what a family is (`Family`) and finding all of them.
Not here: running and comparing (`differential.py`), what replies may differ in (`rules`), values and keys (`words`).
Next: a new family is a file here with one subclass of `Family`; it is found by itself.
"""

import importlib
import pkgutil


# What is added at their end is a key, and keys must stay in one slot.
ENDS_WITH_KEYS = set(b"SINTER SUNION SDIFF SINTERSTORE SUNIONSTORE SDIFFSTORE PFCOUNT PFMERGE BITOP".split())


class Family:
    """Commands of one kind, made from a seed.

    A subclass says:
      NAME     as in --families (the file's name)
      WEIGHT   how often it is asked, beside other families
      PREFIX   what its keys are made of: `self.key()` is `{d}PREFIX0` to 5, now and then a key of another family
      SHARES   [(share, method name)]: each method returns a command (a list of bytes), or a list of commands that
               follow each other (say, one that picks by chance, and the DEL that makes both servers equal again)
      RULES    command -> how its replies are compared (see `rules`) if not byte for byte; "OBJECT FREQ" for subcommands
      READS    type -> [commands without their key] by which a value of this type is read in full; RULES hold for them.
               A command is a list of words; b"KEY" stands for the key.
      EXCHANGED  types whose DUMP each server restores of the other
      FLEETING types whose restored values are read and deleted, since they are laid out anew in memory, and that shows
    """

    NAME = ""
    WEIGHT = 10
    PREFIX = b""
    SHARES = ()
    RULES = {}
    READS = {}
    EXCHANGED = ()
    FLEETING = ()

    def __init__(self, words):
        self.words = words
        self.random = words.random
        self.any = words.any
        self.maybe = words.maybe
        self.methods = [getattr(self, name) for _, name in self.SHARES]
        self.shares = [share for share, _ in self.SHARES]

    @classmethod
    def keys(cls):
        """All keys of its own; they are in one slot."""
        return [b"{d}%b%d" % (cls.PREFIX, number) for number in range(6)]

    def key(self):
        """One of its keys, seldom one of another family."""
        return self.any(*self.keys()) if self.random.random() < 0.93 else self.words.near()

    def make(self):
        """The next commands; now and then one with an argument too few or too many."""
        made = self.random.choices(self.methods, self.shares)[0]()
        commands = made if isinstance(made[0], list) else [made]
        if self.random.random() < 0.03:
            words = commands[0]
            if len(words) > 1 and self.random.random() < 0.5:
                words.pop()
            else:
                more = self.any(b"extra", b"", b"NX", b"GET", b"1")
                words.append(b"{d}" + more if words[0].upper() in ENDS_WITH_KEYS else more)
        if self.random.random() < 0.02:
            commands[0][0] = commands[0][0].lower()
        return [command for command in commands if self.is_allowed(command)]

    def is_allowed(self, command):
        """Whether a command may be sent, after an argument was taken away or added."""
        return True


def all_families():
    """The classes of all families, by name."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for value in vars(loaded).values():
            if isinstance(value, type) and issubclass(value, Family) and value is not Family and value.NAME:
                found[value.NAME] = value
    return found
