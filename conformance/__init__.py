"""conformance: does a library keep the Python Array API standard 2025.12?

Three commands, for lazyarr and for any other namespace:

    python -m conformance own numpy             checks generated from the standard's facts
    python -m conformance upstream              the consortium's own suite, from your checkout
    python -m conformance report numpy lazyarr  a table: chapters x libraries, and why not

`own` and `report` need hypothesis and the library; `upstream` also pytest and pytest-json-report.
"""
