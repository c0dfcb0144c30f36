"""What runs for hours or in many processes, whoever uses it: parts that are kept, a team of processes, signals."""
