"""Instructions to language models. Change `WORDING` with any text: it is kept with questions."""

from __future__ import annotations

WORDING = "assay-2"

ELEMENT_TYPES = (
    "object, human, animal, food, activity, attribute, counting, color, material, spatial, "
    "location, shape, other"
)

TIFA = f"""\
Below is a description of a picture. Write questions that someone who sees only the picture could \
answer, so that together the answers show whether everything in the description is there.

Go through the description part by part: things, living beings, food, actions, colors, materials, \
shapes, numbers, places, positions. For each part write a heading and one or two questions below \
it. Take yes/no questions (choices: yes, no; the description makes the answer yes) and questions \
with four short choices, exactly one of which fits the description. Use nothing that the \
description does not say.

Keep exactly to these lines, without numbering or remarks:
About <part> (<type>):
Q: <question>
Choices: <choice>, <choice>, ...
A: <the choice that fits>

Types: {ELEMENT_TYPES}.

Description: Three green bottles stand beside a wooden radio.
About bottles (object):
Q: are there bottles?
Choices: yes, no
A: yes
About three bottles (counting):
Q: how many bottles are there?
Choices: 1, 2, 3, 5
A: 3
About green (color):
Q: what color are the bottles?
Choices: green, brown, blue, clear
A: green
About radio (object):
Q: is there a radio?
Choices: yes, no
A: yes
About wooden (material):
Q: what is the radio made of?
Choices: wood, plastic, metal, glass
A: wood
About beside (spatial):
Q: do the bottles stand beside the radio?
Choices: yes, no
A: yes

Description: {{prompt}}
"""

TIFA_VERIFY = """\
Answer from the text alone, with one of the choices and nothing else.

Text: {prompt}
Question: {question}
Choices: {choices}
Answer:"""

DSG_TUPLES = """\
Take the description of a picture apart into the smallest statements that can each be true or \
false of a picture. Each statement is a kind and, in brackets, the words it is about. Kinds:
entity - whole; entity - part; attribute - color; attribute - material; attribute - shape; \
attribute - size; attribute - state; attribute - type; attribute - text rendering; \
other - count; relation - spatial; action; global - style
Number the statements from 1, one a line, as: number | statement. Say nothing twice, and nothing \
that the description does not say.

Description: an oil painting of a sleeping white cat under a table
1 | global - style (oil painting)
2 | entity - whole (cat)
3 | entity - whole (table)
4 | attribute - color (cat, white)
5 | attribute - state (cat, sleeping)
6 | relation - spatial (cat, table, under)

Description: {prompt}
"""

DSG_QUESTIONS = """\
Here is a description of a picture and a numbered list of statements about it. Turn each statement \
into one short question about the picture to which yes means that the statement holds. One a line, \
as: number | question, with the numbers of the list.

Description: an oil painting of a sleeping white cat under a table
1 | global - style (oil painting)
2 | entity - whole (cat)
3 | relation - spatial (cat, table, under)
Questions:
1 | Is this an oil painting?
2 | Is there a cat?
3 | Is the cat under the table?

Description: {prompt}
{tuples}
Questions:
"""

DSG_DEPENDENCIES = """\
Here is a description of a picture and a numbered list of statements about it. For each statement \
say which others must hold for it to make sense at all: a cat cannot be white where there is no \
cat. One a line, as: number | numbers joined by commas, or 0 where it needs none.

Description: an oil painting of a sleeping white cat under a table
1 | global - style (oil painting)
2 | entity - whole (cat)
3 | entity - whole (table)
4 | attribute - color (cat, white)
5 | relation - spatial (cat, table, under)
Needs:
1 | 0
2 | 0
3 | 0
4 | 2
5 | 2,3

Description: {prompt}
{tuples}
Needs:
"""

GECKO_COVERAGE = """\
Copy the description of a picture word by word, and put every word or group of words that a \
picture could show into square brackets, each with a number in curly brackets before it, from 1. \
Leave words that no picture shows, such as articles, outside. Change nothing else.

Description: Two small boats drift past a red lighthouse.
Marked: {1}[Two] {2}[small] {3}[boats] {4}[drift past] a {5}[red] {6}[lighthouse].

Description: {prompt}
Marked:"""

GECKO_QUESTIONS = """\
Here is a description of a picture in which groups of words are numbered. For each number write \
one question about the picture whose answer is what these words say, with four short choices, \
exactly one of which fits. One a line, keeping to this form:
{1} Q: <question> Choices: <choice>, <choice>, <choice>, <choice> A: <the choice that fits>

Marked: {1}[Two] {2}[boats] {3}[drift past] a {4}[red] {5}[lighthouse].
{1} Q: How many boats are there? Choices: one, two, four, seven A: two
{2} Q: What is on the water? Choices: boats, swimmers, ducks, ice A: boats
{3} Q: What do the boats do? Choices: drift past, sink, burn, lie on land A: drift past
{4} Q: What color is the lighthouse? Choices: red, white, yellow, black A: red
{5} Q: What do the boats pass? Choices: lighthouse, bridge, castle, island A: lighthouse

Marked: {coverage}
"""

EVALMUSE_ELEMENTS = f"""\
List the elements of the description of a picture: things, living beings, numbers, colors, \
materials, shapes, actions, places and positions. Use the description's own words. One a line, as: \
element (type). Types: {ELEMENT_TYPES}.

Description: two cups on a blue wooden shelf
two cups (counting)
cups (object)
shelf (object)
blue (color)
wooden (material)
on (spatial)

Description: {{prompt}}
"""

EVALMUSE_QUESTION = """\
Write one yes/no question with which someone who sees only the picture can tell whether the \
element of the description is shown as the description says. Give the answer that the description \
implies; it is no only where the description rules the element out. Two lines: Q: and A:.

Description: two cups on a blue wooden shelf
Element: blue (color)
Q: Is the shelf blue?
A: yes

Description: {prompt}
Element: {element}
"""

AGAIN = """\
{asked}
An earlier answer could not be used:
{faults}
Answer again, in the form asked for.
"""

SPANS = """\
List the noun phrases of the sentence, in its order and in its own words, one a line, each with its \
article and adjectives. Nothing else.

Sentence: a small dog sleeps on the red sofa
a small dog
the red sofa

Sentence: {prompt}
"""

VQ2_QUESTIONS = """\
Write up to {count} different questions about a picture of what the sentence says, to each of \
which the answer is exactly the given words. One a line, nothing else.

Sentence: a small dog sleeps on the red sofa
Answer: the red sofa
What does the dog sleep on?
Where is the dog?

Sentence: {prompt}
Answer: {answer}
"""
