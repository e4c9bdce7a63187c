# CPU image: docker build -t surefoot . && docker run --rm -v "$PWD/runs:/data/runs" surefoot train CartPole-v1
FROM python:3.11-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY . /source
# This index adds torch without CUDA, which pip prefers: its version 2.13.0+cpu is higher than PyPI's 2.13.0.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --constraint /source/constraints.txt --extra-index-url "$TORCH_INDEX" /source

FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends libegl1 libgl1 libgl1-mesa-dri \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH MUJOCO_GL=egl
WORKDIR /data
ENTRYPOINT ["surefoot"]
CMD ["--help"]
