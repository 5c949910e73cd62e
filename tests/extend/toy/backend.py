"""A backend of one folder: a table and a class."""

from lazyarr.backends.array.backend import ArrayBackend
from tests.extend.toy.table import make_table


class ToyBackend(ArrayBackend):
    """NumPy that counts its calls of exp."""

    name = "toy"
    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.table = make_table(self.count)

    @classmethod
    def count(cls) -> None:
        """Note one call."""
        cls.calls += 1
