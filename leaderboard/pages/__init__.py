"""The web pages, a room for each. A page is one module named `*_page.py` that defines `PAGE`.

Builders of HTML are pure functions of data and know no web framework; the `*_page.py` modules
join them to Gradio components and events.
"""
