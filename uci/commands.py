"""What each command does, once its turn has come: `Commands.carry_out` is called for one after the other.

A search goes on while later commands are carried out; those that would disturb it wait for its end.
"""

from collections.abc import Callable
from dataclasses import dataclass

from uci import output
from uci.loading import EngineLoader
from uci.options import LOG_OPTION, OptionError, find_option
from uci.parsing import GoCommand, parse_go, parse_position, parse_setoption, reads_no_move
from uci.readiness import Readiness
from uci.settings import Settings, batching_line, processors_line, threads_line

BACKEND_FLAG = "--backend"  # stands before the command in a call; no command itself
EXPORTED_NETWORK = "jaxfish.nnue"  # in the working directory, where no other name is given


@dataclass(frozen=True)
class Request:
    """A command: its words, the line it came in, and its number, counted from 1."""

    number: int
    words: list[str]
    line: str


class Commands:
    """The engine with its settings and its running search.

    network_file: the network to begin with; None for the one that comes with the engine.
    """

    def __init__(self, network_file: str | None = None):
        self.loader = EngineLoader(network_file)
        self.settings = Settings(self.loader.wait, network_file or "")
        self.readiness = Readiness()
        self.has_failed = False  # a command was carried out to the end, but in vain
        self._search = None
        self._stopped_up_to = 0  # what was asked for by commands up to this number is to stop
        self._hit_up_to = 0  # likewise for `ponderhit`
        self._handlers: dict[str, Callable[[Request, list[str]], None]] = {
            "isready": self._isready,
            "setoption": self._setoption,
            "ucinewgame": self._ucinewgame,
            "position": self._position,
            "go": self._go,
            "d": self._display,
            "eval": self._eval,
            "flip": self._flip,
            "compiler": self._compiler,
            "bench": self._bench,
            "speedtest": self._speedtest,
            "export_net": self._export_net,
            BACKEND_FLAG: self._choose_backend,
        }

    def knows(self, name: str) -> bool:
        return name in self._handlers and name != BACKEND_FLAG

    def carry_out(self, request: Request) -> None:
        self._handlers[request.words[0]](request, request.words[1:])

    @property
    def is_searching(self) -> bool:
        search = self._search
        return search is not None and not search.done

    def stop(self, number: int) -> None:
        """Stop what runs, and what was asked for by commands up to `number` and has not begun."""
        self._stopped_up_to = number
        if not self.loader.is_loading and not self.loader.has_failed:
            self._engine().stop()

    def ponderhit(self, number: int) -> None:
        """The move was played that searches asked for by commands up to `number` ponder on."""
        self._hit_up_to = number
        if not self.loader.is_loading and not self.loader.has_failed:
            self._engine().ponderhit()

    def wait_for_search(self) -> None:
        if self._search is None:
            return
        if self.is_searching:
            with self.readiness.long_work():
                self._search.wait()
        self._search.wait()  # raises what ended the search

    def _engine(self):
        return self.loader.wait()

    def _is_stopped(self, request: Request) -> bool:
        return request.number <= self._stopped_up_to

    def _isready(self, request: Request, _words: list[str]) -> None:
        self.loader.wait(lambda seconds: output.info(f"Getting ready, {seconds:.0f} s so far"))
        self.readiness.answer(request.number)

    def _ucinewgame(self, _request: Request, _words: list[str]) -> None:
        self.wait_for_search()
        self._engine().new_game()

    def is_for_log(self, words: list[str]) -> bool:
        """Whether these words after `setoption` are about the log, so that no search is disturbed."""
        return parse_setoption(words)[0].lower() == LOG_OPTION.lower()

    def set_option(self, words: list[str]) -> None:
        name, value = parse_setoption(words)
        self.settings.apply(find_option(name), value)

    def _setoption(self, _request: Request, words: list[str]) -> None:
        find_option(parse_setoption(words)[0])  # an unknown one is refused at once
        self.wait_for_search()
        self.set_option(words)

    def _choose_backend(self, _request: Request, words: list[str]) -> None:
        """As the option does, but what cannot be had is an error: who gives a flag wants nothing else."""
        try:
            self.settings.apply(find_option("Backend"), words[0])
        except OptionError as error:
            raise ValueError(str(error)) from error

    def _position(self, _request: Request, words: list[str]) -> None:
        command = parse_position(words)
        engine = self._engine()
        from games.xiangqi.fen import START_FEN
        from games.xiangqi.game import Game

        engine.set_position(Game(START_FEN if command.fen is None else command.fen, command.moves))

    def _flip(self, _request: Request, _words: list[str]) -> None:
        engine = self._engine()
        engine.set_position(engine.game.flipped())

    def _go(self, request: Request, words: list[str]) -> None:
        command = parse_go(words)
        self.wait_for_search()
        engine = self._engine()
        output.write(*(f"info string {line}" for line in self._resource_lines()))
        if "perft" in command.numbers:
            from uci.perft import count_lines

            with self.readiness.long_work():
                count_lines(engine.game, command.numbers["perft"], lambda: self._is_stopped(request))
            return
        from uci import text

        limits = make_limits(command, engine.game)
        shows_wdl = self.settings.shows_wdl
        self._search = engine.go(
            limits,
            on_reports=lambda reports: output.write(*(text.report_line(report, shows_wdl) for report in reports)),
            on_result=lambda result: output.write(*text.result_lines(result)),
            on_current_move=lambda move: output.write(text.current_move_line(move)),
        )
        if request.number <= self._hit_up_to:
            self._search.ponderhit()
        if self._is_stopped(request):
            self._search.stop()

    def _resource_lines(self) -> list[str]:
        """With what a search works."""
        engine = self._engine()
        lines = [processors_line(engine), threads_line(engine), self.settings.network_line()]
        return lines if engine.batching is None else [*lines, batching_line(engine)]

    def _display(self, _request: Request, _words: list[str]) -> None:
        engine = self._engine()
        from uci import text

        output.write(*text.board_lines(engine.game))

    def _eval(self, _request: Request, _words: list[str]) -> None:
        output.write(f"info string {self.settings.network_line()}", *self._evaluation_lines(self._engine().game))

    def _evaluation_lines(self, game) -> list[str]:
        from uci.evaluation_table import evaluation_lines

        return evaluation_lines(self._engine().network, game)

    def _compiler(self, _request: Request, _words: list[str]) -> None:
        from uci.compiler import compiler_lines

        output.write(*compiler_lines())

    def _bench(self, request: Request, words: list[str]) -> None:
        self.wait_for_search()
        engine = self._engine()
        from uci.bench import run_bench

        with self.readiness.long_work():
            run_bench(
                engine,
                words,
                is_stopped=lambda: self._is_stopped(request),
                set_option=self.set_option,
                evaluation_lines=self._evaluation_lines,
            )

    def _speedtest(self, request: Request, words: list[str]) -> None:
        self.wait_for_search()
        engine = self._engine()
        from uci.speedtest import run_speedtest

        with self.readiness.long_work():
            run_speedtest(engine, words, lambda: self._is_stopped(request))

    def _export_net(self, _request: Request, words: list[str]) -> None:
        """Write the network in use; where that fails the engine goes on, and its exit status tells."""
        engine = self._engine()
        from nnue_jax.network_file import QUICK_LEVEL, NetworkError, write_network

        path = " ".join(words) or EXPORTED_NETWORK
        try:
            write_network(engine.network, path, QUICK_LEVEL)
        except NetworkError as error:
            self.has_failed = True
            output.info(f"Failed to export a net. {error}")
        else:
            output.write(f"Network saved successfully to {path}")


