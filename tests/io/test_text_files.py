"""Test JSON lines and CSV: an invalid row is refused with its line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.io.samples import read, rows

from linkstream.errors import InputFileError
from linkstream.io.text_files import DIGITS_MAX, LINE_MAX

GOOD = '{"embedding": [1, 2.5, -3e-2], "file": "a"}'


def written(tmp_path, data, name="v.jsonl"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def refused(path, match, **given):
    with pytest.raises(InputFileError, match=match) as caught:
        read(path, **given)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "[1, 2, NaN]",
        "[1, 2, Infinity]",
        "[1, 2, -Infinity]",
        "[1, 2, 1e999]",
        "[1, 2, null]",
        '[1, 2, "3"]',
        "[1, 2, true]",
        "[1, 2, [3]]",
        "[1, 2]",
        "[1, 2, 3, 4]",
        "[]",
        "[1, 2, 3",
        "[1, 2, 3] [4]",
        "3",
        "null",
        '"text"',
        "{}",
        '{"embedding": 3}',
        '{"embedding": null}',
        '{"other": [1, 2, 3]}',
        '{"embedding": [1, 2, 3], "embedding": [4, 5, 6]}',
        "[1, 2, " + "9" * 5000 + "]",
        "[1, 2, " + "9" * 400 + "]",
        '{"embedding": [1, 2, 3], "id": ' + "9" * 5000 + "}",
        "[" * 10**5,
        '{"a":' * 10**5,
        "[1, 2, 3]\x00",
        b'{"embedding": [1, 2, 3], "file": "\xff\xfe"}',
        b"\xed\xa0\x80",
    ],
    ids=lambda line: repr(line[:40]),
)
def test_an_invalid_json_line_is_refused_with_its_number(tmp_path, line):
    data = line if isinstance(line, bytes) else line.encode()
    path = written(tmp_path, GOOD.encode() + b"\n\n" + data + b"\n" + GOOD.encode())
    refused(path, "line 3")


def test_a_line_without_an_end_is_refused_before_all_of_it_is_read(tmp_path):
    path = written(tmp_path, GOOD + "\n[" + "1," * LINE_MAX)
    refused(path, f"line 2 is longer than {LINE_MAX} bytes")


def test_big_integers_are_read_up_to_a_limit(tmp_path):
    number = 10 ** (DIGITS_MAX - 1)
    path = written(tmp_path, json.dumps({"embedding": [1, 2], "id": number}))
    assert read(path, payload="id")[0].payloads == [{"id": number}]


def test_the_vectors_are_the_usual_column_or_the_only_array(tmp_path):
    for line, column in [
        ('{"embedding": [1, 2], "other": [3, 4]}', None),
        ('{"other": [3, 4], "vector": [1, 2]}', None),
        ('{"anything": [1, 2], "text": "x"}', None),
        ('{"a": [1, 2], "embedding": [3, 4]}', "a"),
    ]:
        assert rows(read(written(tmp_path, line), column=column)).tolist() == [[1, 2]]
    refused(written(tmp_path, '{"a": [1, 2], "b": [3, 4]}'), "2 fields that hold arrays")


def test_a_field_that_a_row_does_not_have_is_none_in_its_payload(tmp_path):
    path = written(tmp_path, GOOD + '\n{"embedding": [1, 2, 3]}')
    assert read(path, payload="file")[0].payloads == [{"file": "a"}, {"file": None}]


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    data = b"\xef\xbb\xbf[1, 2]\r\n[3, 4]\r\n"
    assert rows(read(written(tmp_path, data))).tolist() == [[1, 2], [3, 4]]
    data = b"\xef\xbb\xbfx0,x1\r\n1,2\r\n3,4"
    assert rows(read(written(tmp_path, data, "v.csv"))).tolist() == [[1, 2], [3, 4]]


# CSV


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1,2\n3", "line 2 has 1 cells"),
        ("1,2\n3,4,5", "line 2 has 3 cells"),
        ("1,2\n3,", "line 2, cell 2: ''"),
        ("1,2\n3,x", "line 2, cell 2: 'x'"),
        ("1,2\n3,nan", "line 2 holds a number that is not finite"),
        ("1,2\n3,-inf", "line 2 holds a number that is not finite"),
        ("1,2\n3,1e999", "line 2 holds a number that is not finite"),
        ("1,2\n3,1_0", "line 2, cell 2"),
        ("1,2\n3," + "9" * 5000, "line 2 holds a number that is not finite"),
        ('1,2\n3,"4', "line 2 is not CSV"),
        ('1,2\n3,"4"5', "line 2 is not CSV"),
        ("a,a\n1,2", "line 1 names a column twice"),
        ("a,embedding\n1,2", "line 2: '2'"),
        ('a,embedding\n1,"[1, null]"', "line 2: "),
        ('a,embedding\n1,"[1, 1e999]"', "line 2 holds a number that is not finite"),
        ("a,b\n1,2\n" + "x" * 200_000, "line 3 is not CSV"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_an_invalid_csv_row_is_refused_with_its_line(tmp_path, text, match):
    refused(written(tmp_path, text, "v.csv"), match)


def test_quotes_that_open_row_after_row_are_refused_before_they_fill_memory(tmp_path):
    path = written(tmp_path, '1,2\n"' + ("x" * 1000 + '\n","') * 5000, "v.csv")
    refused(path, "ends no row")


def test_numbered_columns_are_the_vector_and_others_are_left_out(tmp_path):
    text = "id,x_0,x_1,note\n7,1,2,hello\n8,3,4,\n"
    path = written(tmp_path, text, "v.csv")
    blocks = read(path, column="x", payload="note")
    assert rows(blocks).tolist() == [[1, 2], [3, 4]]
    assert blocks[0].payloads == [{"note": "hello"}, {"note": None}]
    refused(path, "cell 4: 'hello'")


def test_a_column_may_hold_arrays(tmp_path):
    text = 'file,embedding\n"a ""b""\nc","[1, 2]"\nd,"[3, 4]"\n'
    blocks = read(written(tmp_path, text, "v.csv"), payload="*")
    assert rows(blocks).tolist() == [[1, 2], [3, 4]]
    assert blocks[0].payloads == [{"file": 'a "b"\nc'}, {"file": "d"}]


def test_all_columns_as_payload_leave_no_vector(tmp_path):
    refused(written(tmp_path, "a,b\n1,2\n", "v.csv"), "all columns", payload="*")


def test_column_and_payload_need_a_line_of_names(tmp_path):
    refused(written(tmp_path, "1,2\n3,4\n", "v.csv"), "no names of columns", column="x")


def test_numbers_are_read_to_the_last_digit(tmp_path):
    X = np.random.default_rng(0).standard_normal((5, 3))
    np.savetxt(tmp_path / "v.csv", X, delimiter=",", fmt="%.17g")
    assert np.array_equal(rows(read(tmp_path / "v.csv")), X)
