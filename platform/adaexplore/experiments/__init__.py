"""How experiments are run: configuration, identity, records, plans, and what is made of them.

Names no outside service: stores, trackers and models come in through the seams defined here.
"""
