"""Every kind of model on every kind of data: the same accuracy, ECE and NLL as the plain module on the plain folder."""

import base64
import io
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

import surefoot as sf
from surefoot.calibration.scoring import estimates
from surefoot.errors import SurefootError, UnknownName
from surefoot.models.classifier import predict
from surefoot.models.model_files import describe, kind_of

SIZE, CLASSES = 8, 3
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
SERVER = """
import base64, io, json, sys
import numpy as np
from PIL import Image
weight, bias = (np.load(sys.argv[1])[name] for name in ("weight", "bias"))
for line in sys.stdin:
    request = json.loads(line)
    if "npy" in request:
        pixels = np.load(io.BytesIO(base64.b64decode(request["npy"])))
    else:
        pixels = np.stack([np.array(Image.open(io.BytesIO(base64.b64decode(each)))) for each in request["png"]]) / 255
    rows = pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)
    print(json.dumps({"logits": (rows @ weight.T + bias).tolist()}), flush=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """32 pictures of three classes below `test`."""
    root = tmp_path_factory.mktemp("pictures")
    draws = np.random.default_rng(0)
    for number in range(32):
        place = root / "test" / ("cat", "dog", "eel")[number % CLASSES]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draws.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)).save(place / f"{number:02}.png")
    return root


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, CLASSES)).eval()
    net[1].weight.data *= 3
    return net


class Forest:
    """What scikit-learn's classifiers look like."""

    classes_ = np.arange(CLASSES)

    def __init__(self, module):
        self.module = module

    def predict_proba(self, rows):
        assert rows.shape[1] == 3 * SIZE * SIZE
        with torch.no_grad():
            return self.module[1](torch.from_numpy(rows)).softmax(1).numpy()


@pytest.fixture(scope="module")
def kinds(folder, module, tmp_path_factory):
    """The same net in every shape."""
    place = tmp_path_factory.mktemp("models")
    pictures = next(iter(sf.load_data(folder).test.batches(8))).images
    sf.export(module, pictures, place / "net.onnx")
    sf.export(module, pictures, place / "net.pt2", format="torch")
    with pytest.warns(FutureWarning):
        torch.jit.trace(module, pictures).save(str(place / "net.pt"))
    np.savez(place / "net.npz", weight=module[1].weight.detach().numpy(), bias=module[1].bias.detach().numpy())
    (place / "serve.py").write_text(SERVER)
    return {
        "module": sf.adapt(module, 0, 1, SIZE),
        "onnx": sf.load_model(str(place / "net.onnx")),
        "torchscript": sf.load_model(str(place / "net.pt"), image_size=SIZE),
        "pt2": sf.load_model(str(place / "net.pt2")),
        "predict_proba": sf.adapt(Forest(module), image_size=SIZE),
        "logits": sf.adapt(module.forward, num_classes=CLASSES, returns="logits"),
        "probabilities": sf.adapt(lambda x: module(x).softmax(1), num_classes=CLASSES, returns="probabilities"),
        "numpy, channels last": sf.adapt(
            lambda x: module(torch.from_numpy(x).permute(0, 3, 1, 2)).detach().numpy(),
            num_classes=CLASSES, returns="logits", layout="last", takes="numpy",
        ),
        "normalised": sf.adapt(
            lambda x: module(x * torch.tensor(STD).view(3, 1, 1) + torch.tensor(MEAN).view(3, 1, 1)),
            MEAN, STD, num_classes=CLASSES, returns="logits",
        ),
        "command": sf.load_model(f"cmd:{sys.executable} {place / 'serve.py'} {place / 'net.npz'}", image_size=SIZE),
        "command, PNG": sf.load_model(
            f"cmd:{sys.executable} {place / 'serve.py'} {place / 'net.npz'}", image_size=SIZE, sends="png"
        ),
    }  # fmt: skip


