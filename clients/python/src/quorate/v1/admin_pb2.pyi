from quorate.v1 import common_pb2 as _common_pb2
from quorate.v1 import kv_pb2 as _kv_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Capability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAPABILITY_UNSPECIFIED: _ClassVar[Capability]
    CAPABILITY_VALUES: _ClassVar[Capability]
    CAPABILITY_SIBLINGS: _ClassVar[Capability]
    CAPABILITY_REPLIES: _ClassVar[Capability]
    CAPABILITY_LISTING: _ClassVar[Capability]
    CAPABILITY_EXPLAINING: _ClassVar[Capability]
    CAPABILITY_TRANSACTIONS: _ClassVar[Capability]
    CAPABILITY_CHANGES: _ClassVar[Capability]
    CAPABILITY_EXPIRY: _ClassVar[Capability]
    CAPABILITY_TREE: _ClassVar[Capability]
    CAPABILITY_RECEIPTS: _ClassVar[Capability]

class Stage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STAGE_UNSPECIFIED: _ClassVar[Stage]
    STAGE_STARTING: _ClassVar[Stage]
    STAGE_SERVING: _ClassVar[Stage]
    STAGE_STOPPING: _ClassVar[Stage]
CAPABILITY_UNSPECIFIED: Capability
CAPABILITY_VALUES: Capability
CAPABILITY_SIBLINGS: Capability
CAPABILITY_REPLIES: Capability
CAPABILITY_LISTING: Capability
CAPABILITY_EXPLAINING: Capability
CAPABILITY_TRANSACTIONS: Capability
CAPABILITY_CHANGES: Capability
CAPABILITY_EXPIRY: Capability
CAPABILITY_TREE: Capability
CAPABILITY_RECEIPTS: Capability
STAGE_UNSPECIFIED: Stage
STAGE_STARTING: Stage
STAGE_SERVING: Stage
STAGE_STOPPING: Stage

class KeyspacesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class KeyspacesResponse(_message.Message):
    __slots__ = ("keyspaces",)
    KEYSPACES_FIELD_NUMBER: _ClassVar[int]
    keyspaces: _containers.RepeatedCompositeFieldContainer[Keyspace]
    def __init__(self, keyspaces: _Optional[_Iterable[_Union[Keyspace, _Mapping]]] = ...) -> None: ...

