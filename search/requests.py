"""What searchers ask evaluators for: the batch of a group, the evaluation cache, and guesses at what is asked for next.

The evaluation cache is an array of pairs of words, key ^ data and data, so that a torn write is a miss. Data are
positional in the lower half, one bit that says whether the value was guessed at and not used yet, and psqt above it.
"""

from numba import int32, int64

from games.jit import leaf, routine
from games.memory import load_i32, load_i64, store_i64
from games.xiangqi.attacks import is_legal, king_attacked
from games.xiangqi.geometry import PIECES
from games.xiangqi.movegen import generate_all, generate_captures
from games.xiangqi.position import make_move, unmake_move
from search.nodes import EVALUATED

PSQT_SHIFT = 33
GUESS_BIT = 1 << 32


@leaf
def recall(cache, mask, key):
    """Data word of a position in the evaluation cache, or 0."""
    place = 2 * (key & mask)
    data = load_i64(cache, place + 1)
    return data if load_i64(cache, place) ^ data == key else int64(0)


@leaf
def _write(cache, mask, key, data):
    place = 2 * (key & mask)
    store_i64(cache, place, key ^ data)
    store_i64(cache, place + 1, data)


@leaf
def remember(group, arrays):
    """Put the outputs of the batch into the evaluation cache."""
    if group.cache == 0:
        return
    for i in range(group.requests):
        psqt, positional = int64(arrays.outputs[0, i]), int64(arrays.outputs[1, i])
        guess = GUESS_BIT if i >= group.waiting else int64(0)
        data = psqt << PSQT_SHIFT | guess | positional & 0xFFFFFFFF
        _write(group.cache, group.cache_mask, arrays.keys[i], data)


@leaf
def deliver(searcher, psqt, positional):
    searcher.evaluator.psqt = psqt
    searcher.evaluator.positional = positional


@leaf
def is_known(group, searcher):
    """Whether the cache has the value that a searcher asks for, which then is delivered."""
    if group.cache == 0:
        return False
    key = searcher.position.key
    data = recall(group.cache, group.cache_mask, key)
    if data == 0:
        return False
    deliver(searcher, data >> PSQT_SHIFT, int64(int32(data)))
    group.cache_hits += 1
    if data & GUESS_BIT:
        group.guess_hits += 1
        _write(group.cache, group.cache_mask, key, data ^ GUESS_BIT)
    return True


@leaf
def append_request(group, arrays, position):
    place = group.requests
    packed = arrays.batch[place]
    for piece in range(PIECES):
        packed.square_of[piece] = position.square_of[piece]
    packed.side = position.side
    arrays.keys[place] = position.key
    group.requests = place + 1
    return place


@leaf
def _is_cached(group, key):
    return recall(group.cache, group.cache_mask, key) != 0


@routine
def guess_children(group, arrays, searcher):
    """Fill the batch with the positions after the moves of the node at which a searcher waits.

    Quiescence goes on with captures only. Positions in check are never evaluated.
    """
    position = searcher.position
    frame = searcher.frames[searcher.top]
    if frame.in_check:
        return
    moves = searcher.moves
    first = int64(frame.end)
    if searcher.phase == EVALUATED:
        end = generate_all(position, moves, first)
    else:
        end = generate_captures(position, moves, first)
    for i in range(first, end):
        if group.requests >= group.guess_room:
            return
        move = int64(load_i32(moves, i))
        if not is_legal(position, move, False):
            continue
        captured = make_move(position, move)
        if not king_attacked(position, int64(position.side)) and not _is_cached(group, position.key):
            append_request(group, arrays, position)
        unmake_move(position, move, captured)
