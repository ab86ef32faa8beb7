"""The simulator for programs in any language: JSON, or a binary form, over WebSocket."""