def make_limits(command: GoCommand, game):
    """Limits of a `go` in the position of `game`; says which of its moves do not count."""
    from search.limits import Limits

    clocks = [command.get("wtime"), command.get("btime")]
    increments = [command.get("winc") or 0, command.get("binc") or 0]
    for word, side in (("time", game.side), ("opptime", 1 - game.side)):
        clocks[side] = command.numbers.get(word, clocks[side])
    for word, side in (("increment", game.side), ("opincrement", 1 - game.side)):
        increments[side] = command.numbers.get(word, increments[side])
    return Limits(
        depth=command.get("depth"),
        nodes=command.get("nodes"),
        movetime_ms=command.get("movetime"),
        mate=command.get("mate"),
        time_ms=tuple(clocks),
        increment_ms=tuple(increments),
        movestogo=command.get("movestogo"),
        infinite=command.infinite,
        ponder=command.ponder,
        root_moves=_root_moves(command.search_moves, game),
    )


def _root_moves(search_moves: tuple[str, ...] | None, game) -> tuple[str, ...] | None:
    """What `searchmoves` allows; says what does not count."""
    if search_moves is None:
        return None
    if reads_no_move(search_moves):
        output.info("searchmoves allows no move, so there is none to choose")
        return ()
    legal = game.legal_move_texts()
    illegal = [move for move in search_moves if move not in legal]
    if illegal:
        rest = "" if len(illegal) < len(search_moves) else "; all legal moves are searched"
        output.info(f"searchmoves: {' '.join(illegal)} cannot be played here{rest}")
    return search_moves
