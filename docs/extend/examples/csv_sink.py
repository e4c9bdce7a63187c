"""A sink that writes a few metrics to a CSV file in the run's folder."""

import csv

from pydantic import Field

from surefoot import FileSink, PartSettings


class CSVSink(FileSink):
    """One line per record; an empty cell where a record lacks a metric."""

    class Settings(PartSettings):
        """Settings under `log.sinks.<name>`."""

        file: str = Field(
            "metrics.csv", min_length=1, description="name of the file in the run's folder"
        )
        columns: list[str] = Field(["rollout/ep_rew_mean"], description="metrics to write")

    def __init__(self, folder, config, settings):
        self.columns = settings.columns
        self.file = (folder / settings.file).open("a", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file)
        if self.file.tell() == 0:  # a resumed run appends
            self.writer.writerow(["step", *self.columns])

    def write(self, step, metrics):
        self.writer.writerow([step, *(metrics.get(name, "") for name in self.columns)])
        self.file.flush()

    def close(self):
        self.file.close()
