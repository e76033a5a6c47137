from quorate.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_KIND_PERSISTENT: _ClassVar[NodeKind]
    NODE_KIND_EPHEMERAL: _ClassVar[NodeKind]
    NODE_KIND_CONTAINER: _ClassVar[NodeKind]
    NODE_KIND_TTL: _ClassVar[NodeKind]
NODE_KIND_PERSISTENT: NodeKind
NODE_KIND_EPHEMERAL: NodeKind
NODE_KIND_CONTAINER: NodeKind
NODE_KIND_TTL: NodeKind

class Session(_message.Message):
    __slots__ = ("id", "password", "opening")
    ID_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    OPENING_FIELD_NUMBER: _ClassVar[int]
    id: int
    password: bytes
    opening: int
    def __init__(self, id: _Optional[int] = ..., password: _Optional[bytes] = ..., opening: _Optional[int] = ...) -> None: ...

class Stat(_message.Message):
    __slots__ = ("czxid", "mzxid", "pzxid", "ctime_ms", "mtime_ms", "version", "cversion", "aversion", "ephemeral_owner", "data_length", "children")
    CZXID_FIELD_NUMBER: _ClassVar[int]
    MZXID_FIELD_NUMBER: _ClassVar[int]
    PZXID_FIELD_NUMBER: _ClassVar[int]
    CTIME_MS_FIELD_NUMBER: _ClassVar[int]
    MTIME_MS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CVERSION_FIELD_NUMBER: _ClassVar[int]
    AVERSION_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_OWNER_FIELD_NUMBER: _ClassVar[int]
    DATA_LENGTH_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    children: int
    def __init__(self, czxid: _Optional[int] = ..., mzxid: _Optional[int] = ..., pzxid: _Optional[int] = ..., ctime_ms: _Optional[int] = ..., mtime_ms: _Optional[int] = ..., version: _Optional[int] = ..., cversion: _Optional[int] = ..., aversion: _Optional[int] = ..., ephemeral_owner: _Optional[int] = ..., data_length: _Optional[int] = ..., children: _Optional[int] = ...) -> None: ...

