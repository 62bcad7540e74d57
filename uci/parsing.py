"""From the words of a command to values. Nothing here needs the engine."""

from dataclasses import dataclass, field


class CommandError(ValueError):
    """A command that cannot be understood; the message is a sentence."""


@dataclass(frozen=True)
class PositionCommand:
    """fen: None for the start position."""

    fen: str | None
    moves: tuple[str, ...]


@dataclass
class GoCommand:
    """What `go` asks for. Times are in milliseconds, as sent; None for absent."""

    numbers: dict[str, int] = field(default_factory=dict)
    infinite: bool = False
    search_moves: tuple[str, ...] | None = None

    def get(self, name: str) -> int | None:
        return self.numbers.get(name)


GO_NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "movetime", "perft")
GO_WORDS = (*GO_NUMBERS, "searchmoves", "infinite")


def parse_position(words: list[str]) -> PositionCommand:
    """`startpos [moves ...]` or `fen F [moves ...]`, without the command's own name."""
    if not words or words[0] not in ("startpos", "fen"):
        raise CommandError(f"'{' '.join(words)}' is no position; expected startpos or fen.")
    split = words.index("moves") if "moves" in words else len(words)
    fen = None if words[0] == "startpos" else " ".join(words[1:split])
    return PositionCommand(fen, tuple(words[split + 1 :]))


def parse_go(words: list[str]) -> GoCommand:
    """The parameters of `go`, in any order; unknown words are skipped."""
    command = GoCommand()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "searchmoves":
            end = at
            while end < len(words) and words[end] not in GO_WORDS:
                end += 1
            command.search_moves = tuple(move.lower() for move in words[at:end])
            at = end
        if word == "infinite":
            command.infinite = True
        elif word in GO_NUMBERS:
            text = words[at] if at < len(words) else ""
            try:
                command.numbers[word] = int(text)
            except ValueError as error:
                raise CommandError(f"Invalid argument for '{word}': '{text}' is not a whole number.") from error
            at += 1
    return command


def parse_setoption(words: list[str]) -> tuple[str, str]:
    """(name, value) from `name N [value V]`."""
    if words and words[0] == "name":
        words = words[1:]
    split = words.index("value") if "value" in words else len(words)
    return " ".join(words[:split]), " ".join(words[split + 1 :])
