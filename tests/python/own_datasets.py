"""What the tests of stoker.DataLoader share: small datasets, and a loader over one."""

import numpy
import stoker
import torch

MODES = ["threads", "processes"]


class Numbers(torch.utils.data.Dataset):
    """Sample i is i."""

    def __init__(self, count=100):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index


class Squares(Numbers):
    """Sample i is (a 3 x 4 tensor of i * i, i)."""

    def __getitem__(self, index):
        return torch.full((3, 4), float(index * index)), index


class Random(Numbers):
    def __getitem__(self, index):
        return numpy.random.rand(), torch.rand(2)


class Fails(Numbers):
    """Some samples raise an error."""

    def __init__(self, count=100, missing=(3, 9)):
        super().__init__(count)
        self.missing = missing

    def __getitem__(self, index):
        if index in self.missing:
            raise KeyError(f"no sample {index}")
        return index


def loader(dataset, **options):
    return stoker.DataLoader(dataset, **({"batch_size": 8, "num_workers": 2, "quiet": True} | options))