class Acl(_message.Message):
    __slots__ = ("permissions", "scheme", "id")
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    permissions: int
    scheme: str
    id: str
    def __init__(self, permissions: _Optional[int] = ..., scheme: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class NewNode(_message.Message):
    __slots__ = ("path", "data", "acl", "kind", "ttl_ms", "sequential")
    PATH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ACL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    SEQUENTIAL_FIELD_NUMBER: _ClassVar[int]
    path: str
    data: bytes
    acl: _containers.RepeatedCompositeFieldContainer[Acl]
    kind: NodeKind
    ttl_ms: int
    sequential: bool
    def __init__(self, path: _Optional[str] = ..., data: _Optional[bytes] = ..., acl: _Optional[_Iterable[_Union[Acl, _Mapping]]] = ..., kind: _Optional[_Union[NodeKind, str]] = ..., ttl_ms: _Optional[int] = ..., sequential: _Optional[bool] = ...) -> None: ...

class CreateNodeRequest(_message.Message):
    __slots__ = ("keyspace", "node", "session", "options")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    node: NewNode
    session: Session
    options: _common_pb2.WriteOptions
    def __init__(self, keyspace: _Optional[str] = ..., node: _Optional[_Union[NewNode, _Mapping]] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., options: _Optional[_Union[_common_pb2.WriteOptions, _Mapping]] = ...) -> None: ...

class CreateNodeResponse(_message.Message):
    __slots__ = ("path", "stat", "zxid", "coordinator", "is_repeated")
    PATH_FIELD_NUMBER: _ClassVar[int]
    STAT_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    IS_REPEATED_FIELD_NUMBER: _ClassVar[int]
    path: str
    stat: Stat
    zxid: int
    coordinator: _common_pb2.Coordinator
    is_repeated: bool
    def __init__(self, path: _Optional[str] = ..., stat: _Optional[_Union[Stat, _Mapping]] = ..., zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., is_repeated: _Optional[bool] = ...) -> None: ...

class DeleteNodeRequest(_message.Message):
    __slots__ = ("keyspace", "path", "version", "session", "options")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    path: str
    version: int
    session: Session
    options: _common_pb2.WriteOptions
    def __init__(self, keyspace: _Optional[str] = ..., path: _Optional[str] = ..., version: _Optional[int] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., options: _Optional[_Union[_common_pb2.WriteOptions, _Mapping]] = ...) -> None: ...

class DeleteNodeResponse(_message.Message):
    __slots__ = ("zxid", "coordinator", "is_repeated")
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    IS_REPEATED_FIELD_NUMBER: _ClassVar[int]
    zxid: int
    coordinator: _common_pb2.Coordinator
    is_repeated: bool
    def __init__(self, zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., is_repeated: _Optional[bool] = ...) -> None: ...

class NodeExistsRequest(_message.Message):
    __slots__ = ("keyspace", "path", "session", "timeout_ms")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    path: str
    session: Session
    timeout_ms: int
    def __init__(self, keyspace: _Optional[str] = ..., path: _Optional[str] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class NodeExistsResponse(_message.Message):
    __slots__ = ("stat", "zxid", "coordinator")
    STAT_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    stat: Stat
    zxid: int
    coordinator: _common_pb2.Coordinator
    def __init__(self, stat: _Optional[_Union[Stat, _Mapping]] = ..., zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class GetNodeRequest(_message.Message):
    __slots__ = ("keyspace", "path", "session", "timeout_ms")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    path: str
    session: Session
    timeout_ms: int
    def __init__(self, keyspace: _Optional[str] = ..., path: _Optional[str] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class GetNodeResponse(_message.Message):
    __slots__ = ("data", "stat", "zxid", "coordinator")
    DATA_FIELD_NUMBER: _ClassVar[int]
    STAT_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    stat: Stat
    zxid: int
    coordinator: _common_pb2.Coordinator
    def __init__(self, data: _Optional[bytes] = ..., stat: _Optional[_Union[Stat, _Mapping]] = ..., zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class NodeChildrenRequest(_message.Message):
    __slots__ = ("keyspace", "path", "session", "timeout_ms")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    path: str
    session: Session
    timeout_ms: int
    def __init__(self, keyspace: _Optional[str] = ..., path: _Optional[str] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class NodeChildrenResponse(_message.Message):
    __slots__ = ("names", "stat", "zxid", "coordinator")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    STAT_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    stat: Stat
    zxid: int
    coordinator: _common_pb2.Coordinator
    def __init__(self, names: _Optional[_Iterable[str]] = ..., stat: _Optional[_Union[Stat, _Mapping]] = ..., zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class SetNodeRequest(_message.Message):
    __slots__ = ("keyspace", "path", "data", "version", "session", "options")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    path: str
    data: bytes
    version: int
    session: Session
    options: _common_pb2.WriteOptions
    def __init__(self, keyspace: _Optional[str] = ..., path: _Optional[str] = ..., data: _Optional[bytes] = ..., version: _Optional[int] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., options: _Optional[_Union[_common_pb2.WriteOptions, _Mapping]] = ...) -> None: ...

class SetNodeResponse(_message.Message):
    __slots__ = ("stat", "zxid", "coordinator", "is_repeated")
    STAT_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    IS_REPEATED_FIELD_NUMBER: _ClassVar[int]
    stat: Stat
    zxid: int
    coordinator: _common_pb2.Coordinator
    is_repeated: bool
    def __init__(self, stat: _Optional[_Union[Stat, _Mapping]] = ..., zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., is_repeated: _Optional[bool] = ...) -> None: ...

class GetNodeAclRequest(_message.Message):
    __slots__ = ("keyspace", "path", "session", "timeout_ms")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    path: str
    session: Session
    timeout_ms: int
    def __init__(self, keyspace: _Optional[str] = ..., path: _Optional[str] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class GetNodeAclResponse(_message.Message):
    __slots__ = ("acl", "stat", "zxid", "coordinator")
    ACL_FIELD_NUMBER: _ClassVar[int]
    STAT_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    acl: _containers.RepeatedCompositeFieldContainer[Acl]
    stat: Stat
    zxid: int
    coordinator: _common_pb2.Coordinator
    def __init__(self, acl: _Optional[_Iterable[_Union[Acl, _Mapping]]] = ..., stat: _Optional[_Union[Stat, _Mapping]] = ..., zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class SetNodeAclRequest(_message.Message):
    __slots__ = ("keyspace", "path", "acl", "version", "session", "options")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ACL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    path: str
    acl: _containers.RepeatedCompositeFieldContainer[Acl]
    version: int
    session: Session
    options: _common_pb2.WriteOptions
    def __init__(self, keyspace: _Optional[str] = ..., path: _Optional[str] = ..., acl: _Optional[_Iterable[_Union[Acl, _Mapping]]] = ..., version: _Optional[int] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., options: _Optional[_Union[_common_pb2.WriteOptions, _Mapping]] = ...) -> None: ...

class SetNodeAclResponse(_message.Message):
    __slots__ = ("stat", "zxid", "coordinator", "is_repeated")
    STAT_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    IS_REPEATED_FIELD_NUMBER: _ClassVar[int]
    stat: Stat
    zxid: int
    coordinator: _common_pb2.Coordinator
    is_repeated: bool
    def __init__(self, stat: _Optional[_Union[Stat, _Mapping]] = ..., zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., is_repeated: _Optional[bool] = ...) -> None: ...

class MultiRequest(_message.Message):
    __slots__ = ("keyspace", "items", "session", "options")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    items: _containers.RepeatedCompositeFieldContainer[NodeItem]
    session: Session
    options: _common_pb2.WriteOptions
    def __init__(self, keyspace: _Optional[str] = ..., items: _Optional[_Iterable[_Union[NodeItem, _Mapping]]] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., options: _Optional[_Union[_common_pb2.WriteOptions, _Mapping]] = ...) -> None: ...

class NodeItem(_message.Message):
    __slots__ = ("create", "delete", "set", "check")
    CREATE_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    create: NewNode
    delete: NodeVersion
    set: NodeData
    check: NodeVersion
    def __init__(self, create: _Optional[_Union[NewNode, _Mapping]] = ..., delete: _Optional[_Union[NodeVersion, _Mapping]] = ..., set: _Optional[_Union[NodeData, _Mapping]] = ..., check: _Optional[_Union[NodeVersion, _Mapping]] = ...) -> None: ...

class NodeVersion(_message.Message):
    __slots__ = ("path", "version")
    PATH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    path: str
    version: int
    def __init__(self, path: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class NodeData(_message.Message):
    __slots__ = ("path", "data", "version")
    PATH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    path: str
    data: bytes
    version: int
    def __init__(self, path: _Optional[str] = ..., data: _Optional[bytes] = ..., version: _Optional[int] = ...) -> None: ...

class MultiResponse(_message.Message):
    __slots__ = ("answers", "zxid", "coordinator", "is_repeated")
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    IS_REPEATED_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[NodeItemAnswer]
    zxid: int
    coordinator: _common_pb2.Coordinator
    is_repeated: bool
    def __init__(self, answers: _Optional[_Iterable[_Union[NodeItemAnswer, _Mapping]]] = ..., zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., is_repeated: _Optional[bool] = ...) -> None: ...

class NodeItemAnswer(_message.Message):
    __slots__ = ("path", "stat")
    PATH_FIELD_NUMBER: _ClassVar[int]
    STAT_FIELD_NUMBER: _ClassVar[int]
    path: str
    stat: Stat
    def __init__(self, path: _Optional[str] = ..., stat: _Optional[_Union[Stat, _Mapping]] = ...) -> None: ...

class OpenSessionRequest(_message.Message):
    __slots__ = ("keyspace", "session_timeout_ms", "resume")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    session_timeout_ms: int
    resume: Session
    def __init__(self, keyspace: _Optional[str] = ..., session_timeout_ms: _Optional[int] = ..., resume: _Optional[_Union[Session, _Mapping]] = ...) -> None: ...

class OpenSessionResponse(_message.Message):
    __slots__ = ("session", "session_timeout_ms", "coordinator")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    session: Session
    session_timeout_ms: int
    coordinator: _common_pb2.Coordinator
    def __init__(self, session: _Optional[_Union[Session, _Mapping]] = ..., session_timeout_ms: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class KeepAliveRequest(_message.Message):
    __slots__ = ("keyspace", "session")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    session: Session
    def __init__(self, keyspace: _Optional[str] = ..., session: _Optional[_Union[Session, _Mapping]] = ...) -> None: ...

class KeepAliveResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AuthenticateRequest(_message.Message):
    __slots__ = ("keyspace", "session", "scheme", "credential")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    session: Session
    scheme: str
    credential: bytes
    def __init__(self, keyspace: _Optional[str] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., scheme: _Optional[str] = ..., credential: _Optional[bytes] = ...) -> None: ...

class AuthenticateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SyncRequest(_message.Message):
    __slots__ = ("keyspace", "session", "timeout_ms")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    session: Session
    timeout_ms: int
    def __init__(self, keyspace: _Optional[str] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class SyncResponse(_message.Message):
    __slots__ = ("zxid", "coordinator")
    ZXID_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    zxid: int
    coordinator: _common_pb2.Coordinator
    def __init__(self, zxid: _Optional[int] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class CloseSessionRequest(_message.Message):
    __slots__ = ("keyspace", "session")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    session: Session
    def __init__(self, keyspace: _Optional[str] = ..., session: _Optional[_Union[Session, _Mapping]] = ...) -> None: ...

class CloseSessionResponse(_message.Message):
    __slots__ = ("zxid",)
    ZXID_FIELD_NUMBER: _ClassVar[int]
    zxid: int
    def __init__(self, zxid: _Optional[int] = ...) -> None: ...

class WatchNodeRequest(_message.Message):
    __slots__ = ("keyspace", "path", "recursive")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    path: str
    recursive: bool
    def __init__(self, keyspace: _Optional[str] = ..., path: _Optional[str] = ..., recursive: _Optional[bool] = ...) -> None: ...

class WatchNodeResponse(_message.Message):
    __slots__ = ("event", "path", "zxid")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ZXID_FIELD_NUMBER: _ClassVar[int]
    event: str
    path: str
    zxid: int
    def __init__(self, event: _Optional[str] = ..., path: _Optional[str] = ..., zxid: _Optional[int] = ...) -> None: ...
