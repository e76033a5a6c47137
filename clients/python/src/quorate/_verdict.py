"""What a failed call means for what is done next."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import grpc
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

from quorate.errors import Kind, Refused
from quorate.v1 import error_pb2

#: The trailer in which a status carries its details.
_TRAILER = "grpc-status-details-bin"
#: How gRPC says that it had no connection to send a call on.
_UNSENT = "failed to connect to all addresses"


class Next(enum.Enum):
    """What can be done about a failed call."""

    #: It changed nothing, and may be made again, best at another host.
    AGAIN = "again"
    #: It will not go better: nothing was changed.
    REFUSED = "refused"
    #: Nobody can say what became of the write.
    UNKNOWN = "unknown"
    #: No answer came: the connection broke, or the time ran out.
    LOST = "lost"
    #: There was no connection, so nothing was sent.
    UNSENT = "unsent"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a failed call means."""

    next: Next
    why: str
    #: What the host said, if it said something.
    error: Refused | None = None
    #: What can be asked with how it ended, if its outcome is unknown.
    token: bytes = b""

    def is_of_the_write(self) -> bool:
        """Whether this failure of a write that was sent again says what became of the first time:
        one that was turned away at the door says nothing of it."""
        return self.error is not None and self.error.kind is Kind.NO_QUORUM


def judge(failed: grpc.RpcError) -> Verdict:
    """What a failed call means."""
    said = _details(failed)
    if said is None:
        return _of_status(failed.code(), failed.details() or "")
    error = Refused(said.what, said.right, Kind(said.kind), said.field)
    if error.kind in (Kind.NO_QUORUM, Kind.OVERLOADED, Kind.STOPPING):
        return Verdict(Next.AGAIN, str(error), error)
    if error.kind is Kind.OUTCOME_UNKNOWN:
        return Verdict(Next.UNKNOWN, said.what, token=said.outcome_token)
    return Verdict(Next.REFUSED, str(error), error)


def _of_status(code: grpc.StatusCode, text: str) -> Verdict:
    # Said by gRPC itself before anything was begun.
    kinds = {
        grpc.StatusCode.OUT_OF_RANGE: Kind.TOO_LARGE,
        grpc.StatusCode.UNIMPLEMENTED: Kind.UNSUPPORTED,
    }
    if code in kinds:
        error = Refused(text, "send less", kinds[code])
        return Verdict(Next.REFUSED, str(error), error)
    is_unsent = code is grpc.StatusCode.UNAVAILABLE and text.startswith(_UNSENT)
    return Verdict(Next.UNSENT if is_unsent else Next.LOST, f"{code.name}: {text}")


def _details(failed: grpc.RpcError) -> error_pb2.Error | None:
    """The typed error that a status carries, if it carries one."""
    for name, value in failed.trailing_metadata() or ():
        if name == _TRAILER:
            for detail in _Status.FromString(value).details:
                error = error_pb2.Error()
                if detail.Is(error.DESCRIPTOR) and detail.Unpack(error):
                    return error
    return None


def _status_class() -> Any:
    """The message `google.rpc.Status`, of which nothing but the details matters."""
    file = descriptor_pb2.FileDescriptorProto(
        name="quorate/details.proto",
        package="quorate.details",
        syntax="proto3",
        dependency=[any_pb2.DESCRIPTOR.name],
    )
    field = file.message_type.add(name="Status").field.add(name="details", number=3)
    field.label = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    field.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
    field.type_name = ".google.protobuf.Any"
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName("quorate.details.Status")
    return message_factory.GetMessageClass(found)


_Status = _status_class()
