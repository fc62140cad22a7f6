"""The page of one episode: what was hidden, what the agent did about it, and when it noticed."""
