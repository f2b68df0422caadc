"""Reaching out of the box: over a network, to files and memory of others, into the kernel."""

from __future__ import annotations

from tests.hostile.attempts import KERNEL, NETWORK, READING, WRITING, Attempt, scorer_of
from tests.hostile.case import PUBLISHED, Case, Category
from tests.hostile.corpus.texts import scoring


def _all_of(name: str, attempts: tuple[Attempt, ...]) -> Case:
    """A submission that tries everything of a kind, and scores as if it had tried nothing."""
    return Case(
        name,
        attempts[0].category,
        scorer_of(attempts),
        PUBLISHED,
        scores=(0.0, 1.0, 2.0),
        prints=tuple(f"refused {one.name}" for one in attempts),
    )


_SEARCH = """
def found_below(folder):
    for path, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if path != "/" or f not in ("usr", "opt", "proc", "sys")]
        for name in files:
            try:
                if not os.path.isfile(f"{path}/{name}"):
                    continue
                with open(f"{path}/{name}", "rb") as file:
                    if b"@end_of_secret@"[::-1] in file.read(1 << 20):
                        return f"{path}/{name}"
            except OSError:
                pass
    return ""
print("searched", "GOT it" if found_below("/") else "and found nothing")
"""

CASES = (
    _all_of("every way to a network", NETWORK),
    _all_of("every way to what others own", READING),
    _all_of("every way deeper into the kernel", KERNEL),
    _all_of("every place to write to", WRITING),
    Case(
        "a search of all that can be seen",
        Category.READING,
        scoring(first=_SEARCH),
        PUBLISHED,
        prints=("searched and found nothing",),
        scores=(0.0, 1.0, 2.0),
        way="searching",
    ),
    Case(
        "its own name and its author's, in whatever the kernel tells",
        Category.READING,
        scoring(
            first="""
            told = b""
            for name in ("mountinfo", "environ", "cmdline", "cgroup", "maps", "mounts"):
                for pid in ("self", "1"):
                    try:
                        told += open(f"/proc/{pid}/{name}", "rb").read()
                    except OSError:
                        pass
            print("read", len(told) > 100)
            for word in (b"mallory", b"an-odd-name", b"labels.csv", b"uploads"):
                print("GOT" if word in told else "no", word.decode())
            """
        ),
        PUBLISHED,
        manifest='name = "an-odd-name"',
        prints=("read True", "no mallory", "no labels.csv"),
        scores=(0.0, 1.0, 2.0),
        way="names",
    ),
    Case(
        "the ids of what is asked, in all memory of its own",
        Category.READING,
        scoring(
            """
            if len(images) == 3 and not self.told:
                self.told = True
                # Patterns that do not match themselves.
                looked, ids, asked = 0, 0, 0
                with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
                    for line in maps:
                        place, rights = line.split()[:2]
                        start, end = (int(word, 16) for word in place.split("-"))
                        if "rw" in rights:
                            memory.seek(start)
                            text = memory.read(min(end - start, 64 << 20))
                            looked += len(text)
                            ids += len(re.findall(rb"[i]d-of-(?:picture|text)", text))
                            asked += len(re.findall(rb"[a] grey pixel", text))
                print("looked", looked > 1 << 20, "saw the prompt", asked > 0)
                print("GOT ids" if ids else "no id")
            return [float(image.getpixel((0, 0))[0]) for image in images]
            """,
            first="import re",
            making="self.told = False",
        ),
        PUBLISHED,
        prints=("looked True saw the prompt True", "no id"),
        scores=(0.0, 1.0, 2.0),
        way="ids",
    ),
)
