"""AdaExploreBench and its experiment platform."""