class Keyspace(_message.Message):
    __slots__ = ("name", "engine", "durability", "replicas", "value_bytes_max", "order", "scan", "is_ready", "mode", "can")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    VALUE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    SCAN_FIELD_NUMBER: _ClassVar[int]
    IS_READY_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    CAN_FIELD_NUMBER: _ClassVar[int]
    name: str
    engine: str
    durability: str
    replicas: int
    value_bytes_max: int
    order: _kv_pb2.ScanOrder
    scan: _kv_pb2.ScanPromise
    is_ready: bool
    mode: str
    can: _containers.RepeatedScalarFieldContainer[Capability]
    def __init__(self, name: _Optional[str] = ..., engine: _Optional[str] = ..., durability: _Optional[str] = ..., replicas: _Optional[int] = ..., value_bytes_max: _Optional[int] = ..., order: _Optional[_Union[_kv_pb2.ScanOrder, str]] = ..., scan: _Optional[_Union[_kv_pb2.ScanPromise, _Mapping]] = ..., is_ready: _Optional[bool] = ..., mode: _Optional[str] = ..., can: _Optional[_Iterable[_Union[Capability, str]]] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("cluster", "coordinator", "host", "version", "stage", "is_ready", "uptime_seconds", "keyspaces", "peers")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    IS_READY_FIELD_NUMBER: _ClassVar[int]
    UPTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    KEYSPACES_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    coordinator: _common_pb2.Coordinator
    host: int
    version: str
    stage: Stage
    is_ready: bool
    uptime_seconds: int
    keyspaces: _containers.RepeatedCompositeFieldContainer[Keyspace]
    peers: _containers.RepeatedCompositeFieldContainer[Peer]
    def __init__(self, cluster: _Optional[str] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ..., host: _Optional[int] = ..., version: _Optional[str] = ..., stage: _Optional[_Union[Stage, str]] = ..., is_ready: _Optional[bool] = ..., uptime_seconds: _Optional[int] = ..., keyspaces: _Optional[_Iterable[_Union[Keyspace, _Mapping]]] = ..., peers: _Optional[_Iterable[_Union[Peer, _Mapping]]] = ...) -> None: ...

class Peer(_message.Message):
    __slots__ = ("node", "host", "address", "is_up")
    NODE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    IS_UP_FIELD_NUMBER: _ClassVar[int]
    node: int
    host: int
    address: str
    is_up: bool
    def __init__(self, node: _Optional[int] = ..., host: _Optional[int] = ..., address: _Optional[str] = ..., is_up: _Optional[bool] = ...) -> None: ...

class RingRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RingResponse(_message.Message):
    __slots__ = ("hosts", "groups")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[RingHost]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    def __init__(self, hosts: _Optional[_Iterable[_Union[RingHost, _Mapping]]] = ..., groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ...) -> None: ...

class RingHost(_message.Message):
    __slots__ = ("node", "start", "address", "zone", "tokens", "standing", "is_suspected", "doors")
    NODE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    IS_SUSPECTED_FIELD_NUMBER: _ClassVar[int]
    DOORS_FIELD_NUMBER: _ClassVar[int]
    node: int
    start: int
    address: str
    zone: str
    tokens: _containers.RepeatedScalarFieldContainer[int]
    standing: str
    is_suspected: bool
    doors: _containers.RepeatedCompositeFieldContainer[Door]
    def __init__(self, node: _Optional[int] = ..., start: _Optional[int] = ..., address: _Optional[str] = ..., zone: _Optional[str] = ..., tokens: _Optional[_Iterable[int]] = ..., standing: _Optional[str] = ..., is_suspected: _Optional[bool] = ..., doors: _Optional[_Iterable[_Union[Door, _Mapping]]] = ...) -> None: ...

class Door(_message.Message):
    __slots__ = ("name", "address")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("keyspace", "group", "low", "high", "version", "members", "status", "details")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    group: int
    low: int
    high: int
    version: int
    members: _containers.RepeatedScalarFieldContainer[int]
    status: str
    details: _containers.ScalarMap[str, str]
    def __init__(self, keyspace: _Optional[str] = ..., group: _Optional[int] = ..., low: _Optional[int] = ..., high: _Optional[int] = ..., version: _Optional[int] = ..., members: _Optional[_Iterable[int]] = ..., status: _Optional[str] = ..., details: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ShowKeyspaceRequest(_message.Message):
    __slots__ = ("name", "timeout_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    timeout_ms: int
    def __init__(self, name: _Optional[str] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class ShowKeyspaceResponse(_message.Message):
    __slots__ = ("keyspace", "coordinator")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    keyspace: KeyspaceDetails
    coordinator: _common_pb2.Coordinator
    def __init__(self, keyspace: _Optional[_Union[KeyspaceDetails, _Mapping]] = ..., coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class KeyspaceDetails(_message.Message):
    __slots__ = ("name", "engine", "number", "settings", "created", "changed", "partitions")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    engine: str
    number: int
    settings: _containers.RepeatedCompositeFieldContainer[Setting]
    created: int
    changed: int
    partitions: _containers.RepeatedCompositeFieldContainer[Partition]
    def __init__(self, name: _Optional[str] = ..., engine: _Optional[str] = ..., number: _Optional[int] = ..., settings: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ..., created: _Optional[int] = ..., changed: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[Partition, _Mapping]]] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ("name", "value", "default_value", "is_alterable", "altering")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_ALTERABLE_FIELD_NUMBER: _ClassVar[int]
    ALTERING_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    default_value: str
    is_alterable: bool
    altering: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., default_value: _Optional[str] = ..., is_alterable: _Optional[bool] = ..., altering: _Optional[str] = ...) -> None: ...

class Partition(_message.Message):
    __slots__ = ("partition", "node", "since", "is_settled")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    IS_SETTLED_FIELD_NUMBER: _ClassVar[int]
    partition: int
    node: int
    since: int
    is_settled: bool
    def __init__(self, partition: _Optional[int] = ..., node: _Optional[int] = ..., since: _Optional[int] = ..., is_settled: _Optional[bool] = ...) -> None: ...

class CreateKeyspaceRequest(_message.Message):
    __slots__ = ("name", "engine", "settings", "timeout_ms")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    engine: str
    settings: _containers.ScalarMap[str, str]
    timeout_ms: int
    def __init__(self, name: _Optional[str] = ..., engine: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class CreateKeyspaceResponse(_message.Message):
    __slots__ = ("coordinator",)
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    coordinator: _common_pb2.Coordinator
    def __init__(self, coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class AlterKeyspaceRequest(_message.Message):
    __slots__ = ("name", "settings", "timeout_ms")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    settings: _containers.ScalarMap[str, str]
    timeout_ms: int
    def __init__(self, name: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class AlterKeyspaceResponse(_message.Message):
    __slots__ = ("coordinator",)
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    coordinator: _common_pb2.Coordinator
    def __init__(self, coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class DropKeyspaceRequest(_message.Message):
    __slots__ = ("name", "timeout_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    timeout_ms: int
    def __init__(self, name: _Optional[str] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class DropKeyspaceResponse(_message.Message):
    __slots__ = ("coordinator",)
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    coordinator: _common_pb2.Coordinator
    def __init__(self, coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class ReplacePartitionRequest(_message.Message):
    __slots__ = ("keyspace", "partition", "host", "timeout_ms")
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    keyspace: str
    partition: int
    host: str
    timeout_ms: int
    def __init__(self, keyspace: _Optional[str] = ..., partition: _Optional[int] = ..., host: _Optional[str] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class ReplacePartitionResponse(_message.Message):
    __slots__ = ("coordinator",)
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    coordinator: _common_pb2.Coordinator
    def __init__(self, coordinator: _Optional[_Union[_common_pb2.Coordinator, _Mapping]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("event", "keyspace", "engine", "node", "address")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    KEYSPACE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    event: str
    keyspace: str
    engine: str
    node: int
    address: str
    def __init__(self, event: _Optional[str] = ..., keyspace: _Optional[str] = ..., engine: _Optional[str] = ..., node: _Optional[int] = ..., address: _Optional[str] = ...) -> None: ...
