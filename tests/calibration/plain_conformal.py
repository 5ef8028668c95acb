"""Prediction sets and guaranteed risk again, from their papers, one image at a time. Written apart from the package."""

import math
from fractions import Fraction

import numpy as np
from definitions import softmax


def by_likelihood(row):
    return sorted(range(len(row)), key=lambda c: (-row[c], c))


def lac_score(row, label):
    """Sadinle et al.: a class is in the set if its probability is at least a bound; so 1 - p at most one."""
    return 1 - row[label]


def aps_set(row, tau, u):
    """Romano et al.: the likeliest classes until their sum reaches tau; the last is left out if u is at most V."""
    order, total, chosen = by_likelihood(row), 0.0, []
    for c in order:
        total += row[c]
        chosen.append(c)
        if total >= tau:
            break
    else:
        return set(order)
    surplus = (total - tau) / row[chosen[-1]]
    return set(chosen[:-1]) if u <= surplus else set(chosen)


def aps_score(row, label, u):
    """The smallest tau whose set has the label, by bisection of the set itself."""
    low, high = 0.0, 1.0 + 1e-9
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if label in aps_set(row, middle, u) else (middle, high)
    return high


def raps_score(row, label, u, weight, rank):
    """Angelopoulos et al.: rho + u pi + lambda (o - k_reg)^+."""
    place = by_likelihood(row).index(label) + 1
    before = sum(p for p in row if p > row[label])
    return before + u * row[label] + weight * max(0, place - rank)


def quantile(scores, coverage):
    """The ceil((n + 1) (1 - alpha)) / n empirical quantile."""
    rank = math.ceil((len(scores) + 1) * Fraction(str(coverage)))
    return sorted(scores)[rank - 1] if rank <= len(scores) else math.inf


def binomial_tail(mistakes, answered, risk):
    return sum(math.comb(answered, k) * risk**k * (1 - risk) ** (answered - k) for k in range(mistakes + 1))


def fixed_sequence(logits, labels, thresholds, risk, delta):
    """Learn then Test: go on while each hypothesis is rejected at level delta."""
    passed = None
    rows = softmax(logits)
    for bound in thresholds:
        answered = [i for i, row in enumerate(rows) if max(row) >= bound]
        mistakes = sum(int(np.argmax(rows[i])) != labels[i] for i in answered)
        if binomial_tail(mistakes, len(answered), risk) > delta:
            break
        passed = bound
    return passed
