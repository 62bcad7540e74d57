"""From the words of a command to values. Nothing here needs the engine."""

from dataclasses import dataclass, field

from uci.options import split_assignment


class CommandError(ValueError):
    """A command that cannot be understood; the message is a sentence."""


@dataclass(frozen=True)
class PositionCommand:
    """fen: None for the start position."""

    fen: str | None
    moves: tuple[str, ...]


@dataclass
class GoCommand:
    """What `go` asks for. Times are in milliseconds, as sent; None for absent.

    numbers: whole numbers by keyword.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    infinite: bool = False
    ponder: bool = False
    search_moves: tuple[str, ...] | None = None

    def get(self, name: str) -> int | None:
        return self.numbers.get(name)


NULL_MOVE = "0000"
UCCI_CLOCK_WORDS = ("time", "increment", "opptime", "opincrement")
GO_NUMBERS = (
    *("wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "movetime", "mate", "perft"),
    *UCCI_CLOCK_WORDS,
)
GO_WORDS = (*GO_NUMBERS, "searchmoves", "infinite", "ponder")
LIMIT_WORDS = ("depth", "nodes", "movetime", "mate")
CLOCK_WORDS = ("wtime", "btime", "time", "opptime")
MAX_PERFT_DEPTH = 99
MAX_NUMBER = 10**15  # milliseconds or nodes: thirty thousand years of thinking


def parse_position(words: list[str]) -> PositionCommand:
    """`startpos [moves ...]` or `fen F [moves ...]`, without the command's own name."""
    if not words or words[0] not in ("startpos", "fen"):
        raise CommandError(f"'{' '.join(words)}' is no position; expected startpos or fen.")
    split = words.index("moves") if "moves" in words else len(words)
    if words[0] == "fen":
        return PositionCommand(" ".join(words[1:split]), tuple(words[split + 1 :]))
    if split > 1:
        raise CommandError(f"'{' '.join(words[1:split])}' follows startpos; expected moves, or nothing.")
    return PositionCommand(None, tuple(words[split + 1 :]))


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
            command.search_moves = tuple(move.lower() for move in words[at:end]) or None
            at = end
        elif word == "infinite":
            command.infinite = True
        elif word == "ponder":
            command.ponder = True
        elif word in GO_NUMBERS:
            command.numbers[word] = _whole_number(word, words[at] if at < len(words) else "")
            if word == "perft" and command.numbers[word] > MAX_PERFT_DEPTH:
                raise CommandError(f"Invalid argument for 'perft': expected a depth of at most {MAX_PERFT_DEPTH}.")
            at += 1
    _drop_empty_limits(command)
    return command


def reads_no_move(search_moves: tuple[str, ...]) -> bool:
    """Whether `searchmoves` forbids every move: some hosts say so by a null move."""
    return search_moves == (NULL_MOVE,)


def _whole_number(word: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise CommandError(f"Invalid argument for '{word}': '{text}' is not a whole number.")
    if len(digits.lstrip("0")) > len(str(MAX_NUMBER)) or abs(int(text)) > MAX_NUMBER:
        raise CommandError(f"Invalid argument for '{word}': {text} is too large; expected at most {MAX_NUMBER}.")
    return int(text)


def _drop_empty_limits(command: GoCommand) -> None:
    """A limit or clock of zero beside another limit is none: some hosts send all words, whatever they mean.

    Alone it asks for an answer at once.
    """
    numbers = command.numbers
    limits = [word for word in (*LIMIT_WORDS, *CLOCK_WORDS) if word in numbers]
    empty = [word for word in limits if numbers[word] == 0]
    if command.infinite or command.ponder or len(empty) < len(limits):
        for word in empty:
            del numbers[word]


def parse_setoption(words: list[str]) -> tuple[str, str]:
    """(name, value) from `name N [value V]`, or from `N V`, as UCCI spells it."""
    if words[:1] != ["name"] and "value" not in words:
        return split_assignment(words)
    if words[:1] == ["name"]:
        words = words[1:]
    split = words.index("value") if "value" in words else len(words)
    return " ".join(words[:split]), " ".join(words[split + 1 :])
