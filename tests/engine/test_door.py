"""What is handed in: used as it is meant, or refused with its row named and nothing changed."""

import numpy as np
import pytest

from linkstream import Links
from linkstream.errors import ArgumentError, DimensionError, LinkstreamError, VectorError
from streams import ENGINES, make

GOOD = np.array([[1, 2, 3], [3, 2, 1], [-1, 0, 4], [2, 2, 2]], dtype=np.float32)
THRESHOLDS = (0.7, 0.9, 0.8)


@pytest.fixture(params=ENGINES)
def links(request):
    links = Links(*THRESHOLDS, engine=request.param)
    links.add_many(GOOD)
    return links


@pytest.fixture(params=ENGINES)
def fresh(request):
    return Links(*THRESHOLDS, engine=request.param)


def look(links):
    """All that a refused call must leave as it was."""
    return links.state_hash(), links.dimension, links.n_vectors, len(links.events())


def assert_refused(links, call, values, error=VectorError, row=None):
    before = look(links)
    with pytest.raises(error) as refused:
        call(values)
    assert look(links) == before
    assert isinstance(refused.value, (ArgumentError, ValueError))
    assert isinstance(refused.value, LinkstreamError)
    if row is not None:
        assert refused.value.row == row
    assert refused.value.remedy
    return refused.value


BAD_NUMBERS = {
    "not a number": [1, np.nan, 1],
    "infinite": [np.inf, 1, 1],
    "negative infinite": [1, 1, -np.inf],
    "zero": [0, 0, 0],
    "negative zero": [-0.0, 0, 0],
    "subnormal in float32": [1e-40, 1e-40, 0],
    "subnormal in float64": [1e-310, 0, 1e-310],
    "shorter than 1e-9": [1e-10, 0, 0],
    "longer than 1e9": [1e20, 0, 0],
    "beyond float32": [1e39, 1, 1],
    "beyond float32 and negative": [1, 1, -1e300],
}


@pytest.mark.parametrize("bad", BAD_NUMBERS.values(), ids=BAD_NUMBERS)
def test_a_vector_of_bad_numbers_is_refused_with_its_row_named(links, bad):
    batch = np.array([[1, 2, 3], [4, 5, 6], bad, [7, 8, 9], bad], dtype=np.float64)
    for call in (links.add_many, links.predict):
        error = assert_refused(links, call, batch, row=2)
        assert "row 2" in str(error)
    for call in (links.add, links.explain):
        assert_refused(links, call, batch[2], row=0)


@pytest.mark.parametrize("bad", BAD_NUMBERS.values(), ids=BAD_NUMBERS)
def test_a_first_vector_that_is_refused_does_not_fix_the_dimension(fresh, bad):
    for call in (fresh.add, fresh.explain):
        assert_refused(fresh, call, np.array(bad, dtype=np.float64), row=0)
    for call in (fresh.add_many, fresh.predict):
        assert_refused(fresh, call, np.array([[1, 2, 3], bad], dtype=np.float64), row=1)
    assert fresh.dimension is None
    assert fresh.add_many([[1.0, 2.0]]).tolist() == [0]


def test_the_bounds_of_the_norm_are_inside(fresh):
    assert fresh.add([1e9, 0.0]).cluster == fresh.add([1.0000001e-9, 0.0]).cluster == 0
    assert fresh.add([1e-3, 1e-42]).cluster == 0  # one subnormal coordinate does no harm


@pytest.mark.parametrize("shape", [(2,), (4,), (1,), (0,)])
def test_a_vector_of_another_dimension_is_refused(links, shape):
    for call in (links.add, links.explain):
        error = assert_refused(links, call, np.ones(shape), DimensionError, row=0)
        assert "3" in str(error)
    for call in (links.add_many, links.predict):
        assert_refused(links, call, np.ones((2, *shape)), DimensionError, row=0)


@pytest.mark.parametrize("d", [0, 1, 2**16 + 1])
def test_a_dimension_out_of_range_is_refused(fresh, d):
    assert_refused(fresh, fresh.add, np.ones(d), DimensionError)
    assert_refused(fresh, fresh.add_many, np.ones((2, d)), DimensionError)


@pytest.mark.parametrize("d", [2, 2**16])
def test_the_ends_of_the_range_of_dimensions_are_inside(fresh, d):
    assert [fresh.add(np.ones(d)).kind, fresh.add(np.ones(d)).kind] == ["new", "joined"]
    assert fresh.dimension == d


