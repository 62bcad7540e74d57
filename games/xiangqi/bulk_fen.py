"""Reading FENs in bulk: from a block of bytes to PACKED records, millions a second.

The kernel accepts and refuses what `parse_fen` does. Where a text is odd (bytes that are not ASCII, a counter such as
`+1` or `1_0`) it does not decide but leaves the line to `parse_fen`, which also words every refusal. So
`parse_fen` says what a FEN is, and the kernel is only its fast twin.

An EPD line, four fields and operations such as `bm h2e2; id "x";`, is read as the FEN of its four fields: the fifth and
the sixth field belong to the FEN only if they are numbers.
"""

import re
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numba import int64, uint64

from games.jit import kernel, leaf
from games.memory import address_of, load_u8, store_u8
from games.xiangqi.attacks import king_attacked
from games.xiangqi.fen import MAX_FULLMOVE, MAX_RULE60, PositionError, parse_fen
from games.xiangqi.geometry import (
    BLACK,
    EMPTY,
    FILES,
    FIRST_OF_KIND,
    KIND_LETTERS,
    KINDS,
    MAX_OF_KIND,
    NO_SQUARE,
    PIECES,
    PIECES_PER_SIDE,
    RANKS,
    SQUARES,
    WHITE,
    flip_ranks,
    standing_squares,
)
from games.xiangqi.packed import PACKED, pack

# What the kernel says of a line.
ACCEPTED, REFUSED, UNDECIDED = range(3)

# The places of counted pieces: side * KINDS + kind, and one for everything else in a placement.
_NO_PIECE = 2 * KINDS
# [15] int64, by place: first identity, how many there may be, and one in a word of counts of four bits each.
_FIRST_IDENTITY = np.array(
    [side * PIECES_PER_SIDE + first for side in (0, 1) for first in FIRST_OF_KIND[:KINDS]] + [EMPTY]
)
_MAX_NUMBER = np.array([*MAX_OF_KIND, *MAX_OF_KIND, 1])
_COUNT_BITS = 4
_COUNT_UNIT = np.array([1 << _COUNT_BITS * place for place in range(_NO_PIECE)] + [0])
_WHITE_KINGS = 1
_BLACK_KINGS = 1 << _COUNT_BITS * KINDS

# What a byte means, in bits: place, number of files it covers, and what it is besides.
_PLACE_MASK = 15
_WIDTH_SHIFT, _WIDTH_MASK = 4, 15
_SLASH_SHIFT = 8
_SLASH, _SPACE, _NOT_ASCII, _BAD = 1 << _SLASH_SHIFT, 1 << 9, 1 << 10, 1 << 11
_NO_PLACEMENT = _SPACE | _NOT_ASCII | _BAD  # what ends a placement

# A position as far as `king_attacked` looks at it, with room for what the loop over a placement writes needlessly.
_BOARD_SIZE = 96
_NO_TARGET = _BOARD_SIZE - 1
_BOARD = np.dtype(
    [
        ("board", "u1", (_BOARD_SIZE,)),
        ("square_of", "u1", (PIECES + 1,)),
        ("ranks", "u2", (RANKS,)),
        ("files", "u2", (FILES + 1,)),
    ],
    align=True,
)

_MAX_DIGITS = 9  # of a counter that the kernel reads
_NO_NUMBER = -1  # of a field that is not a number
_ODD_NUMBER = -2  # of a field of which Python must say whether it is one

# Numbers, because a kernel that calls `ord` imports all that Numba knows of strings, each time that it is loaded.
_LINE_END = ord("\n")
_COMMENT = ord("#")
_ZERO, _PLUS, _MINUS, _UNDERSCORE = map(ord, "0+-_")
_WHITE_TO_MOVE, _BLACK_TO_MOVE = map(ord, "wb")
_FIELD = re.compile(r"\S+")
_FEN_FIELDS = 6
_PLAIN_FIELDS = 4  # of an EPD line


