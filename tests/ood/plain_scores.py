"""The scores again in plain NumPy, picture by picture, as their papers write them."""

import numpy as np
from scipy.special import logsumexp, softmax


def msp(f):
    return np.array([1 - softmax(row).max() for row in f])


def max_logit(f):
    return -f.max(1)


def energy(f):
    return -logsumexp(f, axis=1)


def entropy(f):
    p = softmax(f, axis=1)
    return -(p * np.log(p)).sum(1)


def gen(f, gamma=0.1, largest=100):
    p = np.sort(softmax(f, axis=1), axis=1)[:, ::-1][:, :largest]
    return (p**gamma * (1 - p) ** gamma).sum(1)


def react(h, known, weight, bias):
    bound = np.quantile(known, 0.9)
    return energy(np.minimum(h, bound) @ weight.T + bias)


def scale(h, weight, bias):
    kept = h.shape[1] - round(0.85 * h.shape[1])
    out = []
    for row in h:
        ratio = row.sum() / np.sort(row)[::-1][:kept].sum()
        out.append(weight @ (row * np.exp(ratio)) + bias)
    return energy(np.array(out))


def mahalanobis_of_classes(h, known, labels):
    means = [known[labels == c].mean(0) for c in np.unique(labels)]
    centred = np.concatenate([known[labels == c] - mean for c, mean in zip(np.unique(labels), means, strict=True)])
    inverse = np.linalg.pinv(centred.T @ centred / len(known), rcond=1e-6, hermitian=True)
    return np.array([[(row - mean) @ inverse @ (row - mean) for mean in means] for row in h])


def mahalanobis(h, known, labels):
    return mahalanobis_of_classes(h, known, labels).min(1)


def relative_mahalanobis(h, known, labels):
    mean = known.mean(0)
    inverse = np.linalg.pinv(np.cov(known.T, bias=True), rcond=1e-6, hermitian=True)
    background = np.array([(row - mean) @ inverse @ (row - mean) for row in h])
    return (mahalanobis_of_classes(h, known, labels) - background[:, None]).min(1)


def knn(h, known):
    bank = known / np.linalg.norm(known, axis=1, keepdims=True)
    place = max(1, round(len(bank) / 1000))
    rows = h / np.linalg.norm(h, axis=1, keepdims=True)
    return np.array([np.sort(np.linalg.norm(bank - row, axis=1))[place - 1] for row in rows])


def vim(f, h, known, known_logits, weight, bias):
    origin = -np.linalg.pinv(weight) @ bias
    dimensions = h.shape[1] // 2
    values, vectors = np.linalg.eigh((known - origin).T @ (known - origin))
    rest = vectors[:, np.argsort(values)[::-1][dimensions:]]
    factor = known_logits.max(1).mean() / np.linalg.norm((known - origin) @ rest, axis=1).mean()
    return factor * np.linalg.norm((h - origin) @ rest, axis=1) - logsumexp(f, axis=1)


def neco(f, h, known, classes):
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(known)
    pca = PCA(min(classes - 1, known.shape[1] // 2)).fit(scaler.transform(known))
    standard = scaler.transform(h)
    return -f.max(1) * np.linalg.norm(pca.transform(standard), axis=1) / np.linalg.norm(standard, axis=1)
