"""Jobs: functions that run side by side, each in a process of its own, on this machine or on a Ray cluster."""
