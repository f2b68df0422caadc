"""Simulations of votes: what drawing pairs and prompts saves, and how often intervals hold.

    python -m tools.vote_study [--runs 160] [--seed 0]

Votes are simulated from known strengths and rates, drawn and estimated by the code of the boards.
The tables answer: how well are models ordered after so many votes, by the rule that draws the
pairs; how far off is a win rate when prompts are drawn; how often do 95 % intervals hold what they
should where prompts and raters have tastes, at one look and at every look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from scipy import stats
from scipy.special import expit, roots_hermitenorm

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.bradley_terry import Posterior, posterior, win_matrix
from benchmarks.statistics.vote_sampling import UNIFORM_SHARE, pair_chances
from benchmarks.statistics.votes import Rate, Votes, assisted_rate, hajek_rate, vote_board

N_MODELS = 12
SPREAD = 0.7
"""Standard deviation of the models' strengths, in log odds."""
LOOKS = (660, 1320, 1980, 2640)
N_PROMPTS = 5000
N_VOTES = 300

PairRule = Literal["uniform", "information", "close"]
PAIR_RULES: tuple[PairRule, ...] = ("uniform", "information", "close")


def rule_chances(rule: PairRule, found: Posterior) -> FloatArray:
    """Chance of each pair by a rule, shape (M, M), above the diagonal."""
    if rule == "close":
        return pair_chances(found)
    pairs = np.triu(np.ones(found.variances.shape), 1)
    uniform: FloatArray = pairs / pairs.sum()
    if rule == "uniform":
        return uniform
    chance = expit(found.contrasts)
    gain = found.variances * chance * (1.0 - chance) * pairs
    gain /= 1.0 + gain
    chances: FloatArray = (1.0 - UNIFORM_SHARE) * gain / gain.sum() + UNIFORM_SHARE * uniform
    return chances


@dataclass(frozen=True)
class Ordering:
    """What the votes of one run found after each number of votes."""

    tau: FloatArray  # Kendall's tau of estimated with true strengths
    covered: FloatArray  # share of contrasts inside Wald's 95 % intervals


def ordering(rule: PairRule, rng: np.random.Generator, every: int = 5) -> Ordering:
    """One run of independent votes; chances are computed anew after every few."""
    truth = rng.normal(0.0, SPREAD, N_MODELS)
    wins = np.zeros((N_MODELS, N_MODELS))
    found = posterior(wins)
    tau, covered = [], []
    above = np.triu_indices(N_MODELS, 1)
    contrasts = (truth[:, None] - truth)[above]
    for done in range(0, LOOKS[-1], every):
        places = rng.choice(wins.size, every, p=rule_chances(rule, found).ravel())
        first, second = np.divmod(places, N_MODELS)
        won = (rng.random(every) < expit(truth[first] - truth[second])).astype(np.float64)
        wins += win_matrix(first, second, won, N_MODELS)
        found = posterior(wins, start=found.strengths)
        if done + every in LOOKS:
            tau.append(float(stats.kendalltau(found.strengths, truth).statistic))
            off = np.abs(found.contrasts[above] - contrasts)
            covered.append(float((off < 1.96 * np.sqrt(found.variances[above])).mean()))
    return Ordering(np.array(tau), np.array(covered))


@dataclass(frozen=True)
class Population:
    """Prompts of a pair of models: true win rates, and those that two metrics predict."""

    rates: FloatArray  # p, shape (K,)
    predicted: FloatArray  # q of the metric that helps, calibrated
    other: FloatArray  # of another metric as good, with errors of its own

    @classmethod
    def of(cls, correlation: float, rng: np.random.Generator) -> Population:
        """Rates of mean 0.70, logistic of normal; the prediction is the mean rate given a signal.

        `correlation`: about that of p and q.
        """
        signal, second, noise = rng.normal(size=(3, N_PROMPTS))
        share = correlation + 0.02
        level, spread = 1.31, 1.81
        rest = np.sqrt(1.0 - share**2)
        known = share * signal
        points, weights = roots_hermitenorm(30)

        def calibrated(z: FloatArray) -> FloatArray:
            curve = expit(level + spread * (z[:, None] + rest * points))
            means: FloatArray = np.asarray(curve @ (weights / weights.sum()), np.float64)
            return means

        own = known + rest * noise
        # Another signal of the same correlation with what decides the rate.
        return cls(
            expit(level + spread * own),
            calibrated(known),
            calibrated(share * (share * own + rest * second)),
        )


