# Moorage as an image: docker build -t moorage:0.1.0 .
#
# Both stages are the same image, so that the environment, whose interpreter is a link, can be copied as it is. It is
# Debian's and not Alpine's or a "distroless" one: numpy, orjson and uvloop come as wheels for glibc, on amd64 and arm64
# alike, so nothing is compiled; and Python is the one that the tests run with. The shell in it is never used.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# What it needs changes more seldom than itself: a layer of its own.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/moorage \
 && /opt/moorage/bin/python -m pip install --require-hashes --only-binary=:all: -r requirements.lock \
 && python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --require-hashes --only-binary=:all: -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY crds crds
COPY operator operator
# Neither pip nor the tests of libraries are of use in there; bytecode is, since nothing can be written later.
RUN /opt/build/bin/python -m hatchling build --target wheel --directory /src/dist \
 && /opt/moorage/bin/python -m pip install --no-deps --no-index /src/dist/*.whl \
 && /opt/moorage/bin/python -m pip uninstall --yes pip \
 && find /opt/moorage -type d -name tests -prune -exec rm -rf {} + \
 && /opt/moorage/bin/python -m compileall -q /opt/moorage/lib \
 && /opt/moorage/bin/moorage --version

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="Moorage" \
      org.opencontainers.image.description="A Kubernetes scheduler in Python" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/moorage /opt/moorage
# The user is in no list, but libraries ask for a home (while they are imported) and for a name.
ENV HOME=/tmp USER=moorage PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /tmp
EXPOSE 10269
# For Docker and Podman; Kubernetes has the probes of the chart. The path is that of `moorage run` without options.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
  CMD ["/opt/moorage/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:10269/healthz', timeout=4)"]
ENTRYPOINT ["/opt/moorage/bin/moorage"]
CMD ["run"]
