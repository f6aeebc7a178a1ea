"""`wedgehog init`: reads the project in the working folder, proposes an agent, and writes its first spec."""
