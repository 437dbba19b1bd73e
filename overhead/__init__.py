"""What a call costs, eager and compiled, and where the time goes: the measuring behind ``tandem overhead``."""
