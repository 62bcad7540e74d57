"""One game between two engines, move by move, under the eyes of the rule book."""

from collections.abc import Callable
from dataclasses import dataclass, field

from experiments.adjudication import NO_ADJUDICATION, Adjudication, white_score
from experiments.rulebook import BLACK_WINS, START_FEN, WHITE_WINS, RuledGame, RuleError
from experiments.time_control import TimeControl, Timer, go_text
from experiments.uci_client import START_POSITION, EngineFailure, SearchOutcome, UciClient

HANG_GRACE_S = 30.0  # an engine this long overdue hangs; before, it is only late

TIME_FORFEIT = "time forfeit"
ILLEGAL_MOVE = "illegal move"
ENGINE_FAILURE = "engine failure"
FORFEITS = (TIME_FORFEIT, ILLEGAL_MOVE, ENGINE_FAILURE)


@dataclass(frozen=True)
class Player:
    """An engine and its time. It loses the game when a move takes longer than that."""

    client: UciClient
    control: TimeControl

    @property
    def name(self) -> str:
        return self.client.name

    def prepare(self) -> None:
        """Start the engine if it is not running."""
        if not self.client.is_running:
            self.client.start()

    def search(self, game: RuledGame, limits: str, timeout_s: float) -> SearchOutcome:
        """Let the engine think about the game's position; `limits` is what follows the word go."""
        return self.client.search(root_position(game), game.moves, limits, timeout_s)


@dataclass(frozen=True)
class GameOutcome:
    """white_points: 1, 0.5 or 0. slowest_ms: White's and Black's longest move. detail: what a forfeit was about."""

    white_points: float
    reason: str
    slowest_ms: tuple[float, float]
    detail: str = ""


Observer = Callable[[RuledGame, Player, SearchOutcome], None]


@dataclass
class _Slowest:
    """Longest move of White and of Black so far."""

    ms: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def note(self, white: bool, elapsed_ms: float) -> None:
        at = 0 if white else 1
        self.ms[at] = max(self.ms[at], round(elapsed_ms, 1))


def root_position(game: RuledGame) -> str:
    """Where the game began, as `position` wants it."""
    return START_POSITION if game.fens[0] == START_FEN else game.fens[0]


def play_game(
    white: Player,
    black: Player,
    game: RuledGame,
    observe: Observer | None = None,
    adjudication: Adjudication = NO_ADJUDICATION,
) -> GameOutcome:
    """Play on from where `game` stands until it ends. `observe` sees each search before its move is played.

    An engine that fails loses, and its process is ended: `prepare` starts it again.
    """
    slowest = _Slowest()
    timers = Timer(white.control), Timer(black.control)
    scores: list[float | None] = []
    player = white
    try:
        for player in (white, black):
            player.client.new_game()
        while (verdict := game.verdict() or adjudication.verdict(scores, len(game.moves))) is None:
            player, timer = (white, timers[0]) if game.white_to_move else (black, timers[1])
            limits = go_text(timer, *timers)
            outcome = player.search(game, limits, timer.left_ms / 1000 + HANG_GRACE_S)
            slowest.note(game.white_to_move, outcome.elapsed_ms)
            if observe is not None:
                observe(game, player, outcome)
            scores.append(white_score(outcome.last_scored, game.white_to_move))
            forfeit = _play_move(game, player, timer, outcome)
            if forfeit is not None:
                return _lost(player is white, *forfeit, slowest)
    except EngineFailure as failure:
        player.client.kill()
        return _lost(player is white, ENGINE_FAILURE, str(failure), slowest)
    return GameOutcome(verdict.white_points, verdict.reason, tuple(slowest.ms))


def _play_move(game: RuledGame, player: Player, timer: Timer, outcome: SearchOutcome) -> tuple[str, str] | None:
    """Play the engine's move; (reason, detail) if it has forfeited the game instead."""
    left_ms = timer.left_ms
    if not timer.charge(outcome.elapsed_ms):
        return TIME_FORFEIT, f"{player.name} took {outcome.elapsed_ms:.1f} ms and had {left_ms:.1f} ms."
    if outcome.best_move is None:
        return ILLEGAL_MOVE, f"{player.name} had no move in {game.fen}."
    try:
        game.play(outcome.best_move)
    except RuleError:
        return ILLEGAL_MOVE, f"{player.name} played {outcome.best_move} in {game.fen}."
    return None


def _lost(white_lost: bool, reason: str, detail: str, slowest: _Slowest) -> GameOutcome:
    return GameOutcome(BLACK_WINS if white_lost else WHITE_WINS, reason, tuple(slowest.ms), detail)
