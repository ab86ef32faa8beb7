"""Track files: centreline and raceline tables, read and written, and the import of a track."""
