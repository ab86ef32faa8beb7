"""The benchmark that others can enter: its protocol, entries, their verification, and the table."""
