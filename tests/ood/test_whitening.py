"""The matrix behind Mahalanobis distances, against numpy's pseudo-inverse and eigenvalues."""

import numpy as np
import pytest
import torch

from surefoot.ood.known import SMALLEST, largest_eigenvalue, whitening


def spread(eigenvalues, seed=0):
    """A covariance with these eigenvalues, in directions drawn at random."""
    random = np.random.default_rng(seed)
    directions = np.linalg.qr(random.normal(size=(len(eigenvalues), len(eigenvalues))))[0]
    return torch.from_numpy(directions * eigenvalues @ directions.T)


@pytest.mark.parametrize("eigenvalues", [[4.0, 1.0, 0.5, 0.1], [4.0, 1.0, 1e-3, 1e-9], [2.0, 2.0, 0.0, 0.0]])
def test_whitening_is_a_root_of_the_pseudo_inverse(eigenvalues):
    covariance = spread(np.array(eigenvalues))
    white = whitening(covariance)
    expected = np.linalg.pinv(covariance.numpy(), rcond=SMALLEST, hermitian=True)
    np.testing.assert_allclose((white @ white.T).numpy(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("matrix", [[[2.0, -1.0], [-1.0, 2.0]], [[2.0, 1.0], [1.0, 2.0]], [[5.0, 0.0], [0.0, 1.0]]])
def test_largest_eigenvalue(matrix):
    assert float(largest_eigenvalue(torch.tensor(matrix, dtype=torch.float64))) == pytest.approx(np.linalg.eigvalsh(matrix)[-1])


def test_nothing_varies():
    assert float(largest_eigenvalue(torch.zeros(3, 3, dtype=torch.float64))) > 0
    assert whitening(torch.zeros(3, 3, dtype=torch.float64)).shape == (3, 0)
