"""`eval`: what every layer stack of the network makes of a position, and the value that the search sees.

Layer stacks are called buckets here, as in the reference engine's table. A position uses one of them.
"""

import numpy as np

from games.xiangqi.fen import SIDE_NAMES, ParsedFen
from games.xiangqi.game import Game
from games.xiangqi.geometry import WHITE
from games.xiangqi.packed import pack
from nnue_jax import reference
from nnue_jax.architecture import LAYER_STACKS
from nnue_jax.evaluator import evaluations
from nnue_jax.network_file import Network
from nnue_jax.reference import Evaluation
from nnue_jax.win_rate import WinRate, model_material

IN_CHECK = "Final evaluation: none (in check)"
_USED = "  <-- this bucket is used"
_COLUMNS = f"{'bucket':>8}{'PSQT':>14}{'positional':>14}{'total':>14}"


def evaluation_lines(network: Network, game: Game) -> list[str]:
    """The lines that `eval` prints.

    The table is from the side to move's view, and the pawns of the last two lines from White's.
    """
    if game.in_check:
        return [IN_CHECK]
    position = game.position[0]
    rate = network.win_rate_model.at(model_material(position))
    rows = reference.evaluate_with(network, position, range(LAYER_STACKS))
    used = rows[reference.layer_stack(position)]
    nnue = used.psqt + used.positional
    sign = 1 if game.side == WHITE else -1
    return [
        f"NNUE evaluation by bucket, in pawns, from the view of the side to move ({SIDE_NAMES[game.side]})",
        "",
        _COLUMNS,
        *(_row(row, rate, is_used=row is used) for row in rows),
        "",
        f"NNUE evaluation  {nnue} (side to move, internal units)",
        f"NNUE evaluation  {_pawns(sign * nnue, rate)} (white side)",
        f"Final evaluation  {_pawns(sign * _final_value(game, used), rate)} (white side) [with scaled NNUE, ...]",
    ]


def _row(row: Evaluation, rate: WinRate, is_used: bool) -> str:
    values = (row.psqt, row.positional, row.psqt + row.positional)
    cells = "".join(f"{_pawns(value, rate):>14}" for value in values)
    return f"{row.layer_stack:>8}{cells}{_USED if is_used else ''}"


def _pawns(value: int, rate: WinRate) -> str:
    """A value in internal units as pawns: 1.00 where half of all games are won."""
    return f"{rate.centipawns(value) / 100:+.2f}"


def _final_value(game: Game, used: Evaluation) -> int:
    """The value from which a search starts: both outputs blended, and damped by the 60-move counter."""
    packed = pack([ParsedFen(game.position, game.rule60, game.game_ply)])
    psqt, positional = np.array([used.psqt], np.int32), np.array([used.positional], np.int32)
    return int(evaluations(packed, psqt, positional).value[0])
