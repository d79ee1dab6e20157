# The web app alone: docker build -t inf-studio .
# With jobs (training, maps, embedding): docker build --build-arg EXTRAS=train -t inf-studio-jobs .
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir -c constraints.txt build hatchling \
    && /opt/build/bin/python -m build --wheel --no-isolation --outdir /dist .
ARG EXTRAS=""
RUN python -m venv /opt/inf-studio \
    && wheel="$(ls /dist/*.whl)" \
    && /opt/inf-studio/bin/pip install --no-cache-dir -c constraints.txt \
        "${wheel}${EXTRAS:+[${EXTRAS}]}"

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
