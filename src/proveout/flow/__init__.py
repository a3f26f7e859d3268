"""Plan -> preflight -> launch -> capture -> judge -> triage -> report, composed of the rooms."""
