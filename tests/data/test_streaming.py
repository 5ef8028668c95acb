import pytest
import torch

import surefoot as sf
from surefoot.data.dataset import TensorSplit
from surefoot.data.streaming import StreamedSplit
from surefoot.errors import SurefootError
from surefoot.seeds import generator


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("image_size", [None, (20, 24)])
def test_the_same_batches_as_from_memory(class_folders, workers, image_size):
    held = sf.load_data(str(class_folders), image_size=image_size)
    streamed = sf.load_data(str(class_folders), image_size=image_size, memory_gib=0, workers=workers)
    assert isinstance(held.train, TensorSplit)
    assert isinstance(streamed.train, StreamedSplit)
    for name in ("train", "test"):
        pairs = zip(
            held.split(name).batches(8, shuffle=generator(4), drop_last=True),
            streamed.split(name).batches(8, shuffle=generator(4), drop_last=True),
            strict=True,
        )
        for a, b in pairs:
            assert torch.equal(a.images, b.images)
            assert torch.equal(a.labels, b.labels)
            assert torch.equal(a.indices, b.indices)


@pytest.mark.parametrize("workers", [0, 1])
def test_bad_images(class_folders, workers):
    (class_folders / "test" / "dog" / "0155.png").write_bytes(b"nothing")
    strict = sf.load_data(str(class_folders), memory_gib=0, workers=workers)
    with pytest.raises(SurefootError, match="Cannot read image '.*0155.png'"):
        list(strict.test.batches(8))
    lenient = sf.load_data(str(class_folders), memory_gib=0, workers=workers, skip_bad_images=True)
    assert lenient.notes == ("1 images of test cannot be read and are left out",)
    batches = list(lenient.test.batches(8))
    assert sum(map(len, batches)) == 29
    assert torch.cat([batch.labels for batch in batches]).bincount().tolist() == [10, 9, 10]


def test_training_and_auditing_from_a_stream_equal_memory(class_folders, quicker):
    def train(**options):
        data = sf.load_data(str(class_folders), **options)
        model = sf.load_model("tiny-resnet", data=data, seed=0)
        done = sf.fit(model, sf.objectives.CrossEntropy(), data, epochs=1, batch_size=16, progress=False)
        return done.model.head.weight, sf.audit(done.predictor, data, progress=False).to_dict()["corruptions"]

    (a, first), (b, second) = train(), train(memory_gib=0, workers=0)
    assert torch.equal(a, b)
    assert first == second
