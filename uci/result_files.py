"""Writing tables of results as CSV, JSON lines or Parquet.

`encode` makes of some rows what goes into the file, and may run on any thread; `write` takes these in order. What is
written depends on the rows alone, and not on how many of them come at a time.
"""

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from uci.position_files import FEN_COLUMN, import_pyarrow

TEXT, INT32, INT64 = "string", "int32", "int64"  # as Arrow calls them
ROW_GROUP_ROWS = 1 << 16  # of Parquet


class OutputError(ValueError):
    """An output that cannot be written; the message is a sentence that says why."""


@dataclass(frozen=True)
class Column:
    """kind: TEXT, INT32 or INT64."""

    name: str
    kind: str = INT32


FEN = Column(FEN_COLUMN, TEXT)
ERROR = Column("error", TEXT)


@dataclass(frozen=True)
class Texts:
    """n texts, one behind the other.

    offsets   [n + 1] int32, where each begins in `data`, and the last ends
    data      [.] uint8, UTF-8
    """

    offsets: np.ndarray
    data: np.ndarray

    @staticmethod
    def of(strings: Iterable[str]) -> "Texts":
        encoded = [string.encode() for string in strings]
        offsets = np.zeros(len(encoded) + 1, np.int32)
        np.cumsum([len(text) for text in encoded], out=offsets[1:])
        return Texts(offsets, np.frombuffer(b"".join(encoded), np.uint8))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def strings(self) -> list[str]:
        data = self.data.tobytes()
        offsets = self.offsets.tolist()
        if data.isascii():
            text = data.decode()
            return [text[start:end] for start, end in pairwise(offsets)]
        return [data[start:end].decode() for start, end in pairwise(offsets)]


@dataclass(frozen=True)
class Cells:
    """The cells of a column in n rows.

    values       Texts, or [n] integers
    is_missing   [n] bool, which cells hold nothing; None if all hold something
    """

    values: Texts | np.ndarray
    is_missing: np.ndarray | None = None

    @staticmethod
    def of(column: Column, values: Sequence[Any]) -> "Cells":
        """From strings or numbers, with None for a cell that holds nothing."""
        missing = np.array([value is None for value in values], np.bool_)
        if column.kind == TEXT:
            return Cells(Texts.of("" if value is None else value for value in values), missing)
        return Cells(np.array([0 if value is None else value for value in values], column.kind), missing)


class ResultWriter(ABC):
    """Writes one file."""

    def __init__(self, file: BinaryIO, columns: Sequence[Column]):
        self._file = file
        self._columns = columns

    @abstractmethod
    def begin(self) -> None:
        """Write what stands before the first row."""

    @abstractmethod
    def encode(self, table: Sequence[Cells]) -> Any:
        """What `write` takes for some rows, of which the cells of every column are given."""

    @abstractmethod
    def write(self, encoded: Any) -> None:
        """Append rows."""

    def finish(self) -> None:
        """Write what stands behind the last row."""
        self._file.flush()


class _LineWriter(ResultWriter):
    """Writes one line a row."""

    def write(self, encoded: bytes) -> None:
        self._file.write(encoded)
        self._file.flush()

    def encode(self, table: Sequence[Cells]) -> bytes:
        codes = _missing_codes(table)
        templates = {code: self._template(code) for code in np.unique(codes).tolist()}
        rows = zip(*map(self._values, table), strict=True)
        return "".join([templates[code] % row for code, row in zip(codes.tolist(), rows, strict=True)]).encode()

    def _values(self, cells: Cells) -> list:
        if not isinstance(cells.values, Texts):
            return cells.values.tolist()
        strings = cells.values.strings()
        return [self._quoted(text) for text in strings] if self._needs_quotes(cells.values.data) else strings

    def _template(self, code: int) -> str:
        """The line of a row, to be filled with the values of its cells; bit i says that cell i holds nothing."""
        return self._line(
            self._empty_cell(column) if code >> number & 1 else self._cell(column)
            for number, column in enumerate(self._columns)
        )

    @abstractmethod
    def _cell(self, column: Column) -> str:
        """The template of a cell."""

    @abstractmethod
    def _empty_cell(self, column: Column) -> str:
        """The same of one that holds nothing; it takes a value, and does not show it."""

    @abstractmethod
    def _line(self, cells: Iterable[str]) -> str: ...

    @abstractmethod
    def _needs_quotes(self, text: np.ndarray) -> bool:
        """Whether any of the bytes is one that may not stand in a line as it is."""

    @abstractmethod
    def _quoted(self, text: str) -> str: ...


def _missing_codes(table: Sequence[Cells]) -> np.ndarray:
    """[n] int64 for n rows: bit i is set where cell i holds nothing."""
    codes = np.zeros(len(table[0].values), np.int64)
    for number, cells in enumerate(table):
        if cells.is_missing is not None:
            codes |= cells.is_missing.astype(np.int64) << number
    return codes


