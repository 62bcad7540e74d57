"""Tables as files: what is missing, what must be quoted, and that it does not matter how many rows come at a time."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from uci import result_files
from uci.result_files import INT64, TEXT, Cells, Column, CsvWriter, JsonWriter, ParquetWriter, ResultWriter, Texts

COLUMNS = (Column("text", TEXT), Column("small"), Column("large", INT64), Column("note", TEXT))
ROWS = [
    ("plain", 1, 1 << 40, "x"),
    ('a,"b"', -5, None, None),
    ("象\\\t\r\n", None, 0, ""),
    ("%s %d", 2**31 - 1, -(1 << 62), "100 %"),
    (None, None, None, None),
]


def written(create: type[ResultWriter], rows: list[tuple], rows_at_a_time: int) -> bytes:
    file = io.BytesIO()
    file.close = lambda: None  # Arrow closes what it has written
    writer = create(file, COLUMNS)
    writer.begin()
    for start in range(0, len(rows), rows_at_a_time):
        columns = zip(*rows[start : start + rows_at_a_time], strict=True)
        writer.write(writer.encode([Cells.of(*column) for column in zip(COLUMNS, columns, strict=True)]))
    writer.finish()
    return file.getvalue()


def test_csv():
    text = written(CsvWriter, ROWS, 2).decode()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == [column.name for column in COLUMNS]
    assert rows[1:] == [["" if value is None else str(value) for value in row] for row in ROWS]


def test_json():
    lines = written(JsonWriter, ROWS, 2).decode().split("\n")
    assert lines.pop() == ""
    assert [list(json.loads(line).items()) for line in lines] == [
        [(column.name, value) for column, value in zip(COLUMNS, row, strict=True)] for row in ROWS
    ]


def test_parquet():
    table = pa.parquet.read_table(io.BytesIO(written(ParquetWriter, ROWS, 2)))
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == ROWS
    assert table.schema.types == [pa.string(), pa.int32(), pa.int64(), pa.string()]


def test_cells_without_a_mask_are_all_there():
    for create in (CsvWriter, JsonWriter, ParquetWriter):
        file = io.BytesIO()
        writer = create(file, COLUMNS[:2])
        writer.begin()
        table = [Cells(Texts.of(["a", "b"])), Cells(np.array([1, 2], np.int32))]
        bare = writer.encode(table)
        masked = writer.encode([Cells(cells.values, np.zeros(2, np.bool_)) for cells in table])
        assert bare == masked


@pytest.mark.parametrize("create", [CsvWriter, JsonWriter, ParquetWriter])
def test_bytes_do_not_depend_on_how_many_rows_come_at_a_time(create, monkeypatch):
    monkeypatch.setattr(result_files, "ROW_GROUP_ROWS", 3000)
    rows = [(f"{number} " * 200, number, number, None) for number in range(8000)]  # more than a page of Parquet holds
    whole = written(create, rows, len(rows))
    assert {written(create, rows, count) for count in (1000, 777, 3000)} == {whole}
    if create is ParquetWriter:
        file = pa.parquet.ParquetFile(io.BytesIO(whole))
        assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [3000, 3000, 2000]
