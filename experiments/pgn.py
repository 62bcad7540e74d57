"""Games of a match as xiangqi PGN: moves in ICCS (H2-E2), as `[Format "ICCS"]` says.

    python -m experiments.pgn match.jsonl > games.pgn

Red is what UCI calls White; its player stands in both tags, as xiangqi programs read `Red` and chess tools `White`.
The text has no comments, which some readers take for moves. A round is the number of the pair, counted from 1, and
of the game in the pair.
"""

import argparse
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from experiments.adjudication import ADJUDICATED_DRAW, ADJUDICATED_WIN
from experiments.game_record import GameRecord
from experiments.match_log import LogError, engine_names, read_log
from experiments.play import ENGINE_FAILURE, ILLEGAL_MOVE, TIME_FORFEIT
from experiments.rulebook import LENGTH_LIMIT, START_FEN
from experiments.time_control import TimeControl, parse_time_control

LINE_WIDTH = 80
UNKNOWN_DATE = "????.??.??"
TERMINATIONS = {  # in PGN's words; any other end is a normal one
    TIME_FORFEIT: "time forfeit",
    ILLEGAL_MOVE: "rules infraction",
    ENGINE_FAILURE: "abandoned",
    ADJUDICATED_WIN: "adjudication",
    ADJUDICATED_DRAW: "adjudication",
    LENGTH_LIMIT: "adjudication",
}


class PgnError(ValueError):
    """A file that cannot take the games of a match; the message is a sentence."""


class PgnFile:
    """A file that holds the games of a log, and gets each new one in one piece.

    What is there already must be how these games begin: a file that an interruption cut short is completed, and
    one with other games is left alone (PgnError).
    """

    def __init__(self, path: Path, settings: dict, records: Iterable[GameRecord]):
        self._path = path
        self._settings = settings
        present = path.read_bytes() if path.exists() else b""
        wanted = "".join(game_text(record, settings) for record in records).encode()
        if not wanted.startswith(present):
            raise PgnError(
                f"{path} does not hold the games of this match's log; expected another name, or no such file."
            )
        self._append(wanted[len(present) :])

    def add(self, record: GameRecord) -> None:
        self._append(game_text(record, self._settings).encode())

    def _append(self, text: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(text)


def game_text(record: GameRecord, settings: dict) -> str:
    """One game, with the empty line that ends it. settings: those of the log."""
    tags = "".join(f'[{name} "{_escaped(value)}"]\n' for name, value in _tags(record, settings).items())
    words = [*move_words(record.moves.split(), record.fen), record.result]
    movetext = textwrap.fill(" ".join(words), LINE_WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"{tags}\n{movetext}\n\n"


def _tags(record: GameRecord, settings: dict) -> dict[str, str]:
    tags = {
        "Game": "Chinese Chess",
        "Event": " vs ".join(engine_names(settings)),
        "Site": "?",
        "Date": record.started[:10].replace("-", ".") or UNKNOWN_DATE,
        "Round": f"{record.pair + 1}.{record.game % 2 + 1}",
        "White": record.white,
        "Red": record.white,
        "Black": record.black,
        "Result": record.result,
        "Format": "ICCS",
        "Termination": TERMINATIONS.get(record.reason, "normal"),
        "TerminationDetails": record.reason,
        **_time_controls(record, settings),
    }
    if record.fen != START_FEN:
        tags |= {"SetUp": "1", "FEN": record.fen}
    return tags


def _time_controls(record: GameRecord, settings: dict) -> dict[str, str]:
    """One tag, or one a side if the engines have different times."""
    times = {
        engine["name"]: time_text(parse_time_control(engine["time"] or settings["time"]))
        for engine in settings["engines"]
    }
    white, black = times[record.white], times[record.black]
    return {"TimeControl": white} if white == black else {"WhiteTimeControl": white, "BlackTimeControl": black}


def time_text(control: TimeControl) -> str:
    """A time control in seconds: 60+0.5 for a clock, 0.1/move for a time by the move; nodes as `20000 nodes/move`."""
    if control.nodes:
        return f"{control.nodes} nodes/move"
    if control.movetime_ms:
        return f"{control.movetime_ms / 1000:g}/move"
    return f"{control.base_ms / 1000:g}+{control.increment_ms / 1000:g}"


def move_words(moves: Iterable[str], fen: str = START_FEN) -> list[str]:
    """Moves in ICCS, with their numbers before them; moves and numbers are those of a game from `fen`."""
    side, number = fen.split()[1], int(fen.split()[5])
    black_to_move = side == "b"
    words = [f"{number}..."] if black_to_move else []
    for move in moves:
        if not black_to_move:
            words.append(f"{number}.")
        words.append(f"{move[:2]}-{move[2:]}".upper())
        number += black_to_move
        black_to_move = not black_to_move
    return words


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def main() -> int:
    parser = argparse.ArgumentParser(description="Print the games of a match's log as PGN.")
    parser.add_argument("log", type=Path)
    try:
        settings, records = read_log(parser.parse_args().log)
    except (LogError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for record in records:
        sys.stdout.write(game_text(record, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
