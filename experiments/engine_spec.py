"""How the command line names an engine: fields with commas between them.

    name=jaxfish,cmd=jaxfish,option.Hash=16,option.Threads=1
    name=old,cmd="python -m uci.main",dir=../jaxfish-old
    name=fairy,cmd=fairy-stockfish,ranks=1,option.UCI_Variant=xiangqi,time=20

    cmd         the command with its arguments; needed
    name        what tables and logs call it; the command if absent
    dir         the folder in which it runs
    ranks       what the engine calls the lowest rank: 0 (a0 to i9, the default) or 1 (a1 to i10)
    time        milliseconds a move, a clock as in 1000+10, or nodes as in 20000n, instead of the match's
    option.X    value of the UCI option X

A value with commas stands in quotes, and the whole in another kind of quotes, as the shell takes one pair away.
"""

import shlex
from dataclasses import asdict, dataclass, field

from experiments.uci_client import UciClient

OPTION_PREFIX = "option."
FIELDS = ("cmd", "name", "dir", "ranks", "time")


class SpecError(ValueError):
    """A description of an engine that cannot be read; the message is a sentence."""


@dataclass(frozen=True)
class EngineSpec:
    """time: as `time_control` spells it; None for the match's."""

    name: str
    command: str
    options: dict[str, str] = field(default_factory=dict)
    directory: str | None = None
    first_rank: int = 0
    time: str | None = None

    def create_client(self) -> UciClient:
        """A client that has not been started."""
        return UciClient(shlex.split(self.command), self.options, self.name, self.first_rank, self.directory)

    def settings(self) -> dict:
        """All of it as JSON knows it."""
        return asdict(self)


def parse_engine_spec(text: str) -> EngineSpec:
    """The engine that `text` describes; SpecError if it describes none."""
    values: dict[str, str] = {}
    for part in _split(text):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not (key in FIELDS or key.startswith(OPTION_PREFIX)):
            raise SpecError(
                f"'{part}' in '{text}' is no field of an engine; expected FIELD=VALUE with one of {FIELDS}."
            )
        if key in values:
            raise SpecError(f"'{text}' gives {key} twice.")
        values[key] = value.strip()
    if not values.get("cmd"):
        raise SpecError(f"'{text}' has no cmd, the command that starts the engine.")
    return EngineSpec(
        name=values.get("name") or values["cmd"],
        command=values["cmd"],
        options={key.removeprefix(OPTION_PREFIX): values[key] for key in values if key.startswith(OPTION_PREFIX)},
        directory=values.get("dir"),
        first_rank=_whole_number("ranks", values.get("ranks", "0"), 0, 1),
        time=values.get("time"),
    )


def _split(text: str) -> list[str]:
    """Parts between commas that stand outside quotes."""
    splitter = shlex.shlex(text, posix=True)
    splitter.whitespace = ","
    splitter.whitespace_split = True
    splitter.commenters = ""
    try:
        return [part.strip() for part in splitter]
    except ValueError as error:
        raise SpecError(f"'{text}' cannot be taken apart: {error}.") from error


def _whole_number(name: str, text: str, minimum: int, maximum: int) -> int:
    if not text.isdecimal() or not minimum <= int(text) <= maximum:
        raise SpecError(f"'{text}' is no value for {name}; expected a whole number from {minimum} to {maximum}.")
    return int(text)
