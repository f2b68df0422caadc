"""Functions that recompute errata from printed tables and released files, by the id of the erratum.

Each takes the folder of data and returns the findings by label of the erratum's cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy

from benchmarks.accumulation.question_scores import (
    AnsweredQuestions,
    QuestionGraph,
    Unparsable,
    equals_yes,
    image_scores,
    stated_correctness,
)
from benchmarks.errata.entries import Erratum, Finding, Findings, Recompute, data_folder, files
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.published import PublishedCell, published
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from benchmarks.scores import read_scores
from benchmarks.sources.folder import DataFile
from benchmarks.statistics import correlation, logistic
from benchmarks.statistics.raters import krippendorff_alpha
from benchmarks.tifa160.protocol import HUMAN, LIKERT, MODEL_NAMES, TIFA160
from benchmarks.ts2.load import Ts2Answers
from benchmarks.ts2.protocol import N_GRAPHS, GraphValues, Ts2, graph_values

# Contradictions in the printed tables.


def _printed_cells(paper: str, table: str, **fields: str | None) -> Iterator[PublishedCell]:
    for cell in published():
        if (cell.paper, cell.table) == (paper, table) and all(
            getattr(cell, name) == value for name, value in fields.items()
        ):
            yield cell


def gecko_alpha(data: Path) -> Findings:
    """Mean over the six model pairs of the printed side-by-side agreement."""
    del data
    pairs = [c.value for c in _printed_cells("gecko", "SxS agreement", split="s") if c.model]
    return {"Gecko(S)": Finding(float(np.mean(pairs)))}


def evalmuse_readme(data: Path) -> Findings:
    """The two cells as the paper prints them."""
    del data
    cells = _printed_cells("evalmuse", "Table 10", skill="object")
    by_model = {f"{cell.model}, object": cell.value for cell in cells}
    return {label: Finding(by_model[label]) for label in ("DALLE 3, object", "FLUX 1.1, object")}


def evalmuse_vq2(data: Path) -> Findings:
    """The overall accuracy that the other rows' weight of real and synthetic elements implies."""
    del data
    rows: dict[str, dict[str | None, float]] = {}
    for cell in _printed_cells("evalmuse", "Table 3", measure="element_accuracy"):
        rows.setdefault(cell.metric, {})[cell.split] = 100.0 * cell.value
    doubted = rows.pop("vq2_qwen2-vl")
    gap = np.array([row["real"] - row["synth"] for row in rows.values()])
    above = np.array([row["all"] - row["synth"] for row in rows.values()])
    weight = float(gap @ above / (gap @ gap))
    overall = weight * doubted["real"] + (1.0 - weight) * doubted["synth"]
    return {"VQ2, Qwen2-VL": Finding(overall)}


# Released prompts, ratings and taxonomies.


_GECKO = "gecko/prompts.csv"
_EVALMUSE = "evalmuse/prompt_t2i.json"
_TAXONOMY = "croc/taxonomy.json"
_GENAI = {"genai1600": "genai_1600/genai_image.json", "genai527": "genai_527/genai_image.json"}
_OUT_OF_RANGE = {
    "genai1600": (("00231", "DALLE_3"), ("00252", "DeepFloyd_I_XL_v1")),
    "genai527": (("00232", "DALLE_3"), ("00253", "DeepFloyd_I_XL_v1")),
}
_HIGHEST_RATING = 5


def gecko_release(data: Path) -> Findings:
    """Prompts, reliable prompts and sub-skills of the released Gecko prompt file."""
    prompts = pd.read_csv(data_folder(data).path(_GECKO))
    findings = {}
    for split in ("S", "R"):
        part = prompts[prompts["prompt_type"] == f"Gecko({split})"]
        findings[f"Gecko({split}), prompts"] = Finding(len(part))
        reliable = int(part["max_disagreement_less_0.5"].sum())
        findings[f"Gecko({split}), reliable prompts"] = Finding(reliable)
    synthetic = prompts.loc[prompts["prompt_type"] == "Gecko(S)", "dataset_id"]
    return {**findings, "Gecko(S), sub-skills": Finding(synthetic.nunique())}


def evalmuse_prompts(data: Path) -> Findings:
    """Prompts of the file for ranking text-to-image models."""
    return {"prompts": Finding(len(_json(data, _EVALMUSE)))}


