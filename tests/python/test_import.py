"""Importing the module is cheap and imports no other library."""


def test_the_import_loads_neither_numpy_nor_torch(python, example_dataset):
    code = """
import sys, stoker
batch = next(iter(stoker.Loader(sys.argv[1], transform="cifar-train")))
print(sorted({"numpy", "torch", "multiprocessing", "inspect"} & set(sys.modules)))
view = memoryview(batch["image"])
print(view.shape, view.format, hasattr(batch["label"], "__dlpack__"))
"""
    assert python(code, example_dataset) == "[]\n(64, 3, 32, 32) f True\n"


def test_batches_use_the_imported_library(python, example_dataset):
    code = """
import sys, stoker
def kind(): return type(next(iter(stoker.Loader(sys.argv[1], transform="cifar-train")))["image"]).__module__
import numpy; print(kind())
import torch; print(kind())
"""
    assert python(code, example_dataset) == "numpy\ntorch\n"
