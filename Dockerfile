# README's two commands in a container, with the locked versions:
#   docker build -t privreg . && docker run --rm -v "$PWD/results:/privreg/results" privreg
FROM python:3.12-slim-bookworm
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /privreg
COPY . .
RUN make setup
CMD ["make"]
