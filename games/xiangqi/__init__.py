"""The rules of xiangqi.

>>> from games.xiangqi import Game
>>> game = Game(moves=["h2e2", "h9g7"])
>>> game.fen()
'rnbakab1r/9/1c4nc1/p1p1p1p1p/9/9/P1P1P1P1P/1C2C4/9/RNBAKABNR w - - 2 2'
>>> len(game.legal_moves())
45
"""

from games.xiangqi.fen import START_FEN, PositionError
from games.xiangqi.game import Game
from games.xiangqi.movegen import perft
from games.xiangqi.repetition import Verdict, adjudicate, threatened

__all__ = ["START_FEN", "Game", "PositionError", "Verdict", "adjudicate", "perft", "threatened"]
