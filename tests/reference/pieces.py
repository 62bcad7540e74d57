"""Which pieces attack a square, found by walking over a board kept as a dict of square to identity."""

from games.xiangqi.geometry import (
    ADVISOR,
    BISHOP,
    CANNON,
    FILES,
    KIND_OF,
    KING,
    KNIGHT,
    PAWN,
    PIECES_PER_SIDE,
    RANKS,
    ROOK,
    WHITE,
)

CHEAPEST_FIRST = (PAWN, BISHOP, ADVISOR, KNIGHT, CANNON, ROOK, KING)


def attackers(board: dict[int, int], side: int, target: int) -> list[int]:
    """Squares of the pieces of `side` that could capture on target, cheapest kind first."""
    squares = [square for square, piece in board.items() if piece // PIECES_PER_SIDE == side and square != target]
    found = [square for square in squares if attacks(board, square, target)]
    return sorted(found, key=lambda square: CHEAPEST_FIRST.index(int(KIND_OF[board[square]])))


def attacks(board: dict[int, int], origin: int, target: int) -> bool:
    """Whether the piece on origin could capture on target; facing kings do not count."""
    piece = board[origin]
    kind, side = int(KIND_OF[piece]), piece // PIECES_PER_SIDE
    rank, file = divmod(origin, FILES)
    dr, df = target // FILES - rank, target % FILES - file
    if kind in (ROOK, CANNON):
        return _slides(board, origin, target, dr, df, screens=int(kind == CANNON))
    if kind == KNIGHT:
        if sorted((abs(dr), abs(df))) != [1, 2]:
            return False
        leg = origin + (dr // 2 * FILES if abs(dr) == 2 else df // 2)
        return leg not in board
    if kind == BISHOP:
        same_half = (target // FILES < RANKS // 2) == (rank < RANKS // 2)
        return abs(dr) == abs(df) == 2 and same_half and (origin + target) // 2 not in board
    if kind == ADVISOR:
        return abs(dr) == abs(df) == 1 and _in_palace(target)
    if kind == KING:
        return abs(dr) + abs(df) == 1 and _in_palace(target)
    forward = 1 if side == WHITE else -1
    crossed = (rank >= RANKS // 2) == (side == WHITE)
    return (dr, df) == (forward, 0) or (crossed and dr == 0 and abs(df) == 1)


def _in_palace(square: int) -> bool:
    rank, file = divmod(square, FILES)
    return 3 <= file <= 5 and (rank <= 2 or rank >= 7)


def _slides(board: dict[int, int], origin: int, target: int, dr: int, df: int, screens: int) -> bool:
    if (dr == 0) == (df == 0):
        return False
    step = (FILES if dr > 0 else -FILES) if dr else (1 if df > 0 else -1)
    between = sum(square in board for square in range(origin + step, target, step))
    return between == screens
