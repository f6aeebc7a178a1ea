"""Virtual time: an event loop whose clock jumps, TCP in memory, and the network `sim` on both."""
