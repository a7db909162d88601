"""Training on more rows than fit on one machine: Dask workers learn shards, whose results are merged."""

from tunefree.distributed.engines import local_cluster
from tunefree.distributed.training import train

__all__ = ["local_cluster", "train"]