def _byte_codes() -> np.ndarray:
    """[256] uint16"""
    codes = np.full(256, _NO_PIECE | _BAD, np.uint16)
    codes[128:] = _NO_PIECE | _NOT_ASCII
    for byte in range(128):
        if chr(byte).isspace():
            codes[byte] = _NO_PIECE | _SPACE
    codes[ord("/")] = _NO_PIECE | _SLASH
    for digit in range(1, 10):
        codes[ord(str(digit))] = _NO_PIECE | digit << _WIDTH_SHIFT
    for kind, letter in enumerate(KIND_LETTERS):
        codes[ord(letter)] = (WHITE * KINDS + kind) | 1 << _WIDTH_SHIFT
        codes[ord(letter.lower())] = (BLACK * KINDS + kind) | 1 << _WIDTH_SHIFT
    return codes


def _standing_table() -> np.ndarray:
    """[15 * 96] uint8: whether what is counted in a place may stand on a square."""
    table = np.zeros((_NO_PIECE + 1, _BOARD_SIZE), np.uint8)
    table[_NO_PIECE] = 1
    for kind in range(KINDS):
        squares = standing_squares(kind)
        table[WHITE * KINDS + kind, squares] = 1
        table[BLACK * KINDS + kind, [flip_ranks(square) for square in squares]] = 1
    return table.ravel()


_BYTE_CODES = _byte_codes()
_MAY_STAND = _standing_table()


@leaf
def _code(text, i):
    return int64(_BYTE_CODES[load_u8(text, i)])


@leaf
def _clear(position):
    for square in range(SQUARES):
        position.board[square] = EMPTY
    for piece in range(PIECES):
        position.square_of[piece] = NO_SQUARE
    for file in range(FILES):
        position.files[file] = 0


@leaf
def _read_placement(text, i, end, position):
    """(verdict, index behind the field) of the placement that starts at i, set up in `position`.

    Pieces, digits and slashes come in no order that a processor could foresee, so all go the same way: those that
    are no piece have a count that stays zero, an identity that is EMPTY and a target off the board. The indices are
    unsigned so that none can count from the end.
    """
    _clear(position)
    rank = int64(RANKS - 1)
    file = int64(0)
    occupied = int64(0)
    counts = int64(0)
    is_right = int64(1)
    code = int64(0)
    while i < end and rank >= 0:
        code = _code(text, i)
        width = (code >> _WIDTH_SHIFT) & _WIDTH_MASK
        if (code & _NO_PLACEMENT) != 0 or file + width > FILES:
            break
        place = code & _PLACE_MASK
        is_piece = int64(place != _NO_PIECE)
        number = (counts >> _COUNT_BITS * place) & 15
        counts += _COUNT_UNIT[place]
        piece = _FIRST_IDENTITY[place] + number
        square = rank * FILES + file
        is_right &= int64(_MAY_STAND[uint64(place * _BOARD_SIZE + square)]) & int64(number < _MAX_NUMBER[place])
        position.board[uint64(square if is_piece else _NO_TARGET)] = piece
        position.square_of[uint64(min(piece, PIECES))] = square
        position.files[uint64(file)] |= is_piece << rank
        occupied |= is_piece << file
        position.ranks[uint64(rank)] = occupied
        is_slash = (code >> _SLASH_SHIFT) & 1
        is_right &= int64(file == FILES) | (1 - is_slash)
        file = int64(0) if is_slash else file + width
        occupied = int64(0) if is_slash else occupied
        rank -= is_slash
        i += 1
    if i < end and (code & _NOT_ASCII) != 0:
        return int64(UNDECIDED), i
    has_kings = (counts & _WHITE_KINGS) != 0 and (counts & _BLACK_KINGS) != 0
    if (i < end and (code & _SPACE) == 0) or rank != 0 or file != FILES or not is_right or not has_kings:
        return int64(REFUSED), i
    return int64(ACCEPTED), i


@leaf
def _skip_spaces(text, i, end):
    while i < end and (_code(text, i) & _SPACE) != 0:
        i += 1
    return i


@leaf
def _skip_field(text, i, end):
    """(index behind the field that starts at i, whether it is all ASCII)."""
    is_ascii = True
    while i < end and (_code(text, i) & _SPACE) == 0:
        is_ascii = is_ascii and load_u8(text, i) < 128
        i += 1
    return i, is_ascii