class CsvWriter(_LineWriter):
    """Lines end with a line feed; a field is quoted if it must be."""

    _SPECIAL = '",\r\n'

    def begin(self) -> None:
        self._file.write(self._line(column.name for column in self._columns).encode())

    def _cell(self, column: Column) -> str:
        return "%s" if column.kind == TEXT else "%d"

    def _empty_cell(self, column: Column) -> str:
        return "%.0s"

    def _line(self, cells: Iterable[str]) -> str:
        return ",".join(cells) + "\n"

    def _needs_quotes(self, text: np.ndarray) -> bool:
        return any(letter in text.tobytes() for letter in map(str.encode, self._SPECIAL))

    def _quoted(self, text: str) -> str:
        if any(letter in text for letter in self._SPECIAL):
            return '"' + text.replace('"', '""') + '"'
        return text


class JsonWriter(_LineWriter):
    """One object a line."""

    def begin(self) -> None:
        pass

    def _cell(self, column: Column) -> str:
        return f'"{column.name}": "%s"' if column.kind == TEXT else f'"{column.name}": %d'

    def _empty_cell(self, column: Column) -> str:
        return f'"{column.name}": null%.0s'

    def _line(self, cells: Iterable[str]) -> str:
        return "{" + ", ".join(cells) + "}\n"

    def _needs_quotes(self, text: np.ndarray) -> bool:
        return bool(((text < ord(" ")) | (text == ord('"')) | (text == ord("\\"))).any())

    def _quoted(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False)[1:-1]


class ParquetWriter(ResultWriter):
    """Row groups of ROW_GROUP_ROWS, however many rows come at a time."""

    def begin(self) -> None:
        self._pa = pa = import_pyarrow()
        self._schema = pa.schema([pa.field(column.name, getattr(pa, column.kind)()) for column in self._columns])
        # What is in these columns seldom repeats, so a dictionary costs time and saves little.
        self._parquet = pa.parquet.ParquetWriter(self._file, self._schema, use_dictionary=False)
        self._waiting: list = []  # tables that do not fill a row group yet
        self._waiting_rows = 0

    def encode(self, table: Sequence[Cells]) -> Any:
        return self._pa.Table.from_arrays(
            [self._array(column, cells) for column, cells in zip(self._columns, table, strict=True)],
            schema=self._schema,
        )

    def _array(self, column: Column, cells: Cells):
        pa = self._pa
        if not isinstance(cells.values, Texts):
            return pa.array(cells.values, getattr(pa, column.kind)(), mask=cells.is_missing)
        texts = cells.values
        is_there = None if cells.is_missing is None else np.packbits(~cells.is_missing, bitorder="little")
        return pa.StringArray.from_buffers(
            len(texts),
            pa.py_buffer(texts.offsets),
            pa.py_buffer(texts.data),
            None if is_there is None else pa.py_buffer(is_there),
        )

    def write(self, encoded: Any) -> None:
        self._waiting.append(encoded)
        self._waiting_rows += len(encoded)
        while self._waiting_rows >= ROW_GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        table = self._pa.concat_tables(self._waiting)
        # In one piece, since the pages of the file end where the pieces do.
        self._parquet.write_table(table.slice(0, ROW_GROUP_ROWS).combine_chunks(), row_group_size=ROW_GROUP_ROWS)
        self._waiting = [table.slice(ROW_GROUP_ROWS)]
        self._waiting_rows = len(self._waiting[0])

    def finish(self) -> None:
        if self._waiting_rows:
            self._write_group()
        self._parquet.close()
        super().finish()


WRITERS: dict[str, type[ResultWriter]] = {".csv": CsvWriter, ".jsonl": JsonWriter, ".parquet": ParquetWriter}


def writer_class(path: Path) -> type[ResultWriter]:
    """The writer for files with this ending; OutputError if there is none."""
    try:
        return WRITERS[path.suffix.lower()]
    except KeyError:
        raise OutputError(f"The output '{path}' ends with none of {', '.join(WRITERS)}.") from None


class ResultFile:
    """An output that appears under its name only when it is complete; standard output for None."""

    def __init__(self, path: Path | None, columns: Sequence[Column]):
        self._path = path
        if path is None:
            self.writer: ResultWriter = CsvWriter(sys.stdout.buffer, columns)
            return
        create = writer_class(path)
        if create is ParquetWriter:
            import_pyarrow()
        self._unfinished = beside(path, ".part")
        try:
            self._file = self._unfinished.open("wb")
        except OSError as error:
            raise OutputError(f"The output '{self._unfinished}' cannot be written: {error.strerror}.") from error
        self.writer = create(self._file, columns)

    def complete(self) -> None:
        """Give the file its name."""
        if self._path is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._unfinished.replace(self._path)

    def discard(self) -> None:
        """Delete what was written."""
        if self._path is not None:
            self._file.close()
            self._unfinished.unlink(missing_ok=True)


def beside(path: Path, ending: str) -> Path:
    """The file whose name is longer by `ending`."""
    return path.with_name(path.name + ending)
