import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, cin=3, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(cin, width, 3, 2, 1), nn.GELU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.GELU(),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.GELU())

    def forward(self, x):
        return self.body(x)


class Segmenter(nn.Module):
    """Frozen encoder, trainable decoder."""

    def __init__(self, encoder, width=48, classes=5):
        super().__init__()
        self.encoder = encoder
        self.encoder.requires_grad_(False)
        self.decoder = nn.Sequential(
            nn.Conv2d(width, 24, 1), nn.BatchNorm2d(24), nn.ReLU(),
            nn.Upsample(scale_factor=4, mode="nearest"), nn.Conv2d(24, classes, 1))

    def head_parameters(self):
        return list(self.decoder.parameters())

    def forward(self, x):
        return self.decoder(self.encoder(x))