def data_kinds(folder):
    pictures = ImageFolder(folder / "test")
    floats = ImageFolder(folder / "test", transforms.ToTensor())
    normalise = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    arrays = np.stack([np.array(image) for image, _ in pictures]), np.array([label for _, label in pictures])
    files = [(path, path.parent.name) for path in sorted((folder / "test").glob("*/*.png"))]
    return {
        "folder": folder,
        "Dataset": pictures,
        "normalised Dataset": ImageFolder(folder / "test", normalise),
        "DataLoader": DataLoader(floats, batch_size=5, shuffle=True),
        "arrays": arrays,
        "tensors": tuple(map(torch.from_numpy, arrays)),
        "list": files,
        "frame": pandas.DataFrame(files, columns=["file", "label"]),
    }


def scored(model, data):
    predictions = predict(model, data.test.batches(16))
    return {name: float(value) for name, value in estimates(predictions, ("accuracy", "ece", "nll"), intervals=0).items()}


def test_every_model_on_every_kind_of_data(folder, kinds):
    plain = scored(kinds["module"], sf.load_data(folder))
    assert 0 < plain["accuracy"] < 1
    for what, given in data_kinds(folder).items():
        data = sf.load_data(given)
        for kind, model in kinds.items():
            assert scored(model, data) == pytest.approx(plain, abs=1e-5), (kind, what)


def test_what_was_found_is_said(kinds):
    assert kinds["onnx"].found[0] == "ONNX, input 'images' of tensor(float), output 'logits'"
    assert "returns probabilities (as given)" in kinds["predict_proba"].found[-1]
    assert "normalised by 0.4, 0.5, 0.6 and 0.2, 0.25, 0.3" in kinds["normalised"].found[-1]
    assert "count x height x width x channels" in kinds["command"].found[-1]


def test_gradients_reach_the_pixels_of_torch_files_only(kinds):
    for kind, gradient in (("torchscript", True), ("pt2", True), ("onnx", False), ("logits", False)):
        images = torch.rand(2, 3, SIZE, SIZE, requires_grad=True)
        assert kinds[kind](images).requires_grad is gradient, kind


def test_a_file_that_takes_one_picture_at_a_time(module, tmp_path, folder):
    program = torch.export.export(module, (torch.rand(1, 3, SIZE, SIZE),))
    torch.export.save(program, tmp_path / "one.pt2")
    torch.onnx.export(module, (torch.rand(2, 3, SIZE, SIZE),), tmp_path / "two.onnx", dynamo=True, verbose=False)
    images = torch.rand(5, 3, SIZE, SIZE)
    for name in ("one.pt2", "two.onnx"):
        model = sf.load_model(str(tmp_path / name))
        with torch.no_grad():
            assert torch.allclose(model(images), module(images), atol=1e-6), name


def test_softmax_inside_a_file_is_noticed(module, tmp_path):
    with pytest.warns(FutureWarning):
        torch.jit.trace(nn.Sequential(module, nn.Softmax(1)), torch.rand(2, 3, SIZE, SIZE)).save(str(tmp_path / "p.pt"))
    model = sf.load_model(str(tmp_path / "p.pt"), image_size=SIZE)
    images = torch.rand(4, 3, SIZE, SIZE)
    assert "returns probabilities (judged by two pictures)" in model.found[0]
    assert torch.allclose(model(images).softmax(1), module(images).softmax(1), atol=1e-6)


