"""Games of the engine against itself, whose positions `speedtest` searches.

Each is a FEN and the moves played from it. Made with 100000 nodes a move and the network bootstrap.nnue by

    python -m experiments.make_speedtest_games --games 5 --seed 1 --nodes 100000 --min-plies 92 --max-plies 104
"""

GAMES = (
    (
        "rn2kabnr/4a4/b6c1/p1p1p1p1p/7C1/6P1c/PCP1P3P/8N/9/RNBAKAB1R b - - 9 5",
        "i4h4 b0c2 b9c7 i0h0 h9i7 h5h6 a9d9 d0e1 g9e7 h0i0 h4h5 c0e2 h5c5 b3b7 a7c9 a0c0 h7f7 i2g1 i9h9 h6h3 "
        "h9h5 b7b3 c5f5 c3c4 f5f6 i0i2 c6c5 c4c5 e7c5 c0d0 d9d0 e1d0 c5e7 d0e1 c7d5 h3h2 h5e5 g1f3 f7f3 b3f3 "
        "d5e3 c2b4 e5b5 b4d3 b5h5 h2f2 f6f2 i2f2 h5i5 f2i2 i5f5 i2f2 f5i5 f2i2 i7g8 i3i4 i5a5 d3b2 e6e5 i4i5 "
        "i6i5 i2i5 e5e4 i5i6 e4f4 f3i3 e3g2 b2c4 a5h5 i3b3 g6g5 c4d6 h5h6 b3b9 c9a7 i6h6 g8h6 d6c8 e9d9 c8e7 "
        "g5g4 e7c6 a7c5 b9c9 h6f5 c9c5 f5d4 c6b8 d9d8 a3a4 g4g3 c5c1 d4f3 c1d1 e8f7 b8a6 d8e8 a4a5 f4e4 a6c7 "
        "e8e9 e1f2 f3d2 c7d5",
    ),
    (
        "r1bakabnr/2n6/7c1/p1p1p1p1p/9/2P3P2/P3P3P/Cc4C2/9/RNBAKABNR b - - 9 5",
        "h7h3 b0c2 b2g2 a2g2 a9b9 g2g6 c8e7 g6f6 i9i8 f6f2 h9g7 f2g2 i8i7 c0e2 h3h8 a0a1 b9b5 a1f1 b5h5 h0i2 "
        "h8a8 f1f7 a8a7 f7f6 c6c5 f0e1 c5c4 e2c4 h5e5 i2g3 g7h5 f6f3 h5g3 f3g3 e7c6 g3f3 a7g7 i0i2 g7g2 i2g2 "
        "i7g7 f3f4 c6d8 g2h2 g7d7 h2h9 g9e7 c4e2 d7d3 f4d4 d3d4 c2d4 e5d5 d4c2 d8b7 h9h6 b7c5 h6e6 d5d0 e1d0 "
        "c5e6 e3e4 e6c5 e4e5 c5d3 e5e6 d3f2 e0e1 f2h1 c2b4 h1i3 b4a6 i3g2 e1e0 g2f4 e6e7 c9e7 a6c7 i6i5 c7b5 "
        "f4e6 b5d6 i5i4 d6e4 f9e8 e4f6 e9f9 a3a4 i4i3 g4g5 i3h3 g5g6 h3h2 a4a5 h2g2 d0e1 g2g1 g6g7 g1f1 e1f2 "
        "e6f4 e2g4 f4d3 f6e4",
    ),
    (
        "rnbaka1nr/9/1c2b4/p1p1p1p1p/3c5/9/P1P1P1P1P/1C2B3C/4K4/RNBA1A1NR w - - 6 4",
        "h0f1 b7c7 c3c4 b9a7 i0h0 h9g7 b0c2 a9b9 a0b0 d5d6 b2b7 f9e8 h0h4 c7d7 h4f4 g6g5 i2h2 i9h9 e1e0 h9h3 "
        "i3i4 d6d5 h2g2 h3h1 e3e4 h1i1 a3a4 d5d6 e0e1 e8f9 g2h2 b9b8 e1e0 i1g1 b7b1 d6d1 b1b2 g1h1 b2b6 a7c8 "
        "b6b3 b8b6 f4f6 d7a7 b0b1 d1d6 f6f4 a7b7 c2a1 d6d4 e4e5 d4a4 c4c5 a6a5 b1b2 b7b3 a1b3 c6c5 b3a5 e6e5 "
        "f4a4 h1f1 b2b6 c8b6 a4d4 f1f6 a5b7 f9e8 f0e1 g7f5 d4f4 e5e4 f4e4 f5g3 e4h4 b6d5 b7a9 f6c6 h2f2 d5c3 "
        "a9b7 e7g9 h4h9 c9e7 f2f8 c6b6 b7d8 e9f9 f8i8 c3e2 c0e2 g3e2 e1f2 b6f6 d0e1 e2c1 e0f0 c1e2 i8i9 f9f8 "
        "h9h8 f8f7 i9d9 f6b6",
    ),
    (
        "rnb1kabnr/4a4/5c1c1/p1p1p1p1p/9/1C7/P1P1P1P1P/7CB/9/RNBAKA1NR w - - 8 5",
        "b4a4 f7a7 h2g2 a7a4 a3a4 h7i7 h0f1 i7i3 i2g0 i3i5 g2g6 b9a7 b0c2 h9i7 g6g4 a9b9 i0h0 i9h9 h0h9 i7h9 "
        "a0a2 b9b5 d0e1 g9e7 g4d4 i5g5 g0i2 b5f5 f1h2 g5g9 d4d6 f5i5 i2g0 i5i3 g0e2 i3g3 a2b2 h9g7 h2i4 g3f3 "
        "i4h6 g7f5 h6f5 f3f5 b2b4 c6c5 d6i6 f5f6 i6i2 e6e5 c3c4 c5c4 b4c4 a7c6 c4g4 e8d7 g4g8 c9a7 e1d2 a7c9 "
        "d2e1 d7e8 g8g4 g9i9 g4g8 f6f4 g8g6 c6d4 c2d4 f4d4 g6e6 d4a4 e6e5 a4f4 i2i8 f4f3 e3e4 f3e3 i8i6 i9i7 "
        "i6h6 i7h7 e5e6 a6a5 h6h4 e7g9 h4g4 h7b7 e2g0 b7d7 c0e2 c9e7 g4i4 e3i3 i4i6 a5a4 e4e5 a4a3 e6f6 a3a2 "
        "i6g6 i3g3 e5e6 d7d4",
    ),
    (
        "rnbakabnr/9/6c2/p1p1p1p1p/1c7/2P6/P3P1P1P/C5N2/7C1/RNBAKAB1R b - - 7 4",
        "g7g3 b0c2 b9c7 g2e1 b5i5 i0h0 a9b9 h1g1 i5g5 g1g5 g6g5 h0h3 g5g4 g0e2 b9b2 a3a4 h9g7 e2g4 g7f5 h3h5 "
        "f5g7 h5h3 g7f5 a0b0 b2b3 b0b3 g3b3 h3h5 f5g7 h5g5 i9i7 c2b4 g9e7 g5g6 b3i3 b4a6 c7a6 a2a6 i3i0 e1g0 "
        "i0h0 a6b6 f9e8 a4a5 h0h9 g4e2 h9g9 g6h6 i6i5 b6e6 g7f5 h6f6 f5e3 g0f2 g9g5 e6e4 g5g1 f6c6 g1c1 c6g6 "
        "i7f7 f2g4 e3g4 g6g9 f7f9 g9g4 f9f5 g4g9 f5f9 g9g1 c1f1 c4c5 f1f5 c5c6 f5e5 g1c1 f9f5 c6c7 e7g5 f0e1 "
        "f5f4 c1c4 e9f9 c7c8 c9e7 a5a6 f4h4 e1f0 h4h6 c4a4 h6c6 a4a5 c6e6 c8d8 e5e2 d8d9 e6e5 a5a4 e2e3 e4h4 "
        "e8d9 a4f4 f9e9 f4f3",
    ),
)
