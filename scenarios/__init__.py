"""Stories: the stock scenarios and the specimen agents that go with them. Data, never executed by the harness."""