def genai_ratings(data: Path) -> Findings:
    """Mean rating of the images with a rating above 5, without it; alpha likewise."""
    findings: dict[str, Finding] = {}
    for name, images in _OUT_OF_RANGE.items():
        entries = _json(data, _GENAI[name])
        for prompt, model in images:
            ratings = np.array(entries[prompt]["models"][model], np.float64)
            kept = ratings[ratings <= _HIGHEST_RATING]
            label = f"{name} {prompt} {model}, mean rating"
            findings[label] = Finding(float(kept.mean()), float(ratings.mean()))
        raw = np.array(
            [r for e in entries.values() for r in e["models"].values()], dtype=np.float64
        )
        clean = np.where(raw <= _HIGHEST_RATING, raw, np.nan)
        findings[f"{name}, alpha (interval)"] = Finding(
            krippendorff_alpha(clean, "interval"), krippendorff_alpha(raw, "interval")
        )
    return findings


def croc_properties(data: Path) -> Findings:
    """Leaves of the released taxonomy that the generator crosses with the subjects."""
    taxonomy = _json(data, _TAXONOMY)
    [subject] = [node for node, path in _nodes(taxonomy) if path[-1] == "Subject Matter"]
    everything = sum(1 for _ in _leaves(taxonomy))
    return {"properties": Finding(everything - sum(1 for _ in _leaves(subject)))}


def croc_modes(data: Path) -> Findings:
    """Modes that a split of the prompt ids finds: literal, and as the script does."""
    del data
    ids = pd.Series(["entity_variation|||a|||b", "entity_placement|||a", "subject_property|||a"])
    literal = ids.str.split("|||", regex=False).str[0].nunique()
    return {"modes": Finding(literal, ids.str.split("|||").str[0].nunique())}


def croc_chance(data: Path) -> Findings:
    """Chance level of the text-based rule with five images, in percent: n / (n + 1)."""
    del data
    return {"chance level": Finding(100.0 * 5 / 6)}


@cache
def _json(data: Path, path: str) -> Any:
    return data_folder(data).read_json(path)


