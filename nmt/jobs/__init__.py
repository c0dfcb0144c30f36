"""What runs for hours or in many processes: signals and a team of processes, whoever uses them, and long translations.

`in_parts`, `parts`, `records` and `resuming` are about the translations of nmt-translate, name its options, and print.
"""
