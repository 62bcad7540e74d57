"""Roots in bulk: how they get into searchers, and what is found about them, without Python in between.

ROOT, a position to search
    number       i8   by which its outcome is known again
    packed       PACKED
    counters     COUNTERS of the position
    line         i8   index in the array of LINEs that led to roots, or -1 if nothing did
    last         i8   index of the position in its line

FOUND_LINE, one of the best lines of a root
    move               i8   NO_MOVE if there is none
    score              i8   internal units, from the side to move's view
    bound              i8   what the score is: EXACT, LOWER or UPPER of `transposition`
    depth, selective_depth  i8   plies
    pv_length, pv      u2 [MAX_PLY]

OUTCOME, of a root
    number       i8   of the ROOT
    nodes        i8
    material     i8   count of the win-rate model
    line_count   i8   of its FOUND_LINEs, which lie in an array [., multi_pv] beside the outcomes
"""

import numpy as np
from numba import int64

from games.jit import leaf
from games.memory import load_i32
from games.xiangqi.geometry import EMPTY, FILES, NO_MOVE, NO_SQUARE, PIECES, RANKS, SQUARES
from games.xiangqi.line import COUNTERS, begin_line_kernel
from games.xiangqi.movegen import generate_legal
from games.xiangqi.packed import PACKED, unpack
from games.xiangqi.tables import ZOBRIST, ZOBRIST_SIDE
from nnue_jax.value import MAX_PLY
from search.layout import INFINITE, MATE, NEVER, NO_VALUE
from search.root import sort_root_moves
from search.transposition import EXACT

NO_LINE = -1

ROOT = np.dtype(
    [("number", "i8"), ("packed", PACKED), ("counters", COUNTERS), ("line", "i8"), ("last", "i8")], align=True
)

FOUND_LINE = np.dtype(
    [
        ("move", "i8"),
        ("score", "i8"),
        ("bound", "i8"),
        ("depth", "i8"),
        ("selective_depth", "i8"),
        ("pv_length", "i8"),
        ("pv", "u2", (MAX_PLY,)),
    ],
    align=True,
)

OUTCOME = np.dtype([("number", "i8"), ("nodes", "i8"), ("material", "i8"), ("line_count", "i8")])

_begin_line = leaf(begin_line_kernel.py_func)


@leaf
def copy_position(source, target):
    for square in range(SQUARES):
        target.board[square] = source.board[square]
    for piece in range(PIECES + 1):
        target.square_of[piece] = source.square_of[piece]
    for rank in range(RANKS):
        target.ranks[rank] = source.ranks[rank]
    for file in range(FILES):
        target.files[file] = source.files[file]
    target.side = source.side
    target.key = source.key
    target.material = source.material


@leaf
def copy_counters(source, target):
    target.rule60 = source.rule60
    target.checks[0] = source.checks[0]
    target.checks[1] = source.checks[1]
    target.since_pass = source.since_pass


@leaf
def _set_root_move(searcher, i, move):
    root_move = searcher.root_moves[i]
    root_move.move = move
    root_move.score = -INFINITE
    root_move.previous_score = -INFINITE
    root_move.average_score = NO_VALUE
    root_move.nodes = 0
    root_move.pv_length = 1
    root_move.pv[0] = move
    searcher.root_order[i] = i


@leaf
def list_root_moves(searcher, position):
    """Make the legal moves of `position` the root moves of the next search; returns their number."""
    count = generate_legal(position, searcher.moves, int64(0))
    for i in range(count):
        _set_root_move(searcher, i, int64(load_i32(searcher.moves, i)))
    searcher.root_count = count
    return count


@leaf
def set_root_moves(searcher, moves):
    """Make [n] i8 moves the root moves of the next search."""
    for i in range(len(moves)):
        _set_root_move(searcher, i, moves[i])
    searcher.root_count = len(moves)


@leaf
def copy_packed(source, target):
    for piece in range(PIECES):
        target.square_of[piece] = source.square_of[piece]
    target.side = source.side
    target.in_check = source.in_check
    target.rule60 = source.rule60


@leaf
def set_position(packed, position):
    """Set up a whole POSITION record from a PACKED one."""
    unpack(packed, position)
    position.square_of[EMPTY] = NO_SQUARE
    key = int64(0)
    for piece in range(PIECES):
        square = int64(packed.square_of[piece])
        if square != NO_SQUARE:
            key ^= ZOBRIST[piece * SQUARES + square]
    if packed.side:
        key ^= ZOBRIST_SIDE
    position.key = key


@leaf
def set_root(searcher, root, lines):
    """Put a ROOT into a searcher, all but its moves."""
    set_position(root.packed, searcher.position)
    copy_counters(root.counters, searcher.root_counters)
    if root.line == NO_LINE:
        searcher.root_index = 0
        _begin_line(searcher.position, searcher.line)
    else:
        searcher.root_index = root.last
        line = lines[root.line]
        for i in range(root.last + 1):
            searcher.line.keys[i] = line.keys[i]
            searcher.line.moves[i] = line.moves[i]
            searcher.line.in_check[i] = line.in_check[i]
    searcher.verbose_from = NEVER


@leaf
def _note_line(searcher, root_move, line):
    """What a root move is worth so far, and the line that says so."""
    line.move = root_move.move
    line.score = root_move.score
    line.bound = root_move.bound
    line.depth = searcher.depth
    line.selective_depth = root_move.selective_depth
    if line.score == -INFINITE:
        line.score = root_move.previous_score
        line.bound = EXACT
        line.depth = max(1, searcher.depth - 1)
    if line.score == -INFINITE:
        line.score = 0  # stopped before it was searched at all
    line.pv_length = root_move.pv_length
    for i in range(root_move.pv_length):
        line.pv[i] = root_move.pv[i]


@leaf
def note_lines(searcher, lines):
    """Note the best lines of the iteration that is complete or was cut short; returns their number."""
    count = min(searcher.multi_pv, searcher.root_count)
    sort_root_moves(searcher, min(searcher.pv_index, searcher.root_count), searcher.root_count)
    for i in range(count):
        _note_line(searcher, searcher.root_moves[searcher.root_order[i]], lines[i])
    return count


@leaf
def note_last_lines(searcher, lines):
    """The same when the search ends: what the last whole iteration noted stays if the move is still the best."""
    sort_root_moves(searcher, min(searcher.pv_index, searcher.root_count), searcher.root_count)
    best = searcher.root_moves[searcher.root_order[0]].move
    if lines[0].move != best:
        note_lines(searcher, lines)
    return min(searcher.multi_pv, searcher.root_count)


@leaf
def note_lost(lines):
    """A root without a legal move: mate and stalemate lose alike."""
    line = lines[0]
    line.move = NO_MOVE
    line.score = -MATE
    line.bound = EXACT
    line.depth = 0
    line.selective_depth = 0
    line.pv_length = 0
