"""Training positions as lines of text, `FEN | score | result`, the way other trainers read and write them.

Both numbers are from White's view: the score in internal units (not centipawns, which depend on a model), the result
1.0 if White won, 0.5 for a draw, 0.0 if Black won. The depth of the search is lost, and so is which of two equal
pieces is which.
"""

from collections.abc import Iterable

import numpy as np

from games.xiangqi.bulk_fen import parse_texts
from games.xiangqi.fen import SIDE_LETTERS, piece_letter
from games.xiangqi.geometry import BLACK, FILES, NO_SQUARE, PIECES, RANKS, SQUARES
from nnue_jax.training.records import RECORD, RecordsError

RESULT_TEXTS = ("0.0", "0.5", "1.0")  # by White's result + 1
_MAX_SCORE = 32767

_ROW = FILES + 1  # a rank and the slash behind it
_OFF_BOARD = RANKS * _ROW - 1  # a column for pieces that are gone


def _columns() -> np.ndarray:
    """[256] int64: place of a square in a placement without digits."""
    columns = np.full(NO_SQUARE + 1, _OFF_BOARD)
    squares = np.arange(SQUARES)
    columns[:SQUARES] = (RANKS - 1 - squares // FILES) * _ROW + squares % FILES
    return columns


_COLUMNS = _columns()
_EMPTY_BOARD = np.frombuffer("/".join(["." * FILES] * RANKS).encode() + b"\n", np.uint8)


def placements(packed: np.ndarray) -> list[str]:
    """First field of the FEN of each of [n] PACKED."""
    boards = np.tile(_EMPTY_BOARD, (len(packed), 1))
    rows = np.arange(len(packed))
    for piece in range(PIECES):
        boards[rows, _COLUMNS[packed["square_of"][:, piece]]] = ord(piece_letter(piece))
    boards[:, _OFF_BOARD] = ord("\n")
    text = boards.tobytes().decode()
    for run in range(FILES, 0, -1):
        text = text.replace("." * run, str(run))
    return text.splitlines()


def format_lines(records: np.ndarray) -> list[str]:
    """A line, without its end, for each of [n] RECORD."""
    packed = records["packed"]
    side = packed["side"].astype(np.int64)
    sign = 1 - 2 * side
    columns = (
        placements(packed),
        side.tolist(),
        packed["rule60"].tolist(),
        (1 + (records["ply"] - side) // 2).tolist(),
        (records["score"] * sign).tolist(),
        (records["result"] * sign).tolist(),
    )
    return [
        f"{placement} {SIDE_LETTERS[side]} - - {rule60} {fullmove} | {score} | {RESULT_TEXTS[result + 1]}"
        for placement, side, rule60, fullmove, score, result in zip(*columns, strict=True)
    ]


def parse_lines(lines: Iterable[str], first_number: int = 1) -> np.ndarray:
    """[n] RECORD from lines; RecordsError, which names the line's number, for the first that is refused."""
    lines = [line.strip() for line in lines]
    parsed = [_parse_numbers(line, number) for number, line in enumerate(lines, first_number)]
    fens, scores, results, fullmoves = zip(*parsed, strict=True) if parsed else ((), (), (), ())
    encoded = [fen.encode() for fen in fens]
    ends = np.cumsum([len(fen) for fen in encoded], dtype=np.int64)
    starts = ends - [len(fen) for fen in encoded] if encoded else ends
    bulk = parse_texts(np.frombuffer(b"".join(encoded), np.uint8), starts, ends, stop=True)
    for number, reason in bulk.refusals.items():
        raise RecordsError(f"Line {first_number + number}, '{lines[number]}': {reason}")
    records = np.zeros(len(lines), RECORD)
    records["packed"] = bulk.packed
    side = bulk.packed["side"].astype(np.int64)
    sign = 1 - 2 * (side == BLACK)
    records["ply"] = np.maximum(2 * (np.array(fullmoves, np.int64) - 1), 0) + side
    records["score"] = np.array(scores, np.int64) * sign
    records["result"] = np.array(results, np.int64) * sign
    return records


def _parse_numbers(line: str, number: int) -> tuple[str, int, int, int]:
    """(FEN, score, White's result, move number) of a line."""
    fields = line.split("|")
    if len(fields) != 3:
        raise RecordsError(f"Line {number}, '{line}', has {len(fields)} fields; expected FEN | score | result.")
    fen, score, result = (field.strip() for field in fields)
    try:
        points = {0.0: -1, 0.5: 0, 1.0: 1}[float(result)]
        units = int(score)
    except (ValueError, KeyError) as error:
        raise RecordsError(
            f"Line {number}, '{line}': expected a whole number as the score and 1.0, 0.5 or 0.0 as the result."
        ) from error
    if abs(units) > _MAX_SCORE:
        raise RecordsError(f"Line {number}, '{line}': the score is beyond {_MAX_SCORE}.")
    words = fen.split()
    fullmove = int(words[5]) if len(words) > 5 and words[5].isdecimal() else 1
    return fen, units, points, fullmove
