"""A small RESP client: RESP2 and RESP3, pipelines, nothing else.

For: the scripts, which must run where no Redis client is installed.
Not here: clusters (see local.py), retries (the caller decides what a lost reply means).
"""

import socket


class ReplyError(Exception):
    """An error that the server answered; str() is its text, with the prefix."""


class Disconnected(Exception):
    """The connection ended or timed out before the reply was complete: the outcome is unknown."""


def encode(args):
    """One request as bytes; arguments may be bytes, str, int or float."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        if isinstance(arg, str):
            arg = arg.encode()
        elif not isinstance(arg, (bytes, bytearray)):
            arg = str(arg).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(arg), arg))
    return b"".join(parts)


class Connection:
    """One blocking connection. Every wait ends after `timeout` seconds."""

    def __init__(self, port, host="127.0.0.1", timeout=5.0):
        try:
            self.socket = socket.create_connection((host, port), timeout=timeout)
        except OSError as error:
            raise Disconnected(f"cannot connect to {host}:{port}: {error}") from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb", buffering=1 << 16)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close the socket; safe to call twice."""
        self.reader.close()
        self.socket.close()

    def call(self, *args):
        """Send one command and return its reply; raises ReplyError for an error reply."""
        reply = self.pipeline([args])[0]
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def pipeline(self, commands):
        """Send all commands at once; returns the replies in order, errors as values."""
        self.send(b"".join(encode(command) for command in commands))
        return [self.read() for _ in commands]

    def send(self, data):
        """Send bytes as they are."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Disconnected(str(error)) from error

    def read(self):
        """Read one reply. Error replies are returned, not raised."""
        try:
            return self._read()
        except (OSError, ValueError) as error:
            raise Disconnected(str(error)) from error

    def _line(self):
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise Disconnected("the server closed the connection")
        return line[:1], line[1:-2]

    def _read(self):
        kind, rest = self._line()
        if kind == b"+":
            return rest.decode("utf-8", "replace")
        if kind in b"-!":
            if kind == b"!":
                rest = self._bulk(int(rest))
            return ReplyError(rest.decode("utf-8", "replace"))
        if kind in b":(":
            return int(rest)
        if kind in b"$=":
            return None if rest == b"-1" else self._bulk(int(rest))
        if kind == b"_":
            return None
        if kind == b",":
            return float(rest)
        if kind == b"#":
            return rest == b"t"
        if kind in b"*~>":
            return None if rest == b"-1" else [self._read() for _ in range(int(rest))]
        if kind == b"%":
            return dict((_hashable(self._read()), self._read()) for _ in range(int(rest)))
        raise ReplyError(f"not a RESP reply: {kind + rest!r}")

    def _bulk(self, size):
        data = self.reader.read(size + 2)
        if len(data) != size + 2:
            raise Disconnected("the server closed the connection inside a reply")
        return data[:-2]


def _hashable(key):
    return tuple(key) if isinstance(key, list) else key


def crc16(data):
    """CRC16/XMODEM, the one that Redis Cluster's slots are made with."""
    crc = 0
    for byte in data:
        crc = ((crc << 8) & 0xFFFF) ^ _CRC16[(crc >> 8) ^ byte]
    return crc


def slot_of(key):
    """The slot of a key (bytes), hash tags included."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return crc16(key) % 16384


def _crc16_row(byte):
    crc = byte << 8
    for _ in range(8):
        crc = ((crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


_CRC16 = [_crc16_row(byte) for byte in range(256)]
