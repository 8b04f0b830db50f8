"""What a process holds of an agent that it owns."""

import uuid
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Claim:
    """An agent that this process owns."""

    agent: int
    fence: int
    id: uuid.UUID
    has_commands: bool
    until: float = field(compare=False)  # by `monotonic`: until then nobody else can claim it
