"""Impacted selection: which tests can a change reach, found without importing the tested project.

Every tracked file is read into *facts* (what it imports, which modules, files and directories it names), facts become
the edges of one graph, and a test is selected when a changed file is reachable from it. Unsure means run it.
"""
