"""Surefoot in the Hugging Face Trainer: `compute_loss` calls the objective."""

import tempfile

from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

import surefoot as sf


class SurefootTrainer(Trainer):
    objective = sf.objectives.MaCS()

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        terms = self.objective(model, inputs["images"], inputs["labels"])
        return (terms.total, {"logits": terms.logits}) if return_outputs else terms.total


def rows(split):
    whole = next(split.batches(len(split)))
    return [{"images": image, "labels": label} for image, label in zip(whole.images, whole.labels, strict=True)]


def main(epochs: int = 5) -> float:
    set_seed(0)
    data = sf.load_data("digits")
    net = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 15 * 15, data.num_classes))
    settings = {"per_device_train_batch_size": 64, "learning_rate": 3e-3, "num_train_epochs": epochs, "label_names": ["labels"]}
    quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "remove_unused_columns": False, "use_cpu": True}
    with tempfile.TemporaryDirectory() as folder:
        trainer = SurefootTrainer(net, TrainingArguments(folder, **settings, **quiet), train_dataset=rows(data.train))
        trainer.train()
        found = trainer.predict(rows(data.test))
    return float((found.predictions.argmax(1) == found.label_ids).mean())


if __name__ == "__main__":
    print(f"test accuracy {main():.3f}")
