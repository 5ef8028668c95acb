"""Surefoot in a LightningModule: `training_step` calls the objective and logs its parts."""

import tempfile

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import surefoot as sf


class Digits(lightning.LightningModule):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net, self.objective = net, sf.objectives.MaCS()

    def training_step(self, batch, index):
        terms = self.objective(self.net, *batch)
        self.log_dict(terms.parts)
        return terms.total

    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters(), lr=3e-3)


def main(epochs: int = 5) -> float:
    lightning.seed_everything(0, verbose=False)
    data = sf.load_data("digits")
    train, test = (next(split.batches(len(split))) for split in (data.train, data.test))
    net = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 15 * 15, data.num_classes))
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", default_root_dir=tempfile.gettempdir(), **quiet)
    trainer.fit(Digits(net), DataLoader(TensorDataset(train.images, train.labels), batch_size=64, shuffle=True))
    return (net(test.images).argmax(1) == test.labels).float().mean().item()


if __name__ == "__main__":
    print(f"test accuracy {main():.3f}")
