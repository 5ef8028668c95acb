"""Image classifiers that stay right when the picture gets worse, and audits of the ones people have.

Everything is imported when it is first used, so `import surefoot` is cheap.

>>> import torch
>>> import surefoot as sf
>>> data = sf.load_data("digits")
>>> len(data.train), len(data.test)
(899, 540)
>>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
>>> model = sf.adapt(net, image_size=32)
>>> batch = next(data.test.batches(100))
>>> predictions = sf.Predictions.from_logits(model(batch.images).detach(), batch.labels)
>>> audit = sf.audit_predictions(predictions)
>>> audit.calibration.accuracy.low <= audit.calibration.accuracy <= audit.calibration.accuracy.high
True
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from .version import VERSION as __version__

if TYPE_CHECKING:
    from . import attacks, calibration, corruptions, geometry, objectives, ood, views
    from .auditing.audit import audit
    from .auditing.comparison import compare
    from .auditing.predictions import audit_predictions
    from .auditing.tracking import track
    from .auditing.unlabelled import monitor
    from .data.loading import load_data
    from .errors import SurefootError
    from .models._export import export
    from .models.classifier import Classifier
    from .models.ensembles import Ensemble, MonteCarloDropout, TestTimeAugmentation
    from .models.foreign import adapt
    from .models.loading import load_model
    from .report.card import write_card
    from .report.page import write_page
    from .training._fit import fit
    from .training.runs import load_run
    from .types import Predictions

_HOME = {
    "load_data": "data.loading",
    "load_model": "models.loading",
    "load_run": "training.runs",
    "adapt": "models.foreign",
    "fit": "training._fit",
    "audit": "auditing.audit",
    "audit_predictions": "auditing.predictions",
    "compare": "auditing.comparison",
    "monitor": "auditing.unlabelled",
    "track": "auditing.tracking",
    "write_card": "report.card",
    "write_page": "report.page",
    "export": "models._export",
    "Classifier": "models.classifier",
    "Ensemble": "models.ensembles",
    "MonteCarloDropout": "models.ensembles",
    "TestTimeAugmentation": "models.ensembles",
    "Predictions": "types",
    "SurefootError": "errors",
}
_ROOMS = ["attacks", "calibration", "corruptions", "geometry", "objectives", "ood", "views"]

__all__ = [
    "Classifier",
    "Ensemble",
    "MonteCarloDropout",
    "Predictions",
    "SurefootError",
    "TestTimeAugmentation",
    "__version__",
    "adapt",
    "attacks",
    "audit",
    "audit_predictions",
    "calibration",
    "compare",
    "corruptions",
    "export",
    "fit",
    "geometry",
    "load_data",
    "load_model",
    "load_run",
    "monitor",
    "objectives",
    "ood",
    "track",
    "views",
    "write_card",
    "write_page",
]


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        return getattr(_import_module(f".{_HOME[name]}", __name__), name)
    if name in _ROOMS:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module 'surefoot' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
