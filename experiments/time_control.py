"""How much time an engine has: so much a move, or a clock with an increment.

100        100 ms a move
1000+10    a clock of 1000 ms, and 10 ms more after each move
20000n     20,000 nodes a move, however long they take
"""

import math
from dataclasses import dataclass

NODES_UNIT = "n"
PATIENCE_MS = 600_000  # with an engine that counts nodes


class TimeControlError(ValueError):
    """Text that is no time control; the message is a sentence."""


@dataclass(frozen=True)
class TimeControl:
    """nodes or movetime_ms for each move, or if both are 0 a clock of base_ms and increment_ms.

    margin_ms: lateness forgiven.
    """

    nodes: int = 0
    movetime_ms: int = 0
    base_ms: int = 0
    increment_ms: int = 0
    margin_ms: float = math.inf

    def __str__(self) -> str:
        if self.nodes:
            return f"{self.nodes}{NODES_UNIT}"
        return str(self.movetime_ms) if self.movetime_ms else f"{self.base_ms}+{self.increment_ms}"


def parse_time_control(text: str, margin_ms: float = math.inf) -> TimeControl:
    """The time control that `text` describes; a clock forgives no lateness."""
    base, plus, increment = text.partition("+")
    nodes = text.removesuffix(NODES_UNIT)
    if nodes != text and nodes.isdecimal() and int(nodes):
        return TimeControl(nodes=int(nodes))
    if not base.isdecimal() or not int(base) or (plus and not increment.isdecimal()):
        raise TimeControlError(
            f"'{text}' is no time control; expected milliseconds, as in 100 or 1000+10, or nodes, as in 20000n."
        )
    if plus:
        return TimeControl(base_ms=int(base), increment_ms=int(increment), margin_ms=0)
    return TimeControl(movetime_ms=int(base), margin_ms=margin_ms)


class Timer:
    """One player's time in one game. left_ms: until the flag falls, for the move to come."""

    def __init__(self, control: TimeControl):
        self.control = control
        self.left_ms: float = PATIENCE_MS if control.nodes else control.movetime_ms or control.base_ms

    def charge(self, elapsed_ms: float) -> bool:
        """Take the time of a move off; whether it came in time."""
        control = self.control
        if control.nodes:
            return True
        if control.movetime_ms:
            return elapsed_ms <= control.movetime_ms + control.margin_ms
        in_time = elapsed_ms <= self.left_ms
        self.left_ms += control.increment_ms - elapsed_ms
        return in_time


def go_text(mover: Timer, white: Timer, black: Timer) -> str:
    """What follows the word go: the clock of a player whose time is by the move counts as full."""
    if mover.control.nodes:
        return f"nodes {mover.control.nodes}"
    if mover.control.movetime_ms:
        return f"movetime {mover.control.movetime_ms}"
    return (
        f"wtime {int(white.left_ms)} btime {int(black.left_ms)} "
        f"winc {white.control.increment_ms} binc {black.control.increment_ms}"
    )
