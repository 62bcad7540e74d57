"""Reading positions from files of any length, in blocks that depend on the file alone.

Text comes in blocks of at most BLOCK_BYTES, cut behind the last line end; Parquet in batches of BLOCK_ROWS. Reading is
cheap and done by one thread; `parse` is the work, and may be done by another.
"""

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from games.xiangqi.bulk_fen import BulkFens, count_line_ends, parse_lines, parse_texts

STANDARD_INPUT = "-"
BLOCK_BYTES = 4 << 20
BLOCK_ROWS = 1 << 16
PARQUET_ENDING = ".parquet"
FEN_COLUMN = "fen"

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class InputError(ValueError):
    """An input that cannot be read; the message is a sentence that says why."""


@dataclass(frozen=True)
class TextBlock:
    """Whole lines. number: of the block, from 0."""

    number: int
    text: np.ndarray  # [.] uint8
    unit = "line"

    def checksum(self) -> int:
        return zlib.crc32(self.text)

    def parse(self, stop: bool) -> BulkFens:
        return parse_lines(self.text, stop)

    def count_units(self) -> int:
        """Number of lines that end in this block."""
        return count_line_ends(self.text)

    def unit_of(self, fens: BulkFens, number: int) -> int:
        """Number of the line, from 0 in this block, that holds text number `number` of those parsed."""
        return count_line_ends(self.text[: fens.source[number]])


@dataclass(frozen=True)
class RowBlock:
    """Rows of a table. number: of the block, from 0."""

    number: int
    text: np.ndarray  # [.] uint8
    offsets: np.ndarray  # [rows + 1] integers: where each row begins in `text`, and the last ends
    unit = "row"

    def checksum(self) -> int:
        return zlib.crc32(np.diff(self.offsets).astype("<i8"), zlib.crc32(self.text))

    def parse(self, stop: bool) -> BulkFens:
        offsets = self.offsets.astype(np.int64)
        return parse_texts(self.text, offsets[:-1], offsets[1:], stop)

    def count_units(self) -> int:
        return len(self.offsets) - 1

    def unit_of(self, fens: BulkFens, number: int) -> int:
        return number


Block = TextBlock | RowBlock


@dataclass
class PositionFile:
    """An open input.

    blocks            the iterator over its blocks
    fraction_read()   share of the input that has been read, None if its length is unknown
    """

    blocks: Iterator[Block]
    fraction_read: Callable[[], float | None]


@contextmanager
def open_positions(name: str, block_bytes: int = BLOCK_BYTES, block_rows: int = BLOCK_ROWS) -> Iterator[PositionFile]:
    """Open a text or Parquet file, or standard input for `-`; InputError if that fails, then or while reading."""
    try:
        if name == STANDARD_INPUT:
            yield PositionFile(_text_blocks(sys.stdin.buffer, block_bytes), lambda: None)
        elif name.lower().endswith(PARQUET_ENDING):
            with open(name, "rb") as file:
                yield _open_parquet(name, file, block_rows)
        else:
            with open(name, "rb") as file:
                yield PositionFile(_text_blocks(file, block_bytes), _fraction_of_bytes(file))
    except OSError as error:
        if error.filename != name:
            raise
        raise InputError(f"The input '{name}' cannot be read: {error.strerror}.") from error


def _fraction_of_bytes(file: BinaryIO):
    size = os.fstat(file.fileno()).st_size
    return (lambda: file.tell() / size) if size and file.seekable() else lambda: None


def _text_blocks(file: BinaryIO, block_bytes: int) -> Iterator[TextBlock]:
    """Blocks of whole lines; however small the pieces of a pipe are, blocks are cut where they would be in a file."""
    rest = b""
    number = lines = 0
    is_at_end = False
    while not is_at_end:
        buffer = bytearray(block_bytes)
        buffer[: len(rest)] = rest
        size = len(rest) + _fill(file, memoryview(buffer)[len(rest) :])
        is_at_end = size < block_bytes
        cut = size if is_at_end else buffer.rfind(b"\n") + 1
        if cut == 0 and not is_at_end:
            raise InputError(f"Line {lines + 1} is longer than {block_bytes} bytes; expected one FEN a line.")
        rest = bytes(buffer[cut:size])
        skipped = len(BYTE_ORDER_MARK) if number == 0 and buffer.startswith(BYTE_ORDER_MARK) else 0
        block = TextBlock(number, np.frombuffer(buffer, np.uint8)[skipped:cut])
        lines += block.count_units()
        number += 1
        yield block


def _fill(file: BinaryIO, buffer: memoryview) -> int:
    """Read until the buffer is full or the input ends; returns the number of bytes."""
    size = 0
    while size < len(buffer):
        count = file.readinto(buffer[size:])
        if not count:
            break
        size += count
    return size


def import_pyarrow():
    """The package pyarrow; InputError that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError("Parquet files need the package pyarrow: pip install pyarrow.") from error
    return pyarrow


def _open_parquet(name: str, file: BinaryIO, block_rows: int) -> PositionFile:
    pa = import_pyarrow()
    try:
        parquet = pa.parquet.ParquetFile(file)
    except pa.ArrowException as error:
        raise InputError(f"The input '{name}' is not a Parquet file: {error}") from error
    schema = parquet.schema_arrow
    if FEN_COLUMN not in schema.names:
        raise InputError(f"'{name}' has no column '{FEN_COLUMN}'; its columns are {', '.join(schema.names) or 'none'}.")
    kind = schema.field(FEN_COLUMN).type
    value_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(value_kind) or pa.types.is_large_string(value_kind)):
        raise InputError(f"The column '{FEN_COLUMN}' of '{name}' holds {kind}; expected string.")
    rows = parquet.metadata.num_rows
    done = 0

    def blocks() -> Iterator[RowBlock]:
        nonlocal done
        try:
            for number, batch in enumerate(parquet.iter_batches(block_rows, columns=[FEN_COLUMN])):
                done += len(batch)
                yield _row_block(pa, number, batch.column(0))
        except pa.ArrowException as error:
            raise InputError(f"The input '{name}' cannot be read: {error}") from error

    return PositionFile(blocks(), lambda: done / rows if rows else None)


def _row_block(pa, number: int, column) -> RowBlock:
    """A block of an Arrow column of strings; a null becomes an empty text."""
    column = column.cast(pa.large_string()).fill_null("")
    if not len(column):
        return RowBlock(number, np.zeros(0, np.uint8), np.zeros(1, np.int64))
    _, offsets, data = column.buffers()
    offsets = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return RowBlock(number, text[offsets[0] : offsets[-1]], offsets - offsets[0])


def same_file(first: str | Path, second: str | Path) -> bool:
    """Whether two names lead to one existing file."""
    return os.path.exists(first) and os.path.exists(second) and os.path.samefile(first, second)
