"""A record of every stored kind in which each field says something."""

from __future__ import annotations

AT = "2026-01-02T03:04:05.678901Z"
LATER = "2026-01-03T00:00:00Z"
SHA = "0123456789abcdef" * 4

# fmt: off
COST = {
    "pairs": 4, "images": 2, "seconds": 1.5, "pairs_per_s": 2.6666666666666665,
    "peak_memory_bytes": 1048576, "calls": 3, "images_decoded": 2, "images_encoded": 5,
    "texts_encoded": 6, "usd": 0.25,
}
FINDINGS = {
    "pairs": 4, "scored": 3, "unscored": {"not_finite": 1},
    "counts": {"not_finite": 1, "tiny_image": 2},
    "examples": [{
        "code": "not_finite", "item": "pair", "item_id": "000-00|000",
        "message": "The score is «NaN».", "scored": True,
    }],
    "environment": {"device": "cpu", "precision": "float32"},
    "orders": {"comparisons": 6, "alike": 0.75, "alike_low": 0.375, "first": 0.625, "one_order": 1},
}
TRUST = {
    "benchmark": "toy", "n_pairs": 4, "n_images": 2, "n_scored": 3, "spread": 0.25, "limit": 0.01,
    "environment": {"device": "cuda"},
    "checks": [{
        "name": "order", "n_pairs": 4, "mean": 0.125, "largest": 0.5, "n_lost": 1, "passed": False,
        "example": {"pair_id": "000-00|000", "before": 0.5, "after": None},
    }],
    "precision": {
        "n_pairs": 4, "mean": 0.001, "largest": 0.002, "n_lost": 1, "reference": {"device": "cpu"},
    },
    "prompt": {
        "verdict": "blind", "why_not": "«few»", "n_prompts": 24, "n_images": 23, "n_cells": 576,
        "n_missing": 24, "prompt_share": 0.25, "image_share": 0.5, "both_share": 0.25,
        "match": 0.01, "match_se": 0.02, "raw": {"value": 0.5, "low": 0.45, "high": 0.55},
        "centred": {"value": 0.5, "low": 0.44, "high": 0.56},
        "within": {"value": 0.5, "low": 0.4, "high": 0.6},
        "empty_change": -0.125, "n_empty": 24, "n_empty_missing": 1,
    },
    "content": {
        "verdict": "moved", "why_not": "few scores", "spread": 0.3,
        "changes": [
            {"name": "saturation", "verdict": "moved", "value": 0.75, "low": 0.625, "high": 0.875,
             "n_images": 23, "n_missing": 1},
        ],
    },
    "cleared": "Random on purpose.",
}
MODEL_CARD = {
    "model": "ada/painter", "revision": SHA[:40], "parameters": 860000000, "steps": 28,
    "guidance": 7.5, "drawn_on": "2026-01-02", "released": "2025-11-03", "selection": "best_of", "best_of": 4,
    "selected_by": "a «person»",
}
IMAGES = {
    "prompt_set": "demo_prompts", "revision": "demo-1", "seeds": [42, 18446744073709551615],
    "wanted": 152, "present": 150, "withheld": {"nsfw": 2}, "n_bytes": 123456789,
    "sizes": {"512x512": 149, "512x640": 1},
    "shared": [{
        "submission_id": "painter-0123456789", "n_images": 3, "examples": [["color_simple_1", 42]],
    }],
}
JUDGE = {
    "submission_id": "colour-reader-0123456789", "metric": "colour reader", "version": "1.2",
    "lower_is_better": True, "isolation": ["bubblewrap"], "cost": COST,
    "unscored": {"not_finite": 1}, "contract": 2, "reused": 5, "perturbed": 76,
    "mean_change": 0.125, "max_change": 0.5, "failed": "It «broke».", "scored_at": AT,
}
SUBMISSION = {
    "submission_id": "colour-reader-0123456789", "kind": "metric", "name": "colour reader",
    "version": "1.2", "metrics": ["colour reader"], "benchmarks": ["toy", "other"],
    "metric_benchmarks": {"colour reader": ["toy"]},
    "submitter": "Ada Lovelace", "description": "Läuft auf «Farben».",
    "authors": ["Ada Lovelace", "Alan Turing"], "licence": "mit",
    "links": {"paper": "https://example.org/paper"}, "lower_is_better": ["colour reader"],
    "trained_on": ["other"], "method": "compare",
    "flops_per_pair": {"colour reader": 98600000000.0},
    "account": "hub:ada", "private": False, "same_content_as": ["grey-0123456789"],
    "receipt": {
        "content_sha256": SHA, "versions": {"python": "3.11.7"}, "isolation": ["bubblewrap"],
        "benchmark": "toy", "pairs": 4, "scores_sha256": SHA, "checked_at": AT,
    },
    "models": [f"owner/name@{SHA[:40]}"], "template": "plain",
    "released_with": "Somebody: A paper. 2026. arXiv:2601.00001",
    "source": f"hub:ada/reader@{SHA[:40]}", "content_sha256": SHA, "archive": f"uploads/{SHA}.zip",
    "entry_point": "scorer:Scorer", "weights": "weights.safetensors",
    "environment": f"requirements.lock@{SHA}", "model_card": MODEL_CARD,
    "images": IMAGES, "received_at": AT,
}
EVENT = {
    "at": AT, "state": "failed", "by": "worker-1", "reason": "It «broke».", "hint": "Mend it.",
    "code": "scorer_failed", "fault": "submitter", "lease_until": LATER,
    "log": "Traceback\n  ValueError: ü\n", "nonce": "f00d", "benchmarks": ["other"],
}
STATUS = {
    "submission": SUBMISSION, "state": "scoring", "since": AT, "by": "worker-1", "reason": "Again.",
    "hint": "Wait.", "code": "again", "fault": "world", "attempts": 2, "lease_until": LATER,
    "on_boards": True, "scored_at": AT, "again_on": ["other"], "cleared": "Random on purpose.",
}
RECEIVED = {"submission": SUBMISSION, "events": [EVENT]}
RESULT = {
    "submission_id": "colour-reader-0123456789", "benchmark": "toy", "revision": "2", "protocol": 3,
    "contract": 4,
    "rows": [{
        "benchmark": "toy", "revision": "2", "metric": "colour reader", "measure": "mean",
        "value": 0.1234567890123456, "n_items": 4, "n_clusters": 2,
    }],
    "resampling_seed": 18446744073709551615, "n_resamples": 1000,
    "isolation": ["bubblewrap", "seccomp"], "versions": {"numpy": "2.4.6"},
    "sources": {"toy.csv": SHA}, "cost": COST, "findings": FINDINGS,
    "repaired": {"colour reader": 1}, "trust": TRUST, "scores_sha256": {"colour reader": SHA},
    "outputs": {"colour reader": {"findings": FINDINGS, "trust": TRUST}},
    "same_scores_as": ["grey-0123456789"],
    "metrics_same_as": {"colour reader": ["grey-0123456789"]},
    "judges": {"colour-reader-0123456789/colour reader": JUDGE}, "pictures": 3, "judged_at": AT,
}
MODEL = {
    "submission_id": "painter-0123456789", "model": "painter", "version": "1.2",
    "submitter": "Ada Lovelace", "account": "hub:ada", "description": "Malt «Farben».",
    "authors": ["Ada Lovelace"], "licence": "mit", "links": {"paper": "https://example.org/paper"},
    "card": MODEL_CARD, "images": IMAGES,
    "judges": {"colour-reader-0123456789/colour reader": JUDGE}, "pictures": 3,
    "same_content_as": ["sketcher-0123456789"], "received_at": AT, "published_at": AT,
    "since": LATER,
}
BAN = {"account": "hub:eve", "reason": "Spam «again».", "by": "local:olga", "at": AT}
PINS = {
    "pins": [{
        "prompt_set": "demo_prompts", "skill": "count",
        "metric": "colour-reader-0123456789/colour reader", "verdict": "distrust",
        "reason": "Sie wurde daran «trainiert».", "by": "hub:olga", "at": AT,
    }],
}
POLICY = {
    "period_days": 3, "reevaluate": False,
    "allowances": {
        "metric": {"scored": 1, "unfinished": 2}, "scores": {"scored": 3, "unfinished": 4},
        "generations": {"scored": 5, "unfinished": 6},
    },
}
LINE = {
    "n": 7, "at": AT, "by": "local:olga", "action": "hidden", "subject": "colour-reader-0123456789",
    "reason": "Läuft nicht.", "record": SHA, "before": SHA,
}
HANDED_OVER = {
    "submission_id": "colour-reader-0123456789", "benchmark": "toy", "revision": "2", "tag": "t1",
    "worker": "worker-1", "scores_sha256": SHA, "isolation": ["bubblewrap"], "cost": COST,
    "findings": FINDINGS, "trust": TRUST, "contract": 4,
    "outputs": {"colour reader": {"findings": FINDINGS, "trust": TRUST}},
    "judges": {"colour-reader-0123456789/colour reader": JUDGE}, "output": "scored 4 pairs\n",
}
EDITION = {"revision": "2", "protocol": 3, "contract": 4}
ANNOUNCED = {
    "benchmark": "toy", "before": {"revision": "1", "protocol": 2, "contract": 3},
    "edition": EDITION, "at": AT, "by": "local:olga", "reason": "New «data».",
}
POLL = {
    "prompt_set": "demo_prompts", "revision": "demo-1",
    "models": ["painter-0123456789", "sketcher-0123456789"], "is_open": False,
    "opened_by": "local:olga", "opened_at": AT, "closed_at": LATER, "seed": 9223372036854775807,
    "key": SHA,
    "gold": [{
        "prompt_id": "color_simple_1",
        "better": {"submission_id": "painter-0123456789", "prompt_id": "color_simple_1", "seed": 42},
        "worse": {
            "submission_id": "painter-0123456789", "prompt_id": "color_simple_2",
            "seed": 18446744073709551615,
        },
    }],
    "shares": {"gold": 0.0625, "repeat": 0.125, "failure": 0.1875},
}
VOTE = {
    "ballot": {
        "ballot_id": "0123456789abcdef0123456789abcdef", "account": "hub:ada", "number": 7,
        "prompt_id": "color_simple_1",
        "left": {"submission_id": "painter-0123456789", "prompt_id": "color_simple_1", "seed": 42},
        "right": {"submission_id": "sketcher-0123456789", "prompt_id": "color_simple_1", "seed": 1},
        "purpose": "repeat", "pair_probability": 0.3333333333333333, "prompt_probability": 0.0625,
        "repeats": "fedcba9876543210fedcba9876543210", "gold": "left", "issued_at": AT,
    },
    "answer": {
        "ballot_id": "0123456789abcdef0123456789abcdef", "choice": "both_bad", "answered_at": LATER,
        "hasty": True,
    },
}
SHARE = {"value": 0.125, "low": 0.0625, "high": 0.25}
VOTE_RESULTS = {
    "prompt_set": "demo_prompts", "revision": "demo-1", "number": 2, "cut_at": AT, "n_given": 90,
    "n_votes": 70, "n_raters": 5, "n_careless": 1, "n_left_out": 9, "n_banned": 1, "n_of_banned": 5,
    "n_off_boards": 2, "n_withheld": 4, "n_gold": 4, "n_repeated": 3, "n_failure": 2, "n_hasty": 1, "alpha": 0.75, "alike_again": 0.875, "equal": SHARE,
    "both_bad": SHARE,
    "models": [{
        "submission_id": "painter-0123456789", "title": "painter 1.2", "n_votes": 35,
        "strength": 0.5, "strength_low": 0.25, "strength_high": 0.75, "win_rate": 0.625,
        "win_rate_low": 0.5, "win_rate_high": 0.75, "rank": 1, "rank_low": 1, "rank_high": 2,
        "group": 0, "both_bad": SHARE,
    }],
}
# fmt: on
