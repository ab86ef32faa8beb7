"""The simulator over WebSocket, for programs in any language: JSON messages, or a binary format for speed."""
