"""Remote-write 1.0 bodies as bytes: the bound on unpacking, and the messages; no meaning.

The messages are described here in code, so that no compiler of theirs is needed. `Series` stays
bytes at first: what its labels mean is known from the last time (remote_write_series).
"""

from collections.abc import Sequence
from typing import Any, Final

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

MAX_UNPACKED_BYTES: Final = 32 << 20
MAX_RATIO: Final = 22  # snappy's own maximum is 21.3
_LENGTH_BYTES: Final = 5
_FRAMED: Final = (
    b"\xff\x06\x00\x00sNaPpY"  # no block starts so: it would copy from before its start
)
_PACKAGE: Final = "costwatch.remote_write"
_FIELD: Final = descriptor_pb2.FieldDescriptorProto


class RemoteWriteError(ValueError):
    """A body that is no remote-write 1.0 message; nothing of it may be stored."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


def _messages() -> dict[str, Any]:
    """The classes of WriteRequest and TimeSeries, by name."""
    one, many = _FIELD.LABEL_OPTIONAL, _FIELD.LABEL_REPEATED
    raw, text = _FIELD.TYPE_BYTES, _FIELD.TYPE_STRING
    shapes: dict[str, tuple[tuple[str, int, Any, Any, str], ...]] = {
        "Label": (("name", 1, one, text, ""), ("value", 2, one, text, "")),
        "Sample": (
            ("value", 1, one, _FIELD.TYPE_DOUBLE, ""),
            ("timestamp", 2, one, _FIELD.TYPE_INT64, ""),
        ),
        "TimeSeries": (
            ("labels", 1, many, _FIELD.TYPE_MESSAGE, "Label"),
            ("samples", 2, many, _FIELD.TYPE_MESSAGE, "Sample"),
            ("exemplars", 3, many, raw, ""),
            ("histograms", 4, many, raw, ""),
        ),
        # 4 and 5 are remote-write 2.0's: a body of it would look empty and be taken for good.
        "WriteRequest": (
            ("timeseries", 1, many, raw, ""),
            ("metadata", 3, many, raw, ""),
            ("symbols_of_2", 4, many, raw, ""),
            ("timeseries_of_2", 5, many, raw, ""),
        ),
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="costwatch/remote_write.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in shapes.items():
        message = file.message_type.add(name=name)
        for field, number, label, kind, of in fields:
            message.field.add(
                name=field,
                number=number,
                label=label,
                type=kind,
                type_name=f".{_PACKAGE}.{of}" if of else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in shapes
    }


_MESSAGES: Final = _messages()


def unpacked(body: bytes) -> memoryview:
    """The message that a snappy block holds.

    Raises:
        RemoteWriteError: framed, cut short, or it says to unpack to more than the bounds.
    """
    if body.startswith(_FRAMED):
        raise RemoteWriteError("snappy_framed", "send snappy's block format, not the framed one")
    declared = _declared_length(body)
    if declared > min(MAX_UNPACKED_BYTES, MAX_RATIO * len(body)):
        raise RemoteWriteError(
            "snappy_bound",
            f"{len(body)} bytes say that they unpack to {declared}; "
            f"at most {MAX_UNPACKED_BYTES} and {MAX_RATIO} times the body are taken",
        )
    try:
        return memoryview(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError:
        raise RemoteWriteError(
            "snappy_broken", "the body is no whole snappy block: it is cut short or damaged"
        ) from None


def _declared_length(body: bytes) -> int:
    """What the body says to unpack to."""
    length = 0
    for position, byte in enumerate(body[:_LENGTH_BYTES]):
        length |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return length
    raise RemoteWriteError("snappy_broken", "the body is no snappy block: its length has no end")


def raw_series(message: bytes | memoryview) -> Sequence[bytes]:
    """The series of a write request, each as bytes; none where it brings metadata only.

    Raises:
        RemoteWriteError: no write request, or one of version 2.0.
    """
    try:
        request = _MESSAGES["WriteRequest"].FromString(message)
    except DecodeError:
        raise RemoteWriteError("protobuf", "the body is no prometheus.WriteRequest") from None
    if request.symbols_of_2 or request.timeseries_of_2:
        raise RemoteWriteError(
            "version_2",
            "this is a remote-write 2.0 message; "
            "set protobuf_message: prometheus.WriteRequest to send 1.0",
        )
    if message and not request.timeseries and not request.metadata:
        raise RemoteWriteError("protobuf", "the body is no prometheus.WriteRequest")
    return list(request.timeseries)


def read_series(raw: bytes) -> Any:
    """One series as a message.

    Raises:
        RemoteWriteError: these bytes are no series.
    """
    try:
        return _MESSAGES["TimeSeries"].FromString(raw)
    except DecodeError:
        raise RemoteWriteError("protobuf", "a series of the message cannot be read") from None


def labels_end(raw: bytes) -> int:
    """Where the labels at the start of a series end; senders write them first."""
    position, whole = 0, len(raw)
    while position + 1 < whole and raw[position] == 0x0A:
        size = raw[position + 1]
        position += 2
        if size >= 0x80:
            if position >= whole or raw[position] >= 0x80:
                return 0  # a label of 16 KiB and more, refused when it is read
            size = (size & 0x7F) | raw[position] << 7
            position += 1
        position += size
    return position if position <= whole else 0
