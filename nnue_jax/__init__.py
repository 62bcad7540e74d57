"""Networks that evaluate positions: their files, their features, and several evaluators with one meaning.

`reference` is the specification in NumPy. Every other evaluator equals it bit for bit.
"""
