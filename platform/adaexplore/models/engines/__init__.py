"""Engines that serve open models, wherever they run: how they are started, asked, watched, understood.

`words` (the command line), `asking` (over HTTP), `progress` (whether one gets anywhere), `reasons` (what
its log means). Whoever runs engines, as processes or as pods, builds on these.
"""
