"""Positions that nobody can win, by the pieces that are left; none that has a pawn, knight or rook.

What counts are the cannons, and the advisors and elephants that may serve them as screens:

    no rook, knight or cannon at all                                            dead
    one cannon, its owner without advisors, the other side with
        no advisor, or one while the owner has no elephant                      dead
        one while the owner has an elephant, or two while he has none           dead unless mate
    a cannon each and no advisor, without elephants / with some                 dead / dead unless mate
"""

from numba import int64

from games.jit import leaf, routine
from games.memory import load_i32
from games.xiangqi.attacks import is_legal, king_attacked
from games.xiangqi.geometry import ADVISOR, BISHOP, BLACK, CANNON, KINDS, KNIGHT, PAWN, ROOK, WHITE
from games.xiangqi.movegen import can_move, generate_all
from games.xiangqi.position import count_in, make_move, unmake_move
from games.xiangqi.tables import MATERIAL_BITS

ALIVE, DEAD, DEAD_UNLESS_MATE = range(3)

_ANY = (1 << MATERIAL_BITS) - 1
# The fields of the material word that hold pawns, knights and rooks.
LIVELY_MATERIAL = sum(
    _ANY << MATERIAL_BITS * (side * KINDS + kind) for side in (WHITE, BLACK) for kind in (PAWN, KNIGHT, ROOK)
)


@leaf
def may_be_dead(position):
    """A quick test that hardly ever says yes."""
    return position.material & LIVELY_MATERIAL == 0


@leaf
def classify_material(material):
    """ALIVE, DEAD or DEAD_UNLESS_MATE, from a material word."""
    if material & LIVELY_MATERIAL:
        return ALIVE
    cannons = count_in(material, WHITE, CANNON) + count_in(material, BLACK, CANNON)
    if cannons == 0:
        return DEAD
    if cannons == 2 and count_in(material, WHITE, CANNON) == 1:
        if count_in(material, WHITE, ADVISOR) + count_in(material, BLACK, ADVISOR):
            return ALIVE
        elephants = count_in(material, WHITE, BISHOP) + count_in(material, BLACK, BISHOP)
        return DEAD_UNLESS_MATE if elephants else DEAD
    if cannons > 1:
        return ALIVE
    owner = int64(WHITE) if count_in(material, WHITE, CANNON) else int64(BLACK)
    if count_in(material, owner, ADVISOR):
        return ALIVE
    advisors = count_in(material, 1 - owner, ADVISOR)
    elephants = count_in(material, owner, BISHOP)
    if advisors == 0 or (advisors == 1 and elephants == 0):
        return DEAD
    if advisors == 1 or elephants == 0:
        return DEAD_UNLESS_MATE
    return ALIVE


@routine
def can_mate_at_once(position, moves, count):
    """Whether the side to move has a move after which the other has none; moves[count:] is scratch."""
    end = generate_all(position, moves, count)
    in_check = king_attacked(position, position.side)
    mates = False
    for i in range(count, end):
        move = int64(load_i32(moves, i))
        if not is_legal(position, move, in_check):
            continue
        captured = make_move(position, move)
        mates = not can_move(position, king_attacked(position, position.side), moves, end)
        unmake_move(position, move, captured)
        if mates:
            break
    return mates
