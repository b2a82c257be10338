"""Reports that tests explain are kept in a folder of their own, not in the user's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    os.environ["TRACEDIAG_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    del os.environ["TRACEDIAG_CACHE_DIR"]
