"""Stages that measure sound levels: BS.1770, IEC 61672, IEC 61260, and narrow bands."""