def test_predict_of_one_vector_does_not_advise_to_add_it(links):
    with pytest.raises(VectorError, match=r"Pass a single vector x as \[x\]") as caught:
        links.predict(np.ones(links.dimension))
    assert "add" not in str(caught.value)
    with pytest.raises(VectorError, match=r"Pass one row, such as X\[0\]") as caught:
        links.explain(np.ones((2, links.dimension)))
    assert "add" not in str(caught.value)


def test_one_vector_and_a_batch_are_not_mixed_up(links):
    for call in (links.add, links.explain):
        assert_refused(links, call, GOOD)
        assert_refused(links, call, GOOD[:1])
        assert_refused(links, call, 1.0)
    for call in (links.add_many, links.predict):
        assert_refused(links, call, GOOD[0])
        assert_refused(links, call, GOOD[np.newaxis])
        assert_refused(links, call, 1.0)


NOT_NUMBERS = {
    "bool": np.ones((2, 3), dtype=bool),
    "object": np.ones((2, 3), dtype=object),
    "object of arrays": np.array([[np.ones(1)] * 3] * 2, dtype=object),
    "complex": np.ones((2, 3), dtype=complex),
    "string": np.full((2, 3), "1.0"),
    "bytes": np.full((2, 3), b"1.0"),
    "dates": np.zeros((2, 3), dtype="datetime64[s]"),
    "durations": np.ones((2, 3), dtype="timedelta64[s]"),
    "records": np.ones(2, dtype=[("x", "f4"), ("y", "f4")]),
    "strings in lists": [["1", "2", "3"]],
    "None in lists": [[1.0, None, 3.0]],
    "whole numbers beyond 64 bits": [[2**80, 1, 1]],
    "ragged lists": [[1.0, 2.0, 3.0], [1.0, 2.0]],
    "ragged nesting": [[1.0, 2.0, [3.0]]],
    "a dict": {"x": 1},
    "a set": {1.0, 2.0},
    "a generator": (row for row in GOOD),
    "None": None,
    "text": "vectors",
}


@pytest.mark.parametrize("values", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
def test_what_is_no_array_of_real_numbers_is_refused(links, values):
    for call in (links.add_many, links.predict):
        assert_refused(links, call, values)


@pytest.mark.parametrize(
    "values", [[True, False, True], ["1", "2", "3"], [1, None, 2], [1j, 1, 1], "abc", None, {}]
)
def test_what_is_no_vector_of_real_numbers_is_refused(links, values):
    for call in (links.add, links.explain):
        assert_refused(links, call, values)


def same_as_good(fresh, values):
    plain = Links(*THRESHOLDS, engine=fresh.engine)
    expected = plain.add_many(GOOD).tolist()
    assert fresh.add_many(values).tolist() == expected
    assert fresh.state_hash() == plain.state_hash()


@pytest.mark.parametrize(
    "dtype",
    ["f2", "f4", "f8", "longdouble", ">f4", ">f8", "i1", "i2", "i4", "i8", ">i4", ">i8"],
)
def test_every_real_dtype_and_byte_order_gives_the_same_answer(fresh, dtype):
    same_as_good(fresh, GOOD.astype(dtype))


def test_unsigned_integers_are_numbers(fresh):
    assert (
        fresh.add_many(np.abs(GOOD).astype("u1")).tolist() == fresh.add_many(np.abs(GOOD)).tolist()
    )


def test_float64_is_taken_at_float32_precision(fresh):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20, 8))
    other = Links(*THRESHOLDS, engine=fresh.engine)
    fresh.add_many(rows)
    other.add_many(rows.astype(np.float32))
    assert fresh.state_hash() == other.state_hash()


LAYOUTS = {
    "lists": GOOD.tolist(),
    "tuples": tuple(map(tuple, GOOD.tolist())),
    "a list of arrays": list(GOOD),
    "Fortran order": np.asfortranarray(GOOD),
    "every other row": np.repeat(GOOD, 2, axis=0)[::2],
    "every other column": np.repeat(GOOD, 2, axis=1)[:, ::2],
    "reversed strides": GOOD[::-1, ::-1].copy()[::-1, ::-1],
    "a transposed view": GOOD.T.copy().T,
    "unaligned": np.frombuffer(b"\0" + GOOD.tobytes(), dtype=np.uint8)[1:]
    .view(np.float32)
    .reshape(GOOD.shape),
    "a memoryview": memoryview(GOOD),
}


