"""PPO as kernels: the same bits natively and in WebAssembly, where the page trains without a server."""
