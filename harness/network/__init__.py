"""Networks: links between an agent and its upstreams, on which wire faults are armed."""
