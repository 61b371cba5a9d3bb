"""Writes ResNet-9 for images of 32 x 32 pixels as TorchScript: python make_resnet9.py resnet9.pt

The network of David Page's DAWNBench entry (https://myrtle.ai/learn/how-to-train-your-resnet/)."""

import sys

import torch
from torch import nn


def convolution(channels_in: int, channels: int, pool: bool = False) -> nn.Sequential:
    layers = [
        nn.Conv2d(channels_in, channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
    ]
    return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []))


class Residual(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.path = nn.Sequential(convolution(channels, channels), convolution(channels, channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.path(x)


class ResNet9(nn.Module):
    def __init__(self, classes: int = 10):
        super().__init__()
        self.layers = nn.Sequential(
            convolution(3, 64),
            convolution(64, 128, pool=True),
            Residual(128),
            convolution(128, 256, pool=True),
            convolution(256, 512, pool=True),
            Residual(512),
            nn.MaxPool2d(4),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(512, classes, bias=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.layers(images)) * 0.125


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.jit.script(ResNet9()).save(sys.argv[1])
