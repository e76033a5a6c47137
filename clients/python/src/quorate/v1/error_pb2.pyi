from quorate.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeFailure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_FAILURE_UNSPECIFIED: _ClassVar[NodeFailure]
    NODE_FAILURE_NO_NODE: _ClassVar[NodeFailure]
    NODE_FAILURE_EXISTS: _ClassVar[NodeFailure]
    NODE_FAILURE_BAD_VERSION: _ClassVar[NodeFailure]
    NODE_FAILURE_NOT_EMPTY: _ClassVar[NodeFailure]
    NODE_FAILURE_NO_CHILDREN_FOR_EPHEMERALS: _ClassVar[NodeFailure]
    NODE_FAILURE_NO_AUTH: _ClassVar[NodeFailure]
    NODE_FAILURE_AUTH_FAILED: _ClassVar[NodeFailure]
    NODE_FAILURE_INVALID_ACL: _ClassVar[NodeFailure]
    NODE_FAILURE_BAD_ARGUMENTS: _ClassVar[NodeFailure]
    NODE_FAILURE_SESSION_EXPIRED: _ClassVar[NodeFailure]
    NODE_FAILURE_SESSION_MOVED: _ClassVar[NodeFailure]
    NODE_FAILURE_QUOTA: _ClassVar[NodeFailure]
    NODE_FAILURE_OTHER: _ClassVar[NodeFailure]

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KIND_UNSPECIFIED: _ClassVar[Kind]
    KIND_INVALID: _ClassVar[Kind]
    KIND_NO_KEYSPACE: _ClassVar[Kind]
    KIND_TOO_LARGE: _ClassVar[Kind]
    KIND_UNSUPPORTED: _ClassVar[Kind]
    KIND_NO_QUORUM: _ClassVar[Kind]
    KIND_OVERLOADED: _ClassVar[Kind]
    KIND_STOPPING: _ClassVar[Kind]
    KIND_OUTCOME_UNKNOWN: _ClassVar[Kind]
    KIND_BAD_CONTEXT: _ClassVar[Kind]
    KIND_INTERNAL: _ClassVar[Kind]
    KIND_EXISTS: _ClassVar[Kind]
    KIND_CONFLICT: _ClassVar[Kind]
    KIND_NO_NODE: _ClassVar[Kind]
    KIND_DENIED: _ClassVar[Kind]
NODE_FAILURE_UNSPECIFIED: NodeFailure
NODE_FAILURE_NO_NODE: NodeFailure
NODE_FAILURE_EXISTS: NodeFailure
NODE_FAILURE_BAD_VERSION: NodeFailure
NODE_FAILURE_NOT_EMPTY: NodeFailure
NODE_FAILURE_NO_CHILDREN_FOR_EPHEMERALS: NodeFailure
NODE_FAILURE_NO_AUTH: NodeFailure
NODE_FAILURE_AUTH_FAILED: NodeFailure
NODE_FAILURE_INVALID_ACL: NodeFailure
NODE_FAILURE_BAD_ARGUMENTS: NodeFailure
NODE_FAILURE_SESSION_EXPIRED: NodeFailure
NODE_FAILURE_SESSION_MOVED: NodeFailure
NODE_FAILURE_QUOTA: NodeFailure
NODE_FAILURE_OTHER: NodeFailure
KIND_UNSPECIFIED: Kind
KIND_INVALID: Kind
KIND_NO_KEYSPACE: Kind
KIND_TOO_LARGE: Kind
KIND_UNSUPPORTED: Kind
KIND_NO_QUORUM: Kind
KIND_OVERLOADED: Kind
KIND_STOPPING: Kind
KIND_OUTCOME_UNKNOWN: Kind
KIND_BAD_CONTEXT: Kind
KIND_INTERNAL: Kind
KIND_EXISTS: Kind
KIND_CONFLICT: Kind
KIND_NO_NODE: Kind
KIND_DENIED: Kind

class Error(_message.Message):
    __slots__ = ("kind", "what", "right", "may_have_applied", "coordinator", "view", "replicas_reached", "replicas_needed", "field", "node_failure", "outcome_token")
    KIND_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    MAY_HAVE_APPLIED_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_REACHED_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_NEEDED_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    NODE_FAILURE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    kind: Kind
    what: str
    right: str
    may_have_applied: bool
    coordinator: _common_pb2.Coordinator
    view: int
    replicas_reached: int
    replicas_needed: int
    field: str
    node_failure: NodeFailure
    outcome_token: bytes
    def __init__(self, kind: _Optional[_Union[Kind, str]] = ..., what: _Optional[str] = ..., right: _Optional[str] = ..., may_have_applied: _Optional[bool] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., view: _Optional[int] = ..., replicas_reached: _Optional[int] = ..., replicas_needed: _Optional[int] = ..., field: _Optional[str] = ..., node_failure: _Optional[_Union[NodeFailure, str]] = ..., outcome_token: _Optional[bytes] = ...) -> None: ...
