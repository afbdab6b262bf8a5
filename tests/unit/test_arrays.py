"""What stands between small tables on the host and arrays as long as the rows, for several
namespaces."""

import array_api_strict
import numpy as np
import pytest
from scipy import special

from unflip._utils.arrays import (
    as_numpy,
    at_least,
    expit,
    in_columns,
    is_foreign,
    like,
    one_hot,
    own_entries,
    pick,
    place,
    row_products,
    softmax,
    softmax_and_logsumexp,
    sums_by_code,
    taken,
    times_table,
)
from unflip._utils.namespaces import check_together
from unflip.data.duplicates import DistinctRows
from unflip.data.lazy import LazyRows

AFAR = array_api_strict.Device("device1")
CODES = np.array([2, 0, 1, 1, 2])
TABLE = np.arange(6.0).reshape(3, 2)


def afar(values):
    return array_api_strict.asarray(np.array(values), device=AFAR)


@pytest.fixture(params=[np.asarray, afar], ids=["numpy", "afar"])
def put(request):
    return request.param


def same(found, expected):
    np.testing.assert_allclose(as_numpy(found), expected, rtol=1e-15)


def test_tables_go_there_and_come_back(put):
    there = like(TABLE, put(CODES))
    assert type(there) is type(put(TABLE))
    same(there, TABLE)
    same(like(there, put(CODES)), TABLE)


def test_tables_that_must_not_be_written_to_are_copied():
    fixed = TABLE.copy()
    fixed.setflags(write=False)
    same(like(fixed, afar(CODES)), TABLE)


def test_each_code_has_its_row_and_its_column(put):
    same(pick(TABLE, put(CODES)), TABLE[CODES])
    same(taken(put(TABLE), put(CODES)), TABLE[CODES])
    same(one_hot(put(CODES), 3), np.eye(3)[CODES])
    same(own_entries(put(TABLE[CODES]), put(CODES % 2)), TABLE[CODES, CODES % 2])


def test_products_and_picks_lie_column_after_column(put):
    rows = put(np.arange(10.0).reshape(5, 2))
    same(times_table(rows, TABLE.T), np.arange(10.0).reshape(5, 2) @ TABLE.T)
    same(in_columns(rows), np.arange(10.0).reshape(5, 2))
    if put is np.asarray:
        for found in (times_table(rows, TABLE.T), in_columns(rows), pick(TABLE, CODES)):
            assert found.flags.f_contiguous


def test_softmax_comes_with_the_log_of_its_sum(put):
    logits = np.array([[1e3, 1e3 - 1, 0.0], [-1e3, -1e3, -1e3]])
    found, log_sum = softmax_and_logsumexp(put(logits))
    same(found, special.softmax(logits, axis=1))
    np.testing.assert_allclose(as_numpy(log_sum), special.logsumexp(logits, axis=1), rtol=1e-15)


def test_sums(put):
    weights = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    np.testing.assert_array_equal(sums_by_code(put(CODES), put(weights), 4), [2.0, 12.0, 17.0, 0.0])
    same(row_products(put(TABLE), put(TABLE + 1)), (TABLE * (TABLE + 1)).sum(axis=1))
    same(at_least(put(TABLE), 2.5), np.maximum(TABLE, 2.5))


def test_probabilities_keep_all_digits_in_both_tails(put):
    log_odds = np.array([-800.0, -700.0, -40.0, -1.0, 0.0, 1.0, 40.0, 800.0])
    np.testing.assert_allclose(
        as_numpy(expit(put(log_odds))), special.expit(log_odds), rtol=1e-14, atol=1e-308
    )
    logits = np.stack([log_odds, log_odds[::-1], np.zeros(8)], axis=1)
    np.testing.assert_allclose(
        as_numpy(softmax(put(logits))), special.softmax(logits, axis=1), rtol=1e-12
    )


def test_rows_that_are_read_lazily_are_numpys():
    assert not is_foreign(LazyRows.of(TABLE))
    assert not is_foreign(TABLE)
    assert not is_foreign([1.0])
    assert is_foreign(afar(TABLE))


def test_places_in_words():
    assert place(afar(TABLE)) == f"array_api_strict array on {AFAR}"
    check_together(afar(TABLE), afar(CODES), "A.predict")
    with pytest.raises(
        ValueError, match=r"A\.predict\(\) must use the same namespace and device as fit\(\)"
    ):
        check_together(TABLE, afar(TABLE), "A.predict")


def test_copies_are_found_and_averaged_afar():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))[np.r_[0:30, [4] * 7, 9, 9, 30, 31]]
    weights = rng.uniform(1e-9, 1, size=len(X))
    weights[[2, 33]] = 0
    near, far = DistinctRows.of(X, weights), DistinctRows.of(afar(X), afar(weights))
    for name in ("X", "weights", "members", "owner", "member_weights", "leaving_share", "counts"):
        np.testing.assert_allclose(
            as_numpy(getattr(far, name)), getattr(near, name), rtol=1e-14, err_msg=name
        )
    assert far.n_effective == pytest.approx(near.n_effective, rel=1e-14)
    assert far.largest == near.largest
    values = rng.normal(size=(len(near.members), 2))
    np.testing.assert_allclose(
        as_numpy(far.average(afar(values))), near.average(values), rtol=1e-13, atol=1e-14
    )
    codes = rng.integers(3, size=len(near.members))
    np.testing.assert_allclose(far.shares(afar(codes)), near.shares(codes), rtol=1e-14)


def test_zeros_of_either_sign_are_alike_afar():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(as_numpy(DistinctRows.of(afar(X)).owner), [0, 0, 1])
