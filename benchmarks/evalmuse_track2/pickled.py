"""Reads a pickle of masks as data: nothing in it is ever looked up, called or executed.

Python's own unpickler runs what a file tells it to, so it is not used, not even restricted. The
instructions are taken apart by `pickletools` and followed by a small machine that knows the
two dozen which a dictionary of arrays and numbers needs (protocols 3 to 5). Names of numpy's
constructors are only marks to it: an array is made here, after its size was checked.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np

from benchmarks.evalmuse_track2.masks import (
    Fit,
    MaskFileError,
    check_size,
    pack,
)
from benchmarks.evalmuse_track2.pickle_values import (
    CONSTRUCTORS,
    NUMBER_CODE,
    Array,
    Blob,
    Dtype,
    Global,
    Mark,
    number,
    raw_content,
    short_text,
    whole_number,
)
from benchmarks.evalmuse_track2.records import MAX_NAME, Records

PROTOCOLS = (3, 4, 5)
OPERATIONS_PER_IMAGE = 200
"""A pickled image takes about 60 instructions."""
_PICKLE_BEGINS = 0x80


def read_pickle(content: bytes, most_images: int, fit: Fit) -> Records:
    """Read `{image: {"pred_area": 2-D array, "score": number}}`.

    Args:
        content: the file.
        most_images: a file with more arrays than this is refused while it is read.
        fit: makes the mask that is kept of an array.

    Raises:
        MaskFileError: it is not such a pickle, or holds anything else.
    """
    _check_kind(content)
    machine = _Machine(most_images, fit)
    try:
        return _records(machine.run(content))
    except MaskFileError:
        raise
    except (ValueError, TypeError, LookupError, OverflowError, struct.error) as error:
        raise MaskFileError(f"is not a complete pickle of protocol 3 to 5 ({error})") from error


def _check_kind(content: bytes) -> None:
    """Say in plain words what a file is that is no pickle of a protocol that is read."""
    if not content:
        raise MaskFileError("is empty; expected a pickle")
    if content.startswith(b"PK"):
        raise MaskFileError("is a zip or .npz file, not a pickle; give it the ending .npz")
    if content[0] != _PICKLE_BEGINS:
        raise MaskFileError(
            f"is no binary pickle: it begins with {content[:20]!r}; expected a file that "
            "pickle.dump wrote with protocol 3, 4 or 5"
        )
    if content[1:2] and content[1] not in PROTOCOLS:
        raise MaskFileError(
            f"is a pickle of protocol {content[1]}; write it again with pickle.dump(..., "
            "protocol=4)"
        )


def _records(top: object) -> Records:
    if not isinstance(top, dict):
        raise MaskFileError(
            f"holds a {type(top).__name__.strip('_').lower()}; expected a dictionary"
        )
    records = Records()
    for image, entry in top.items():
        score = entry.get("score") if isinstance(entry, dict) else None
        area = entry.get("pred_area") if isinstance(entry, dict) else None
        if not isinstance(area, Array) or area.bits is None:
            raise MaskFileError(f"gives the image {image[:60]!r} no pred_area that is a 2-D array")
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise MaskFileError(f"gives the image {image[:60]!r} no score that is a number")
        records.add(image, float(score), area.bits)
    return records


class _Machine:
    """A stack, a memo, and what each instruction does to them."""

    def __init__(self, most_images: int, fit: Fit) -> None:
        self._fit = fit
        self._most_arrays = most_images
        self._arrays_left = most_images
        self._operations_left = OPERATIONS_PER_IMAGE * most_images + 10_000
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, content: bytes) -> object:
        """What is on the stack at `STOP`; content without one is a ValueError of `pickletools`."""
        for operation, argument, _ in pickletools.genops(BytesIO(content)):
            self._operations_left -= 1
            if self._operations_left < 0:
                raise MaskFileError("has more instructions than masks and scores need")
            name = operation.name
            if name in _CONSTANTS:
                self._stack.append(_CONSTANTS[name])
            elif name in _LITERALS:
                self._stack.append(_LITERALS[name](argument))
            elif name in _ACTIONS:
                _ACTIONS[name](self, argument)
            elif name not in _IGNORED:
                raise MaskFileError(f"holds something besides arrays and numbers ({name})")
        return self._pop()

    def mark(self, _: object) -> None:
        self._stack.append(Mark())

    def memoize(self, _: object) -> None:
        self._memo[len(self._memo)] = self._top()

    def put(self, index: int) -> None:
        self._memo[index] = self._top()

    def get(self, index: int) -> None:
        self._stack.append(self._memo[index])

    def empty_dict(self, _: object) -> None:
        self._stack.append({})

    def tuple_of(self, size: int) -> None:
        values = [self._pop() for _ in range(size)]
        self._stack.append(tuple(reversed(values)))

    def tuple_from_mark(self, _: object) -> None:
        self._stack.append(tuple(self._since_mark()))

    def set_item(self, _: object) -> None:
        value, key = self._pop(), self._pop()
        self._fill([key, value])

    def set_items(self, _: object) -> None:
        self._fill(self._since_mark())

    def name_pair(self, argument: str) -> None:
        self._name(*argument.split(" ", 1))

    def name_from_stack(self, _: object) -> None:
        name, module = self._pop(), self._pop()
        if not (isinstance(name, str) and isinstance(module, str)):
            raise MaskFileError("names an object without a name")
        self._name(module, name)

    def reduce(self, _: object) -> None:
        """What would be a call: only the four constructors, each made here."""
        arguments, called = self._pop(), self._pop()
        name = called.name.rsplit(".", 1)[-1] if isinstance(called, Global) else ""
        match name, arguments:
            case "dtype", (str(code), *_) if NUMBER_CODE.fullmatch(code):
                self._stack.append(Dtype(code))
            case "_reconstruct", (Global("numpy.ndarray"), *_):
                self._stack.append(Array())
            case "scalar", (Dtype() as kind, bytes(content)):
                self._stack.append(number(kind, content))
            case "_frombuffer", (content, Dtype() as kind, tuple(shape), "C" | "F" as order):
                self._stack.append(Array(self._mask(content, kind, shape, order)))
            case _:
                raise MaskFileError("makes an object that is neither a number nor a numeric array")

    def build(self, _: object) -> None:
        state, target = self._pop(), self._top()
        match target, state:
            case Dtype(), (int(), "<" | ">" | "|" | "=" as order, None, None, None, *_):
                target.order = order
            case Array(None), (int(), tuple(shape), Dtype() as kind, bool(by_column), content):
                target.bits = self._mask(content, kind, shape, "F" if by_column else "C")
            case _:
                raise MaskFileError("gives an object a state that a numeric array does not have")

    def _mask(self, content: object, kind: Dtype, shape: tuple[object, ...], order: Any) -> bytes:
        """An array of checked size, as the bits that are kept of it."""
        self._arrays_left -= 1
        if self._arrays_left < 0:
            raise MaskFileError(f"has more than {self._most_arrays} masks")
        dtype = kind.dtype
        height, width = check_size(shape, dtype.itemsize)
        raw = content.take() if isinstance(content, Blob) else content
        if not isinstance(raw, bytes | bytearray) or len(raw) != height * width * dtype.itemsize:
            raise MaskFileError(
                f"holds a mask of {height} x {width} whose content does not fill it"
            )
        return pack(self._fit(np.frombuffer(raw, dtype).reshape((height, width), order=order)))

    def _name(self, module: str, name: str) -> None:
        full = f"{module}.{name}"
        if full not in CONSTRUCTORS:
            raise MaskFileError(f"names the object {full[:80]!r}; only numpy arrays are read")
        self._stack.append(Global(full))

    def _fill(self, values: list[Any]) -> None:
        target = self._top()
        if not isinstance(target, dict) or len(values) % 2:
            raise MaskFileError("fills something that is not a dictionary")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, str) or len(key) > MAX_NAME:
                raise MaskFileError(f"has a key that is not a text of up to {MAX_NAME} characters")
            if key in target:
                raise MaskFileError(f"has the key {key[:60]!r} twice")
            target[key] = value

    def _since_mark(self) -> list[Any]:
        values: list[Any] = []
        while not isinstance(value := self._pop(), Mark):
            values.append(value)
        return values[::-1]

    def _pop(self) -> Any:
        if not self._stack:
            raise MaskFileError("takes a value that is not there")
        return self._stack.pop()

    def _top(self) -> Any:
        if not self._stack:
            raise MaskFileError("takes a value that is not there")
        return self._stack[-1]


_IGNORED = frozenset({"PROTO", "FRAME", "STOP"})
_CONSTANTS: dict[str, object] = {
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
    "EMPTY_TUPLE": (),
}
_LITERALS: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "LONG4"), whole_number),
    **dict.fromkeys(("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), short_text),
    **dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"), raw_content),
    "BINFLOAT": float,
}
_ACTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": _Machine.mark,
    "MEMOIZE": _Machine.memoize,
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.get),
    "EMPTY_DICT": _Machine.empty_dict,
    "TUPLE": _Machine.tuple_from_mark,
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "GLOBAL": _Machine.name_pair,
    "STACK_GLOBAL": _Machine.name_from_stack,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
}
