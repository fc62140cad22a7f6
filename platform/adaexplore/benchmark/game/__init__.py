"""How the benchmark is played: protocol, messages, history, assessments, reference agents."""