def test_a_file_is_found_by_what_it_is(module, tmp_path):
    torch.save(module.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(SurefootError, match="holds weights without a model: give --model NAME --checkpoint"):
        kind_of(tmp_path / "weights.pt")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(SurefootError, match="is no ONNX model that onnxruntime can read"):
        describe(tmp_path / "text.onnx")
    (tmp_path / "text.pt").write_text("no model")
    with pytest.raises(SurefootError, match="is no model file"):
        sf.load_model(str(tmp_path / "text.pt"))
    with pytest.raises(SurefootError, match="No model file at"):
        sf.load_model(str(tmp_path / "nothing.onnx"))


def test_refusals_of_functions(module):
    with pytest.raises(SurefootError, match="returns must be given for a function"):
        sf.adapt(module.forward, num_classes=3)
    with pytest.raises(UnknownName, match="Did you mean 'probabilities'"):
        sf.adapt(module.forward, num_classes=3, returns="probability")
    with pytest.raises(SurefootError, match="must be a module, a function, or have predict_proba, got int"):
        sf.adapt(3, returns="logits")
    with pytest.raises(SurefootError, match="image_size must be given for a module"):
        sf.adapt(module)
    wrong = sf.adapt(module.forward, num_classes=3, returns="probabilities")
    with pytest.raises(SurefootError, match="sum to 1; .* say returns='logits'"):
        wrong(torch.rand(2, 3, SIZE, SIZE))
    short = sf.adapt(lambda x: module(x)[:1], num_classes=3, returns="logits")
    with pytest.raises(SurefootError, match="must be 2 x 3, got \\(1, 3\\)"):
        short(torch.rand(2, 3, SIZE, SIZE))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        code, answer = self.server.answer(json.loads(content))
        self.send_response(code)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Not to the screen."""


@pytest.fixture
def endpoint():
    """A server of this process; `endpoint(answer)` gives its address."""
    servers = []

    def serve(answer):
        server = HTTPServer(("127.0.0.1", 0), Handler)
        server.answer = answer
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/predict"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_an_address_is_asked_and_asked_again(module, endpoint):
    asked = []

    def answer(request):
        asked.append(request)
        if len(asked) == 2:
            return 503, b"busy"
        pixels = torch.from_numpy(np.load(io.BytesIO(base64.b64decode(request["npy"])))).permute(0, 3, 1, 2)
        with torch.no_grad():
            return 200, json.dumps({"probabilities": module(pixels).softmax(1).tolist()}).encode()

    model = sf.load_model(endpoint(answer), image_size=SIZE)
    images = torch.rand(40, 3, SIZE, SIZE)
    with torch.no_grad():
        assert torch.allclose(model(images).softmax(1), module(images).softmax(1), atol=1e-6)
    assert model.returns == "probabilities"
    assert len(asked) == 4  # the first look, a batch of 32 twice, the other eight


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, b"hello"), "must answer in JSON"),
        ((200, b'{"error": "no model"}'), "logits or probabilities, got 'no model'"),
        ((200, b'{"logits": [[1, 2], [3, 4]]}'), "must be 1 rows"),
        ((200, b'{"logits": [["a"]]}'), "rows of numbers"),
        ((404, b""), "refuses the request with status 404"),
        ((302, b""), "refuses the request with status 302"),
        ((500, b""), "did not answer 2 times: status 500"),
    ],
)
def test_answers_that_are_none(endpoint, answer, said):
    with pytest.raises(SurefootError, match=said):
        sf.load_model(endpoint(lambda _: answer), image_size=SIZE, retries=1)


def test_a_command_is_not_waited_for_without_end(tmp_path):
    began = time.monotonic()
    with pytest.raises(SurefootError, match="did not answer 1 times: nothing in 0.5 s"):
        sf.load_model(f"cmd:{sys.executable} -c 'import time; time.sleep(60)'", image_size=SIZE, timeout=0.5, retries=0)
    assert time.monotonic() - began < 30
    with pytest.raises(SurefootError, match="the process has ended"):
        sf.load_model(f"cmd:{sys.executable} -c pass", image_size=SIZE, retries=0)
    with pytest.raises(SurefootError, match="cannot be started"):
        sf.load_model("cmd:no-such-command-here", image_size=SIZE)


@pytest.mark.parametrize("name", ["net.pt", "net.onnx", "net.pt2", "cmd:rm", "http://host/model", "transformers/a/b"])
def test_a_recipe_may_not_name_a_program(name, tmp_path):
    from surefoot.training.recipes import Recipe

    path = tmp_path / "recipe.yaml"
    path.write_text(f"data: digits\nmodel: '{name}'\nobjective: cross-entropy\n")
    with pytest.raises(SurefootError, match="--allow-code"):
        Recipe.read(path).settings()
