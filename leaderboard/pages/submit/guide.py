"""What the submit page says about the form of a submission."""

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
