# One image for the launcher, the Ray head, its workers, the reaper and the MLflow server.
#
#   docker build --build-arg REVISION=$(git rev-parse HEAD) -t adaexplore .
#
# BASE is any Debian or Ubuntu with Python 3.11 or newer and its venv module. A tag moves: for results that are
# reported, name a digest (docker buildx imagetools inspect python:3.11-slim-bookworm shows it), as in
# --build-arg BASE=python:3.11-slim-bookworm@sha256:...; the Python in it is what a sweep's frozen file is
# compared with. A machine whose pip needs settings hands them over for the build alone:
# --secret id=pip,src=pip.conf.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
# Two environments: what builds stays here.
COPY requirements-build.lock requirements-image.lock ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv tools \
 && python3 -m venv --without-pip /opt/adaexplore \
 && tools/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements-build.lock \
 && tools/bin/pip --python /opt/adaexplore/bin/python install \
      --no-cache-dir --no-compile --require-hashes -r requirements-image.lock
COPY pyproject.toml README.md LICENSE LICENSE-DATA requirements.lock ./
COPY conf conf
COPY platform platform
COPY jobs /opt/adaexplore/jobs
# Bytecode is written now, by all cores: the user of the image may not write there.
RUN tools/bin/pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir . . \
 && tools/bin/pip --python /opt/adaexplore/bin/python install --no-index --no-deps --no-compile *.whl \
 && { /opt/adaexplore/bin/python -m compileall -q -j 0 -x '/tests/' /opt/adaexplore/lib >/dev/null || true; }

FROM ${BASE}
ARG REVISION=unknown
LABEL org.opencontainers.image.title="adaexplore" \
      org.opencontainers.image.description="AdaExploreBench: launcher, Ray head, workers and MLflow server" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="MIT AND CC-BY-4.0"
# KubeRay's probes call wget. A login shell finds the environment too. HOME belongs to whichever user id
# a cluster assigns.
RUN command -v wget >/dev/null \
 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends wget \
      && rm -rf /var/lib/apt/lists/*; } \
 && echo 'PATH=/opt/adaexplore/bin:$PATH' > /etc/profile.d/adaexplore.sh \
 && { getent passwd 1000 || echo 'adaexplore:x:1000:1000::/home/adaexplore:/bin/bash' >> /etc/passwd; } \
 && { getent group 1000 || echo 'adaexplore:x:1000:' >> /etc/group; } \
 && install --directory --owner 1000 --group 1000 --mode 1777 /home/adaexplore
COPY --from=build /opt/adaexplore /opt/adaexplore
ENV PATH=/opt/adaexplore/bin:$PATH \
    HOME=/home/adaexplore \
    USER=adaexplore \
    PYTHONUNBUFFERED=1
WORKDIR /home/adaexplore
USER 1000:1000
ENTRYPOINT ["adaexplore"]
CMD ["--help"]
