import pytest
import torch

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.models.classifier import pick_device, predict
from surefoot.models.foreign import adapt_any


def test_every_image_once_in_order(digits):
    model = sf.load_model("tiny-resnet", data=digits, seed=0).train()
    found = predict(model, digits.validation.batches(64))
    assert found.labels.equal(digits.validation.labels)
    assert found.indices.equal(digits.validation.indices)
    assert model.training
    model.eval()
    with torch.no_grad():
        whole = model(digits.validation.images.float() / 255)
    assert torch.allclose(found.logits, whole, atol=1e-4)


def test_no_images():
    with pytest.raises(SurefootError, match=r"^The split has no images\.$"):
        predict(torch.nn.Flatten(), [])


def test_a_foreign_module_that_cannot_take_the_images_is_refused():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
    assert adapt_any(net, 0.5, 0.5, 8).num_classes == 4
    with pytest.raises(
        SurefootError, match=r"^Sequential cannot take images of 3 x 8 x 10: .*shapes cannot be multiplied.*\.$"
    ):
        adapt_any(net, 0.5, 0.5, (8, 10))


def test_devices():
    assert pick_device("cpu").type == "cpu"
    with pytest.raises(SurefootError, match="device must be"):
        pick_device("cdua")
