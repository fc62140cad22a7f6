"""Reports: what sweeps say, as pages, tables and figures that people read.

An analysis is a function of the evidence, which is what the store holds of one or more sweeps; a page
is a function of analyses. Nothing here plays, asks or waits, and no outside service is named.
"""