def _nodes(
    node: dict[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    path = (*above, str(node.get("name", "")))
    yield node, path
    for child in node.get("classes") or ():
        yield from _nodes(child, path)


def _leaves(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (found for found, _ in _nodes(node) if not found.get("classes"))


# TIFA160.


DSG_PALI = "dsg_tifa160/vqa_answers/pali17b_dsg.csv"
_DSG_COLUMNS = (
    "dsg_prompt_split", "t2i_model", "item_id", "question_id", "dependency_id", "answer",
)  # fmt: skip
TIFA160_METRICS = (
    "meteor", "bleu", "rouge", "spice", "clipscore_vitb32", "tifa_vilt", "tifa_git-large",
    "tifa_ofa-large", "tifa_blip2-flant5xl", "tifa_mplug-large",
)  # fmt: skip


@cache
def _tifa160_images(data: Path) -> pd.DataFrame:
    """Metric scores and `human_avg` of the 800 images."""
    return pd.DataFrame(data_folder(data).read_json(HUMAN).values())


def spearman_is_pearson(data: Path) -> Findings:
    """Spearman of each metric; the mistake is to correlate the raw values."""
    images = _tifa160_images(data)
    gold = images["human_avg"]
    return {
        name: Finding(
            correlation.spearman(images[name], gold), correlation.pearson(images[name], gold)
        )
        for name in TIFA160_METRICS
    }


def rounded_twice(data: Path) -> Findings:
    """Kendall's tau-b of ROUGE; the mistake is to round to three digits, then to two."""
    images = _tifa160_images(data)
    tau = correlation.kendall(images["rouge"], images["human_avg"])
    three = Decimal(tau).quantize(Decimal("0.001"), ROUND_HALF_UP)
    return {"rouge": Finding(tau, float(three.quantize(Decimal("0.01"), ROUND_HALF_UP)))}


def number_of_images(data: Path) -> Findings:
    """Image-prompt pairs of the benchmark; the mistake is to count its prompts."""
    images = _tifa160_images(data)
    return {"pairs": Finding(len(images), images["text_id"].nunique())}


def exchanged_arguments(data: Path) -> Findings:
    """PLCC with the curve fitted from scores to ratings; the script fits ratings to scores."""
    images = _tifa160_images(data)
    gold = images["human_avg"]
    return {
        name: Finding(
            logistic.plcc(images[name], gold).value, logistic.plcc(gold, images[name]).value
        )
        for name in ("clipscore_vitb32", "tifa_mplug-large")
    }


def unparsable_dependency(data: Path) -> Findings:
    """Spearman of DSG (PaLI-17B) with the dependencies of prompt tifa160_67 mended."""
    gold = _dsg_likert(data)
    return {
        "dsg_pali-17b": Finding(
            correlation.spearman(image_scores(_answered(data, "repair"), "dsg", "zero"), gold),
            correlation.spearman(image_scores(_answered(data, "independent"), "dsg", "zero"), gold),
        )
    }


def unanswered_prompt(data: Path) -> Findings:
    """Spearman of DSG (PaLI-17B) without the five images that have no answers and score 0."""
    gold = _dsg_likert(data)
    answered = _answered(data, "independent")
    scores = image_scores(answered, "dsg", "zero")
    kept = answered.n_answers > 0
    return {
        "dsg_pali-17b": Finding(
            correlation.spearman(scores[kept], gold[kept]), correlation.spearman(scores, gold)
        )
    }


@cache
def _rated_images(data: Path) -> pd.DataFrame:
    return TIFA160.answers(data).images


def _dsg_likert(data: Path) -> pd.Series:
    """Mean Likert rating of the 800 images by pair_id, in the benchmark's order."""
    return _rated_images(data).set_index("pair_id")["dsg_likert"]


def _answered(data: Path, unparsable: Unparsable) -> AnsweredQuestions:
    """PaLI-17B's answers to the DSG questions about the 800 images, in the benchmark's order."""
    folder = data_folder(data)
    table = folder.read_table(DSG_PALI, _DSG_COLUMNS)
    table = table[table["dsg_prompt_split"] == "tifa160"]
    items = folder.read_table(LIKERT, ("item_id", "source_id")).drop_duplicates("item_id")
    answers = pd.DataFrame(
        {
            "text_id": table["item_id"].map(items.set_index("item_id")["source_id"]),
            "question_id": table["question_id"],
            "parents": table["dependency_id"],
        }
    )
    answers["pair_id"] = answers["text_id"] + "_" + table["t2i_model"].map(MODEL_NAMES)
    questions = answers.drop_duplicates(["text_id", "question_id"])
    pairs = _rated_images(data).rename(columns={"prompt_id": "text_id"})
    return AnsweredQuestions.of(
        answers,
        equals_yes(table["answer"]),
        QuestionGraph.of(questions, unparsable=unparsable, source=DSG_PALI),
        pairs[["pair_id", "text_id"]],
        source=DSG_PALI,
    )


# T2IScoreScore.


SCORES = "ts2/scores.csv"
DSG_BLIP1 = "ts2/per_question_dsg_blip1.csv"
SPLITS = ("all", "synth", "nat", "real")
_Key = tuple[str, str, str, str]


@cache
def _released(data: Path) -> tuple[Ts2Answers, ScoreTable]:
    answers = Ts2().answers(data)
    return answers, read_scores(data_folder(data).path(SCORES), Ts2(), answers)


def _ts2_rows(scores: ScoreTable, answers: Ts2Answers) -> Mapping[_Key, Row]:
    found = Ts2().evaluate(scores, answers, n_resamples=1).rows
    return {(r.metric, str(r.split), r.measure, str(r.variant)): r for r in found if not r.skill}


@cache
def _released_rows(data: Path) -> Mapping[_Key, Row]:
    answers, scores = _released(data)
    return _ts2_rows(scores, answers)


def delta_subsets(data: Path) -> Findings:
    """Delta over the graphs of each subset, and the cell of the slipped spreadsheet."""
    rows = _released_rows(data)
    return {
        f"{metric}, {split}": Finding(
            rows[metric, split, "delta", "paper"].value,
            rows[metric, split, "delta", "as_printed"].value,
        )
        for metric in _released(data)[1].metrics
        for split in SPLITS[1:]
    }


def llmscore_exchange(data: Path) -> Findings:
    """Delta over all graphs of the two LLMScore columns; the mistake is to exchange them."""
    rows = _released_rows(data)
    own = {name: rows[name, "all", "delta", "paper"].value for name in _LLMSCORES}
    return {name: Finding(own[name], own[other]) for name, other in _LLMSCORES.items()}


def stray_quotes(data: Path) -> Findings:
    """Delta of `llmscore_over` with the spread over all 2,840 cells instead of 2,834."""
    values = _released_values(data)
    column = values.metrics.index("llmscore_over")
    mean = float(values.values["delta", "paper"][_published(values), column].mean())
    sigma = {variant: float(values.sigma[variant][column]) for variant in values.sigma}
    return {"llmscore_over": Finding(mean / sigma["equation"], mean / sigma["paper"])}


def last_graph(data: Path) -> Findings:
    """Rank of CLIPScore over all 165 graphs, and over the 164 of the table."""
    values = _released_values(data)
    ranks = values.values["rank", "paper"][:, values.metrics.index("clipscore")]
    return {"clipscore": Finding(float(ranks.mean()), float(ranks[_published(values)].mean()))}


def equations(data: Path) -> Findings:
    """Rank, separation and delta over all graphs by Eqs. 1-5; printed: the table's computation."""
    rows = _released_rows(data)
    return {
        f"{metric}, {measure}": Finding(
            rows[metric, "all", measure, "equation"].value,
            rows[metric, "all", measure, "paper"].value,
        )
        for metric in ("clipscore", "alignscore", "gpt4v_tifa")
        for measure in ("rank", "sep", "delta")
    }


def ranks_of_equation_1(data: Path) -> Findings:
    """The worked example with the ranks of Eq. 1 (ties: the lowest) and with average ranks."""
    del data
    scores, errors = [1.0, 0.5, 0.5, 0.0], [0.0, 1.0, 1.0, 2.0]
    lowest = np.corrcoef(scipy.stats.rankdata(scores, "min"), scipy.stats.rankdata(errors, "min"))[
        0, 1
    ]
    return {"correlation": Finding(float(lowest), float(scipy.stats.spearmanr(scores, errors)[0]))}


def exchanged_halves(data: Path) -> Findings:
    """BLIP-1 on DSG questions under both rules: each half of Table 3 holds the other's figures."""
    answers, scores = _released(data)
    both = pd.DataFrame(
        {"dsg": scores.overall["blip1_dsg"], "tifa": _plain_mean(data, answers)},
        index=scores.overall.index,
    )
    rows = _ts2_rows(ScoreTable(both), answers)
    other = {"tifa": "dsg", "dsg": "tifa"}
    return {
        f"{rule.upper()} accumulation, {measure}, {split}": Finding(
            100.0 * rows[rule, split, measure, "paper"].value,
            100.0 * rows[other[rule], split, measure, "paper"].value,
        )
        for rule in other
        for measure in ("rank", "sep")
        for split in SPLITS
    }


def _plain_mean(data: Path, answers: Ts2Answers) -> pd.Series:
    """Share of correct answers of each image, by pair_id.

    The file names no images: they stand in the order of the metadata, and a new one starts at
    question 0.
    """
    table = data_folder(data).read_table(DSG_BLIP1, ("id", "question_id", "correct"))
    images = np.array(answers.pair_ids)
    table = table.assign(
        text_id=table["id"], pair_id=images[(table["question_id"] == "0").cumsum() - 1]
    )
    questions = table[["text_id", "question_id"]].drop_duplicates()
    answered = AnsweredQuestions.of(
        table,
        stated_correctness(table["correct"]),
        QuestionGraph.of(questions, source=DSG_BLIP1),
        answers.nodes[["pair_id", "graph"]].rename(columns={"graph": "text_id"}),
        source=DSG_BLIP1,
    )
    return image_scores(answered, "mean", "empty")


@cache
def _released_values(data: Path) -> GraphValues:
    answers, scores = _released(data)
    return graph_values(scores, answers)


def _published(values: GraphValues) -> list[int]:
    return [values.graphs.index(str(number)) for number in range(N_GRAPHS)]


_LLMSCORES = {"llmscore_ec": "llmscore_over", "llmscore_over": "llmscore_ec"}


RECOMPUTE: dict[str, Recompute] = {
    "gecko-sxs-alpha": gecko_alpha,
    "evalmuse-readme-table-10": evalmuse_readme,
    "evalmuse-vq2-overall": evalmuse_vq2,
    "gecko-release": gecko_release,
    "evalmuse-199-prompts": evalmuse_prompts,
    "genai-out-of-range-ratings": genai_ratings,
    "croc-syn-properties": croc_properties,
    "croc-syn-script-modes": croc_modes,
    "croc-syn-chance": croc_chance,
    "tifa-spearman-is-pearson": spearman_is_pearson,
    "tifa-rouge-rounded-twice": rounded_twice,
    "gecko-tifa160-size": number_of_images,
    "ntire-exchanged-arguments": exchanged_arguments,
    "dsg-unparsable-dependency": unparsable_dependency,
    "dsg-unanswered-prompt": unanswered_prompt,
    "ts2-delta-subsets": delta_subsets,
    "ts2-llmscore-exchange": llmscore_exchange,
    "ts2-stray-quotes": stray_quotes,
    "ts2-last-graph": last_graph,
    "ts2-equations": equations,
    "ts2-ranks-of-ties": ranks_of_equation_1,
    "ts2-table-3-halves": exchanged_halves,
}


# Recomputation of an erratum beside what was printed, from files that are checked first.


_HUB = "https://huggingface.co/datasets"


def check_data(entry: Erratum, data: Path | None) -> None:
    """Make sure that every file an erratum reads is there and is the released one."""
    folder = data_folder(data)
    missing = [files()[path] for path in entry.data if not folder.has(path)]
    if missing:
        raise _missing(entry, missing, data)
    for path in entry.data:
        folder.path(path)  # it then counts as read, and its hash is compared
    folder.verified()


def address(file: DataFile) -> str:
    """The address of a file for download; empty for one that has none."""
    if not file.repo:
        return file.url
    return f"{_HUB}/{file.repo}/resolve/{file.revision or 'main'}/{file.name_in_repo}"


def _missing(entry: Erratum, missing: list[DataFile], data: Path | None) -> SubmitterError:
    names = ", ".join(file.path for file in missing)
    if data is None:
        where, remedy = "no folder of data was given", "Name it with --data or ASSAY_DATA. "
    else:
        where, remedy = f"{data} does not have all of it", ""
    ways = [
        file.supplied
        or f"Download {address(file)} and put it at {file.path} in the folder of data."
        for file in missing
    ]
    return SubmitterError(
        "data_missing", f"{entry.id} is recomputed from {names}; {where}.", remedy + " ".join(ways)
    )


@dataclass(frozen=True)
class RecomputedCell:
    """A cell of an erratum beside what the data give."""

    label: str  # as in the erratum
    printed: str  # as in the erratum
    correct: str  # as in the erratum
    recomputed: float  # the figure from the data
    mistake: float | None  # what the mistaken computation gives, or None where it is not known

    @property
    def rounded(self) -> str:
        """The recomputed figure with the digits of `correct`."""
        return f"{self.recomputed:.{_digits(self.correct)}f}"

    @property
    def confirmed(self) -> bool:
        """True where the recomputed figure is the correct one of the erratum."""
        return self.rounded == self.correct

    @property
    def explained(self) -> bool | None:
        """True where the mistaken computation gives the printed figure; None where unknown."""
        if self.mistake is None:
            return None
        half = 0.5 * 10.0 ** -_digits(self.printed)
        return abs(self.mistake - float(self.printed)) <= half + 1e-9


def recompute(entry: Erratum, data: Path | None) -> tuple[RecomputedCell, ...]:
    """Compute the figures of an erratum from public data."""
    if not entry.recompute:
        raise SubmitterError(
            "not_recomputable",
            f"{entry.id!r} is not recomputed here: {entry.why}",
            "`python -m benchmarks.errata` lists which errata are recomputed.",
        )
    check_data(entry, data)
    findings = RECOMPUTE[entry.id](Path() if data is None else data)
    labels = [cell.label for cell in entry.cells]
    if set(findings) != set(labels):
        differing = ", ".join(sorted(set(findings) ^ set(labels)))
        raise PlatformError("labels_differ", f"{entry.id}: only one side has {differing}.")
    return tuple(
        RecomputedCell(
            label=cell.label,
            printed=cell.printed,
            correct=cell.correct,
            recomputed=findings[cell.label].value,
            mistake=findings[cell.label].mistake,
        )
        for cell in entry.cells
    )


def _digits(figure: str) -> int:
    return len(figure.partition(".")[2])
