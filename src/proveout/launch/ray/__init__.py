"""Ray: jobs of the Jobs REST API, in a cluster that is there or in one that is started for the attempt.

Ray itself is never imported; its command line and its HTTP interface are used.
"""
