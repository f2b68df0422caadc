"""Guide on the submit page to the form of a submission."""

from __future__ import annotations

ARCHIVE_GUIDE = """
<p>A scoring module is an archive with two files; more modules, and weights as
<code>.safetensors</code>, may lie beside them. It runs without network, and sees nothing but
images and prompts.</p>
<h3><code>assay.toml</code></h3>
<pre tabindex="0">name = "my-metric"
version = "1.0"
description = "One sentence for the boards."
trained_on = []  # benchmarks it was tuned on
flops_per_pair = 9.9e10  # optional; shown as declared
models = []      # "owner/name@commit" of the Hub</pre>
<h3><code>scorer.py</code></h3>
<pre tabindex="0">class Scorer:
    def score(self, images, prompts):
        # PIL images and as many prompts
        pairs = zip(images, prompts, strict=True)
        return [my_score(i, p) for i, p in pairs]</pre>
<details data-keep="methods"><summary>Optional methods, for speed and detail</summary>
<dl class="as-terms">
<dt><code>prepare(image)</code></dt>
<dd>Prepares images ahead of scoring; the other methods are then given what it returns.</dd>
<dt><code>encode_images(images)</code>, <code>encode_texts(prompts)</code>,
<code>similarity(image_vectors, text_vectors)</code></dt>
<dd>A dual encoder: each image and each text is encoded once.</dd>
<dt><code>score_texts(images, prompts)</code></dt>
<dd>All prompts of an image at once.</dd>
<dt><code>score_elements(images, prompts, elements)</code></dt>
<dd>Scores the named parts of a prompt too.</dd>
</dl></details>
<details data-keep="models"><summary>Models of the Hub</summary>
<p>A module that needs a model too large to bundle names it, with its full commit, in
<code>models</code>. The worker fetches it beforehand; the constructor's keyword <code>models</code>
gives the folder of each. Weights must be safetensors: pickles are refused.</p></details>
<details data-keep="terminal"><summary>From a terminal</summary>
<pre tabindex="0">python -m evaluator init plain my-metric
python -m evaluator check my-metric
python -m evaluator submit my-metric</pre>
<p><code>check</code> runs it isolated on a few pairs and writes a receipt, which may be sent along:
if scores differ here, the receipt tells why.</p></details>
"""

SCORES_GUIDE = """
<p>For closed or costly metrics: a CSV or Parquet file with a column <code>pair_id</code> and one
column of numbers per metric. An empty cell means that the metric gave no score there. Such entries
carry the remark “scores as submitted, not re-run”.</p>
<pre tabindex="0">pair_id,my-metric,my-metric-large
000-00,0.73,0.81
000-01,0.12,0.09</pre>
"""

IMAGES_GUIDE = """
<p>The images that a text-to-image model drew of a prompt set, once for each seed. The metrics that
are ranked here judge them.</p>
<p>An archive (<code>.zip</code>, <code>.tar</code>, <code>.tar.gz</code>) holds:</p>
<h3><code>assay.toml</code></h3>
<pre tabindex="0">kind = "generations"
name = "my-model"
version = "1.0"
benchmark = "PROMPT_SET"
seeds = [1, 2]
# optional
model = "owner/name"   # on the Hub
steps = 28
guidance = 4.5
parameters = 2_600_000_000
selection = "first"    # or "best_of" ...
# best_of = 4          # ... of so many</pre>
<h3><code>images.jsonl</code></h3>
<pre tabindex="0">{"prompt_id": "a", "seed": 1, "file": "a_1.png"}
{"prompt_id": "b", "seed": 1, "file": null,
 "problem": "nsfw"}</pre>
<p>Each prompt and seed on a line of its own; PNG, JPEG or WebP. An image that a safety checker withheld has a
<code>problem</code> in place of a file, and counts as not given.</p>
<details data-keep="parquet"><summary>Parquet, and datasets of the Hub</summary>
<p>A Parquet file has the columns <code>prompt_id</code>, <code>seed</code> and <code>image</code>
(bytes, as Hugging Face datasets store them). Name, version and prompt set are given beside it. A
dataset of the Hub holds Parquet files with <code>assay.toml</code>, or the folder as it is; large
submissions are best sent so.</p></details>
<details data-keep="refused"><summary>What is refused, and what is flagged</summary>
<p>Everything that is wrong is listed at once: images that are missing, damaged, of one colour, the
same under two seeds, of a size that is not allowed, or drawn for another prompt. Images that
another model gave before are taken, and the boards say so.</p></details>
<details data-keep="images-terminal"><summary>From a terminal</summary>
<pre tabindex="0">python -m evaluator generate OWNER/NAME --benchmark PROMPT_SET --out my-model
python -m evaluator check my-model
python -m evaluator submit my-model --kind generations</pre></details>
"""
