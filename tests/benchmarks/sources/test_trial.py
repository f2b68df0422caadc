"""A trial takes a few images and leaves the rest of the archives where they are."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

from tests.benchmarks.refusals import refused
from tests.benchmarks.sources.fetching import REPO, get, on_hub
from tests.benchmarks.sources.test_unpack import tar
from tests.hub.server import HubServer

MODELS = ("SDXL", "SD3")
PROMPTS = [f"{n:05d}" for n in range(60)]
ANSWERS = "pair_id,prompt\n" + "".join(f"{p}/{m},{p}\n" for p in PROMPTS for m in MODELS)
NOISE = random.Random(2)
IMAGES = {f"images/{m}/{p}.png": NOISE.randbytes(60_000) for m in MODELS for p in PROMPTS}
FIRST_TWO = {f"images/{m}/{p}.png" for m in MODELS for p in PROMPTS[:2]}


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def below(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_a_zip_in_parts_is_read_by_ranges(hub: HubServer, tmp_path: Path) -> None:
    whole = zipped(IMAGES)
    cuts = [0, 3_000_000, 6_000_000, len(whole)]
    names = [f"images.zip.part-a{letter}" for letter in "abc"]
    parts = {n: whole[a:b] for n, a, b in zip(names, cuts[:-1], cuts[1:], strict=True)}
    hub.add(REPO, {"answers.csv": ANSWERS.encode(), **parts})
    files = [on_hub("remote/answers.csv", role="answers"), *(on_hub(f"remote/{n}") for n in names)]
    done = get(hub, tmp_path, *files, subset=2)
    assert below(tmp_path / "remote/subset") == {name: IMAGES[name] for name in FIRST_TWO}
    assert done.trial == {str(tmp_path / "remote/subset"): 4}
    assert (tmp_path / "remote/answers.csv").read_text() == ANSWERS
    assert hub.sent("/content/") + hub.sent("/resolve/") < len(whole)
    assert not list((tmp_path / "remote").glob("*.zip*"))


def test_a_zip_of_each_model_gives_its_share(hub: HubServer, tmp_path: Path) -> None:
    archives = {
        f"{m}.zip": zipped({n.removeprefix("images/"): c for n, c in IMAGES.items() if m in n})
        for m in MODELS
    }
    hub.add(REPO, {"answers.csv": ANSWERS.encode(), **archives})
    files = (on_hub(f"remote/images/{m}.zip", f"{m}.zip") for m in MODELS)
    get(hub, tmp_path, on_hub("remote/answers.csv", role="answers"), *files, subset=2)
    assert set(below(tmp_path / "remote/subset")) == FIRST_TWO


def test_a_folder_gives_the_images_of_the_first_prompts(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"answers.csv": ANSWERS.encode(), **IMAGES})
    files = (on_hub("remote/answers.csv", role="answers"), on_hub("remote/images", folder=True))
    get(hub, tmp_path, *files, subset=2)
    assert below(tmp_path / "remote/subset") == {name: IMAGES[name] for name in FIRST_TWO}
    sent = hub.sent()
    get(hub, tmp_path, *files, subset=2)
    assert hub.sent() == sent


def test_a_packed_tar_is_streamed_until_there_is_enough(hub: HubServer, tmp_path: Path) -> None:
    content = tar({**IMAGES, "table.tsv": b"no image"})
    hub.add(REPO, {"answers.csv": ANSWERS.encode(), "x.tar.gz": content})
    files = (on_hub("remote/answers.csv", role="answers"), on_hub("remote/x.tar.gz", unpack=True))
    get(hub, tmp_path, *files, subset=2)
    first = dict(list(IMAGES.items())[:4])
    assert below(tmp_path / "remote/subset") == first
    assert not (tmp_path / "remote/x.tar.gz").exists()


def test_without_answers_one_image_a_prompt(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"images.zip": zipped(IMAGES)})
    get(hub, tmp_path, on_hub("remote/images.zip"), subset=3)
    assert sorted(below(tmp_path / "remote/subset")) == [
        f"images/SDXL/{p}.png" for p in PROMPTS[:3]
    ]


def test_a_zip_with_a_part_missing_is_an_error(hub: HubServer, tmp_path: Path) -> None:
    whole = zipped(IMAGES)
    hub.add(REPO, {"i.zip.part-aa": whole[:4_000_000], "i.zip.part-ab": whole[4_000_000:]})
    with refused("data_malformed"):
        get(hub, tmp_path, on_hub("remote/i.zip.part-aa"), subset=3)


def test_a_table_of_images_is_left_out(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"train.parquet": b"PAR1"})
    done = get(hub, tmp_path, on_hub("remote/train.parquet"), subset=3)
    assert done.left_out == {"remote/train.parquet": "a trial cannot take a part of it"}