@pytest.mark.parametrize("values", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_in_memory_gives_the_same_answer(fresh, values):
    same_as_good(fresh, values)


def test_a_read_only_array_is_read(fresh):
    values = GOOD.copy()
    values.flags.writeable = False
    same_as_good(fresh, values)


def test_broadcast_rows_are_read(fresh):
    assert fresh.add_many(np.broadcast_to(GOOD[0], (5, 3))).tolist() == [0] * 5


@pytest.mark.parametrize("empty", [[], np.empty((0, 3)), np.empty((0, 3), dtype=np.float32)])
def test_an_empty_batch_changes_nothing(links, empty):
    before = look(links)
    for call in (links.add_many, links.predict):
        ids = call(empty)
        assert (ids.dtype, ids.shape) == (np.int64, (0,))
    assert look(links) == before


def test_an_empty_batch_does_not_fix_the_dimension(fresh):
    assert fresh.add_many(np.empty((0, 7))).shape == (0,)
    assert fresh.predict([]).shape == (0,)
    assert fresh.dimension is None
    assert fresh.add_many(GOOD).shape == (4,)


def test_an_empty_batch_of_another_dimension_is_refused(links):
    assert_refused(links, links.add_many, np.empty((0, 4)), DimensionError)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_the_callers_array_is_neither_changed_nor_kept(fresh, dtype):
    mine = (GOOD * 10).astype(dtype)
    copy = mine.copy()
    fresh.add_many(mine)
    fresh.predict(mine)
    for x in mine:
        fresh.add(x)
        fresh.explain(x)
    assert mine.tobytes() == copy.tobytes()
    before = look(fresh)
    mine[:] = 77
    assert look(fresh) == before


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_handed_out_is_the_engines_own_memory(engine):
    stream = make("lobes", 1)
    links = Links(*stream.thresholds, engine=engine)
    ids = links.add_many(stream.vectors)
    before = look(links)
    state = links.state()
    arrays = [ids, links.labels(), links.predict(stream.vectors), *state.arrays().values()]
    for array in arrays:
        if array.flags.writeable:
            array[...] = -5
    assert look(links) == before
    assert links.add(stream.vectors[0]).cluster in {view.id for view in links.clusters()}


def test_a_refused_batch_adds_none_of_its_rows_and_the_next_goes_on_as_if_never_asked(links):
    other = Links.from_bytes(links.to_bytes(), engine=links.engine)
    assert_refused(links, links.add_many, np.vstack([GOOD, [[np.nan, 1, 1]]]), row=4)
    assert links.add_many(GOOD).tolist() == other.add_many(GOOD).tolist()
    assert links.events() == other.events()
    assert links.state_hash() == other.state_hash()


def test_a_masked_array_is_refused_rather_than_read_behind_its_mask():
    links = Links(0.7, 0.6, 0.9)
    masked = np.ma.masked_array([[1.0, 0.0], [0.0, 1.0]], mask=[[0, 0], [0, 1]])
    with pytest.raises(VectorError, match="masked"):
        links.add_many(masked)
    assert links.n_vectors == 0
    assert links.add_many(np.ma.masked_array([[1.0, 0.0]])).tolist() == [0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [bool, object, complex, "U8"])
def test_the_short_way_for_one_vector_is_no_way_round_the_door(engine, dtype):
    links = Links(0.7, 0.6, 0.9, engine=engine)
    links.add([1.0, 0.0, 0.0])
    before = links.state_hash()
    with pytest.raises(VectorError):
        links.add(np.array([1, 0, 1]).astype(dtype))
    assert links.state_hash() == before


@pytest.mark.parametrize("engine", ENGINES)
def test_one_vector_is_the_same_by_the_short_way_and_by_the_long(engine):
    rng = np.random.default_rng(3)
    rows = np.float32(rng.standard_normal((200, 6)))
    short, long = (Links(0.7, 0.6, 0.9, engine=engine) for _ in range(2))
    for row in rows:
        assert short.add(row) == long.add(row.tolist())
    assert short.state_hash() == long.state_hash()
