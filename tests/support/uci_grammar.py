"""A regular grammar of every line that the engine may print on standard output.

Banner first; then answers, options and info lines with their fields in the specified order. The free text of
commands for people (`d`, `eval`, `help`, ...) may come only where one of them was sent.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOVE = "[a-i][0-9][a-i][0-9]"
# Nothing that ends a line for anybody, nothing invisible but the tab, nothing that is not Unicode.
TEXT = r"[^\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+"
NUMBER = "(?:0|[1-9][0-9]*)"
POSITIVE = "[1-9][0-9]*"

BANNER = re.compile(rf"jaxfish \S+ by {TEXT}")
ANSWER = re.compile(rf"id name {TEXT}|id author {TEXT}|uciok|ucciok|readyok")
SPIN = re.compile(r"option name (\S.*) type spin default (-?\d+) min (-?\d+) max (-?\d+)")
COMBO = re.compile(r"option name (\S.*) type combo default (\S+)((?: var \S+)+)")
PLAIN_OPTION = re.compile(
    rf"option name \S.* type (?:check default (?:true|false)|string default {TEXT}|button)",
)
INFO = re.compile(
    rf"info depth (?P<depth>{POSITIVE}) seldepth (?P<selective_depth>{NUMBER}) multipv (?P<line>{POSITIVE}) "
    rf"score (?:cp (?P<cp>-?{NUMBER})|mate (?P<mate>-?{NUMBER}))(?: (?P<bound>lowerbound|upperbound))?"
    rf"(?: wdl (?P<win>{NUMBER}) (?P<draw>{NUMBER}) (?P<loss>{NUMBER}))? "
    rf"nodes (?P<nodes>{NUMBER}) nps (?P<nps>{NUMBER}) hashfull (?P<hashfull>{NUMBER}) tbhits 0 "
    rf"time (?P<time_ms>{POSITIVE}) pv(?P<pv>(?: {MOVE})+)"
)
LOST_ROOT = re.compile("info depth 0 score mate 0")
CURRENT_MOVE = re.compile(rf"info depth {POSITIVE} currmove {MOVE} currmovenumber {POSITIVE}")
STRING = re.compile(rf"info string {TEXT}")
BEST_MOVE = re.compile(rf"bestmove (?:\(none\)|{MOVE}(?: ponder {MOVE})?)")

CRITICAL_ERROR = re.compile(r"info string CRITICAL ERROR: Command `(.*)` failed\. Reason: \S.*\.")
UNKNOWN_COMMAND = re.compile(r"info string Unknown command: '(.*)'\. Type help for more information\.")

_PERFT = re.compile(rf"{MOVE}: {POSITIVE}|Nodes searched: {NUMBER}|")
_DISPLAY = re.compile(
    r"| (?:\+---){9}\+| (?:\| [ rnbakcpRNBAKCP] ){9}\| [0-9]|   a   b   c   d   e   f   g   h   i"
    r"|Fen: [0-9rnbakcpRNBAKCP/]+ [wb] - - [0-9]+ [0-9]+|Key: [0-9A-F]{16}|Checkers: (?:[a-i][0-9] )*"
    r"|Rule 60: \d+, checks by White \d+, by Black \d+|Verdict: [a-z]+ \([a-z0-9-]+(?:, chased: [a-i0-9 ]+)?\)"
)
_SAVED = re.compile(rf"Network saved successfully to {TEXT}")
_PROSE = re.compile(rf"(?!id |option name|uciok|ucciok|readyok|info |bestmove)(?:{TEXT})?")
# What the commands for people print beside protocol lines.
FREE_TEXT = {
    "d": _DISPLAY,
    "perft": _PERFT,
    "export_net": _SAVED,
    "eval": _PROSE,
    "help": _PROSE,
    "--help": _PROSE,
    "-h": _PROSE,
    "license": _PROSE,
    "--license": _PROSE,
    "compiler": _PROSE,
}


@dataclass(frozen=True)
class Info:
    """The fields of a line with a principal variation. Either cp or mate is None; wdl is in thousandths."""

    depth: int
    selective_depth: int
    line: int
    cp: int | None
    mate: int | None
    bound: str
    wdl: tuple[int, int, int] | None
    nodes: int
    nps: int
    hashfull: int
    time_ms: int
    pv: tuple[str, ...]


def parse_info(line: str) -> Info | None:
    """The fields of an info line with a variation; None for any other line."""
    match = INFO.fullmatch(line)
    if match is None:
        return None

    def number(name: str) -> int | None:
        return None if match[name] is None else int(match[name])

    names = ("depth", "selective_depth", "line", "cp", "mate", "nodes", "nps", "hashfull", "time_ms")
    wdl = None if match["win"] is None else (number("win"), number("draw"), number("loss"))
    return Info(
        **{name: number(name) for name in names}, bound=match["bound"] or "", wdl=wdl, pv=tuple(match["pv"].split())
    )


def infos(lines: Iterable[str]) -> list[Info]:
    """The fields of all lines with a variation."""
    return [info for info in map(parse_info, lines) if info is not None]


def _is_sound_info(line: str) -> bool:
    info = parse_info(line)
    return info is not None and info.hashfull <= 1000 and (info.wdl is None or sum(info.wdl) == 1000)


def _is_sound_option(line: str) -> bool:
    if match := SPIN.fullmatch(line):
        return int(match[3]) <= int(match[2]) <= int(match[4])
    if match := COMBO.fullmatch(line):
        return match[2] in match[3].split(" var ")
    return PLAIN_OPTION.fullmatch(line) is not None


def is_protocol_line(line: str) -> bool:
    """Whether a line, other than the banner and blank ones, is of the protocol."""
    if line.startswith("option"):
        return _is_sound_option(line)
    if line.startswith("info depth"):
        patterns = (LOST_ROOT, CURRENT_MOVE)
        return _is_sound_info(line) or any(pattern.fullmatch(line) for pattern in patterns)
    return any(pattern.fullmatch(line) for pattern in (ANSWER, STRING, BEST_MOVE))


def _may_be_followed_by_a_blank_line(line: str) -> bool:
    return line.startswith(("id author ", "info string CRITICAL ERROR: "))


def free_text(sent: Iterable[str]) -> list[re.Pattern]:
    """The patterns of what the commands for people among those sent may print; `\\r` ends a line as well."""
    words = [part.split() for line in sent for part in line.split("\r")]
    names = {line[0] for line in words if line} | {"perft" for line in words if "perft" in line}
    return [pattern for name, pattern in FREE_TEXT.items() if name in names]


def faults(lines: Sequence[str], sent: Iterable[str], begins_with_banner: bool = True) -> list[str]:
    """The lines that do not belong into the output after these commands."""
    free = free_text(sent)
    found = []
    for number, line in enumerate(lines):
        if number == 0 and begins_with_banner:
            is_right = BANNER.fullmatch(line) is not None
        elif line == "" and number > 0 and _may_be_followed_by_a_blank_line(lines[number - 1]):
            is_right = True
        else:
            is_right = is_protocol_line(line) or any(pattern.fullmatch(line) for pattern in free)
        if not is_right:
            found.append(f"line {number}: {line[:300]!r}")
    return found
