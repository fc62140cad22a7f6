"""The linear algebra under the copula: nearest correlation matrices and their Cholesky factors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.benchmark.world import population


@st.composite
def symmetric(draw, size=st.integers(2, 6)):
    """A symmetric matrix with unit diagonal and entries on [-1, 1]; often no correlation matrix."""
    count = draw(size)
    matrix = np.eye(count)
    for i in range(count):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = draw(st.integers(-10, 10)) / 10
    return matrix


@st.composite
def correlations(draw):
    """A correlation matrix that is safely positive definite, from random unit vectors."""
    count = draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    vectors = rng.standard_normal((count, count))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return 0.9 * np.round(vectors @ vectors.T, 6) + 0.1 * np.eye(count)


@given(symmetric())
def test_result_is_a_positive_definite_correlation_matrix(matrix):
    """Symmetric, unit diagonal, entries on [-1, 1], every eigenvalue above 0."""
    found = population.nearest_correlation(matrix)

    assert np.array_equal(found, found.T)
    assert [1.0] * len(matrix) == np.diag(found).tolist()
    assert np.abs(found).max() <= 1.0
    assert np.linalg.eigvalsh(found)[0] > 0.0


@given(correlations())
def test_valid_matrices_are_left_alone(matrix):
    assert np.array_equal(matrix, population.nearest_correlation(matrix))


def test_nearest_matrix_of_the_literature():
    """Higham (2002), section 4: the known nearest matrix of a 3 x 3 example."""
    matrix = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    expected = np.array([[1.0, 0.7607, 0.1573], [0.7607, 1.0, 0.7607], [0.1573, 0.7607, 1.0]])

    assert np.allclose(expected, population.nearest_correlation(matrix), atol=1e-4)


@given(symmetric(), st.integers(0, 10**6))
def test_no_other_correlation_matrix_is_nearer(matrix, seed):
    """Neither random ones nor those on the way from the found one to a random one."""
    found = population.nearest_correlation(matrix)
    distance = np.linalg.norm(matrix - found)
    vectors = np.random.default_rng(seed).standard_normal((20, len(matrix), len(matrix)))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    for other in vectors @ vectors.transpose(0, 2, 1):
        for share in (0.01, 0.1, 1.0):
            mixed = found + share * (other - found)
            assert np.linalg.norm(matrix - mixed) >= distance - 1e-4


@given(symmetric())
def test_cholesky_reproduces_the_matrix(matrix):
    """Lower triangular with a positive diagonal, and its square is the matrix."""
    valid = population.nearest_correlation(matrix)
    factor = population.cholesky(valid)

    assert np.array_equal(np.tril(factor), factor)
    assert np.diag(factor).min() > 0.0
    size = range(len(valid))
    product = [[sum(factor[i, k] * factor[j, k] for k in size) for j in size] for i in size]
    assert np.array(product) == pytest.approx(valid, abs=1e-12)


def test_cholesky_by_hand():
    matrix = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.48], [0.0, 0.48, 1.0]])
    expected = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]

    assert np.allclose(expected, population.cholesky(matrix), atol=1e-12)
