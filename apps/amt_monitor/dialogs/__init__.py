"""The dialogs, and the run of a calibration."""
