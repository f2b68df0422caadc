"""Every published metric over all boards, in the order of the first page."""

from __future__ import annotations
