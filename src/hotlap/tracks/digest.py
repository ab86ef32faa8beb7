"""The digest of a track's road. An id may be given to another road later; a digest may not."""

import hashlib

from hotlap.sim.ribbon_nodes import RibbonNodes


def track_digest(nodes: RibbonNodes) -> str:
    """Sixteen hex digits over the centreline and the road's edges; the walls are not included."""
    digest = hashlib.sha256()
    for name in ("x_m", "y_m", "tangent_x", "tangent_y", "curvature_radpm", "road_left_m", "road_right_m"):
        digest.update(getattr(nodes, name).astype("<f8").tobytes())
    return digest.hexdigest()[:16]
