# CPU image: docker build -t surefoot . && docker run --rm -v "$PWD/runs:/work/runs" surefoot train CartPole-v1
FROM python:3.11-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY . /source
# The index has torch without CUDA; the pins of constraints.txt still hold.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN python -m venv /opt/surefoot \
 && /opt/surefoot/bin/pip install --no-cache-dir --constraint /source/constraints.txt --index-url "$TORCH_INDEX" torch \
 && /opt/surefoot/bin/pip install --no-cache-dir --constraint /source/constraints.txt /source

FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends libgl1 libegl1 libosmesa6 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/surefoot /opt/surefoot
ENV PATH=/opt/surefoot/bin:$PATH MUJOCO_GL=osmesa
WORKDIR /work
ENTRYPOINT ["surefoot"]
CMD ["--help"]
