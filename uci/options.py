"""The engine's options, in the order in which `uci` lists them: one table for the protocol, checks and README."""

from dataclasses import dataclass

EMPTY_STRING = "<empty>"


class OptionError(ValueError):
    """An option or value that is refused; the message is a sentence."""


@dataclass(frozen=True)
class Option:
    """kind: spin, string or button. minimum and maximum bound a spin."""

    name: str
    kind: str
    default: int | str | None
    description: str
    minimum: int = 0
    maximum: int = 0

    def declaration(self) -> str:
        """The line by which `uci` announces the option."""
        text = f"option name {self.name} type {self.kind}"
        if self.kind == "spin":
            return f"{text} default {self.default} min {self.minimum} max {self.maximum}"
        if self.kind == "string":
            return f"{text} default {self.default or EMPTY_STRING}"
        return text

    def parse(self, text: str) -> int | str | None:
        """The value that `text` spells; OptionError if it is none."""
        if self.kind == "button":
            return None
        if self.kind == "string":
            return "" if text == EMPTY_STRING else text
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or not self.minimum <= int(text) <= self.maximum:
            raise OptionError(
                f"'{text}' is no value for option {self.name}; "
                f"expected a whole number from {self.minimum} to {self.maximum}."
            )
        return int(text)


OPTIONS = (
    Option("Threads", "spin", 1, "search threads", 1, 1024),
    Option("Hash", "spin", 16, "size of the transposition table in MiB", 1, 33554432),
    Option("Clear Hash", "button", None, "forget all that was learnt in earlier searches"),
    Option("Move Overhead", "spin", 10, "milliseconds a move that get lost between engine and clock", 0, 5000),
    Option("EvalFile", "string", "", "network file; empty for the one that comes with the engine"),
)

_BY_NAME = {option.name.lower(): option for option in OPTIONS}


def find_option(name: str) -> Option:
    """The option of this name, in any case; OptionError if there is none."""
    option = _BY_NAME.get(name.lower())
    if option is None:
        raise OptionError(f"No such option: {name}")
    return option