@leaf
def _read_number(text, i, end):
    """(number of the field that starts at i, index behind it); a negative number for a field that is none."""
    start = i
    number = int64(0)
    is_odd = False
    while i < end and (_code(text, i) & _SPACE) == 0:
        byte = int64(load_u8(text, i))
        digit = byte - _ZERO
        if 0 <= digit <= 9:
            number = number * 10 + digit
            is_odd = is_odd or i - start >= _MAX_DIGITS
        elif byte >= 128 or byte == _PLUS or byte == _MINUS or byte == _UNDERSCORE:
            is_odd = True
        else:
            # No integer that Python reads has such a character in it, but the field may end before, at a Unicode space.
            return int64(_ODD_NUMBER if is_odd else _NO_NUMBER), i
        i += 1
    if is_odd:
        number = int64(_ODD_NUMBER)
    if i == start or (i == start + 1 and load_u8(text, start) == _MINUS):
        number = int64(_NO_NUMBER)
    return number, i


@leaf
def _read_counters(text, i, end):
    """(verdict, rule60, index behind the FEN) of what follows the side to move and ends at i.

    The third and the fourth field are ignored, but belong to the FEN.
    """
    fen_end = i
    for _ in range(2):
        i = _skip_spaces(text, i, end)
        if i == end:
            return int64(ACCEPTED), int64(0), fen_end
        i, is_ascii = _skip_field(text, i, end)
        if not is_ascii:  # it may hold a space that only Unicode knows
            return int64(UNDECIDED), int64(0), i
        fen_end = i
    rule60, i = _read_number(text, _skip_spaces(text, i, end), end)
    if rule60 < 0:
        return int64(UNDECIDED if rule60 == _ODD_NUMBER else ACCEPTED), int64(0), fen_end
    if rule60 > MAX_RULE60:
        return int64(REFUSED), int64(0), i
    fen_end = i
    fullmove, i = _read_number(text, _skip_spaces(text, i, end), end)
    if fullmove == _ODD_NUMBER:
        return int64(UNDECIDED), int64(0), i
    if fullmove > MAX_FULLMOVE:
        return int64(REFUSED), int64(0), i
    return int64(ACCEPTED), rule60, (fen_end if fullmove < 0 else i)


@leaf
def _read_fen(text, start, end, position, packed):
    """(verdict, index behind the FEN) of the text that starts with its first field; fills `packed` if accepted."""
    verdict, i = _read_placement(text, start, end, position)
    if verdict != ACCEPTED:
        return verdict, i
    i = _skip_spaces(text, i, end)
    field = i
    i, is_ascii = _skip_field(text, i, end)
    if not is_ascii:
        return int64(UNDECIDED), i
    if i - field != 1 or (load_u8(text, field) != _WHITE_TO_MOVE and load_u8(text, field) != _BLACK_TO_MOVE):
        return int64(REFUSED), i
    side = int64(load_u8(text, field) == _BLACK_TO_MOVE)
    verdict, rule60, i = _read_counters(text, i, end)
    if verdict != ACCEPTED:
        return verdict, i
    if king_attacked(position, 1 - side):
        return int64(REFUSED), i
    for piece in range(PIECES):
        packed.square_of[piece] = position.square_of[piece]
    packed.side = side
    packed.in_check = king_attacked(position, side)
    packed.rule60 = rule60
    return int64(ACCEPTED), i


@kernel
def _read_fens(text, start, end, position, packed, verdicts):
    """Read the FEN in each text[start[i] : end[i]], both of which are moved to where the FEN begins and ends.

    Where the verdict is not ACCEPTED, start and end stay and the PACKED record is not filled. `position` is scratch.
    """
    for i in range(len(start)):
        first = _skip_spaces(text, start[i], end[i])
        verdict, last = _read_fen(text, first, end[i], position, packed[i])
        verdicts[i] = verdict
        if verdict == ACCEPTED:
            start[i] = first
            end[i] = last


@kernel
def _count_line_ends(text):
    count = int64(0)
    for i in range(len(text)):
        count += text[i] == _LINE_END
    return count


@kernel
def _find_lines(text, size, start, end):
    """Start and end of all lines that are not blank and no comments; returns their number."""
    count = int64(0)
    i = int64(0)
    while i < size:
        first = i
        while i < size and load_u8(text, i) != _LINE_END:
            i += 1
        begin = _skip_spaces(text, first, i)
        if begin < i and load_u8(text, begin) != _COMMENT:
            start[count] = begin
            end[count] = i
            count += 1
        i += 1
    return count


