"""Positions for tests of the protocol, each for what it is."""

START = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1"
MATE_IN_ONE = "3k5/8R/9/9/9/9/9/9/9/R3K4 w - - 0 1"  # a0a9; any move that keeps the rank of i8 shut stalemates
MATE_IN_THREE = "2bak3C/4aP2N/4b4/5C3/9/9/9/3p5/4p2r1/3K5 w - - 0 1"  # begins with i8g9
MATED = "R2k5/8R/9/9/9/9/9/9/9/4K4 b - - 0 1"
STALEMATED = "3k5/R8/4R4/9/9/9/9/9/9/4K4 b - - 0 1"
ONE_MOVE = "2R6/4k4/3R5/9/3P2P2/P5B2/6P1P/9/9/3K1A3 b - - 2 36"  # e8f8
TWO_MOVES = "9/3Rk4/8b/9/p8/9/P1P1P1P1P/3K1A3/n8/2B5c b - - 0 1"  # in check
MIDDLEGAME = "r1bakab1r/9/2n1c1nc1/p1p1p1p1p/9/2P6/P3P1P1P/1C2C1N2/9/RNBAKAB1R b - - 0 5"
ENDGAME = "4k4/4a4/4b4/9/2p6/9/4P4/4B4/4A4/4K1N2 w - - 0 1"
PERPETUAL_CHECK = ("4k4/9/9/9/9/9/9/9/3R5/5K3 w - - 0 1", ["d1e1", "e9d9", "e1d1", "d9e9"] * 2)  # Red has lost
SHUFFLE = ("b0c2", "b9c7", "c2b0", "c7b9")  # four moves that lead back to the start position
