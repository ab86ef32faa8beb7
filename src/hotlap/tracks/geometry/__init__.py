"""The shape of a track: splines, roads, walls and the nodes that the simulator drives on."""
