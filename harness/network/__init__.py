"""Networks: links between an agent and what it talks to, and the wire faults that strike them."""
