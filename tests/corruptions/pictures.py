"""Images with the spectrum of photographs, made on the spot."""

import torch


def pictures(count, height, width=None, seed=0):
    """Random fields whose power falls with frequency, with colours, contrast and some clipping: 8-bit levels in [0, 1]."""
    width = width or height
    generator = torch.Generator().manual_seed(seed)
    white = torch.randn(count, 4, height, width, generator=generator)
    frequency = torch.hypot(torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)[None])
    frequency[0, 0] = 1
    fields = torch.fft.irfft2(torch.fft.rfft2(white) / frequency**1.3, s=(height, width))
    fields = fields / fields.std((1, 2, 3), keepdim=True)
    mixed = 0.5 + 0.2 * fields[:, :3] + 0.2 * fields[:, 3:]
    return mixed.clamp(0, 1).mul(255).floor().div(255)


def to_numpy(image):
    """height x width x channels, float64."""
    return image.permute(1, 2, 0).double().numpy()
