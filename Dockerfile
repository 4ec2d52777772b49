# README's commands in a container, with the locked versions, for any user of the machine:
#   docker build -t privreg .
#   docker run --rm --user "$(id -u)" -v "$PWD/results:/privreg/results" privreg
FROM python:3.12-slim-bookworm
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/* && git config --system --add safe.directory /privreg \
    && useradd --create-home privreg
WORKDIR /privreg
COPY . .
RUN make setup && chmod -R a+rwX .
# `--software-deployment-method apptainer` finds the packages there; no home is needed.
ENV PATH=/privreg/.venv/bin:$PATH HOME=/tmp
USER privreg
CMD ["make"]
