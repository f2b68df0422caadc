"""The properties of CROC_syn: leaves of the authors' taxonomy below their top-level nodes."""

from __future__ import annotations

NODES: dict[str, tuple[str, ...]] = {
    "Domain": (
        "Photography",
        "Illustration",
        "3D Rendering",
        "Anime",
        "Mixed Media",
        "Painting",
    ),
    "Action": (
        "Pointing",
        "Waving",
        "Facial Expression",
        "Nodding",
        "Running",
        "Dancing",
        "Jumping",
        "Swimming",
    ),
    "Spatial": (
        "Foreground Emphasis",
        "Midground Placement",
        "Background Silhouette",
        "Close Proximity",
        "Overlapping Forms",
        "Left-of",
        "Right-of",
        "Above",
        "Below",
        "Inside",
    ),
    "Scale": (
        "Giant Figures",
        "Miniature Objects",
        "Distorted Perspective",
        "Life-Size Representation",
        "Proportional Figures",
        "Consistent Depth",
    ),
    "Color": (
        "Monochrome",
        "Vibrant",
        "Red",
        "Blue",
        "Green",
        "Yellow",
        "Purple",
        "Orange",
        "Pink",
        "Brown",
        "Black",
        "White",
    ),
    "Texture": ("Smooth", "Rough", "Reflective"),
    "Shape": ("Geometric", "Organic"),
    "Style": ("Realistic", "Impressionistic", "Minimalist"),
    "Material": ("Metallic", "Wooden", "Fabric", "Plastic", "Glass", "Stone", "Paper"),
    "Lighting": ("Natural Light", "Artificial Light", "High Contrast"),
    "Layout": ("Centered", "Rule of Thirds", "Asymmetrical"),
    "Error Types": ("Negation",),
}
"""Top-level node, spelt as in `taxonomy.json`, to the 64 properties of the paper."""

NOT_IN_PAPER: tuple[str, ...] = (
    "Composition",
    "Color Harmony",
    "Artistic Impact",
    "Brief",
    "Moderate",
    "Extended",
    "Simple",
    "Intermediate",
    "Advanced",
    "Omission",
    "Pronoun Error",
    "Word Jumble",
    "Spelling Errors",
    "Subject-verb disagreement",
)
"""Further leaves that the released generator uses; they count in no property."""

_NODE_OF = {
    leaf.replace(" ", "_"): node
    for node, leaves in (*NODES.items(), ("", NOT_IN_PAPER))
    for leaf in leaves
}


def node_of(property_: str) -> str | None:
    """Top-level node of a property as prompt ids spell it, e.g. `Rule_of_Thirds`.

    Returns:
        A key of NODES; empty for a leaf that the paper leaves out; None where it is no leaf.
    """
    return _NODE_OF.get(property_)
