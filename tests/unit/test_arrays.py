"""Array operations for NumPy and for another namespace on a device."""

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
    take,
    times_table,
)
from unflip._utils.namespaces import check_same_device
from unflip.data.duplicates import DistinctRows
from unflip.data.lazy import LazyRows

DEVICE = array_api_strict.Device("device1")
CODES = np.array([2, 0, 1, 1, 2])
TABLE = np.arange(6.0).reshape(3, 2)


def on_device(values):
    return array_api_strict.asarray(np.array(values), device=DEVICE)


@pytest.fixture(params=[np.asarray, on_device], ids=["numpy", "device"])
def put(request):
    return request.param


def assert_same(actual, expected):
    np.testing.assert_allclose(as_numpy(actual), expected, rtol=1e-15)


def test_tables_are_copied_to_the_device_and_back(put):
    there = like(TABLE, put(CODES))
    assert type(there) is type(put(TABLE))
    assert_same(there, TABLE)
    assert_same(like(there, put(CODES)), TABLE)


def test_read_only_tables_are_copied():
    read_only = TABLE.copy()
    read_only.setflags(write=False)
    assert_same(like(read_only, on_device(CODES)), TABLE)


def test_codes_select_rows_and_columns(put):
    assert_same(pick(TABLE, put(CODES)), TABLE[CODES])
    assert_same(take(put(TABLE), put(CODES)), TABLE[CODES])
    assert_same(one_hot(put(CODES), 3), np.eye(3)[CODES])
    assert_same(own_entries(put(TABLE[CODES]), put(CODES % 2)), TABLE[CODES, CODES % 2])


def test_products_and_selections_are_stored_column_by_column(put):
    rows = put(np.arange(10.0).reshape(5, 2))
    assert_same(times_table(rows, TABLE.T), np.arange(10.0).reshape(5, 2) @ TABLE.T)
    assert_same(in_columns(rows), np.arange(10.0).reshape(5, 2))
    if put is np.asarray:
        for values in (times_table(rows, TABLE.T), in_columns(rows), pick(TABLE, CODES)):
            assert values.flags.f_contiguous


def test_softmax_and_log_sum_exp(put):
    logits = np.array([[1e3, 1e3 - 1, 0.0], [-1e3, -1e3, -1e3]])
    probabilities, log_sum = softmax_and_logsumexp(put(logits))
    assert_same(probabilities, special.softmax(logits, axis=1))
    np.testing.assert_allclose(as_numpy(log_sum), special.logsumexp(logits, axis=1), rtol=1e-15)


def test_sums_and_bounds(put):
    weights = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    np.testing.assert_array_equal(sums_by_code(put(CODES), put(weights), 4), [2.0, 12.0, 17.0, 0.0])
    assert_same(row_products(put(TABLE), put(TABLE + 1)), (TABLE * (TABLE + 1)).sum(axis=1))
    assert_same(at_least(put(TABLE), 2.5), np.maximum(TABLE, 2.5))


def test_probabilities_are_accurate_in_both_tails(put):
    log_odds = np.array([-800.0, -700.0, -40.0, -1.0, 0.0, 1.0, 40.0, 800.0])
    np.testing.assert_allclose(
        as_numpy(expit(put(log_odds))), special.expit(log_odds), rtol=1e-14, atol=1e-308
    )
    logits = np.stack([log_odds, log_odds[::-1], np.zeros(8)], axis=1)
    np.testing.assert_allclose(
        as_numpy(softmax(put(logits))), special.softmax(logits, axis=1), rtol=1e-12
    )


def test_lazily_read_rows_are_not_foreign():
    assert not is_foreign(LazyRows.of(TABLE))
    assert not is_foreign(TABLE)
    assert not is_foreign([1.0])
    assert is_foreign(on_device(TABLE))


def test_devices_in_messages():
    assert place(on_device(TABLE)) == f"array_api_strict array on {DEVICE}"
    check_same_device(on_device(TABLE), on_device(CODES), "A.predict")
    with pytest.raises(
        ValueError, match=r"A\.predict\(\) must use the same namespace and device as fit\(\)"
    ):
        check_same_device(TABLE, on_device(TABLE), "A.predict")


def test_duplicates_on_a_device():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))[np.r_[0:30, [4] * 7, 9, 9, 30, 31]]
    weights = rng.uniform(1e-9, 1, size=len(X))
    weights[[2, 33]] = 0
    host = DistinctRows.of(X, weights)
    device = DistinctRows.of(on_device(X), on_device(weights))
    for name in ("X", "weights", "members", "owner", "member_weights", "leaving_share", "counts"):
        np.testing.assert_allclose(
            as_numpy(getattr(device, name)), getattr(host, name), rtol=1e-14, err_msg=name
        )
    assert device.n_effective == pytest.approx(host.n_effective, rel=1e-14)
    assert device.largest == host.largest
    values = rng.normal(size=(len(host.members), 2))
    np.testing.assert_allclose(
        as_numpy(device.average(on_device(values))), host.average(values), rtol=1e-13, atol=1e-14
    )
    codes = rng.integers(3, size=len(host.members))
    np.testing.assert_allclose(device.shares(on_device(codes)), host.shares(codes), rtol=1e-14)


def test_negative_zero_is_zero_on_a_device():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(as_numpy(DistinctRows.of(on_device(X)).owner), [0, 0, 1])
