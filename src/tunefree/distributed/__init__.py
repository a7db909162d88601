"""Learning from more rows than one machine holds: on Dask, whose workers learn shards that are merged."""

from tunefree.distributed.engines import local_cluster
from tunefree.distributed.training import train

__all__ = ["local_cluster", "train"]
