"""Pictures of lines, areas, dots and texts, drawn with numpy and Pillow."""
