"""A substitute on the CPU for the stream of a GPU: copies run in a thread and complete late. A batch is wrong if it is used
without waiting for its copy, or if its host memory is reused before."""

import ctypes
import queue
import threading
import time

import torch

WRONG = 99  # in a copy that is not complete


class LateCopyStream:
    """A device_copy.CopyStream. It keeps no reference to the copied tensors: their memory is the caller's to hold."""

    def __init__(self, delay_s=0.03):
        self.delay_s = delay_s
        self.started = 0
        self.unfinished_work = []  # events of mark(), completed by the test
        self.completes_work = True
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._copy_all, daemon=True).start()

    def _copy_all(self):
        while True:
            memory, event = self._jobs.get()
            time.sleep(self.delay_s)
            for target, source, size in memory:
                ctypes.memmove(target.data_ptr(), source, size)
            event.set()

    def start(self, tensors):
        copies = [torch.full_like(tensor, WRONG) for tensor in tensors]
        event = threading.Event()
        self.started += 1
        sources = [(t.data_ptr(), t.numel() * t.element_size()) for t in tensors]
        self._jobs.put(([(copy, *source) for copy, source in zip(copies, sources, strict=True)], event))
        return copies, event

    def use(self, copies, event):
        assert event.wait(60)  # a device would wait instead

    def mark(self):
        event = threading.Event()
        if self.completes_work:
            event.set()
        else:
            self.unfinished_work.append(event)
        return event

    def is_complete(self, event):
        return event.is_set()


class WithoutWaiting(LateCopyStream):
    """Lets the caller use copies at once."""

    def use(self, copies, event):
        pass


class WithoutHolding(LateCopyStream):
    """Reports copies as complete when they start, so that their host memory is reused."""

    def is_complete(self, event):
        return True
