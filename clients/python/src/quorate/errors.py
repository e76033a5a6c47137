"""How calls fail."""

from __future__ import annotations

import enum


class Kind(enum.Enum):
    """What sort of failure it is; programs decide by it."""

    UNSPECIFIED = 0
    INVALID = 1
    NO_KEYSPACE = 2
    TOO_LARGE = 3
    UNSUPPORTED = 4
    NO_QUORUM = 5
    OVERLOADED = 6
    STOPPING = 7
    OUTCOME_UNKNOWN = 8
    BAD_CONTEXT = 9
    INTERNAL = 10
    EXISTS = 11
    CONFLICT = 12
    NO_NODE = 13
    DENIED = 14

    @classmethod
    def _missing_(cls, value: object) -> Kind:
        # A newer host may know kinds that this client does not.
        return cls.UNSPECIFIED


class QuorateError(Exception):
    """Why a call failed: what was wrong, and what would be right.

    Nothing was changed, unless `may_have_applied` says that something may have been.
    """

    may_have_applied = False

    def __init__(self, what: str, right: str, kind: Kind | None = None, field: str = "") -> None:
        super().__init__(f"{what}; {right}")
        self.what = what
        self.right = right
        #: What sort of failure it is; None if no host said it.
        self.kind = kind
        #: The field of the request that was wrong, if one was.
        self.field = field


class Refused(QuorateError):
    """The cluster refused it, or could not do it in time. Nothing was changed."""


class Unmet(Refused):
    """What an item of a transaction checks does not hold. Nothing was changed."""

    def __init__(self, refused: Refused, item: int) -> None:
        super().__init__(refused.what, refused.right, refused.kind, refused.field)
        #: Which item, from 0.
        self.item = item


class OutcomeUnknown(QuorateError):
    """Nobody can say whether the write, or the order of an operator, was done, or will be.

    On a linearizable keyspace, writing again, as a new write, may bring an old value back over a
    newer one. On a causal one it may at worst show a value once more that was replaced meanwhile.
    """

    may_have_applied = True

    def __init__(
        self,
        why: str,
        right: str = "read the key, and write again only if it may be done twice",
        token: bytes = b"",
    ) -> None:
        what = f"nobody can say whether it was done, or will be: {why}"
        super().__init__(what, right, Kind.OUTCOME_UNKNOWN)
        #: What `Keyspace.how_ended` is asked with; empty if no host can tell.
        self.token = token


class Unreachable(QuorateError):
    """No host answered in time. Nothing was changed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"no host answered in time: {why}", "check that the hosts run")


class SiblingsError(QuorateError):
    """The key has several concurrent values, and one was asked for. Nothing was changed."""

    def __init__(self, values: tuple[bytes, ...]) -> None:
        what = f"the key has {len(values)} concurrent values"
        super().__init__(what, "look at all of them (`values`), and merge them with `update`")
        self.values = values
