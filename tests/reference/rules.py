"""The moves of xiangqi in plain Python: the board is a dict, and no table is involved.

A board maps (file, rank), files 0 to 8 for a to i, to a FEN letter: upper case for White, who plays up the board.
"""

from collections.abc import Iterator

Square = tuple[int, int]
Board = dict[Square, str]

ORTHOGONAL = ((1, 0), (-1, 0), (0, 1), (0, -1))
DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))


def parse(fen: str) -> tuple[Board, bool]:
    """(board, whether White is to move) of a valid FEN."""
    placement, side = fen.split()[:2]
    board = {}
    for rank, row in enumerate(reversed(placement.split("/"))):
        file = 0
        for letter in row:
            if letter.isdigit():
                file += int(letter)
            else:
                board[file, rank] = letter
                file += 1
    return board, side == "w"


def name(square: Square) -> str:
    return "abcdefghi"[square[0]] + str(square[1])


def on_board(square: Square) -> bool:
    return 0 <= square[0] <= 8 and 0 <= square[1] <= 9


def in_palace(square: Square, white: bool) -> bool:
    file, rank = square
    return 3 <= file <= 5 and (0 <= rank <= 2 if white else 7 <= rank <= 9)


def on_own_half(square: Square, white: bool) -> bool:
    return square[1] <= 4 if white else square[1] >= 5


def walk(square: Square, step: Square) -> Iterator[Square]:
    """The squares from `square`, exclusive, to the edge of the board."""
    file, rank = square[0] + step[0], square[1] + step[1]
    while on_board((file, rank)):
        yield file, rank
        file, rank = file + step[0], rank + step[1]


def king_targets(board: Board, square: Square, white: bool) -> Iterator[Square]:
    for df, dr in ORTHOGONAL:
        target = square[0] + df, square[1] + dr
        if in_palace(target, white):
            yield target


def advisor_targets(board: Board, square: Square, white: bool) -> Iterator[Square]:
    for df, dr in DIAGONAL:
        target = square[0] + df, square[1] + dr
        if in_palace(target, white):
            yield target


def bishop_targets(board: Board, square: Square, white: bool) -> Iterator[Square]:
    for df, dr in DIAGONAL:
        eye = square[0] + df, square[1] + dr
        target = square[0] + 2 * df, square[1] + 2 * dr
        if on_board(target) and on_own_half(target, white) and eye not in board:
            yield target


def knight_targets(board: Board, square: Square, white: bool) -> Iterator[Square]:
    """One step straight ahead to the leg, which must be empty, then one step diagonally outward."""
    for df, dr in ORTHOGONAL:
        leg = square[0] + df, square[1] + dr
        if leg in board:
            continue
        for turn in (1, -1):
            target = (leg[0] + df, leg[1] + turn) if df else (leg[0] + turn, leg[1] + dr)
            if on_board(target):
                yield target


def rook_targets(board: Board, square: Square, white: bool) -> Iterator[Square]:
    for step in ORTHOGONAL:
        for target in walk(square, step):
            yield target
            if target in board:
                break


def cannon_targets(board: Board, square: Square, white: bool) -> Iterator[Square]:
    """Empty squares up to the first piece, the screen, and the next piece behind it."""
    for step in ORTHOGONAL:
        screens = 0
        for target in walk(square, step):
            if target in board:
                screens += 1
                if screens == 2:
                    yield target
                    break
            elif screens == 0:
                yield target


def pawn_targets(board: Board, square: Square, white: bool) -> Iterator[Square]:
    file, rank = square
    targets = [(file, rank + (1 if white else -1))]
    if not on_own_half(square, white):
        targets += [(file - 1, rank), (file + 1, rank)]
    yield from filter(on_board, targets)


TARGETS = {
    "K": king_targets,
    "A": advisor_targets,
    "B": bishop_targets,
    "N": knight_targets,
    "R": rook_targets,
    "C": cannon_targets,
    "P": pawn_targets,
}


def reachable(board: Board, square: Square) -> Iterator[Square]:
    """Where the piece on `square` could move or capture, its own side's pieces not minded."""
    letter = board[square]
    return TARGETS[letter.upper()](board, square, letter.isupper())


def pseudo_legal_moves(board: Board, white: bool) -> Iterator[tuple[Square, Square]]:
    for square, letter in board.items():
        if letter.isupper() == white:
            for target in reachable(board, square):
                if target not in board or board[target].isupper() != white:
                    yield square, target


def king_square(board: Board, white: bool) -> Square:
    return next(square for square, letter in board.items() if letter == ("K" if white else "k"))


def checkers(board: Board, white: bool) -> list[Square]:
    """Squares of the pieces that could capture the king of one side."""
    king = king_square(board, white)
    return [
        square
        for square, letter in board.items()
        if letter.isupper() != white and any(target == king for target in reachable(board, square))
    ]


def kings_face(board: Board) -> bool:
    king = king_square(board, True)
    for square in walk(king, (0, 1)):
        if square in board:
            return board[square] == "k"
    return False


def attacked(board: Board, white: bool) -> bool:
    """Whether the king of one side is in check or faces the other."""
    return kings_face(board) or bool(checkers(board, white))


def after(board: Board, move: tuple[Square, Square]) -> Board:
    origin, target = move
    moved = {square: letter for square, letter in board.items() if square != origin}
    moved[target] = board[origin]
    return moved


def legal_moves(board: Board, white: bool) -> list[str]:
    """Sorted UCI texts."""
    return sorted(
        name(origin) + name(target)
        for origin, target in pseudo_legal_moves(board, white)
        if not attacked(after(board, (origin, target)), white)
    )
