"""From the engine's values to lines of text."""

import numpy as np

from games.xiangqi.fen import piece_letter
from games.xiangqi.game import Game
from games.xiangqi.geometry import EMPTY, FILE_LETTERS, FILES, RANKS, square_name
from games.xiangqi.movegen import checkers
from games.xiangqi.repetition import judge_game
from search.limits import CurrentMove, Report, Result, Score

_RULE = "+---" * FILES + "+"


def score_text(score: Score) -> str:
    return f"mate {score.mate_moves}" if score.is_mate else f"cp {score.score_cp}"


def report_line(report: Report, shows_wdl: bool = False) -> str:
    """An info line, with its fields in the reference's order."""
    if report.depth == 0:
        return f"info depth 0 score {score_text(report.score)}"
    score = score_text(report.score)
    if report.bound:
        score += f" {report.bound}"
    if shows_wdl:
        score += " wdl {} {} {}".format(*report.score.win_draw_loss)
    return (
        f"info depth {report.depth} seldepth {report.selective_depth} multipv {report.line} "
        f"score {score} nodes {report.nodes} nps {report.nps} hashfull {report.hashfull} "
        f"tbhits 0 time {report.time_ms} pv {' '.join(report.pv)}"
    )


def current_move_line(move: CurrentMove) -> str:
    return f"info depth {move.depth} currmove {move.move} currmovenumber {move.number}"


def result_lines(result: Result) -> list[str]:
    """What is to be said at the end of a search; the move comes last."""
    lines = []
    if result.failure:
        lines.append(f"info string {result.failure}")
    if result.telemetry is not None:
        lines.append(f"info string Evaluator: {result.telemetry}")
    return [*lines, result_line(result)]


def result_line(result: Result) -> str:
    if result.best_move is None:
        return "bestmove (none)"
    ponder = f" ponder {result.ponder_move}" if result.ponder_move else ""
    return f"bestmove {result.best_move}{ponder}"


def board_lines(game: Game) -> list[str]:
    """The position as `d` shows it."""
    board = np.flip(game.position["board"][0].reshape(RANKS, FILES), axis=0)
    lines = ["", f" {_RULE}"]
    for rank, row in zip(reversed(range(RANKS)), board.tolist(), strict=True):
        cells = " | ".join(" " if piece == EMPTY else piece_letter(piece) for piece in row)
        lines += [f" | {cells} | {rank}", f" {_RULE}"]
    lines += ["   " + "   ".join(FILE_LETTERS), ""]
    lines += [
        f"Fen: {game.fen()}",
        f"Key: {game.key % 2**64:016X}",
        "Checkers: " + "".join(f"{square_name(square)} " for square in checkers(game.position)),
        f"Rule 60: {game.rule60}, checks by White {game.checks[0]}, by Black {game.checks[1]}",
    ]
    verdict = judge_game(game)
    if verdict.result != "none":
        chased = f", chased: {' '.join(verdict.victims)}" if verdict.victims else ""
        lines.append(f"Verdict: {verdict.result} ({verdict.kind}{chased})")
    return lines
