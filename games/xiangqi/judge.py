"""The judge of repetitions, the 60-move rule and dead material, as kernels.

A position that occurred before ends the game once it is the third occurrence, or, inside a search, the second one after
the root. Who then checked with every move has lost; if nobody did, who newly threatened the same piece with every move
(`chase`) has lost; otherwise, and if both did, it is a draw. A win or loss by a second occurrence alone is provisional,
unless nothing else on the line came up twice, since the offender may still deviate.

A verdict is one word, for the side to move:

    bits 0-1   NO_RESULT, DRAW, WIN or LOSS
    bit  2     FINAL
    bits 3-7   kind: index in KINDS_OF_VERDICT
    bits 8-39  the chased pieces, a bit for each identity
"""

from numba import int64

from games.jit import leaf, routine
from games.xiangqi.chase import threatened_by
from games.xiangqi.dead_material import ALIVE, DEAD_UNLESS_MATE, can_mate_at_once, classify_material, may_be_dead
from games.xiangqi.geometry import EMPTY
from games.xiangqi.line import RULE60_LIMIT, repetition_range
from games.xiangqi.movegen import can_move
from games.xiangqi.position import make_move, unmake_move

NO_RESULT, DRAW, WIN, LOSS = range(4)
FINAL = 4
_RESULT_MASK = 3
_KIND_SHIFT, _KIND_MASK = 3, 31
_VICTIMS_SHIFT = 8

KINDS_OF_VERDICT = (
    "none",
    "repetition",
    "perpetual-check",
    "mutual-perpetual-check",
    "perpetual-chase",
    "mutual-chase",
    "rule60",
    "rule60-mated",
    "insufficient-material",
    "insufficient-material-mated",
)
(
    NOTHING,
    REPETITION,
    PERPETUAL_CHECK,
    MUTUAL_PERPETUAL_CHECK,
    PERPETUAL_CHASE,
    MUTUAL_CHASE,
    RULE60,
    RULE60_MATED,
    INSUFFICIENT_MATERIAL,
    INSUFFICIENT_MATERIAL_MATED,
) = range(len(KINDS_OF_VERDICT))

NEAREST_REPETITION = 4  # plies; two plies back a position can never be the same


@leaf
def result_of(verdict):
    return verdict & _RESULT_MASK


@leaf
def is_final(verdict):
    return verdict & FINAL != 0


@leaf
def kind_of_verdict(verdict):
    return (verdict >> _KIND_SHIFT) & _KIND_MASK


@leaf
def victims_of(verdict):
    return verdict >> _VICTIMS_SHIFT


@leaf
def _verdict(result, kind, victims):
    return result | kind << _KIND_SHIFT | victims << _VICTIMS_SHIFT


@leaf
def next_occurrence(line, last, distance, counters):
    """Plies back to the first occurrence of the position at line index `last` before `distance`, 0 if there is none."""
    key = line.keys[last]
    for further in range(distance + 2, repetition_range(counters) + 1, 2):
        if line.keys[last - further] == key:
            return further
    return 0


@leaf
def nearest_occurrence(line, last, counters):
    """Plies back to the nearest earlier occurrence of the position at line index `last`, 0 if there is none."""
    return next_occurrence(line, last, NEAREST_REPETITION - 2, counters)


@leaf
def needs_judge(position, counters):
    """Whether there may be a verdict on a position that has not occurred before."""
    return counters.rule60 >= RULE60_LIMIT or may_be_dead(position)


@leaf
def _all_in_check(line, last, start, distance):
    """Whether the sides to move start, start + 2, ... up to `distance` plies back were all in check."""
    for back in range(start, distance + 1, 2):
        if not line.in_check[last - back]:
            return False
    return True


@leaf
def _any_in_check(line, last, distance):
    for back in range(distance + 1):
        if line.in_check[last - back]:
            return True
    return False


@leaf
def _occurrences(line, end, key):
    """How often a key stands among the positions before line index `end`."""
    count = 0
    for i in range(end):
        count += int64(line.keys[i] == key)
    return count


