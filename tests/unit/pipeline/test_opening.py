"""What stands around Snakemake's own `execute`."""

from snakemake.settings.types import MaxJobsPerTimespan, SchedulingSettings

from reproduction.pipeline.opening import look_at_jobs_once


def test_the_default_limit_of_jobs_a_second_goes_and_one_that_was_asked_for_stays() -> None:
    for given, left in (("100/1s", False), ("10/1m", True), ("100/2s", True)):
        settings = SchedulingSettings(max_jobs_per_timespan=MaxJobsPerTimespan.parse_choice(given))
        look_at_jobs_once(settings)
        assert (settings.max_jobs_per_timespan is not None) == left
    unlimited = SchedulingSettings()
    look_at_jobs_once(unlimited)
    assert unlimited.max_jobs_per_timespan is None


def test_the_default_is_snakemakes() -> None:
    from snakemake.cli import get_argument_parser

    given = get_argument_parser().get_default("max_jobs_per_timespan")
    settings = SchedulingSettings(max_jobs_per_timespan=MaxJobsPerTimespan.parse_choice(given))
    look_at_jobs_once(settings)
    assert settings.max_jobs_per_timespan is None
