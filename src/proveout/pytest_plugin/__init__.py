"""A pytest plugin for any repository: tracked metrics, marks that choose what runs, impacted selection."""
