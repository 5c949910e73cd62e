"""Recipes: for each function of the standard, how to call it and what it answers."""

from conformance.own.recipes import (  # noqa: F401 - each registers its recipes
    creation,
    elementwise,
    fourier,
    indexing,
    linear,
    manipulation,
    operators,
    reducing,
    sorting,
)
from conformance.own.recipes._recipe import RECIPES, Case, DType, recipe

__all__ = ["RECIPES", "Case", "DType", "recipe"]
