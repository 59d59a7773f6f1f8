"""StreamBench: programs with one known stream hazard each, their repaired twins, look-alikes, and what a tool says of them."""
