"""TorchBackend: programs over Torch's raw functions, called at once on the CPU."""

from contextlib import AbstractContextManager

import numpy as np
import torch

from lazyarr.backends.array.backend import ArrayBackend, writable
from lazyarr.backends.torch.table import make_table


class TorchBackend(ArrayBackend):
    """Torch, one call per node, without its gradient machinery."""

    name = "torch"

    def __init__(self) -> None:
        super().__init__()
        self.table = make_table()

    def enter(self, array: np.ndarray) -> torch.Tensor:
        """Return a tensor over the array's memory; what Torch cannot describe is copied."""
        if not array.flags.writeable:
            array = writable(array)  # programs never write their arguments
        try:
            return torch.from_numpy(array)
        except ValueError:  # negative strides, or strides between elements
            return torch.from_numpy(np.array(array))

    def leave(self, value: torch.Tensor, owned: bool) -> np.ndarray:
        """Return the tensor's memory where nothing else can hold it, else a copy."""
        return value.numpy() if owned else np.array(value.resolve_conj().numpy())

    def context(self) -> AbstractContextManager:
        """No gradients are recorded."""
        return torch.no_grad()

    def describe(self) -> dict:
        """Return version and devices."""
        cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        return {"version": torch.__version__, "devices": ["cpu", *cuda]}
