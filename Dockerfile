# A server of translations without a model, which is mounted:
#
#     docker build --tag nmt-serve .
#     docker run --rm --read-only --publish 127.0.0.1:5000:5000 --volume "$PWD/runs/demo:/model:ro" nmt-serve
#
# See docs/serving.md. Whatever follows the image's name is added to the options of nmt-serve.
FROM python:3.12-slim

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY nmt ./nmt
COPY configs ./configs
# PyTorch's own index has a build without CUDA, which is a gigabyte instead of six.
RUN pip install --no-cache-dir --constraint constraints.txt --no-deps \
        --index-url https://download.pytorch.org/whl/cpu torch \
    && pip install --no-cache-dir --constraint constraints.txt '.[serve,detect]' \
    && rm -rf /src/*

WORKDIR /
USER 65534:65534
ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1
EXPOSE 5000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:5000/health', timeout=4)"]
# Inside a container loopback is the container's own, so the server listens on all addresses; --publish says who may ask.
ENTRYPOINT ["nmt-serve", "--host", "0.0.0.0", "--model", "/model"]
