"""Speed and memory against peers: ratios within one run, never bare seconds. `make bench` runs them all."""
