import pytest
import torch

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.models.prediction import pick_device, predict


def test_every_image_once_in_order(digits):
    model = sf.load_model("small-resnet", data=digits, seed=0).train()
    found = predict(model, digits.validation.batches(64))
    assert found.labels.equal(digits.validation.labels)
    assert found.indices.equal(digits.validation.indices)
    assert model.training
    model.eval()
    with torch.no_grad():
        whole = model(digits.validation.images.float() / 255)
    assert torch.allclose(found.logits, whole, atol=1e-4)


def test_devices():
    assert pick_device("cpu").type == "cpu"
    with pytest.raises(SurefootError, match="device must be"):
        pick_device("cdua")
