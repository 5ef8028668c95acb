import pytest
import torch

import surefoot as sf
from surefoot.data.subsets import ChosenSplit, choose, chosen_rows, chunks_of, stratified_indices
from surefoot.errors import SurefootError


def test_exactly_so_many_of_every_class_in_its_share():
    labels = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)[torch.randperm(100, generator=torch.Generator().manual_seed(0))]
    for count in (1, 7, 10, 50, 99):
        rows = stratified_indices(labels, count, 0)
        assert len(rows) == len(set(rows.tolist())) == count
        assert torch.equal(rows, rows.sort().values)
        shares = labels[rows].bincount(minlength=3).double()
        assert (shares - count * torch.tensor([0.6, 0.3, 0.1])).abs().max() <= 1
    assert not torch.equal(stratified_indices(labels, 50, 0), stratified_indices(labels, 50, 1))
    assert set(stratified_indices(labels, 7, 0).tolist()) <= set(stratified_indices(labels, 50, 0).tolist())


def test_the_same_images_from_memory_and_in_order(digits):
    few = choose(digits.test, 50, 0)
    batch = next(iter(few.batches(50)))
    rows = stratified_indices(digits.test.labels, 50, 0)
    assert torch.equal(batch.indices, digits.test.indices[rows])
    assert torch.equal(batch.images, digits.test.images[rows].float() / 255)
    assert choose(digits.test, None) is digits.test
    assert choose(digits.test, 10_000) is digits.test
    with pytest.raises(SurefootError, match="count must be at least 1, got 0"):
        choose(digits.test, 0)


class Stream:
    """A split that can only be read from its beginning."""

    def __init__(self, split):
        self.split = split

    def __len__(self):
        return len(self.split)

    def batches(self, batch_size, **options):
        return self.split.batches(batch_size, **options)


def test_some_of_a_stream(digits):
    stream = Stream(digits.test)
    few = choose(stream, 30)
    assert isinstance(few, ChosenSplit)
    assert len(few) == 30
    seen = torch.cat([batch.indices for batch in few.batches(64)])
    assert len(seen) == 30
    fewer, rows = chosen_rows(stream, 12), chosen_rows(stream, 30)
    assert torch.equal(seen, digits.test.indices[rows])
    assert bool(torch.isin(fewer, rows).all())  # fewer are among more
    gaps = torch.cat([rows, rows.new_tensor([len(digits.test)])]).diff(prepend=rows.new_zeros(1))
    assert gaps.max() < 3 * len(digits.test) / 30  # from all over the stream


def test_chunks_of_every_kind_of_split(digits):
    """The same images at the same rows, read once; a stream only in its own order."""
    chunks = [torch.tensor([3, 5, 8]), torch.tensor([9]), torch.tensor([20, 21])]
    stream = Stream(digits.test)
    for given in (digits.test, stream):
        for rows, batch in zip(chunks, chunks_of(given, chunks), strict=True):
            assert torch.equal(batch.indices, digits.test.indices[rows])
            assert torch.equal(batch.labels, digits.test.labels[rows])
            assert torch.equal(batch.images, digits.test.images[rows].float() / 255)
    with pytest.raises(SurefootError, match="rising order"):
        next(chunks_of(stream, chunks[::-1]))


def test_max_images_is_exact():
    assert len(sf.load_data("digits", max_images=256).test) == 256
