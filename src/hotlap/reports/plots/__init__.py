"""The pictures of a report, drawn with matplotlib."""
