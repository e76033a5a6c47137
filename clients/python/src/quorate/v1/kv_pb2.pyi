from quorate.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Copied(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COPIED_UNSPECIFIED: _ClassVar[Copied]
    COPIED_DONE: _ClassVar[Copied]
    COPIED_NO_SOURCE: _ClassVar[Copied]
    COPIED_OCCUPIED: _ClassVar[Copied]

class ExpireWhen(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPIRE_WHEN_ALWAYS: _ClassVar[ExpireWhen]
    EXPIRE_WHEN_IF_NONE: _ClassVar[ExpireWhen]
    EXPIRE_WHEN_IF_SOME: _ClassVar[ExpireWhen]
    EXPIRE_WHEN_IF_LATER: _ClassVar[ExpireWhen]
    EXPIRE_WHEN_IF_SOONER: _ClassVar[ExpireWhen]
    EXPIRE_WHEN_IF_SOME_AND_SOONER: _ClassVar[ExpireWhen]

class Unchanged(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNCHANGED_UNSPECIFIED: _ClassVar[Unchanged]
    UNCHANGED_CONDITION: _ClassVar[Unchanged]
    UNCHANGED_NOT_AN_INTEGER: _ClassVar[Unchanged]
    UNCHANGED_NOT_A_FLOAT: _ClassVar[Unchanged]
    UNCHANGED_OVERFLOW: _ClassVar[Unchanged]
    UNCHANGED_NOT_FINITE: _ClassVar[Unchanged]
    UNCHANGED_TOO_LONG: _ClassVar[Unchanged]

class Ended(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENDED_UNSPECIFIED: _ClassVar[Ended]
    ENDED_COMMITTED: _ClassVar[Ended]
    ENDED_PARTIAL: _ClassVar[Ended]
    ENDED_ABORTED: _ClassVar[Ended]

class ScanOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCAN_ORDER_UNSPECIFIED: _ClassVar[ScanOrder]
    SCAN_ORDER_HASH: _ClassVar[ScanOrder]
    SCAN_ORDER_KEY: _ClassVar[ScanOrder]
COPIED_UNSPECIFIED: Copied
COPIED_DONE: Copied
COPIED_NO_SOURCE: Copied
COPIED_OCCUPIED: Copied
EXPIRE_WHEN_ALWAYS: ExpireWhen
EXPIRE_WHEN_IF_NONE: ExpireWhen
EXPIRE_WHEN_IF_SOME: ExpireWhen
EXPIRE_WHEN_IF_LATER: ExpireWhen
EXPIRE_WHEN_IF_SOONER: ExpireWhen
EXPIRE_WHEN_IF_SOME_AND_SOONER: ExpireWhen
UNCHANGED_UNSPECIFIED: Unchanged
UNCHANGED_CONDITION: Unchanged
UNCHANGED_NOT_AN_INTEGER: Unchanged
UNCHANGED_NOT_A_FLOAT: Unchanged
UNCHANGED_OVERFLOW: Unchanged
UNCHANGED_NOT_FINITE: Unchanged
UNCHANGED_TOO_LONG: Unchanged
ENDED_UNSPECIFIED: Ended
ENDED_COMMITTED: Ended
ENDED_PARTIAL: Ended
ENDED_ABORTED: Ended
SCAN_ORDER_UNSPECIFIED: ScanOrder
SCAN_ORDER_HASH: ScanOrder
SCAN_ORDER_KEY: ScanOrder

class GetRequest(_message.Message):
    __slots__ = ("keyspace", "key", "timeout_ms", "replicas", "place")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    key: bytes
    timeout_ms: int
    replicas: int
    place: _common_pb2.Place
    def __init__(self, keyspace: _Optional[str] = ..., key: _Optional[bytes] = ..., timeout_ms: _Optional[int] = ..., replicas: _Optional[int] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("reading", "coordinator")
    READING_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    reading: _common_pb2.Reading
    coordinator: _common_pb2.Coordinator
    def __init__(self, reading: _Optional[_Union[_common_pb2.Reading, _Mapping]] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class PutRequest(_message.Message):
    __slots__ = ("keyspace", "key", "value", "context", "options", "expiry", "place")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    key: bytes
    value: bytes
    context: bytes
    options: _common_pb2.WriteOptions
    expiry: Expiry
    place: _common_pb2.Place
    def __init__(self, keyspace: _Optional[str] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., context: _Optional[bytes] = ..., options: _Optional[_Union[_common_pb2.WriteOptions, _Mapping]] = ..., expiry: _Optional[_Union[Expiry, _Mapping]] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class Expiry(_message.Message):
    __slots__ = ("keep", "after_ms", "at_ms")
    KEEP_FIELD_NUMBER: _ClassVar[int]
    AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    keep: Keep
    after_ms: int
    at_ms: int
    def __init__(self, keep: _Optional[_Union[Keep, _Mapping]] = ..., after_ms: _Optional[int] = ..., at_ms: _Optional[int] = ...) -> None: ...

class Keep(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PutResponse(_message.Message):
    __slots__ = ("coordinator", "is_repeated", "context", "receipt")
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    IS_REPEATED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    coordinator: _common_pb2.Coordinator
    is_repeated: bool
    context: bytes
    receipt: _common_pb2.Receipt
    def __init__(self, coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., is_repeated: _Optional[bool] = ..., context: _Optional[bytes] = ..., receipt: _Optional[_Union[_common_pb2.Receipt, _Mapping]] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("keyspace", "key", "context", "options", "place")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    key: bytes
    context: bytes
    options: _common_pb2.WriteOptions
    place: _common_pb2.Place
    def __init__(self, keyspace: _Optional[str] = ..., key: _Optional[bytes] = ..., context: _Optional[bytes] = ..., options: _Optional[_Union[_common_pb2.WriteOptions, _Mapping]] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ("coordinator", "is_repeated", "existed", "context", "receipt")
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    IS_REPEATED_FIELD_NUMBER: _ClassVar[int]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    coordinator: _common_pb2.Coordinator
    is_repeated: bool
    existed: bool
    context: bytes
    receipt: _common_pb2.Receipt
    def __init__(self, coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., is_repeated: _Optional[bool] = ..., existed: _Optional[bool] = ..., context: _Optional[bytes] = ..., receipt: _Optional[_Union[_common_pb2.Receipt, _Mapping]] = ...) -> None: ...

class BatchGetRequest(_message.Message):
    __slots__ = ("keyspace", "keys", "timeout_ms", "replicas", "place")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    timeout_ms: int
    replicas: int
    place: _common_pb2.Place
    def __init__(self, keyspace: _Optional[str] = ..., keys: _Optional[_Iterable[bytes]] = ..., timeout_ms: _Optional[int] = ..., replicas: _Optional[int] = ..., place: _Optional[_Union[_common_pb2.Place, _Mapping]] = ...) -> None: ...

class BatchGetResponse(_message.Message):
    __slots__ = ("readings", "coordinator")
    READINGS_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    readings: _containers.RepeatedCompositeFieldContainer[_common_pb2.Reading]
    coordinator: _common_pb2.Coordinator
    def __init__(self, readings: _Optional[_Iterable[_Union[_common_pb2.Reading, _Mapping]]] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class TransactRequest(_message.Message):
    __slots__ = ("keyspace", "items", "options")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    items: _containers.RepeatedCompositeFieldContainer[Item]
    options: _common_pb2.WriteOptions
    def __init__(self, keyspace: _Optional[str] = ..., items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., options: _Optional[_Union[_common_pb2.WriteOptions, _Mapping]] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("key", "check", "get", "put", "delete", "change", "expire", "persist", "lifetime", "copy", "expiry")
    KEY_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    GET_FIELD_NUMBER: _ClassVar[int]
    PUT_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_FIELD_NUMBER: _ClassVar[int]
    PERSIST_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    check: Condition
    get: Read
    put: bytes
    delete: Removal
    change: Change
    expire: Expire
    persist: Removal
    lifetime: Read
    copy: CopyTo
    expiry: Expiry
    def __init__(self, key: _Optional[bytes] = ..., check: _Optional[_Union[Condition, _Mapping]] = ..., get: _Optional[_Union[Read, _Mapping]] = ..., put: _Optional[bytes] = ..., delete: _Optional[_Union[Removal, _Mapping]] = ..., change: _Optional[_Union[Change, _Mapping]] = ..., expire: _Optional[_Union[Expire, _Mapping]] = ..., persist: _Optional[_Union[Removal, _Mapping]] = ..., lifetime: _Optional[_Union[Read, _Mapping]] = ..., copy: _Optional[_Union[CopyTo, _Mapping]] = ..., expiry: _Optional[_Union[Expiry, _Mapping]] = ...) -> None: ...

class CopyTo(_message.Message):
    __slots__ = ("to", "replaces", "removes")
    TO_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    REMOVES_FIELD_NUMBER: _ClassVar[int]
    to: bytes
    replaces: bool
    removes: bool
    def __init__(self, to: _Optional[bytes] = ..., replaces: _Optional[bool] = ..., removes: _Optional[bool] = ...) -> None: ...

class Expire(_message.Message):
    __slots__ = ("after_ms", "at_ms", "when")
    AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    after_ms: int
    at_ms: int
    when: ExpireWhen
    def __init__(self, after_ms: _Optional[int] = ..., at_ms: _Optional[int] = ..., when: _Optional[_Union[ExpireWhen, str]] = ...) -> None: ...

class Lifetime(_message.Message):
    __slots__ = ("absent", "endless", "remaining_ms")
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    ENDLESS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_MS_FIELD_NUMBER: _ClassVar[int]
    absent: _common_pb2.Absent
    endless: Endless
    remaining_ms: int
    def __init__(self, absent: _Optional[_Union[_common_pb2.Absent, _Mapping]] = ..., endless: _Optional[_Union[Endless, _Mapping]] = ..., remaining_ms: _Optional[int] = ...) -> None: ...

class Endless(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Condition(_message.Message):
    __slots__ = ("exists", "value")
    EXISTS_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    exists: bool
    value: bytes
    def __init__(self, exists: _Optional[bool] = ..., value: _Optional[bytes] = ...) -> None: ...

class Read(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Removal(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Change(_message.Message):
    __slots__ = ("put_if", "add", "add_float", "append", "set_range")
    PUT_IF_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    ADD_FLOAT_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    SET_RANGE_FIELD_NUMBER: _ClassVar[int]
    put_if: PutIf
    add: int
    add_float: bytes
    append: bytes
    set_range: SetRange
    def __init__(self, put_if: _Optional[_Union[PutIf, _Mapping]] = ..., add: _Optional[int] = ..., add_float: _Optional[bytes] = ..., append: _Optional[bytes] = ..., set_range: _Optional[_Union[SetRange, _Mapping]] = ...) -> None: ...

class PutIf(_message.Message):
    __slots__ = ("exists", "value")
    EXISTS_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    exists: bool
    value: bytes
    def __init__(self, exists: _Optional[bool] = ..., value: _Optional[bytes] = ...) -> None: ...

class SetRange(_message.Message):
    __slots__ = ("offset", "bytes")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    offset: int
    bytes: bytes
    def __init__(self, offset: _Optional[int] = ..., bytes: _Optional[bytes] = ...) -> None: ...

class Changed(_message.Message):
    __slots__ = ("put", "integer", "number", "length", "unchanged")
    PUT_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    put: bool
    integer: int
    number: bytes
    length: int
    unchanged: Unchanged
    def __init__(self, put: _Optional[bool] = ..., integer: _Optional[int] = ..., number: _Optional[bytes] = ..., length: _Optional[int] = ..., unchanged: _Optional[_Union[Unchanged, str]] = ...) -> None: ...

class TransactResponse(_message.Message):
    __slots__ = ("answers", "coordinator", "is_repeated")
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    IS_REPEATED_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[ItemAnswer]
    coordinator: _common_pb2.Coordinator
    is_repeated: bool
    def __init__(self, answers: _Optional[_Iterable[_Union[ItemAnswer, _Mapping]]] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., is_repeated: _Optional[bool] = ...) -> None: ...

class HowEndedRequest(_message.Message):
    __slots__ = ("keyspace", "token", "timeout_ms")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    token: bytes
    timeout_ms: int
    def __init__(self, keyspace: _Optional[str] = ..., token: _Optional[bytes] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class HowEndedResponse(_message.Message):
    __slots__ = ("ended", "coordinator")
    ENDED_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    ended: Ended
    coordinator: _common_pb2.Coordinator
    def __init__(self, ended: _Optional[_Union[Ended, str]] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class ItemAnswer(_message.Message):
    __slots__ = ("reading", "existed", "changed", "lifetime", "expiry_changed", "copied")
    READING_FIELD_NUMBER: _ClassVar[int]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_CHANGED_FIELD_NUMBER: _ClassVar[int]
    COPIED_FIELD_NUMBER: _ClassVar[int]
    reading: _common_pb2.Reading
    existed: bool
    changed: Changed
    lifetime: Lifetime
    expiry_changed: bool
    copied: Copied
    def __init__(self, reading: _Optional[_Union[_common_pb2.Reading, _Mapping]] = ..., existed: _Optional[bool] = ..., changed: _Optional[_Union[Changed, _Mapping]] = ..., lifetime: _Optional[_Union[Lifetime, _Mapping]] = ..., expiry_changed: _Optional[bool] = ..., copied: _Optional[_Union[Copied, str]] = ...) -> None: ...

class ScanRequest(_message.Message):
    __slots__ = ("keyspace", "cursor", "to", "limit", "page_keys", "with_values", "timeout_ms")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAGE_KEYS_FIELD_NUMBER: _ClassVar[int]
    WITH_VALUES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    cursor: bytes
    to: bytes
    limit: int
    page_keys: int
    with_values: bool
    timeout_ms: int
    def __init__(self, keyspace: _Optional[str] = ..., cursor: _Optional[bytes] = ..., to: _Optional[bytes] = ..., limit: _Optional[int] = ..., page_keys: _Optional[int] = ..., with_values: _Optional[bool] = ..., timeout_ms: _Optional[int] = ..., **kwargs) -> None: ...

class ScanResponse(_message.Message):
    __slots__ = ("promise", "page")
    PROMISE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    promise: ScanPromise
    page: ScanPage
    def __init__(self, promise: _Optional[_Union[ScanPromise, _Mapping]] = ..., page: _Optional[_Union[ScanPage, _Mapping]] = ...) -> None: ...

class ScanPromise(_message.Message):
    __slots__ = ("engine", "order", "is_snapshot", "is_complete", "may_repeat", "text")
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    IS_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    IS_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    MAY_REPEAT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    engine: str
    order: ScanOrder
    is_snapshot: bool
    is_complete: bool
    may_repeat: bool
    text: str
    def __init__(self, engine: _Optional[str] = ..., order: _Optional[_Union[ScanOrder, str]] = ..., is_snapshot: _Optional[bool] = ..., is_complete: _Optional[bool] = ..., may_repeat: _Optional[bool] = ..., text: _Optional[str] = ...) -> None: ...

class ScanPage(_message.Message):
    __slots__ = ("entries", "cursor")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[Entry]
    cursor: bytes
    def __init__(self, entries: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., cursor: _Optional[bytes] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ("key", "reading")
    KEY_FIELD_NUMBER: _ClassVar[int]
    READING_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    reading: _common_pb2.Reading
    def __init__(self, key: _Optional[bytes] = ..., reading: _Optional[_Union[_common_pb2.Reading, _Mapping]] = ...) -> None: ...
