# One image for launcher and workers: the locked environment, a numeric non-root user.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
COPY requirements.lock pyproject.toml README.md LICENSE LICENSE-DATA ./
RUN python3 -m venv /opt/adaexplore \
 && /opt/adaexplore/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY conf conf
COPY platform platform
RUN /opt/adaexplore/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${BASE}
LABEL org.opencontainers.image.title="adaexplore" \
      org.opencontainers.image.licenses="MIT AND CC-BY-4.0"
COPY --from=build /opt/adaexplore /opt/adaexplore
ENV PATH=/opt/adaexplore/bin:$PATH PYTHONUNBUFFERED=1 HOME=/work
WORKDIR /work
RUN chown 10001:10001 /work
USER 10001:10001
ENTRYPOINT ["adaexplore"]
CMD ["--help"]
