"""What a jitted function is made of: arguments, guards, specializations, results, stages."""