@kernel
def _copy_texts(text, start, end, offsets, data):
    """Put the texts one behind the other into `data`; offsets [n + 1] says where each begins and the last ends."""
    size = int64(0)
    for i in range(len(start)):
        offsets[i] = size
        begin = start[i]
        length = end[i] - begin
        for j in range(length):
            store_u8(data, size + j, load_u8(text, begin + j))
        size += length
    offsets[len(start)] = size


@dataclass
class BulkFens:
    """n texts that were read as FENs.

    text         [.] uint8, the bytes
    start, end   [n] int64, where each FEN lies in `text`, without what follows it in an EPD line
    packed       [n] PACKED; zero where refused
    refusals     why a text was refused, by its number; in ascending order
    source       [n] int64, where each text begins in the text that was given
    verdicts     [n] uint8, what the kernel said
    """

    text: np.ndarray
    start: np.ndarray
    end: np.ndarray
    packed: np.ndarray
    refusals: dict[int, str]
    source: np.ndarray
    verdicts: np.ndarray

    def __len__(self) -> int:
        return len(self.packed)

    def compact(self) -> tuple[np.ndarray, np.ndarray]:
        """(offsets [n + 1] int32, data [.] uint8): the FENs alone, UTF-8, one behind the other."""
        offsets = np.zeros(len(self) + 1, np.int32)
        data = np.empty(int((self.end - self.start).sum()), np.uint8)
        _copy_texts(address_of(self.text), self.start, self.end, offsets, address_of(data))
        return offsets, data


def count_line_ends(text: np.ndarray) -> int:
    return int(_count_line_ends(text))


def parse_lines(text: np.ndarray, stop: bool = False) -> BulkFens:
    """Read [.] uint8 of text, one FEN or EPD line a line; blank lines and comments, which begin with #, are left out.

    With `stop` only the first refusal is looked for, and what follows it is not read to the end.
    """
    capacity = count_line_ends(text) + 1
    start, end = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    count = _find_lines(address_of(text), len(text), start, end)
    return parse_texts(text, start[:count], end[:count], stop)


def parse_texts(text: np.ndarray, start: np.ndarray, end: np.ndarray, stop: bool = False) -> BulkFens:
    """Read the FEN or EPD line in each text[start[i] : end[i]], int64 [n]; `stop` as above."""
    packed = np.zeros(len(start), PACKED)
    verdicts = np.zeros(len(start), np.uint8)
    fens = BulkFens(text, start.copy(), end.copy(), packed, {}, start, verdicts)
    _read_fens(address_of(text), fens.start, fens.end, np.zeros(1, _BOARD)[0], packed, verdicts)
    rewritten = []
    size = len(text)
    for number in np.flatnonzero(verdicts != ACCEPTED).tolist():
        fen = _read_slowly(fens, number, text[start[number] : end[number]].tobytes())
        rewritten.append(np.frombuffer(fen.encode(), np.uint8))
        fens.start[number] = size
        size += len(rewritten[-1])
        fens.end[number] = size
        if stop and fens.refusals:
            break
    if rewritten:
        fens.text = np.concatenate([text, *rewritten])
    return fens


def _read_slowly(fens: BulkFens, number: int, line: bytes) -> str:
    """Read one line with `parse_fen`: fills its record or notes why not; returns the FEN in it."""
    text = line.decode(errors="replace")
    fen = fen_part(text)
    try:
        if "\N{REPLACEMENT CHARACTER}" in fen and text.encode() != line:
            raise PositionError(f"The FEN '{fen}' is not text in UTF-8.")
        fens.packed[number] = pack([parse_fen(fen)])[0]
    except PositionError as error:
        fens.refusals[number] = str(error)
    return fen


def fen_part(line: str) -> str:
    """What belongs to the FEN in a FEN or EPD line: four fields, and those two that follow if they are numbers."""
    fields = list(islice(_FIELD.finditer(line), _FEN_FIELDS))
    count = min(len(fields), _PLAIN_FIELDS)
    while count < len(fields) and _is_number(fields[count].group()):
        count += 1
    return line[fields[0].start() : fields[count - 1].end()] if fields else ""


def _is_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True
