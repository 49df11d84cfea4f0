"""Threads carried over to a changed graph: pure, rows in, a diagnosis with its patch out.

A migration judges a head as a repair does, and its patch is written, verified, recorded and taken
back by the same machinery. The new checkpoint stands behind the head with the same step pending,
under other names: what belongs to the pending tasks (their writes, questions, answers, and the
sub-graphs in the middle of them) is carried over under the task ids that follow from it.
"""