@leaf
def _judge_chase(position, line, last, distance, moves, count):
    """The verdict on a span without checks, walked back move by move and then played again."""
    us = int64(position.side)
    chased_by_us = int64(-1)
    chased_by_them = int64(-1)
    taken_back = 0
    while taken_back < distance and (chased_by_us | chased_by_them) != 0:
        mover = us if taken_back % 2 else 1 - us
        newly_threatened = threatened_by(position, mover, moves, count)
        unmake_move(position, int64(line.moves[last - taken_back]), int64(EMPTY))
        newly_threatened &= ~threatened_by(position, mover, moves, count)
        if mover == us:
            chased_by_us &= newly_threatened
        else:
            chased_by_them &= newly_threatened
        taken_back += 1
    for back in range(taken_back - 1, -1, -1):
        make_move(position, int64(line.moves[last - back]))
    if chased_by_us != 0 and chased_by_them != 0:
        return _verdict(int64(DRAW), int64(MUTUAL_CHASE), chased_by_us | chased_by_them)
    if chased_by_us != 0:
        return _verdict(int64(LOSS), int64(PERPETUAL_CHASE), chased_by_us)
    if chased_by_them != 0:
        return _verdict(int64(WIN), int64(PERPETUAL_CHASE), chased_by_them)
    return _verdict(int64(DRAW), int64(REPETITION), int64(0))


@leaf
def _judge_checks(line, last, distance):
    """The verdict on the repetition of the position `distance` plies back, 0 if it takes a look at the chases."""
    they_check = _all_in_check(line, last, 0, distance)
    we_check = _all_in_check(line, last, 1, distance)
    if they_check and we_check:
        return _verdict(int64(DRAW), int64(MUTUAL_PERPETUAL_CHECK), int64(0))
    if they_check:
        return _verdict(int64(WIN), int64(PERPETUAL_CHECK), int64(0))
    if we_check:
        return _verdict(int64(LOSS), int64(PERPETUAL_CHECK), int64(0))
    if _any_in_check(line, last, distance):
        return _verdict(int64(DRAW), int64(REPETITION), int64(0))
    return int64(0)


@leaf
def _is_first_return(line, last, distance, counters):
    """Whether nothing on the line but this loop came up twice, and its last move was the same."""
    if counters.rule60 >= RULE60_LIMIT or line.keys[last - 1] != line.keys[last - 1 - distance]:
        return False
    if _occurrences(line, last, line.keys[last]) != 1:
        return False
    for back in range(2, distance):
        if _occurrences(line, last, line.keys[last - back]) != 1:
            return False
    return True


@leaf
def _judge_material(position, in_check, moves, count):
    status = classify_material(position.material)
    if status == ALIVE:
        return int64(0)
    if status == DEAD_UNLESS_MATE:
        if not can_move(position, in_check, moves, count):
            return _verdict(int64(LOSS), int64(INSUFFICIENT_MATERIAL_MATED), int64(0)) | FINAL
        if can_mate_at_once(position, moves, count):
            return int64(0)
    return _verdict(int64(DRAW), int64(INSUFFICIENT_MATERIAL), int64(0)) | FINAL


@routine
def judge(position, line, last, ply, counters, moves, count):
    """The verdict on the position at line index `last`, `ply` plies from the root of a search; 0 for none.

    moves[count:] is scratch.
    """
    verdict = int64(0)
    distance = nearest_occurrence(line, last, counters)
    is_second = False  # whether this is the second earlier occurrence
    while distance != 0:
        if is_second or distance < ply:
            verdict = _judge_checks(line, last, distance)
            if verdict == 0:
                verdict = _judge_chase(position, line, last, distance, moves, count)
            if is_second or result_of(verdict) == DRAW or _is_first_return(line, last, distance, counters):
                return verdict | FINAL
            if _occurrences(line, last, line.keys[last]) < 2:
                break
        is_second = True
        distance = next_occurrence(line, last, distance, counters)
    in_check = line.in_check[last] != 0
    if counters.rule60 >= RULE60_LIMIT:
        if can_move(position, in_check, moves, count):
            return _verdict(int64(DRAW), int64(RULE60), int64(0)) | FINAL
        return _verdict(int64(LOSS), int64(RULE60_MATED), int64(0)) | FINAL
    by_material = _judge_material(position, in_check, moves, count)
    return by_material if by_material != 0 else verdict
