from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Reading(_message.Message):
    __slots__ = ("absent", "value", "siblings", "receipt")
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SIBLINGS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    absent: Absent
    value: bytes
    siblings: Siblings
    receipt: Receipt
    def __init__(self, absent: _Optional[_Union[Absent, _Mapping]] = ..., value: _Optional[bytes] = ..., siblings: _Optional[_Union[Siblings, _Mapping]] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("token", "acks", "is_degraded")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    IS_DEGRADED_FIELD_NUMBER: _ClassVar[int]
    token: bytes
    acks: int
    is_degraded: bool
    def __init__(self, token: _Optional[bytes] = ..., acks: _Optional[int] = ..., is_degraded: _Optional[bool] = ...) -> None: ...

class Place(_message.Message):
    __slots__ = ("after", "version")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    after: bytes
    version: int
    def __init__(self, after: _Optional[bytes] = ..., version: _Optional[int] = ...) -> None: ...

class Absent(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Siblings(_message.Message):
    __slots__ = ("values", "context")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[bytes]
    context: bytes
    def __init__(self, values: _Optional[_Iterable[bytes]] = ..., context: _Optional[bytes] = ...) -> None: ...

class Coordinator(_message.Message):
    __slots__ = ("node", "start")
    NODE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    node: int
    start: int
    def __init__(self, node: _Optional[int] = ..., start: _Optional[int] = ...) -> None: ...

class WriteOptions(_message.Message):
    __slots__ = ("request_id", "repeat", "timeout_ms")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    repeat: Repeat
    timeout_ms: int
    def __init__(self, request_id: _Optional[bytes] = ..., repeat: _Optional[_Union[Repeat, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class Repeat(_message.Message):
    __slots__ = ("coordinator", "age_ms")
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    coordinator: Coordinator
    age_ms: int
    def __init__(self, coordinator: _Optional[_Union[Coordinator, _Mapping]] = ..., age_ms: _Optional[int] = ...) -> None: ...
