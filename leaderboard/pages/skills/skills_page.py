"""Page of metrics for a skill, under weights and a budget of the visitor's; all in the link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from benchmarks.schema import Card
from leaderboard.pages.outage import or_unread
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.markup import page
from leaderboard.pages.shown.widgets import COPY_LINK, QUIET, SHOW_LINK, html
from leaderboard.pages.skills.answer import answer_view
from leaderboard.pages.skills.scatter import cost_chart
from leaderboard.pages.skills.view import (
    HEADER,
    WAITING,
    chooser_view,
    front_view,
    list_view,
    parts_view,
)
from leaderboard.views.skill_choice import (
    COSTS,
    HEAVIEST,
    MOST_SKILLS,
    SECONDS,
    Found,
    SkillsChoice,
    SkillsQuery,
    found_for,
    resolve,
)

_AT_ONCE: dict[str, Any] = {**QUIET, "trigger_mode": "always_last"}
_STEP = 0.1


@dataclass(frozen=True)
class _Controls:
    """What a visitor chooses with, and what shows the choice."""

    ratings: gr.Textbox
    skills: gr.Dropdown
    cost: gr.Radio
    budget: gr.Number
    of_skills: list[gr.Slider]
    of_benchmarks: dict[str, gr.Slider]
    weights: gr.Accordion
    link: gr.Textbox
    answer: gr.HTML
    chart: gr.Plot
    front: gr.HTML
    listed: gr.HTML
    below: gr.HTML

    @property
    def inputs(self) -> list[Any]:
        """In the order of `asked`."""
        chosen = [self.ratings, self.skills, self.cost, self.budget]
        return [*chosen, *self.of_skills, *self.of_benchmarks.values()]

    @property
    def results(self) -> list[Any]:
        """In the order of `_Answers.results`."""
        return [self.link, self.answer, self.front, self.listed]

    @property
    def every(self) -> list[Any]:
        """In the order of `_Answers.everything`."""
        return [*self.inputs, self.weights, *self.results]


def asked(names: Sequence[str], values: Sequence[Any]) -> SkillsQuery:
    """What the controls ask for.

    Args:
        names: the benchmarks, in the order of their controls.
        values: in the order of `_Controls.inputs`; each may be None while it is being changed.
    """
    ratings, skills, cost, budget, *weights = values
    of_skills, of_benchmarks = weights[:MOST_SKILLS], weights[MOST_SKILLS:]
    chosen = list(skills or ())
    named = {
        **dict(zip(chosen, of_skills, strict=False)),
        **dict(zip(names, of_benchmarks, strict=True)),
    }
    return SkillsQuery(
        skill=",".join(chosen),
        weights=",".join(f"{name}:{float(weight or 0.0):.6f}" for name, weight in named.items()),
        cost=cost or "",
        budget="" if not budget else f"{float(budget):.6f}",
        ratings=ratings or "",
    )


@dataclass(frozen=True)
class _Answers:
    """What the page answers to each event."""

    context: Context
    names: tuple[str, ...]

    def opened(self, request: gr.Request) -> tuple[Any, ...]:
        return self.everything(SkillsQuery.from_params(request.query_params))

    def other_skills(self, *values: Any) -> tuple[Any, ...]:
        # Another skill has other benchmarks, whose weights nobody has set yet.
        query = asked(self.names, values)
        return self.everything(replace(query, weights=""))

    def other_weights(self, *values: Any) -> tuple[Any, ...]:
        return self.results(self.choice(asked(self.names, values)))

    def start_again(self, *values: Any) -> tuple[Any, ...]:
        return self.everything(replace(asked(self.names, values), weights="", budget=""))

    def chart(self, link: str) -> dict[str, Any]:
        """Drawn after the answer, which need not wait for Plotly."""
        choice = self.choice(SkillsQuery.from_link(link))
        found = self.found(choice) if choice.skills else None
        figure = cost_chart(found.points, found.front, choice.cost) if found else None
        shown: dict[str, Any] = gr.update(value=figure, visible=figure is not None)
        return shown

    def below(self, link: str) -> str:
        choice = self.choice(SkillsQuery.from_link(link))
        if not choice.skills:
            return ""
        return parts_view(choice, self.found(choice), self.context.reader.view())

    def choice(self, query: SkillsQuery) -> SkillsChoice:
        return resolve(query, self.context.reader.view().boards)

    def found(self, choice: SkillsChoice) -> Found:
        return found_for(
            choice, self.context.prepared_skills.of(self.context.reader.view(), choice.parts)
        )

    def results(self, choice: SkillsChoice) -> tuple[Any, ...]:
        query = choice.query.to_query()
        if not choice.skills:
            view = self.context.reader.view().group(simulated=choice.query.simulated)
            shown = chooser_view(choice, view)
            return query, shown, "", ""
        found = self.found(choice)
        return (
            query,
            answer_view(choice, found),
            front_view(choice, found),
            list_view(choice, found),
        )

    def everything(self, query: SkillsQuery) -> tuple[Any, ...]:
        choice = self.choice(query)
        view = self.context.reader.view()
        options = [(skill.title, key) for key, skill in choice.known.items()]
        some = len(choice.skills) > 1
        of_skills = [_slot(choice, place) for place in range(MOST_SKILLS)]
        of_benchmarks = [_weight(name, choice, view.boards[name].card) for name in self.names]
        return (
            choice.ratings,
            gr.update(choices=options, value=[skill.key for skill in choice.skills]),
            gr.update(value=choice.cost, visible=bool(choice.skills)),
            gr.update(value=choice.budget, visible=bool(choice.skills)),
            *of_skills,
            *of_benchmarks,
            gr.update(visible=some or len(choice.of_benchmarks or {}) > 1),
            *self.results(choice),
        )


def _slot(choice: SkillsChoice, place: int) -> dict[str, Any]:
    """The weight of the chosen skill at a place; only of several is there anything to weigh."""
    shown: dict[str, Any] = gr.update(visible=False, value=1.0)
    if len(choice.skills) > 1 and place < len(choice.skills):
        skill = choice.skills[place]
        value = (choice.of_skills or {})[skill.key]
        shown = gr.update(visible=True, value=value, label=f"Skill: {skill.title}")
    return shown


def _weight(name: str, choice: SkillsChoice, card: Card) -> dict[str, Any]:
    of: Mapping[str, float] = choice.of_benchmarks or {}
    shown: dict[str, Any] = gr.update(visible=False)
    if name in of and len(of) > 1:
        why = (choice.why or {}).get(name, "")
        said = f"{why[0].upper()}{why[1:]}." if why else None
        shown = gr.update(visible=True, value=of[name], info=said, label=card.title)
    return shown


def _slider(label: str, ident: str) -> gr.Slider:
    return gr.Slider(
        0.0, HEAVIEST, value=1.0, step=_STEP, label=label, buttons=[], visible=False,
        elem_id=ident, elem_classes="as-weight", min_width=200,
    )  # fmt: skip


def _controls(context: Context) -> _Controls:
    html(page([HEADER]))
    with gr.Row(elem_classes=["as-choosers", "as-s-choosers"]):
        skills = gr.Dropdown([], value=[], multiselect=True, scale=4,
                             max_choices=MOST_SKILLS, elem_id="as-skill",
                             label="Skills (one, or several together)")  # fmt: skip
        reset = gr.Button("Reset", elem_id="as-reset", size="sm", scale=0, min_width=90)
        copy = gr.Button("Copy link", elem_id="as-copy", size="sm", scale=0, min_width=110)
    with gr.Row(elem_classes=["as-choosers", "as-s-choosers", "as-s-costs"]):
        cost = gr.Radio([(title, key) for key, title in COSTS.items()], value=SECONDS,
                        label="Cost", scale=0, min_width=560, visible=False)  # fmt: skip
        budget = gr.Number(label="At most (empty: any cost)", value=None, minimum=0,
                           scale=0, min_width=220, elem_id="as-budget", visible=False)  # fmt: skip
    with (
        gr.Accordion("Weights", open=False, visible=False, elem_classes="as-unfold") as weights,
        gr.Row(elem_classes="as-weights"),
    ):
        of_skills = [_slider("Skill", f"as-ws-{place}") for place in range(MOST_SKILLS)]
        of_benchmarks = {
            name: _slider(card.title, f"as-w-{name}") for name, card in context.cards.items()
        }
    link = gr.Textbox(visible="hidden", elem_id="as-link")
    ratings = gr.Textbox(visible="hidden")
    answer = html(WAITING)
    chart = gr.Plot(
        label="Accuracy against cost", show_label=False, visible=False, elem_id="as-cost-chart",
        elem_classes="as-chart",
    )  # fmt: skip
    controls = _Controls(
        ratings, skills, cost, budget, of_skills, of_benchmarks, weights, link, answer, chart,
        html(), html(), html(),
    )  # fmt: skip
    copy.click(None, link, js=COPY_LINK, api_visibility="private")
    _wire(controls, _Answers(context, tuple(of_benchmarks)), reset)
    return controls


def _wire(controls: _Controls, answers: _Answers, reset: gr.Button) -> None:
    every, inputs, results = controls.every, controls.inputs, controls.results
    load = gr.context.Context.root_block.load(
        or_unread(answers.opened, every), outputs=every, **QUIET
    )
    moves = [
        controls.cost.input,
        controls.budget.input,
        *(slider.input for slider in (*controls.of_skills, *controls.of_benchmarks.values())),
    ]
    changes = [
        controls.skills.input(answers.other_skills, inputs, every, **QUIET),
        reset.click(answers.start_again, inputs, every, **QUIET),
        gr.on(moves, answers.other_weights, inputs, results, **_AT_ONCE),
    ]
    for change in changes:
        change.then(None, controls.link, js=SHOW_LINK, api_visibility="private")
    for change in (load, *changes):
        drawn = change.then(answers.chart, controls.link, controls.chart, **QUIET)
        # Tiers take longer than the list, which need not wait for them.
        drawn.then(answers.below, controls.link, controls.below, **QUIET)


def _build(context: Context) -> None:
    _controls(context)


PAGE = Page("Skills", "skills", 12, _build)