def prompt_chances(predicted: FloatArray, uniform: float = UNIFORM_SHARE) -> FloatArray:
    """Chance of each prompt in one draw for a pair of models: the larger, the less a metric is sure.

    (1 - e) h + e / K with h in proportion to √(q (1 - q)), the best choice where q is calibrated
    (Neyman's allocation). n draws with replacement include a prompt n times that often.

    `predicted` q (K,), chance that the first model's image is preferred, 0..1, by a metric;
    `uniform` e: share that all prompts have alike; below 0.2 a wrong metric costs much precision.
    Returns: shape (K,), summing to 1.
    Raises: ValueError for predictions that are missing or outside 0..1.
    """
    if not predicted.size or not ((predicted >= 0.0) & (predicted <= 1.0)).all():
        raise ValueError("prompts are drawn by predicted win rates in 0..1, one of each prompt")
    spread = np.sqrt(predicted * (1.0 - predicted))
    total = spread.sum()
    shares = spread / total if total > 0.0 else np.full(len(spread), 1.0 / len(spread))
    chances: FloatArray = (1.0 - uniform) * shares + uniform / len(spread)
    return chances


def win_rates(population: Population, rng: np.random.Generator) -> dict[str, Rate]:
    """Estimates of the mean win rate from so many votes, by design and estimator."""
    q, everyone = population.predicted, np.full(N_PROMPTS, 1.0 / N_PROMPTS)
    unsure = prompt_chances(q)
    apart = np.abs(q - population.other)
    disagree = (1.0 - UNIFORM_SHARE) * _top_tenth(apart) + UNIFORM_SHARE * everyone
    # Of a metric that is too sure, and wrong by a level.
    wrong = expit(2.5 * (np.log(q) - np.log1p(-q)) - 1.0)
    found = {}
    for name, chances, predicted in (
        ("uniform", everyone, None),
        ("uniform, model-assisted", everyone, q),
        ("unsure, Hajek", unsure, None),
        ("unsure, model-assisted", unsure, q),
        ("unsure, model-assisted, mis-calibrated", prompt_chances(wrong), wrong),
        ("metrics disagree, Hajek", disagree, None),
    ):
        drawn = rng.choice(N_PROMPTS, N_VOTES, p=chances)
        won = (rng.random(N_VOTES) < population.rates[drawn]).astype(np.float64)
        votes = won, chances[drawn], drawn, np.arange(N_VOTES)
        if predicted is None:
            found[name] = hajek_rate(*votes)
        else:
            found[name] = assisted_rate(won, predicted[drawn], *votes[1:], of_all=predicted)
    for name, chances in (
        ("closest tenth, no weights", _top_tenth(-np.abs(q - 0.5))),
        ("most decided tenth, no weights", _top_tenth(np.abs(q - 0.5))),
    ):
        drawn = rng.choice(N_PROMPTS, N_VOTES, p=chances)
        won = (rng.random(N_VOTES) < population.rates[drawn]).astype(np.float64)
        found[name] = hajek_rate(won, np.ones(N_VOTES), drawn, np.arange(N_VOTES))
    return found


