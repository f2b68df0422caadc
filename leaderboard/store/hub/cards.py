"""The dataset cards of a store on the Hub: what its files are, for people and for `datasets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from huggingface_hub import DatasetCardData

from benchmarks.schema import Card
from leaderboard.store.hub.configurations import Tables, configurations
from leaderboard.store.hub.layout import HubName, Part

REQUESTS = """
Who submitted what to the Assay leaderboard `{name}`, and what became of it. Assay tests
text-to-image metrics: every metric is scored against what people said about generated images.

```python
from datasets import load_dataset

submissions = load_dataset("{requests_name}", "submissions", split="train")
```

`queue.parquet` has one row for each submission with its present state. It is a projection:
`submissions/<id>/events.jsonl` has every event since it was received, one a line, and
`python -m evaluator doctor --store hub:{name}` says where the two differ. `chronicle/` has each
public act in the order in which it was done, every line with the hash of the one before.
`.commits/pins.json` names the commit of [{results_name}](https://huggingface.co/datasets/{results_name})
that belongs to this version.
A submission is here from its claim on, or from any commit of events before; the site shows it as soon as it is
received. One that its author keeps private is here by a bare number and its state.
"""

RESULTS = """
What the Assay leaderboard `{name}` shows: every value of every metric on every benchmark, with its
interval, its rank and the range of its rank; and the score of every image-text pair by every metric,
for the benchmarks whose answers are public.

```python
from datasets import get_dataset_config_names, load_dataset

boards = load_dataset("{results_name}", "boards", split="train")
pairs = load_dataset("{results_name}", "pairs", split="train")
scores = load_dataset("{results_name}", "scores", split="train")
get_dataset_config_names("{results_name}")
```

`boards`, `pairs` and `scores` are there from the beginning, and what is of one benchmark as soon as it has
rows. A table without rows loads with `streaming=True`. `snapshot.parquet` has one row for each value, sorted by benchmark. The key `assay` of the metadata
of that file is JSON: when it was made and from which version of
[{requests_name}](https://huggingface.co/datasets/{requests_name}), the cards of the benchmarks, and
for each entry who sent it, what it cost and what it was put through. `boards/*.pairs.parquet` have
the tests between each two entries by the headline of a board. Both are made again by
`python -m evaluator doctor --store hub:{name} --rebuild` from `results/<submission>/<benchmark>.json`,
which has the rows of one run, the seed and size of its resamples, the versions of what the figures
depend on and the hashes of the data they were made from.

`results/<submission>/<benchmark>.scores.parquet` has the scores of one run. All of these files have
the same columns: `scores` are all of them, and each benchmark has a configuration of its own, by its
name. Beside it are `.clusters.parquet` (the value of each
cluster behind each row of the result), `.resamples.parquet` (a column for each row, with its value
in each resample of the clusters) and `.influence.parquet` (what each block of clusters adds to it).
Below `at/` are runs on revisions of a benchmark that are no longer on its board.

A published row follows from these scores. To compute one again:

```bash
python -m evaluator report SUBMISSION --store hub:{name} --recompute
python -m evaluator meta BENCHMARK --scores BENCHMARK.scores.parquet
```

The first takes the scores from here and compares every figure with the published one; the second
needs nothing but the file. Of a metric that compares two images, `.margins.parquet` holds what it
said of each comparison; the first command reads it too, and the second where it lies beside. The seed of the resamples is in the result.

`cases/<benchmark>/<revision>.parquet` says what people said of each pair of a benchmark whose
answers are public, in cases small enough to look at: one configuration `cases_<benchmark>` each.
`ratings/<benchmark>/<revision>.parquet` has the ratings of its images, rater by rater where they are
known.

A rank is 1 + the number of entries with a better value; its range holds the ranks that the tests leave
open, all ranges of a slice at once at 95 %. Entries of one tier do not differ significantly by paired
permutation tests, made jointly for all pairs of the slice. What rests on fewer than eight clusters, lacks
too many scores or failed a check of its scorer has no rank.
"""

SUBMISSIONS = """
What was uploaded to the Assay leaderboard `{name}`, and all that is not for everyone: archives of
scorers, scores that wait for a judge, results that an author holds back, and the scores and
resamples of benchmarks whose answers are private. Keep this repository private.

What it holds is strangers' code: do not unpack or run it outside the isolation that
`python -m evaluator worker` brings. The public records of the same submissions are in
[{requests_name}](https://huggingface.co/datasets/{requests_name}).
"""

OF_SCORES = {
    "submission_id": "whose scores they are",
    "benchmark": "what was scored",
    "revision": "of the data of the benchmark",
    "metric": "the metric; a file of scores may bring several",
    "pair_id": "the image-text pair, by the public id of the benchmark",
    "element_id": "a part of the prompt that was scored by itself; null in rows of whole pairs",
    "score": "as the metric gave it; null where it gave none, and in rows of elements",
    "element_score": "of the element; null in rows of whole pairs",
}

OF_CASES = {
    "case_id": "what is looked at together: a prompt with its images, a contrast pair, a graph",
    "cluster": "what is resampled, of which the case is a part",
    "split": "parts of the benchmark that it is in, joined by `;`",
    "skills": "skills that it is about, joined by `;`",
    "pair_id": "the image-text pair, as in the files of scores",
    "image_id": "the image; pairs of one image have the same",
    "prompt": "the text of the pair",
    "expected": "what people say, larger where the image follows the prompt better; it is compared "
    "within a case only, and null where they say nothing",
    "said": "the same in words",
}

OF_RATINGS = {
    "choice_id": "images that are chosen among have the same: those of a prompt, as a rule",
    "cluster": "what is resampled",
    "pair_id": "the image-text pair, as in the files of scores",
    "mean": "what people say of the image, larger is better; null where they say nothing",
    "ratings": "one number for each rater; none where only means were released. Ratings outside the "
    "scale are in neither; the metadata of the file count them as `n_outside`",
}

OF_CELLS = {
    "benchmark": "which board",
    "revision": "of the data of the benchmark; a board never mixes revisions",
    "entry_id": "`<submission>/<metric>`",
    "submission_id": "the submission",
    "metric": "the metric",
    "measure": "what was measured, by the name its paper gives it",
    "variant": "`paper`, `equation`, `code`, or `assay` for a summary that no paper defines",
    "split": "part of the benchmark; null where there is one only",
    "facet": "direction, template or accumulation; null where there is one only",
    "skill": "the skill; null over all of them",
    "value": "the estimate; null where it is undefined, and then `note` says why",
    "ci_low": "lower end of the 95 % interval from resampled clusters",
    "ci_high": "its upper end",
    "ci_method": "`bca` or `percentile`; null without an interval",
    "n_items": "pairs, elements or comparisons behind the value",
    "n_clusters": "clusters behind it, which are what is resampled",
    "n_missing": "pairs for which the metric gave no score",
    "rank": "within its slice (benchmark, measure, variant, split, facet, skill); null without one",
    "rank_low": "best rank that the tests leave open; 1 where nothing was tested",
    "rank_high": "worst rank that they leave open; the last where nothing was tested",
    "best_share": "share of the resamples in which it has the best value",
    "tier": "by joint tests of the slice; null where none were made",
    "distrust": "why it is kept from ranking; empty where nothing keeps it",
    "note": "what a reader must know of the value; empty as a rule",
    "row": "position among the rows of its result, which its resamples are named after",
}

OF_PAIRS = {
    "benchmark": "which board",
    "revision": "of the data of the benchmark",
    "entry_a": "one entry",
    "entry_b": "the other",
    "difference": "the value of the one less that of the other",
    "p_corrected": "of the paired permutation tests by cluster, two-sided, of all pairs together",
    "n_units": "blocks of clusters in which the two differ",
    "n_patterns": "patterns of signs behind it",
    "exact": "whether every pattern was looked at",
}

OF_SUBMISSIONS = {
    "submission_id": "the submission",
    "kind": "`metric` (code), `scores` (a file of scores) or `generations` (images of a model)",
    "name": "as its author calls it",
    "version": "likewise",
    "metrics": "the entries it makes on the boards",
    "benchmarks": "what it is to be run on",
    "submitter": "the name it was sent under",
    "account": "key of the account that sent it",
    "private": "whether its author keeps it back; name and author are not public then",
    "received_at": "when it came",
    "state": "where it stands",
    "since": "when it came there",
    "by": "who moved it there",
    "code": "of the reason, for programs",
    "fault": "whose it is: `submitter`, `world` or `platform`; empty without one",
    "reason": "in words",
    "attempts": "how often a worker has taken it since it was queued",
    "lease_until": "until when a worker holds it; null where none does",
    "on_boards": "whether its results are on the boards",
    "scored_at": "when it was first scored; null where it never was",
    "status": "the whole record as JSON",
}


TAGS = ("text-to-image", "evaluation", "leaderboard", "image-text-alignment")
_TITLES = {
    Part.REQUESTS: "submissions and their events",
    Part.RESULTS: "boards, results and scores of image-text pairs",
    Part.SUBMISSIONS: "uploads",
}
_TEXTS = {Part.REQUESTS: REQUESTS, Part.RESULTS: RESULTS, Part.SUBMISSIONS: SUBMISSIONS}
_TABLES: dict[Part, tuple[tuple[str, Mapping[str, str]], ...]] = {
    Part.REQUESTS: (("submissions", OF_SUBMISSIONS),),
    Part.RESULTS: (
        ("boards", OF_CELLS), ("pairs", OF_PAIRS), ("scores", OF_SCORES), ("cases", OF_CASES)
    ),
    Part.SUBMISSIONS: (),
}  # fmt: skip


def card_of(part: Part, name: str, cards: Mapping[str, Card], tables: Tables) -> bytes:
    """The README.md of a repository of a store: the same for the same benchmarks and tables."""
    return _readme(part, HubName(name), cards, tables).encode()


def _readme(part: Part, name: HubName, cards: Mapping[str, Card], tables: Tables) -> str:
    configs: Any = {"configs": configurations(tables)} if tables else {}
    front = DatasetCardData(
        license="other",
        license_name="of-each-benchmark",
        pretty_name=f"Assay {name.text}: {_TITLES[part]}",
        tags=list(TAGS),
        **configs,
    )
    text = _TEXTS[part].format(
        name=name.text, **{f"{one.value}_name": name.of(one) for one in Part}
    )
    sections = [
        f"---\n{front.to_yaml().strip()}\n---",
        f"# {name.of(part)}",
        text.strip(),
        *(_columns(title, columns) for title, columns in _TABLES[part]),
        *([] if part is Part.SUBMISSIONS else [_benchmarks(list(cards.values()))]),
    ]
    return "\n\n".join(sections) + "\n"


def _columns(title: str, columns: Mapping[str, str]) -> str:
    rows = "\n".join(f"| `{column}` | {_cell(what)} |" for column, what in columns.items())
    return f"## Columns of {title}\n\n| column | what it is |\n| --- | --- |\n{rows}"


def _benchmarks(cards: Sequence[Card]) -> str:
    """Which benchmarks there are, at which revision, and under which licence their data are."""
    rows = "\n".join(
        f"| `{card.name}` | {_cell(card.title)} | `{_cell(card.revision)}` "
        f"| {_cell(card.licence) or 'not stated'} | {_about_scores(card)} |"
        for card in sorted(cards, key=lambda card: card.name)
    )
    head = "| benchmark | title | revision | licence of its data | scores of pairs |"
    return f"## Benchmarks\n\n{head}\n| --- | --- | --- | --- | --- |\n{rows}"


def _about_scores(card: Card) -> str:
    told = "published" if card.answers_public else "private, as its answers are"
    return f"{told}; ratings are simulated" if card.simulated else told


def _cell(words: str) -> str:
    """Words as a cell of a table of Markdown."""
    return " ".join(words.split()).replace("|", "\\|")
