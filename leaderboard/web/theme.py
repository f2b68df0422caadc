"""Theme of Gradio's own components. Fonts are the system's: none is fetched."""

from __future__ import annotations

import gradio as gr

_SANS = ("-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "Liberation Mono", "monospace")


def theme() -> gr.themes.Base:
    """The theme to be given to `launch`; its colours are the tokens of the style sheet."""
    plain = {
        "background_fill_primary": "var(--as-panel)",
        "background_fill_secondary": "var(--as-sunk)",
        "block_background_fill": "transparent",
        "block_label_background_fill": "transparent",
        "block_label_text_color": "var(--as-muted)",
        "block_title_text_color": "var(--as-muted)",
        "block_info_text_color": "var(--as-muted)",
        "body_text_color": "var(--as-ink)",
        "body_text_color_subdued": "var(--as-muted)",
        "border_color_primary": "var(--as-line)",
        "border_color_accent": "var(--as-accent)",
        "button_primary_background_fill": "var(--as-fill)",
        "button_primary_background_fill_hover": "var(--as-fill-hover)",
        "button_primary_text_color": "var(--as-on-fill)",
        "color_accent_soft": "var(--as-accent-soft)",
        "input_background_fill": "var(--as-panel)",
        "input_border_color_focus": "var(--as-accent)",
        "input_placeholder_color": "var(--as-muted)",
        "link_text_color": "var(--as-accent)",
        "link_text_color_hover": "var(--as-accent)",
        "link_text_color_visited": "var(--as-accent)",
        "link_text_color_active": "var(--as-accent)",
        "slider_color": "var(--as-accent)",
    }
    # The first paint comes before the style sheet's tokens can be asked for.
    both = {"body_background_fill": "#f7f9fb", "body_background_fill_dark": "#0d1217"}
    return gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        neutral_hue=gr.themes.colors.slate,
        text_size=gr.themes.sizes.text_sm,
        radius_size=gr.themes.sizes.radius_sm,
        spacing_size=gr.themes.sizes.spacing_sm,
        font=[gr.themes.Font(name) for name in _SANS],
        font_mono=[gr.themes.Font(name) for name in _MONO],
    ).set(
        block_border_width="0px",
        **plain,
        **{f"{name}_dark": value for name, value in plain.items()},
        **both,
    )
