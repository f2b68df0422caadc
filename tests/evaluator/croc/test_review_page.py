"""The review page over HTTP: rows, decisions, who may ask, and what is never served."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from evaluator.croc.decisions import DecisionLog
from evaluator.croc.review import Review
from evaluator.croc.review_page import marked_words, review_app
from evaluator.croc.review_set import read_review_set
from tests.evaluator.croc.folders import PAIRS, hum_folder, png

HERE = "http://127.0.0.1:7862"
IMAGE = re.compile(r'src="(image/\d+/[0-9a-f]{16})"')


@pytest.fixture
def review(tmp_path: Path) -> Review:
    folder = hum_folder(tmp_path / "hum")
    return Review(read_review_set(folder), DecisionLog(folder / "review.jsonl"), repeats=0.0)


@pytest.fixture
def client(review: Review) -> TestClient:
    return TestClient(review_app(review), base_url=HERE)


def form_of(review: Review, at: int, **said: str) -> dict[str, str]:
    row = review.digest(review.rows_of("Ada")[at])
    return {"rater": "Ada", "place": str(at), "row": row, **said}


def decide(client: TestClient, form: dict[str, str]) -> int:
    return client.post("/decide", data=form, follow_redirects=False).status_code


def test_a_rater_goes_from_row_to_row_to_the_end_and_back(
    client: TestClient, review: Review
) -> None:
    assert client.get("/").status_code == 200
    for n, row in enumerate(review.rows_of("Ada")):
        page = client.get("/review", params={"rater": " Ada "}).text
        assert f'name="place" value="{n}"' in page
        assert (page.count('type="radio"') == 4) is (None not in row.images)
        assert decide(client, form_of(review, n, prompt="keep", contrast="drop")) == 303
    assert "All done" in client.get("/review?rater=Ada").text
    back = client.post("/undo", data={"rater": "Ada"})
    assert f'name="place" value="{len(review.rows_of("Ada")) - 1}"' in back.text
    assert back.text.count("checked") == 0
    client.post("/undo", data={"rater": "Grace"})
    assert review.log.raters.keys() == {"Ada"}


def test_the_start_page_says_who_did_what_and_how_far_they_agree(
    client: TestClient, review: Review
) -> None:
    for rater in ("Ada", "<i>Grace</i>"):
        for n, row in enumerate(review.rows_of(rater)):
            review.decide(
                rater, n, tuple(None if i is None else "image1" in i.path for i in row.images)
            )
    page = client.get("/").text
    assert "&lt;i&gt;Grace&lt;/i&gt;" in page and "<i>" not in page
    assert "6 of 6 rows" in page and "Counting" in page and "1.000" in page


def test_prompts_and_names_are_text_and_what_differs_is_marked(client: TestClient) -> None:
    page = client.get("/review", params={"rater": '"><script>x</script>'}).text
    assert "<script>x" not in page
    assert "<b>box</b>" not in page
    assert marked_words("Two red cups.", "Three red cups!") == (
        [("Two", True), (" red cups.", False)], [("Three", True), (" red cups!", False)],
    )  # fmt: skip
    assert marked_words("A cat", "A cat there") == (
        [("A cat", False)],
        [("A cat", False), (" there", True)],
    )


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"prompt": "keep"}, 400),
        ({"prompt": "keep", "contrast": "maybe"}, 422),
        ({"prompt": "keep", "contrast": "drop", "place": "99"}, 400),
        ({"prompt": "keep", "contrast": "drop", "place": "-1"}, 422),
        ({"prompt": "keep", "contrast": "drop", "rater": " "}, 400),
        ({"prompt": "keep", "contrast": "drop", "rater": "x" * 61}, 400),
        ({"prompt": "keep", "contrast": "drop", "rater": "a\u202eb"}, 400),
    ],
)
def test_what_is_no_decision_is_not_recorded(
    client: TestClient, review: Review, said: dict[str, str], status: int
) -> None:
    both = next(n for n, row in enumerate(review.rows_of("Ada")) if None not in row.images)
    assert decide(client, form_of(review, both, **said)) == status
    assert review.votes() == {}


@pytest.mark.parametrize("change", ["seed", "pairs", "text"])
def test_a_decision_about_another_row_than_is_there_now_is_not_recorded(
    review: Review, tmp_path: Path, change: str
) -> None:
    pairs = dict(PAIRS)
    if change == "pairs":
        pairs |= {f"counting_{n}": ("One cup.", "No cup.", 2, 2) for n in range(2, 9)}
    if change == "text":
        pairs = {pair: (f"{said[0]}!", *said[1:]) for pair, said in pairs.items()}
    again = Review(
        read_review_set(hum_folder(tmp_path / "again", pairs)),
        review.log,
        seed=change == "seed",
        repeats=0.0,
    )
    rows = zip(review.rows_of("Ada"), again.rows_of("Ada"), strict=False)
    place = next(n for n, (was, now) in enumerate(rows) if review.digest(was) != again.digest(now))
    client = TestClient(review_app(again), base_url=HERE)
    form = form_of(review, place, prompt="keep", contrast="keep")
    answer = client.post("/decide", data=form, follow_redirects=False)
    assert answer.status_code == 409 and again.votes() == {}
    now = again.rows_of("Ada")[place]
    form["row"] = again.digest(now)
    assert f'name="row" value="{form["row"]}"' in answer.text
    assert decide(client, form) == 303 and len(again.votes()) == len(now.shown_images)


def test_an_image_replaced_while_a_rater_looks_is_shown_before_it_is_decided(
    client: TestClient, review: Review
) -> None:
    form = form_of(review, 0, prompt="keep", contrast="keep")
    for image in review.rows_of("Ada")[0].images:
        if image is not None:
            (review.images.root / image.path).write_bytes(png(77))
    assert decide(client, form) == 409 and review.votes() == {}
    assert decide(client, form_of(review, 0, prompt="keep", contrast="keep")) == 303


def test_another_file_has_another_address(review: Review, tmp_path: Path) -> None:
    def addresses(of: Review) -> tuple[TestClient, set[str]]:
        client = TestClient(review_app(of), base_url=HERE)
        return client, set(IMAGE.findall(client.get("/review?rater=Ada").text))

    client, first = addresses(review)
    folder = hum_folder(tmp_path / "other")
    _, others = addresses(Review(read_review_set(folder), review.log, repeats=0.0))
    assert first and not first & others
    for image in review.images.root.rglob("*.png"):
        image.write_bytes(image.read_bytes() + b"more")
    _, later = addresses(review)
    assert len(later) == len(first) and not first & later
    assert {client.get(f"/{one}").status_code for one in first} == {404}
    assert {client.get(f"/{one}").status_code for one in later} == {200}


def test_only_images_of_the_folder_are_served(client: TestClient, review: Review) -> None:
    page = client.get("/review?rater=Ada").text
    shown = IMAGE.findall(page)[0]
    answer = client.get(f"/{shown}")
    assert answer.headers["content-type"] == "image/png" and answer.content[1:4] == b"PNG"
    assert answer.headers["x-content-type-options"] == "nosniff"
    for address in (
        f"image/99/{shown.rpartition('/')[2]}",
        f"image/-1/{shown.rpartition('/')[2]}",
        "image/0/0",
        "image/0",
        "image/..%2f..%2fsecret",
        "..%2fpyproject.toml",
        "x.css",
    ):
        assert client.get(f"/{address}").status_code in (404, 422), address
    first = review.rows_of("Ada")[0].images[0]
    assert first is not None
    (review.images.root / first.path).unlink()
    (review.images.root / first.path).symlink_to("/etc/hostname")
    for address in IMAGE.findall(client.get("/review?rater=Ada&place=0").text)[:1]:
        assert client.get(f"/{address}").status_code == 404


def test_every_answer_says_what_a_browser_may_load(client: TestClient) -> None:
    for address in ("/", "/review?rater=Ada", "/style.css", "/review.css", "/review.js"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "script-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"origin": HERE}, 303),
        ({"origin": "http://elsewhere.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"host": "["}, 403),
        ({"host": "elsewhere.example"}, 400),
    ],
)
def test_pages_of_other_sites_decide_nothing(
    client: TestClient, review: Review, headers: dict[str, str], status: int
) -> None:
    form = form_of(review, 0, prompt="keep", contrast="keep")
    answer = client.post("/decide", data=form, headers=headers, follow_redirects=False)
    assert answer.status_code == status


def test_beyond_this_machine_an_address_needs_the_token_once(review: Review) -> None:
    client = TestClient(review_app(review, "a-long-enough-token"), base_url="http://box.example")
    assert client.get("/").status_code == 403
    assert client.get("/image/0/x", params={"token": "another"}).status_code == 403
    entered = client.get("/", params={"token": "a-long-enough-token"})
    assert entered.status_code == 200
    cookie = entered.history[0].headers["set-cookie"].lower()
    # A strict cookie is not sent after a redirect that began on another site's page, as a link does.
    assert "httponly" in cookie and "samesite=lax" in cookie
    image = IMAGE.findall(client.get("/review?rater=Ada").text)[0]
    assert client.get(f"/{image}").status_code == 200


def test_what_does_not_count_is_told(client: TestClient, review: Review) -> None:
    review.log.path.write_text("no line\n")
    page = client.get("/").text
    assert "review.jsonl: 1 lines" in page
