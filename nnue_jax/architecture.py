"""What varies between networks, what does not, and the hashes by which a file tells.

Letters for shapes, here and in every module of this folder:

    W   width of the accumulator of one perspective, a multiple of 32
    Q   16536 piece-square features: 24 buckets of 689
    T   45547 threat features
    S   16 layer stacks, which are also the columns of the piece-square (PSQT) part
    H   32 outputs of each of the layers fc0 and fc1

The hashes follow the format of Pikafish's networks; networks without threats are ours and have hashes of
their own, so neither engine takes the other's for something else.
"""

from dataclasses import dataclass

PIECE_SQUARES = 689
KING_BUCKETS, ATTACK_BUCKETS = 6, 4
FEATURE_BUCKETS = KING_BUCKETS * ATTACK_BUCKETS
PIECE_SQUARE_FEATURES = FEATURE_BUCKETS * PIECE_SQUARES
THREAT_FEATURES = 45547
LAYER_STACKS = 16
HIDDEN = 32

WIDTH_STEP = 32
MAX_WIDTH = 4096

FILE_VERSION = 0x6A448AFA
_THREAT_HASH, _PIECE_SQUARE_HASH = 0x2E6B9D04, 0x7F234CB8
_LAYERS_HASH, _AFFINE_HASH, _CLIP_HASH = 0xEC42E90D, 0xCC03DAE4, 0x538D24C7
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Architecture:
    """width: W. threats: whether the network has the threat features beside the piece-square ones."""

    width: int
    threats: bool = False

    def __str__(self) -> str:
        features = PIECE_SQUARE_FEATURES + self.threats * THREAT_FEATURES
        return f"({features}, {self.width}, {HIDDEN}, {HIDDEN}, 1)"

    @property
    def transformer_hash(self) -> int:
        feature_sets = [_THREAT_HASH, _PIECE_SQUARE_HASH] if self.threats else [_PIECE_SQUARE_HASH]
        value = 0
        for feature_set in feature_sets:
            value = ((value << 1 | value >> 31) & _WORD) ^ feature_set
        return value ^ 2 * self.width

    @property
    def stack_hash(self) -> int:
        value = _LAYERS_HASH ^ 2 * self.width
        value = _after_clip(_after_affine(value, HIDDEN))
        value = _after_clip(_after_affine(value, HIDDEN))
        return _after_affine(value, 1)

    @property
    def network_hash(self) -> int:
        return self.transformer_hash ^ self.stack_hash


def _after_affine(value: int, outputs: int) -> int:
    return (_AFFINE_HASH + outputs) ^ (value >> 1) ^ (value << 31 & _WORD)


def _after_clip(value: int) -> int:
    return (value + _CLIP_HASH) & _WORD


def architecture_of(transformer_hash: int) -> Architecture | None:
    """The architecture whose feature transformer has this hash; None if there is none."""
    for threats in (True, False):
        width, odd = divmod(transformer_hash ^ Architecture(0, threats).transformer_hash, 2)
        if not odd and 0 < width <= MAX_WIDTH and width % WIDTH_STEP == 0:
            return Architecture(width, threats)
    return None
