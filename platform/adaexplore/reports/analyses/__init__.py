"""Analyses: one module a group of questions, each from the evidence to tables, figures and a sentence."""
