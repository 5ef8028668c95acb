"""Every score again, from its definition, one image at a time in NumPy. Written apart from the package."""

import math

import numpy as np


def softmax(logits):
    rows = []
    for row in np.asarray(logits, dtype=np.float64):
        e = np.exp(row - row.max())
        rows.append(e / e.sum())
    return np.array(rows)


def bin_number(value, bins):
    for k in range(bins):
        if k / bins < value <= (k + 1) / bins or (k == 0 and value == 0):
            return k
    return bins - 1  # 1 and a rounding


def binned(confidences, right, bins):
    """Per bin: members' confidences and outcomes."""
    inside = [[] for _ in range(bins)]
    for c, r in zip(confidences, right, strict=True):
        inside[bin_number(c, bins)].append((c, r))
    return inside


def plain_scores(logits, labels, bins):
    p, labels = softmax(logits), np.asarray(labels)
    n, classes = p.shape
    confidences, right = [], []
    nll = brier = top5 = 0.0
    for row, raw, label in zip(p, np.asarray(logits), labels, strict=True):
        best = int(np.argmax(raw))
        confidences.append(row[best])
        right.append(best == label)
        nll -= math.log(max(row[label], 1e-300))
        brier += sum((row[c] - (c == label)) ** 2 for c in range(classes))
        order = sorted(range(classes), key=lambda c: (-raw[c], c))
        top5 += label in order[:5]
    found = {"accuracy": np.mean(right), "nll": nll / n, "brier": brier / n, "top5": top5 / n}
    inside = binned(confidences, right, bins)
    gaps = [(len(b), np.mean([c for c, _ in b]) - np.mean([r for _, r in b])) for b in inside if b]
    found["ece"] = sum(k / n * abs(g) for k, g in gaps)
    found["rms"] = math.sqrt(sum(k / n * g * g for k, g in gaps))
    found["max_error"] = max(abs(g) for _, g in gaps)
    found["signed_error"] = np.mean(confidences) - np.mean(right)
    found["classwise_ece"] = classwise_ece(p, labels, bins)
    found |= brier_parts(p, labels, bins)
    found["aurc"] = aurc(confidences, right)
    return found


def classwise_ece(p, labels, bins):
    n, classes = p.shape
    total = 0.0
    for c in range(classes):
        for members in binned(p[:, c], labels == c, bins):
            if members:
                total += len(members) / n * abs(np.mean([q for q, _ in members]) - np.mean([r for _, r in members]))
    return total / classes


def brier_parts(p, labels, bins):
    """Murphy's parts with the two within-bin terms of Stephenson et al. counted to the resolution."""
    n, classes = p.shape
    reliability = resolution = uncertainty = 0.0
    for c in range(classes):
        share = np.mean(labels == c)
        uncertainty += share * (1 - share)
        for members in binned(p[:, c], labels == c, bins):
            if members:
                q, y = (np.array(side, dtype=float) for side in zip(*members, strict=True))
                reliability += len(members) / n * (q.mean() - y.mean()) ** 2
                resolution += len(members) / n * (y.mean() - share) ** 2
                resolution -= ((q - q.mean()) ** 2).sum() / n - 2 * ((q - q.mean()) * (y - y.mean())).sum() / n
    return {"brier_reliability": reliability, "brier_resolution": resolution, "brier_uncertainty": uncertainty}


def aurc(confidences, right):
    """Risk among the k most confident, averaged over k; distinct confidences."""
    order = sorted(range(len(right)), key=lambda i: -confidences[i])
    wrong, total = 0, 0.0
    for k, i in enumerate(order, 1):
        wrong += not right[i]
        total += wrong / k
    return total / len(right)


def adaptive_ece(confidences, right, bins):
    """Sorted, cut into bins of the same number; distinct confidences."""
    order = sorted(range(len(right)), key=lambda i: confidences[i])
    n, total = len(right), 0.0
    for k in range(bins):
        part = order[k * n // bins : (k + 1) * n // bins]
        total += abs(sum(confidences[i] - right[i] for i in part)) / n
    return total


def smooth_ece(confidences, right, steps=4000):
    """The kernel summed image by image with its reflections, on a fine grid; the width found by bisection."""
    t = (np.arange(steps) + 0.5) / steps
    c, r = np.asarray(confidences), np.asarray(right, dtype=float)

    def error(width):
        density = np.zeros(steps)
        for ci, ri in zip(c, r, strict=True):
            for image in (ci, -ci, 2 - ci, ci - 2, ci + 2, -2 - ci, 4 - ci):
                density += (ri - ci) * np.exp(-((t - image) ** 2) / (2 * width**2)) / (width * math.sqrt(2 * math.pi))
        return np.abs(density).mean() / len(c)

    low, high = 1e-6, 1.0
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > middle else (low, middle)
    return error((low + high) / 2)
