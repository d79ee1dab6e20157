# The web app alone: docker build -t inf-studio .
# With jobs (training, maps, embedding), on a machine without a GPU:
#   docker build --build-arg EXTRAS=train --build-arg TORCH_BACKEND=cpu -t inf-studio-jobs .
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
# which PyTorch an extra brings: cpu, cu130 … or auto; PyPI's build (CUDA) where it is empty
ARG TORCH_BACKEND=""
ARG EXTRAS=""
# what the source depends on, before it: a change of the source installs none of it again
COPY pyproject.toml constraints.txt ./
# hadolint ignore=DL3013
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir -c constraints.txt uv \
    && python -m venv /opt/inf-studio \
    && IFS=, && for extra in $EXTRAS; do set -- "$@" --extra "$extra"; done && unset IFS \
    && /opt/build/bin/uv pip install --no-cache --python /opt/inf-studio -c constraints.txt \
        -r pyproject.toml ${TORCH_BACKEND:+--torch-backend "$TORCH_BACKEND"} "$@"
COPY . .
RUN /opt/build/bin/uv build --wheel -b constraints.txt --out-dir /dist . \
    && /opt/build/bin/uv pip install --no-cache --python /opt/inf-studio --no-deps /dist/*.whl

FROM python:3.11-slim-bookworm
# tini passes signals to the whole process group and reaps jobs; pg_dump is for `inf store upgrade`
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends tini postgresql-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --create-home --home-dir /data inf-studio
COPY --from=build /opt/inf-studio /opt/inf-studio
ENV PATH=/opt/inf-studio/bin:$PATH \
    INF_HOME=/data \
    PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/health', timeout=8)"]
ENTRYPOINT ["tini", "-g", "--", "inf"]
CMD ["serve", "--host", "0.0.0.0"]