def _top_tenth(values: FloatArray) -> FloatArray:
    """Chances that are equal for the tenth of largest values, and 0 for the others."""
    chosen = np.argsort(-values)[: len(values) // 10]
    chances: FloatArray = np.zeros(len(values))
    chances[chosen] = 1.0 / chosen.size
    return chances


@dataclass(frozen=True)
class Tastes:
    """Votes whose prompts and raters prefer some of eight models beyond their strengths."""

    prompts: int
    raters: int
    votes: int
    of_prompts: float  # standard deviation of a prompt's taste for a model, in log odds
    of_raters: float

    def drawn(self, truth: FloatArray, rng: np.random.Generator) -> Votes:
        """Votes of raters of whom some are more eager than others."""
        n = len(truth)
        prompts = rng.integers(0, self.prompts, self.votes)
        raters = rng.choice(self.raters, self.votes, p=rng.dirichlet(np.full(self.raters, 2.0)))
        first = rng.integers(0, n, self.votes)
        second = (first + rng.integers(1, n, self.votes)) % n
        taste = rng.normal(0.0, self.of_prompts, (self.prompts, n))[prompts]
        taste = truth + taste + rng.normal(0.0, self.of_raters, (self.raters, n))[raters]
        lines = np.arange(self.votes)
        won = rng.random(self.votes) < expit(taste[lines, first] - taste[lines, second])
        never, alike = np.zeros(self.votes, bool), np.ones(self.votes)
        return Votes(first, second, won.astype(np.float64), never, prompts, raters, alike)

    def limit(self, truth: FloatArray) -> FloatArray:
        """Strengths that ever more votes of ever more prompts and raters would give."""
        points, weights = roots_hermitenorm(40)
        spread = np.sqrt(2.0 * (self.of_prompts**2 + self.of_raters**2))
        means = expit((truth[:, None] - truth)[..., None] + spread * points) @ weights
        wins = means / weights.sum()
        np.fill_diagonal(wins, 0.0)
        return posterior(wins * 1e6).strengths


TASTES = (
    Tastes(200, 20, 600, 0.0, 0.0),
    Tastes(200, 20, 600, 0.5, 0.5),
    Tastes(200, 6, 600, 0.5, 0.3),
    Tastes(50, 20, 600, 0.8, 0.3),
    Tastes(1000, 10, 2000, 0.3, 0.5),
    Tastes(100, 40, 3000, 0.5, 0.5),
)


def board_coverage(tastes: Tastes, rng: np.random.Generator) -> FloatArray:
    """Of one board: shares of contrasts covered, by posterior and by board; ranks all covered."""
    truth = rng.normal(0.0, SPREAD, 8)
    votes, limit = tastes.drawn(truth, rng), tastes.limit(truth)
    board = vote_board(votes, 8)
    plain = posterior(win_matrix(votes.first, votes.second, votes.won, 8))
    above = np.triu_indices(8, 1)
    off = np.abs(board.differences - (limit[:, None] - limit))[above]
    ranks = stats.rankdata(-truth)
    return np.array(
        [
            (off <= 1.96 * np.sqrt(plain.variances[above])).mean(),
            (off <= board.half_widths[above]).mean(),
            ((board.ranks_low <= ranks) & (ranks <= board.ranks_high)).all(),
        ]
    )


def false_stops(
    rng: np.random.Generator, looks: int = 20, each: int = 60, joined: int = 0
) -> IntArray:
    """Whether any look at two equal models among six, pairs drawn close, finds a difference.

    `joined`: votes among the others before the second of the two is there; so many more are
    planned.
    Returns: by intervals of one look, and by those of every look.
    """
    truth = rng.normal(0.0, SPREAD, 6)
    truth[1] = truth[0]
    columns = np.empty((0, 3))
    stopped = np.zeros(2, np.intp)
    found = posterior(np.zeros((6, 6)))
    others = np.ones((6, 6), bool)
    others[1, :] = others[:, 1] = False
    sizes = [60] * (joined // 60) + [each] * looks
    for size in sizes:
        early = len(columns) < joined
        chances = pair_chances(found, others if early else None)
        places = rng.choice(36, size, p=chances.ravel())
        first, second = np.divmod(places, 6)
        won = rng.random(size) < expit(truth[first] - truth[second])
        columns = np.vstack([columns, np.column_stack([first, second, won])])
        one, other = columns[:, 0].astype(np.intp), columns[:, 1].astype(np.intp)
        found = posterior(win_matrix(one, other, columns[:, 2], 6), start=found.strengths)
        if early:
            continue
        numbers, never = np.arange(len(columns)), np.zeros(len(columns), bool)
        votes = Votes(one, other, columns[:, 2], never, numbers, numbers, np.ones(len(columns)))
        for place, planned in enumerate((None, joined + looks * each)):
            board = vote_board(votes, 6, planned=planned)
            stopped[place] |= abs(board.differences[0, 1]) > board.half_widths[0, 1]
    return stopped


def tables(runs: int, seed: int) -> Iterator[Table]:
    """The tables of the study; runs of win rates and boards are five times as many."""
    table = Table("rule", *map(str, LOOKS), "coverage", title="Kendall's tau after votes", box=None)
    for rule in PAIR_RULES:
        found = [ordering(rule, rng) for rng in _generators(runs, seed)]
        taus = np.array([run.tau for run in found])
        table.add_row(
            rule,
            *(_with_error(of_look) for of_look in taus.T),
            _with_error(np.array([run.covered.mean() for run in found])),
        )
    yield table
    for correlation in (0.8, 0.41):
        yield _rates_table(correlation, 5 * runs, seed)
    table = Table(
        "prompts, raters, votes, tastes", "posterior", "board", "ranks", title="Coverage", box=None
    )
    for tastes in TASTES:
        covered = [board_coverage(tastes, rng) for rng in _generators(5 * runs, seed)]
        name = f"{tastes.prompts}, {tastes.raters}, {tastes.votes}, {tastes.of_prompts} and "
        table.add_row(f"{name}{tastes.of_raters}", *map(_with_error, np.transpose(covered)))
    yield table
    table = Table(
        "joined after", "one look", "every look", title="False findings in 20 looks", box=None
    )
    for joined, each in ((0, 60), (600, 30)):
        stops = [false_stops(rng, each=each, joined=joined) for rng in _generators(5 * runs, seed)]
        table.add_row(f"{joined} votes", *map(_with_error, np.transpose(stops)))
    yield table


def _rates_table(correlation: float, runs: int, seed: int) -> Table:
    population = Population.of(correlation, np.random.default_rng(seed))
    truth = float(population.rates.mean())
    reached = float(np.corrcoef(population.rates, population.predicted)[0, 1])
    table = Table(
        "draw of prompts and estimate",
        "mean",
        "RMSE",
        "coverage",
        title=f"Win rate {truth:.3f}, {N_VOTES} votes, metric's correlation {reached:.2f}",
        box=None,
    )
    found = [win_rates(population, rng) for rng in _generators(runs, seed)]
    for name in found[0]:
        rates = [run[name] for run in found]
        off = np.array([rate.value for rate in rates]) - truth
        held = np.array([rate.low <= truth <= rate.high for rate in rates], np.float64)
        rmse = np.sqrt((off**2).mean())
        error = (off**2).std() / np.sqrt(runs) / (2.0 * rmse)
        table.add_row(
            name, f"{truth + off.mean():.3f}", f"{rmse:.4f} ± {error:.4f}", _with_error(held)
        )
    return table


def _generators(runs: int, seed: int) -> list[np.random.Generator]:
    return [np.random.default_rng(each) for each in np.random.SeedSequence(seed).spawn(runs)]


def _with_error(values: FloatArray) -> str:
    return f"{values.mean():.3f} ± {values.std() / np.sqrt(len(values)):.3f}"


def main(
    runs: Annotated[int, typer.Option(help="Runs of each simulation.")] = 160,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
) -> None:
    """Print what the draw of pairs and prompts saves, and how often intervals hold."""
    console = Console()
    for table in tables(runs, seed):
        console.print(table)


if __name__ == "__main__":
    typer.run(main)
